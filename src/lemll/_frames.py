"""Frames of pandas, polars and others at the edge, through narwhals; arrays everywhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lemll._validation import is_sparse
from lemll.exceptions import import_extra

__all__ = ["FrameKind", "check_same_rows", "is_frame", "read_frame", "row_index"]

_PURPOSE = "Taking labels from a frame"


@dataclass(frozen=True, slots=True)
class FrameKind:
    """The library a frame came from, and the names of its columns."""

    implementation: Any
    names: tuple[str, ...]

    @property
    def has_index(self) -> bool:
        """Whether frames of that library name their rows."""
        return bool(self.implementation.is_pandas_like())

    def make(self, values: npt.NDArray[Any], X: Any) -> Any:
        """Return `values` (n, l) as a frame of that library, with X's index if both have one."""
        narwhals = import_extra("narwhals", "frames", _PURPOSE)
        frame = narwhals.from_numpy(
            np.ascontiguousarray(values), schema=list(self.names), backend=self.implementation
        ).to_native()
        index = row_index(X)
        if self.has_index and index is not None:
            frame.index = index
        return frame


def row_index(X: Any) -> Any:
    """Return the names of the rows of a pandas frame or column; None for anything else."""
    index = getattr(X, "index", None)
    return index if hasattr(index, "equals") else None


def check_same_rows(X: Any, y: Any) -> None:
    """Refuse labels whose rows have other names than those of the features, or another order.

    Parameters
    ----------
    X, y : object
        What the caller gave as features and labels. Without an index on both there is nothing to
        compare, and rows belong together by their order.
    """
    ours, theirs = row_index(X), row_index(y)
    if ours is None or theirs is None or len(ours) != len(theirs) or ours.equals(theirs):
        return
    row = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
    raise ValueError(
        f"the index of y must be that of X, but row {row} is {ours[row]!r} in X and "
        f"{theirs[row]!r} in y; align them with y.loc[X.index], or, if the rows belong together as "
        "they are, pass y.set_axis(X.index)."
    )


def is_frame(y: Any) -> bool:
    """Tell whether `y` is a table with named columns rather than an array."""
    return hasattr(y, "columns") and not is_sparse(y) and not isinstance(y, np.ndarray)


def read_frame(y: Any) -> tuple[npt.NDArray[Any], FrameKind]:
    """Take a frame apart into an array and what is needed to build such a frame again.

    Parameters
    ----------
    y : frame
        Of pandas, polars, pyarrow or another library that narwhals knows.

    Returns
    -------
    values : ndarray of shape (n_rows, n_columns)
        Its cells.
    kind : FrameKind
        Its library and column names.
    """
    narwhals = import_extra("narwhals", "frames", _PURPOSE)
    frame = narwhals.from_native(y, eager_only=True)
    names = tuple(frame.columns)
    odd = [name for name in names if not isinstance(name, str)]
    if odd:
        raise ValueError(
            f"label columns must have text names, got {odd[0]!r} of type {type(odd[0]).__name__}; "
            "rename them, for example with Y.columns = Y.columns.astype(str)."
        )
    return np.asarray(y), FrameKind(frame.implementation, names)
