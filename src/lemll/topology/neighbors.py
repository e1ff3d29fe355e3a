"""Which rows are neighbours: the exact K nearest rows of every row (the edges of Eq. 6)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from lemll._types import FloatArray, IndexArray
from lemll._validation import is_sparse
from lemll.topology._light import SPARSE_DENSITY
from lemll.topology._rows import BLOCK_BYTES, Rows, check_features, check_n_neighbors
from lemll.topology._sweep import sweep

__all__ = ["nearest_neighbors"]


def nearest_neighbors(X: Any, n_neighbors: int = 10) -> IndexArray:
    r"""Return the K nearest rows of every row, exactly.

    Nearness is the squared Euclidean distance :math:`\sum_k (x_{ik} - x_{jk})^2` in float64. A row
    is never its own neighbour, by index: a twin with the same features is. Ties go to the lower
    index.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features. A sparse X is never made dense as a whole.
    n_neighbors : int, default=10
        The number K of neighbours, smaller than `n_samples`.

    Returns
    -------
    ndarray of shape (n_samples, n_neighbors), int
        Indices of the neighbours, nearest first.

    Notes
    -----
    All pairs are sifted by a lower bound of their distance, from products in float32; the few that
    remain are ranked by their float64 distances. Where the bound cannot tell the K-th neighbour
    from the next (many almost equal distances), the row is sifted again in float64. The result is
    the same for any number of threads.

    Examples
    --------
    >>> from lemll.topology import nearest_neighbors
    >>> nearest_neighbors([[0.0], [1.0], [1.0], [5.0]], n_neighbors=2)
    array([[1, 2],
           [2, 0],
           [1, 0],
           [1, 2]])
    """
    X = check_features(X)
    n_neighbors = check_n_neighbors(n_neighbors, X.shape[0])
    if not is_sparse(X) and np.count_nonzero(X) < SPARSE_DENSITY * X.size:
        X = sparse.csr_array(X)
    rows = Rows(X)
    if rows.exact:
        return np.asarray(sweep(rows, n_neighbors).index, dtype=np.intp)
    first, group = _twins(X, rows.norms)
    if len(first) == len(group):
        return _nearest(rows, n_neighbors)[0]
    # Twins tie everywhere: sifting each kind of row once keeps the ties few.
    found = (np.empty((1, 0), np.intp), np.empty((1, 0)))
    if len(first) > 1:
        found = _nearest(Rows(X[first]), min(n_neighbors, len(first) - 1))
    return _spread_over_twins(*found, first, group, n_neighbors)


def _nearest(rows: Rows, n_neighbors: int) -> tuple[IndexArray, FloatArray]:
    """Return the nearest rows and their distances, sorted by distance and then by index."""
    width = min(rows.n_samples - 1, n_neighbors + 6 + n_neighbors // 8)
    candidates = sweep(rows, width)
    index = candidates.index.astype(np.intp)
    bound = candidates.closeness.astype(np.float64) * -2
    # The K-th distance is at most its bound plus twice what rounding was allowed.
    loss = 2 * (rows.norms - rows.lowered_norms(np.float32))
    reach = (bound + loss[:, None] + loss[index])[:, :n_neighbors].max(axis=1)
    i, place = np.nonzero(bound <= reach[:, None] * (1 + _slack(rows)))
    distance = np.full(index.shape, np.inf)
    distance[i, place] = rows.distances(i, index[i, place])
    index, distance = _ranked(index, distance, n_neighbors)
    # Every row left out lies beyond this bound, so beyond the K-th of those kept.
    beyond = candidates.closeness[:, -1].astype(np.float64) * -2 * (1 - _slack(rows))
    doubtful = np.flatnonzero(~(distance[:, -1] < beyond))
    if width < rows.n_samples - 1 and len(doubtful):
        index[doubtful], distance[doubtful] = _nearest_by_float64(rows, doubtful, n_neighbors)
    return index, distance


def _slack(rows: Rows) -> float:
    """Return what rounding can do to a float64 distance and to a comparison of two, relatively."""
    return 4 * (rows.n_features + 4) * 2.0**-53


def _ranked(
    index: IndexArray, distance: FloatArray, n_neighbors: int
) -> tuple[IndexArray, FloatArray]:
    """Sort each line by distance and then by index, and keep the first K."""
    order = np.lexsort((index, distance), axis=-1)[:, :n_neighbors]
    return np.take_along_axis(index, order, axis=1), np.take_along_axis(distance, order, axis=1)


def _nearest_by_float64(
    rows: Rows, which: IndexArray, n_neighbors: int
) -> tuple[IndexArray, FloatArray]:
    """Return the nearest rows of some rows, from float64 bounds and every candidate they leave."""
    index = np.empty((len(which), n_neighbors), np.intp)
    distance = np.empty((len(which), n_neighbors))
    low = rows.lowered_norms(np.float64)
    loss = 2 * (rows.norms - low)
    step = max(1, BLOCK_BYTES // (32 * (rows.n_samples + rows.n_features)))
    for start in range(0, len(which), step):
        part = which[start : start + step]
        bound = rows.products(rows.centred(part))
        bound *= -2
        bound += low
        bound += low[part, None]
        bound[np.arange(len(part)), part] = np.inf
        most = np.partition(bound + loss, n_neighbors - 1, axis=1)[:, n_neighbors - 1] + loss[part]
        line, left = np.nonzero(bound <= (most * (1 + _slack(rows)))[:, None])
        exact = rows.distances(part[line], left)
        order = np.lexsort((left, exact, line))
        first = np.searchsorted(line, np.arange(len(part)))
        best = order[first[:, None] + np.arange(n_neighbors)]
        index[start : start + step], distance[start : start + step] = left[best], exact[best]
    return index, distance


def _twins(X: Any, norms: FloatArray) -> tuple[IndexArray, IndexArray]:
    """Return the first row of each kind of equal rows, and the kind of every row."""
    n_samples = len(norms)
    _, inverse, count = np.unique(norms, return_inverse=True, return_counts=True)
    first_of: dict[bytes, int] = {}
    leader = np.arange(n_samples)
    # Only rows of equal length can be equal.
    for i in np.flatnonzero(count[inverse] > 1):
        if is_sparse(X):
            row = slice(X.indptr[i], X.indptr[i + 1])
            key = X.indices[row].tobytes() + X.data[row].tobytes()
        else:
            # Adding 0 turns -0 into 0.
            key = (X[i] + X.dtype.type(0)).tobytes()
        leader[i] = first_of.setdefault(key, int(i))
    first, group = np.unique(leader, return_inverse=True)
    return first, group


def _spread_over_twins(
    nearest: IndexArray,
    distance: FloatArray,
    first: IndexArray,
    group: IndexArray,
    n_neighbors: int,
) -> IndexArray:
    """Turn the nearest kinds of each kind into the nearest rows of each row.

    The K nearest kinds, ordered by their first rows among ties, hold the K nearest rows: each
    kind before a given one has at least one row before all of that one's.
    """
    members = np.argsort(group, kind="stable")
    size = np.bincount(group)
    begin = np.cumsum(size) - size
    slot = np.arange(n_neighbors + 1)
    merged = np.empty((len(first), n_neighbors + 1), np.intp)
    kinds = np.column_stack([np.arange(len(first)), nearest])
    reach = np.column_stack([np.zeros(len(first)), distance])
    step = max(1, BLOCK_BYTES // (32 * kinds.shape[1] * len(slot)))
    for start in range(0, len(first), step):
        kind = kinds[start : start + step, :, None]
        there = slot < size[kind]
        rows = members[np.where(there, begin[kind] + slot, 0)]
        far = np.where(there, reach[start : start + step, :, None], np.inf)
        lines = (len(kind), -1)
        merged[start : start + step] = _ranked(
            rows.reshape(lines), far.reshape(lines), n_neighbors + 1
        )[0]
    result = merged[group]
    drop = result == np.arange(len(group))[:, None]
    drop[:, -1] |= ~drop.any(axis=1)
    return np.asarray(result[~drop]).reshape(len(group), n_neighbors)
