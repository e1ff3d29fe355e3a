"""Make sparse matrices from the parts in a file, after a check of these parts."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from lemll._types import Array

__all__ = ["compressed_matrix"]


def compressed_matrix(
    make: Any,
    values: Array,
    indices: Array,
    starts: Array,
    shape: tuple[int, int],
) -> Any:
    """Make a CSR or CSC array, and check that every index is inside its shape.

    The conversions of SciPy do not check the parts, so a wrong index would write out of bounds.

    Parameters
    ----------
    make : type
        ``sparse.csr_array`` or ``sparse.csc_array``.
    values, indices, starts : ndarray
        The stored values, their positions in the row (CSR) or column (CSC), and the position at
        which each row or column begins. `values` and `indices` may be longer than needed.
    shape : tuple of int
        Rows and columns.

    Returns
    -------
    csr_array or csc_array
        The matrix. Parts are copied only if their type must change.

    Raises
    ------
    ValueError
        If the parts are not consistent.
    """
    if min(shape) < 0:
        raise ValueError(f"the shape {shape} is negative")
    if any(part.ndim != 1 for part in (values, indices, starts)):
        raise ValueError("each part must be one-dimensional")
    if any(part.dtype.kind not in "iu" for part in (indices, starts)):
        raise ValueError("indices and starts must be whole numbers")
    major, minor = shape if make is sparse.csr_array else shape[::-1]
    if starts.size != major + 1:
        raise ValueError(f"got {starts.size} starts, expected {major + 1}")
    if starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise ValueError("the starts must begin at 0 and must not decrease")
    count = int(starts[-1])
    if count > min(indices.size, values.size):
        raise ValueError(
            f"the starts announce {count} cells, but there are {indices.size} indices and "
            f"{values.size} values"
        )
    indices, values = indices[:count], values[:count]
    if count and not (indices.min() >= 0 and indices.max() < minor):
        raise ValueError(f"an index is outside of 0 ... {minor - 1}")
    # SciPy uses 32-bit indices if they suffice. They need half the memory.
    narrow = max(count, minor, major) <= np.iinfo(np.int32).max
    index_type = np.int32 if narrow else np.int64
    return make(
        (values, indices.astype(index_type, copy=False), starts.astype(index_type, copy=False)),
        shape=shape,
    )
