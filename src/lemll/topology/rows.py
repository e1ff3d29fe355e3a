"""Prepare the rows of X for distance computations: check, centre, scale and divide into blocks.

Distances are compared by their float64 values, summed over the features in order. This sum is too
slow for all pairs. So pairs are first filtered by a *lower bound* of the distance, which one matrix
product gives for a whole tile of pairs. All analysis of rounding errors is in this module.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lemll._types import Features, FloatArray, IndexArray
from lemll._validation import check_finite, is_sparse

__all__ = ["Block", "Rows", "check_features", "check_n_neighbors"]

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
    occasional: Any
    rare: Any


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
