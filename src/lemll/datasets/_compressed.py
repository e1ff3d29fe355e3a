"""Sparse matrices from the parts that files hold, checked before SciPy sees them."""

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
    """Make a CSR or CSC array whose every index lies within its shape.

    SciPy's conversions trust the parts and would write out of bounds.

    Parameters
    ----------
    make : type
        ``sparse.csr_array`` or ``sparse.csc_array``.
    values, indices, starts : ndarray
        Stored cells, their places in the row (CSR) or column (CSC), and where each of those begins;
        `values` and `indices` may be longer than used.
    shape : tuple of int
        Rows and columns.

    Returns
    -------
    csr_array or csc_array
        Of the parts, not copied where their types allow.

    Raises
    ------
    ValueError
        If the parts do not fit each other.
    """
    if min(shape) < 0:
        raise ValueError(f"the shape {shape} is negative")
    if any(part.ndim != 1 for part in (values, indices, starts)):
        raise ValueError("each part must be one-dimensional")
    if any(part.dtype.kind not in "iu" for part in (indices, starts)):
        raise ValueError("indices and starts must be whole numbers")
    major, minor = shape if make is sparse.csr_array else shape[::-1]
    if starts.size != major + 1:
        raise ValueError(f"{starts.size} starts for {major}, want one more than that")
    if starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise ValueError("the starts must begin at 0 and never fall")
    count = int(starts[-1])
    if count > min(indices.size, values.size):
        raise ValueError(
            f"{count} cells announced, {indices.size} indices and {values.size} values stored"
        )
    indices, values = indices[:count], values[:count]
    if count and not (indices.min() >= 0 and indices.max() < minor):
        raise ValueError(f"an index lies outside of 0 ... {minor - 1}")
    narrow = max(count, minor, major) <= np.iinfo(np.int32).max
    index_type = np.int32 if narrow else np.int64
    return make(
        (values, indices.astype(index_type, copy=False), starts.astype(index_type, copy=False)),
        shape=shape,
    )
