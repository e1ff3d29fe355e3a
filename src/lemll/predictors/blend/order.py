"""An order of rows, columns and labels by their content, whatever their order in the data is.

Trees draw columns by their numbers, folds draw rows, and sums round by their order. If all of them
work in the order of the content, the same table gives the same model however it is sorted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lemll._types import Array, Features, FloatArray, IndexArray, LabelArray
from lemll._validation import is_sparse

__all__ = ["ContentOrder", "content_order"]

_Keys = npt.NDArray[np.uint64]

# Rounds in which rows tell columns and labels apart, and they tell rows apart. Binary columns of
# equal sums look alike in the first one.
_ROUNDS = 3
# Keys of so many cells are computed at once.
_CELLS = 1 << 22


class ContentOrder(NamedTuple):
    """The numbers of rows, columns and labels, sorted by their content.

    Attributes
    ----------
    rows, columns, labels : ndarray of int
        The orders. Rows that differ in nothing, or columns, may be in any order.
    """

    rows: IndexArray
    columns: IndexArray
    labels: IndexArray


def content_order(X: Features, Y: LabelArray, weight: FloatArray | None) -> ContentOrder:
    """Sort rows, columns and labels by keys that do not depend on their present order.

    The key of a row is a sum over its cells of a hash of the value in single precision and the key
    of the column, and the other way round. Hashes are whole numbers, so the order of the terms does
    not matter.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1, -1 in unknown cells.
    weight : ndarray of shape (n_samples, n_labels) or None
        Weights of the cells of Y.

    Returns
    -------
    ContentOrder
        The orders.
    """
    # Unknown cells are zeros, which have no part in a key.
    signs = (1.0 + Y) if weight is None else (1.0 + Y) * weight
    # Labels and features must not be taken for each other.
    signs = np.where(signs > 0, -1.0 - signs, 0.0)
    X_by_column = sparse.csr_array(X.T) if is_sparse(X) else X.T
    rows = np.zeros(len(Y), dtype=np.uint64)
    for _ in range(_ROUNDS):
        columns, labels = _keys(X_by_column, rows), _keys(signs.T, rows)
        rows = _keys(X, columns) + _keys(signs, labels)
    orders = [np.argsort(keys, kind="stable") for keys in (rows, columns, labels)]
    return ContentOrder(*orders)


def _keys(cells: Features, others: _Keys) -> _Keys:
    """Return the key of each row of some cells, from the keys of the columns."""
    others = _mixed(others)
    if is_sparse(cells):
        rows = sparse.csr_array(cells, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        hashes = _mixed(_bits(rows.data) ^ others[rows.indices])
        until = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashes)])
        return np.asarray(until[rows.indptr[1:]] - until[rows.indptr[:-1]])
    step = max(1, _CELLS // max(1, cells.shape[1]))
    found = [np.zeros(0, dtype=np.uint64)]
    for start in range(0, cells.shape[0], step):
        part = np.asarray(cells[start : start + step])
        hashes = _mixed(_bits(part) ^ others)
        found.append(np.where(part == 0, np.uint64(0), hashes).sum(axis=1, dtype=np.uint64))
    return np.concatenate(found)


def _bits(values: Array) -> _Keys:
    """Return numbers that are equal where the values are equal in single precision.

    So features in single and in double precision have the same order.
    """
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32, order="C").view(np.uint32).astype(np.uint64)


def _mixed(keys: _Keys) -> _Keys:
    """Return keys in which every bit depends on every bit (the last steps of splitmix64)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
