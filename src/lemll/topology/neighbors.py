"""Find the exact K nearest rows of every row, which are the edges of the graph in Eq. 6."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from threadpoolctl import ThreadpoolController

from lemll._sparse import SPARSE_DENSITY
from lemll._types import Array, Features, FloatArray, IndexArray, SparseMatrix
from lemll._validation import check_finite, is_sparse

Float32Array = npt.NDArray[np.float32]

# Largest size of a temporary array, independent of the size of X.
BLOCK_BYTES = 1 << 25
CACHE_BYTES = 1 << 18
MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 512, 1024
# Cost of one multiplication in a sparse-dense and in a sparse-sparse product, relative to a dense
# product. If a share p of the rows has a feature, the three ways to multiply cost 1, 8 p and
# 1600 p^2. Each feature uses the cheapest way.
SPARSE_DENSE_COST, SPARSE_SPARSE_COST = 8, 1600
# If all entries are whole numbers and squared lengths are below this, float32 is exact.
EXACT_NORM = 2.0**21


def check_features(X: Features) -> Features:
    """Return `X` as a float array or a canonical CSR array, or raise a ValueError.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features: finite numbers.

    Returns
    -------
    ndarray or csr_array of shape (n_samples, n_features), float32 or float64
        The features, copied only if necessary. `X` is never changed.
    """
    if not is_sparse(X):
        X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] == 0:
        raise ValueError(
            f"X must be 2-D (rows x features) with at least one feature, got shape {X.shape}."
        )
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {X.dtype}; convert it first.")
    dtype = np.float32 if X.dtype in (np.float32, np.float16) else np.float64
    if is_sparse(X):
        X = sparse.csr_array(X, dtype=dtype)
        if not X.has_canonical_format or not X.data.all():
            # The next two calls work in place, so copy first: do not change arrays of the caller.
            X = X.copy()
            X.sum_duplicates()
            X.eliminate_zeros()
    else:
        X = np.ascontiguousarray(X, dtype=dtype)
    check_finite(X)
    return X


def check_n_neighbors(n_neighbors: int, n_samples: int) -> int:
    """Return the number of neighbours K as an int, or raise a ValueError."""
    if not isinstance(n_neighbors, (int, np.integer)) or n_neighbors < 1:
        raise ValueError(f"n_neighbors must be a whole number of at least 1, got {n_neighbors!r}.")
    if n_neighbors >= n_samples:
        raise ValueError(
            f"n_neighbors={n_neighbors} must be smaller than n_samples={n_samples}; "
            "lower n_neighbors or add rows."
        )
    return int(n_neighbors)


class Block(NamedTuple):
    """Some rows in the form that the product of lower bounds needs.

    Parameters
    ----------
    dense : ndarray of shape (n_rows, n_common + 2), float32
        The common features, then minus half the reduced squared length, then 1.
    occasional : csr_array of shape (n_rows, n_occasional) or None
        The features that some rows have.
    rare : csr_array of shape (n_rows, n_rare) or None
        The features that few rows have.
    """

    dense: Float32Array
    occasional: SparseMatrix
    rare: SparseMatrix


class Rows:
    """Rows of X, with float64 distances of single pairs and float32 lower bounds of whole tiles.

    Parameters
    ----------
    X : ndarray or csr_array
        From `check_features`.

    Attributes
    ----------
    exact : bool
        Whether the float32 bounds are the exact distances, as for small whole numbers.
    norms : ndarray of shape (n_samples,)
        Squared lengths of the centred and scaled rows.

    Notes
    -----
    Let z be the centred and scaled rows, with all entries in [-1, 1]. Let m be the largest number
    of terms in a product, u the unit roundoff and g = m u / (1 - m u). The computed
    ``z_i'z_j - |z_i|^2/2 - |z_j|^2/2`` differs from ``-|z_i - z_j|^2 / 2`` by at most
    ``(|z_i|^2 + |z_j|^2) / 2`` times 2g + 4u. Here g comes once from the product and once from the
    lengths, and 4u comes from the rounding of z itself. This bound is the sum of a term of i and a
    term of j. So each squared length is reduced in advance by its term, and the computed value is
    then a bound at no extra cost. An absolute term covers underflow.
    """

    def __init__(self, X: Features) -> None:
        self.X = X
        self.n_samples, self.n_features = (int(size) for size in X.shape)
        if is_sparse(X):
            self._prepare_sparse()
        else:
            self._prepare_dense()

    def _prepare_dense(self) -> None:
        X = self.X
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        # Any centre gives correct bounds; a centre near the rows gives tighter bounds. The median
        # of some rows is robust against outliers. It is a value of X, so constant features become
        # exactly 0.
        some = X[:: -(-self.n_samples // 256)]
        self._centre = np.partition(some, len(some) // 2, axis=0)[len(some) // 2].astype(np.float64)
        self._set_scale(float((high / 2 - low / 2).max()) * 2)
        whole = bool((np.rint(X[:8]) == X[:8]).all() and (np.rint(X) == X).all())
        if whole and self._reach < EXACT_NORM:
            self._scale = 1.0
        self._dense = np.ones((self.n_samples, self.n_features + 2), np.float32)
        self.norms = np.empty(self.n_samples)
        for rows in self.slices(8 * self.n_features):
            z = self.centred(rows)
            self.norms[rows] = np.einsum("ij,ij->i", z, z)
            self._dense[rows, :-2] = z
        self._n_terms = self.n_features
        self._set_exact(whole)
        self._dense[:, -2] = self.lowered_norms(np.float32) / -2
        self.block_rows = self._block_rows(self.n_features)

    def _prepare_sparse(self) -> None:
        X = self.X
        self._set_scale(float(np.abs(X.data).max(initial=0)))
        whole = bool((np.rint(X.data) == X.data).all())
        if whole and self._reach < EXACT_NORM:
            self._scale = 1.0
        index = np.int32 if max(X.nnz, *X.shape) < 2**31 else np.int64
        parts = (
            X.data.astype(np.float64) * self._scale,
            X.indices.astype(index),
            X.indptr.astype(index),
        )
        self._scaled = sparse.csr_array(parts, shape=X.shape)
        self.norms = np.asarray(self._scaled.multiply(self._scaled).sum(axis=1))
        # A product of two rows has at most as many terms as the shorter one has entries.
        self._n_terms = int(np.diff(X.indptr).max())
        self._set_exact(whole)
        self._split_features()

    def _split_features(self) -> None:
        """Divide the features into common, occasional and rare ones, by their share of rows."""
        count = np.bincount(self._scaled.indices, minlength=self.n_features)
        share = count / self.n_samples
        common = share * SPARSE_DENSE_COST > 1
        rare = share * SPARSE_SPARSE_COST < SPARSE_DENSE_COST
        z = self._scaled.astype(np.float32)
        dense = z[:, common]
        self._occasional = z[:, ~common & ~rare]
        # A feature that only one row has does not contribute to any product of two rows.
        self._rare = z[:, rare & (count > 1)]
        # Two more columns will hold the lengths and the ones.
        shape = (self.n_samples, dense.shape[1] + 2)
        self._common = sparse.csr_array((dense.data, dense.indices, dense.indptr), shape=shape)
        self.block_rows = self._block_rows(max(self._occasional.shape[1], shape[1]))
        self._lengths = np.column_stack(
            [self.lowered_norms(np.float32) / -2, np.ones(self.n_samples, np.float32)]
        )

    def _set_scale(self, reach: float) -> None:
        """Choose a power of two as the scale: it prevents overflow and causes no rounding."""
        self._reach = reach
        exponent = int(np.clip(np.frexp(reach)[1], -1000, 1024)) if np.isfinite(reach) else 1025
        self._scale = float(np.ldexp(1.0, -exponent)) if reach else 1.0

    def _set_exact(self, whole: bool) -> None:
        self.exact = whole and self._scale == 1 and bool(self.norms.max() <= EXACT_NORM)

    def lowered_norms(self, dtype: npt.DTypeLike) -> Features:
        """Return the squared lengths, reduced by a bound on the rounding errors in `dtype`."""
        if self.exact:
            return self.norms.astype(dtype)
        unit = np.finfo(dtype).eps / 2
        # Ten terms more than in a product: for the lengths, the sum of the parts, the cast, and a
        # margin.
        growth = (self._n_terms + 10) * unit
        loss = 2 * growth / max(1 - growth, 0.5) + 4 * unit
        underflow = (self._n_terms + 10) * 8 * float(np.finfo(dtype).tiny)
        return (self.norms * (1 - loss) - underflow).astype(dtype)

    def _block_rows(self, width: int) -> int:
        """Return the number of rows per block: at least a few blocks, and no block too large."""
        few = max(MIN_BLOCK_ROWS, -(-self.n_samples // 4))
        return min(MAX_BLOCK_ROWS, few, max(8, BLOCK_BYTES // (4 * width)))

    def slices(self, bytes_per_row: int) -> list[slice]:
        """Divide the rows into slices of at most `BLOCK_BYTES`."""
        step = max(1, BLOCK_BYTES // bytes_per_row)
        return [slice(i, min(i + step, self.n_samples)) for i in range(0, self.n_samples, step)]

    def centred(self, rows: Features) -> FloatArray:
        """Return the centred and scaled rows, dense float64."""
        if is_sparse(self.X):
            return np.asarray(self._scaled[rows].toarray())
        # Reduce large values before the subtraction, and enlarge small ones after it. Then neither
        # step can overflow.
        before, after = min(self._scale, 1.0), max(self._scale, 1.0)
        # Cast first, because NumPy 1 multiplies float32 by a float64 scalar in float32.
        z = self.X[rows].astype(np.float64) * before
        z -= self._centre * before
        z *= after
        return np.asarray(z)

    def block(self, start: int, stop: int) -> Block:
        """Return rows `start` to `stop` in the form for the product of lower bounds."""
        if not is_sparse(self.X):
            return Block(self._dense[start:stop], None, None)
        dense = self._common[start:stop].toarray()
        dense[:, -2:] = self._lengths[start:stop]
        occasional = self._occasional[start:stop] if self._occasional.nnz else None
        return Block(dense, occasional, self._rare[start:stop] if self._rare.nnz else None)

    def products(self, rows: FloatArray) -> FloatArray:
        """Return the float64 products of some centred rows with all rows, one column per row."""
        if is_sparse(self.X):
            return np.asarray(rows @ self._scaled.T)
        parts = [rows @ self.centred(part).T for part in self.slices(8 * self.n_features)]
        return np.concatenate(parts, axis=1)

    def distances(self, i: IndexArray, j: IndexArray) -> FloatArray:
        """Return the squared distances of the pairs (i, j), each summed over features in order."""
        # Small blocks stay in the cache, which makes this three times faster.
        step = max(1, CACHE_BYTES // (8 * max(1, self._n_terms)))
        cuts = range(0, len(i), step)
        parts = [self._few_distances(i[s : s + step], j[s : s + step]) for s in cuts]
        return np.concatenate(parts) if parts else np.empty(0)

    def _few_distances(self, i: IndexArray, j: IndexArray) -> FloatArray:
        # Sum in the order of the features, not pairwise as ndarray.sum does. Then zeros do not
        # change any digit, and sparse and dense X give the same ties.
        if is_sparse(self.X):
            difference = self._scaled[i] - self._scaled[j]
            difference.data **= 2
            return np.asarray(difference @ np.ones(self.n_features))
        # Use one column more than pairs, because NumPy sums a single column pairwise.
        terms = np.zeros((self.n_features, len(i) + 1))
        if 2.0**-60 < self._reach < 2.0**400:
            difference = np.subtract(self.X[i], self.X[j], dtype=np.float64)
            np.square(difference.T, out=terms[:, :-1])
            return np.asarray(terms.sum(axis=0)[:-1] * self._scale**2)
        # Only for such extreme values can squares overflow or underflow. Scale each term, which is
        # slower.
        before, after = min(self._scale, 1.0), max(self._scale, 1.0)
        first, second = (self.X[rows].astype(np.float64) for rows in (i, j))
        difference = first * before - second * before
        np.square(difference.T * after, out=terms[:, :-1])
        return np.asarray(terms.sum(axis=0)[:-1])


# If a tile has more candidates than this multiple of the number kept, it is filtered a second time.
MANY = 3
# Each worker holds one tile in memory. Python code runs in only one thread at a time, so more
# workers would not help.
MAX_WORKERS = 8


def nearest_neighbors(X: Features, n_neighbors: int = 10) -> IndexArray:
    r"""Return the K nearest rows of every row, exactly.

    The distance is the squared Euclidean distance :math:`\sum_k (x_{ik} - x_{jk})^2` in float64. A
    row is never its own neighbour. Another row with the same features (a twin) can be its
    neighbour. Ties go to the lower index.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features. A sparse X is never converted to one dense array.
    n_neighbors : int, default=10
        The number K of neighbours, smaller than `n_samples`.

    Returns
    -------
    ndarray of shape (n_samples, n_neighbors), int
        Indices of the neighbours, nearest first.

    Notes
    -----
    First, a lower bound of the distance is computed for all pairs, from products in float32. Only
    the pairs with small bounds remain, and they are ranked by their float64 distances. If many
    distances are almost equal, the bound cannot separate the K-th neighbour from the next one. Such
    a row is searched again in float64. The result is the same for any number of threads.

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
    # Twins have equal distances to all rows, and many ties make the search slow. So search each
    # distinct row only once.
    found = (np.empty((1, 0), np.intp), np.empty((1, 0)))
    if len(first) > 1:
        found = _nearest(Rows(X[first]), min(n_neighbors, len(first) - 1))
    return _spread_over_twins(*found, first, group, n_neighbors)


