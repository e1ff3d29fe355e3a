"""Hide labels of the training rows, to measure what learners make of incomplete labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lemll._types import Array, FloatArray
from lemll.experiments.protocols.names import unknown_name

__all__ = ["Hide"]

_KINDS = ("cells", "positives", "rows")
# The halves also come from a generator that the number of the split seeds. Without this number,
# the order of the hidden rows could depend on that of the training rows.
_STREAM = 1_717


@dataclass(frozen=True, slots=True)
class Hide:
    """A rule that makes labels of the training rows unknown. Test rows stay complete.

    The order in which cells or rows are hidden depends on the split and its seed, but not on the
    share. So all methods see the same labels, and what is hidden at a share of 0.3 is also hidden
    at a share of 0.6.

    Attributes
    ----------
    kind : {"cells", "positives", "rows"}
        "cells" hides this share of all known cells of the training rows, relevant or not.
        "positives" hides this share of the cells with the value 1; every 0 stays known. "rows"
        hides all cells in this share of the training rows.
    share : float
        Between 0 and 1. The number of hidden cells or rows is the nearest whole number.

    Examples
    --------
    >>> import numpy as np
    >>> Hide("rows", 0.5).apply(np.array([[1, 0], [0, 1], [1, 1], [0, 0]]), seed=(0,))
    array([[nan, nan],
           [ 0.,  1.],
           [ 1.,  1.],
           [nan, nan]])
    """

    kind: Literal["cells", "positives", "rows"]
    share: float

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(unknown_name("kind of hide", self.kind, _KINDS))
        number = isinstance(self.share, int | float) and not isinstance(self.share, bool)
        if not (number and 0 < self.share < 1):
            raise ValueError(
                f"share of hide must be a number between 0 and 1, got {self.share!r}; leave hide "
                "out to keep all labels."
            )
        object.__setattr__(self, "share", float(self.share))

    def __str__(self) -> str:
        return f"{100 * self.share:g} % of the {self.kind} hidden"

    @property
    def key(self) -> str:
        """The rule in the fewest words, for tables of results."""
        return f"{self.kind} {self.share:g}"

    def apply(self, Y: Array, *, seed: tuple[int, ...]) -> FloatArray:
        """Return the labels with NaN in the hidden cells.

        Parameters
        ----------
        Y : ndarray of shape (n_samples, n_labels)
            The labels of the training rows, 0/1; NaN in cells that nobody observed.
        seed : tuple of int
            Seed of the order in which cells or rows are hidden.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            A new array.

        Raises
        ------
        ValueError
            If nothing would stay known.
        """
        hidden: FloatArray = np.array(Y, dtype=np.float64)
        if self.kind == "rows":
            candidates = np.arange(len(hidden))
        else:
            known = hidden == 1 if self.kind == "positives" else ~np.isnan(hidden)
            candidates = np.flatnonzero(known)
        count = round(self.share * len(candidates))
        if count == len(candidates):
            raise ValueError(
                f"{self} leaves none of {count} {self.kind} in the training rows; lower the share."
            )
        # The legacy generator gives the same order in all versions of NumPy.
        order = np.random.RandomState([_STREAM, *seed]).permutation(len(candidates))
        chosen = candidates[order[:count]]
        if self.kind == "rows":
            hidden[chosen] = np.nan
        else:
            hidden.flat[chosen] = np.nan
        return hidden
