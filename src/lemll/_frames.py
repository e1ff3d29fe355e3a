"""Frames of pandas, polars and others at the edge, through narwhals; arrays everywhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lemll._validation import is_sparse
from lemll.exceptions import import_extra

__all__ = ["FrameKind", "is_frame", "read_frame"]

_PURPOSE = "Taking labels from a frame"


@dataclass(frozen=True, slots=True)
class FrameKind:
    """The library a frame came from, and the names of its columns."""

    implementation: Any
    names: tuple[str, ...]

    def make(self, values: npt.NDArray[Any], X: Any) -> Any:
        """Return `values` (n, l) as a frame of that library, with X's index if both have one."""
        narwhals = import_extra("narwhals", "frames", _PURPOSE)
        frame = narwhals.from_numpy(
            np.ascontiguousarray(values), schema=list(self.names), backend=self.implementation
        ).to_native()
        index = getattr(X, "index", None)
        if hasattr(frame, "index") and hasattr(X, "columns"):
            frame.index = index
        return frame


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