def _nearest(rows: Rows, n_neighbors: int) -> tuple[IndexArray, FloatArray]:
    """Return the nearest rows and their distances, sorted by distance and then by index."""
    # Keep a few more candidates than needed. Then the bounds usually decide without a second pass.
    width = min(rows.n_samples - 1, n_neighbors + 6 + n_neighbors // 8)
    candidates = sweep(rows, width)
    index = candidates.index.astype(np.intp)
    bound = candidates.closeness.astype(np.float64) * -2
    # The true K-th distance is at most its lower bound plus twice the allowance for rounding.
    # Candidates with a larger bound cannot be among the K nearest.
    loss = 2 * (rows.norms - rows.lowered_norms(np.float32))
    reach = (bound + loss[:, None] + loss[index])[:, :n_neighbors].max(axis=1)
    i, place = np.nonzero(bound <= reach[:, None] * (1 + _slack(rows)))
    distance = np.full(index.shape, np.inf)
    distance[i, place] = rows.distances(i, index[i, place])
    index, distance = _ranked(index, distance, n_neighbors)
    # Every row that was not kept is farther than this bound. If the K-th distance is smaller, the
    # result is proven; otherwise search the row again in float64.
    beyond = candidates.closeness[:, -1].astype(np.float64) * -2 * (1 - _slack(rows))
    doubtful = np.flatnonzero(~(distance[:, -1] < beyond))
    if width < rows.n_samples - 1 and len(doubtful):
        index[doubtful], distance[doubtful] = nearest_among_all(rows, doubtful, n_neighbors)
    return index, distance


def _slack(rows: Rows) -> float:
    """Return a relative bound on the rounding error of a float64 distance and a comparison."""
    return 4 * (rows.n_features + 4) * 2.0**-53


def _ranked(
    index: IndexArray, distance: FloatArray, n_neighbors: int
) -> tuple[IndexArray, FloatArray]:
    """Sort each row by distance and then by index, and keep the first K."""
    order = np.lexsort((index, distance), axis=-1)[:, :n_neighbors]
    return np.take_along_axis(index, order, axis=1), np.take_along_axis(distance, order, axis=1)


def nearest_among_all(
    rows: Rows, which: IndexArray, n_neighbors: int
) -> tuple[IndexArray, FloatArray]:
    """Return the nearest rows of some rows, from float64 bounds of all pairs."""
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
        bound[np.arange(len(part)), part] = np.inf  # a row is not its own neighbour
        most = np.partition(bound + loss, n_neighbors - 1, axis=1)[:, n_neighbors - 1] + loss[part]
        line, left = np.nonzero(bound <= (most * (1 + _slack(rows)))[:, None])
        exact = rows.distances(part[line], left)
        # Sort by row, then by distance, then by index. At least K pairs per row are left, so the
        # first K of each row are its neighbours.
        order = np.lexsort((left, exact, line))
        first = np.searchsorted(line, np.arange(len(part)))
        best = order[first[:, None] + np.arange(n_neighbors)]
        index[start : start + step], distance[start : start + step] = left[best], exact[best]
    return index, distance


def _twins(X: Features, norms: FloatArray) -> tuple[IndexArray, IndexArray]:
    """Return the first row of each group of equal rows, and the group of every row."""
    n_samples = len(norms)
    _, inverse, count = np.unique(norms, return_inverse=True, return_counts=True)
    first_of: dict[bytes, int] = {}
    leader = np.arange(n_samples)
    # Equal rows have equal lengths, so compare only rows whose lengths are equal.
    for i in np.flatnonzero(count[inverse] > 1):
        if is_sparse(X):
            row = slice(X.indptr[i], X.indptr[i + 1])
            key = X.indices[row].tobytes() + X.data[row].tobytes()
        else:
            # Adding 0 turns -0 into 0; otherwise the bytes of equal rows could differ.
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
    """Convert the nearest groups of each group to the nearest rows of each row.

    A group (`kind`) is a set of equal rows. The K nearest groups, with ties ordered by their first
    rows, contain the K nearest rows: every group before a given group has at least one row that
    comes before all rows of the given group.
    """
    members = np.argsort(group, kind="stable")
    size = np.bincount(group)
    begin = np.cumsum(size) - size
    slot = np.arange(min(n_neighbors + 1, int(size.max())))
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
    # Each list has K + 1 entries and may contain the row itself. Remove it, or the last entry.
    result = merged[group]
    drop = result == np.arange(len(group))[:, None]
    drop[:, -1] |= ~drop.any(axis=1)
    return np.asarray(result[~drop]).reshape(len(group), n_neighbors)


class _Scratch(threading.local):
    """An array that each thread uses again for every tile.

    A new array of several megabytes is new memory of the operating system, which it clears first.
    Where the process returns freed memory at once, as the workers of Dask do, this took as long as
    the search itself.
    """

    def __init__(self) -> None:
        self._values: Array = np.empty(0)

    def array(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Return an array with arbitrary values, always of the same type."""
        size = math.prod(shape)
        if len(self._values) < size:
            self._values = np.empty(size, dtype)
        return self._values[:size].reshape(shape)


class Pairs(NamedTuple):
    """Pairs of a row and a candidate, with their closeness."""

    row: IndexArray
    candidate: IndexArray
    closeness: Float32Array


class Candidates:
    """The best `width` candidates of every row so far, sorted by closeness.

    Parameters
    ----------
    n_samples : int
        The number of rows.
    width : int
        The number of candidates to keep per row.

    Attributes
    ----------
    closeness : ndarray of shape (n_samples, width), float32
        Minus half the lower bound of the squared distance, or minus infinity for an empty place.
        No pair that was left out is closer than the last kept pair.
    index : ndarray of shape (n_samples, width), int32
        The indices of the candidates.
    """

    def __init__(self, n_samples: int, width: int) -> None:
        self.closeness = np.full((n_samples, width), -np.inf, np.float32)
        self.index = np.zeros((n_samples, width), np.int32)
        self._scratch = _Scratch()

    def closer(self, tile: Float32Array, rows: int, columns: int, *, axis: int) -> Pairs:
        """Return the pairs of a tile that are closer than the last kept pair.

        Parameters
        ----------
        tile : ndarray, float32
            Closeness of pairs.
        rows, columns : int
            Index of the first row, and index of the first candidate.
        axis : {0, 1}
            The axis of `tile` along which the candidates lie.

        Returns
        -------
        Pairs
            Sorted by row and then by candidate.
        """
        n_rows, width = tile.shape[1 - axis], self.closeness.shape[1]
        threshold = np.expand_dims(self.closeness[rows : rows + n_rows, -1], axis)
        closer = np.greater(tile, threshold, out=self._scratch.array(tile.shape, np.bool_))
        if np.count_nonzero(closer) > MANY * width * n_rows and tile.shape[axis] > width:
            np.greater(tile, np.maximum(threshold, _within_reach(tile, width, axis)), out=closer)
        flat = np.flatnonzero(closer)
        i, j = np.divmod(flat, tile.shape[1])
        values = tile.ravel()[flat]
        if axis == 0:
            order = np.argsort(j, kind="stable")
            i, j, values = j[order], i[order], values[order]
        return Pairs(i + rows, j + columns, values)

    def merge(self, pairs: Pairs) -> None:
        """Merge new candidates into the kept candidates.

        Candidates must arrive in the order of their indices. Among equally close candidates the
        first one stays, so ties go to the lower index.
        """
        i, width = pairs.row, self.closeness.shape[1]
        if len(i) == 0:
            return
        first = np.flatnonzero(np.diff(i, prepend=-1))
        count = np.diff(first, append=len(i))
        touched = i[first]
        line = np.repeat(np.arange(len(first)), count)
        place = np.arange(len(i)) - first[line] + width
        values = np.full((len(first), width + int(count.max())), -np.inf, np.float32)
        names = np.zeros(values.shape, np.int32)
        values[:, :width], names[:, :width] = self.closeness[touched], self.index[touched]
        values[line, place], names[line, place] = pairs.closeness, pairs.candidate
        # A stable sort keeps the earlier candidate, which has the lower index, in front of ties.
        order = np.argsort(-values, axis=1, kind="stable")[:, :width]
        self.closeness[touched] = np.take_along_axis(values, order, axis=1)
        self.index[touched] = np.take_along_axis(names, order, axis=1)


def _within_reach(tile: Float32Array, width: int, axis: int) -> Float32Array:
    """Return a bound such that at least `width` values along an axis are above it.

    The values are divided into groups, and the maximum of each group is computed. At least `width`
    values reach the `width`-th largest of these maxima. This is almost as high as the `width`-th
    largest of all values, and much faster to find.
    """
    size = max(1, tile.shape[axis] // (4 * width))
    groups = tile.shape[axis] // size
    if axis == 0:
        largest = tile[: groups * size].reshape(size, groups, -1).max(axis=0)
    else:
        largest = tile[:, : groups * size].reshape(-1, size, groups).max(axis=1)
    # The next smaller float, because the caller keeps only values strictly above the bound.
    bound = np.partition(largest, groups - width, axis=axis).take([groups - width], axis=axis)
    return np.nextafter(bound, np.float32(-np.inf))


class _Columns:
    """A block as the right-hand side of the product of bounds, prepared once for many tiles."""

    def __init__(self, block: Block, scratch: _Scratch) -> None:
        self._scratch = scratch
        self.dense = block.dense.copy()
        # The last two columns of a block are (-length/2, 1). Swapped here, one product adds both
        # lengths: z_i'z_j - |z_i|^2/2 - |z_j|^2/2.
        self.dense[:, -2:] = block.dense[:, :-3:-1]
        self.occasional = self.rare = None
        if block.occasional is not None:
            self.occasional = np.ascontiguousarray(block.occasional.toarray().T)
        if block.rare is not None:
            self.rare = block.rare.T.tocsr()

    def closeness(self, rows: Block) -> Float32Array:
        """Return minus half the lower bounds of the squared distances to `rows`.

        The next call in the same thread overwrites the result.
        """
        tile: Float32Array = self._scratch.array((len(rows.dense), len(self.dense)), np.float32)
        np.matmul(rows.dense, self.dense.T, out=tile)
        if self.occasional is not None:
            tile += rows.occasional @ self.occasional
        if self.rare is not None:
            product = rows.rare @ self.rare
            line = np.repeat(np.arange(0, tile.size, tile.shape[1]), np.diff(product.indptr))
            tile.ravel()[line + product.indices] += product.data
        return tile


def sweep(rows: Rows, width: int) -> Candidates:
    """Return the `width` rows with the smallest distance bounds, for every row.

    Parameters
    ----------
    rows : Rows
        The rows.
    width : int
        The number of candidates to keep per row, smaller than the number of rows.

    Returns
    -------
    Candidates
        The candidates, without the row itself. Ties go to the lower index.
    """
    candidates = Candidates(rows.n_samples, width)
    if rows.n_samples <= 4 * rows.block_rows:
        _all_turns(rows, candidates, map)
        return candidates
    with worker_threads() as workers, ThreadPoolExecutor(workers) as pool:
        _all_turns(rows, candidates, pool.map if workers > 1 else map)
    return candidates


def _all_turns(rows: Rows, candidates: Candidates, in_order: Callable[..., Any]) -> None:
    """Compare every block with itself and with all later blocks.

    In this order, every row meets the other blocks in the order of their indices: it met the
    earlier blocks in their turns. Tiles of one turn can run in parallel. Each tile has its own
    rows, and its results for the columns are merged in order. A worker may read a threshold before
    or after such a merge; the final result is the same.
    """
    n_samples, step = rows.n_samples, rows.block_rows
    scratch = _Scratch()
    for low in range(0, n_samples, step):
        own = rows.block(low, min(low + step, n_samples))
        columns = _Columns(own, scratch)
        tile = columns.closeness(own)
        np.fill_diagonal(tile, -np.inf)  # a row is not its own neighbour
        candidates.merge(candidates.closer(tile, low, low, axis=1))

        def meet(other: int, low: int = low, columns: _Columns = columns) -> Pairs:
            tile = columns.closeness(rows.block(other, min(other + step, n_samples)))
            candidates.merge(candidates.closer(tile, other, low, axis=1))
            return candidates.closer(tile, low, other, axis=0)

        for pairs in in_order(meet, range(low + step, n_samples, step)):
            candidates.merge(pairs)


@cache
def _controller() -> ThreadpoolController:
    """Return the controller of the linear algebra libraries; its search takes milliseconds."""
    return ThreadpoolController()


@contextmanager
def worker_threads() -> Iterator[int]:
    """Limit BLAS to one thread inside the context, and yield the number of worker threads.

    Small matrix products gain little from BLAS threads, because these wait for each other after
    each product. Several products in parallel are faster. `OMP_NUM_THREADS` and
    ``threadpoolctl.threadpool_limits`` set the number, as usual. The neighbour search of
    scikit-learn does the same.

    Yields
    ------
    int
        The number of threads to use.
    """
    libraries = _controller().select(user_api="blas").info()
    workers = max((library["num_threads"] for library in libraries), default=1)
    with _controller().limit(limits=1, user_api="blas"):
        yield min(MAX_WORKERS, workers)
