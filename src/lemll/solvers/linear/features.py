"""Products with the centred features and their column of ones, dense or sparse."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lemll._types import Array, Features
from lemll._validation import is_sparse
from lemll.objective import CentredKernel

__all__ = ["CentredFeatures", "KernelFeatures", "features_for"]

# Sparse features are turned dense by blocks of this size when a Gram matrix is built of them.
BLOCK_BYTES = 1 << 25
# Multiplications from which the time of a Gram matrix is felt.
LARGE_GRAM = 10_000_000


class CentredFeatures:
    """``Xt = [X - 1 mean', 1]``, as an operator; sparse X is made dense by bounded blocks only.

    Eq. (9) with centred features has the same minimum, the same U and Theta, and the intercept
    ``b + Theta mean``. Centring makes the solver blind to translations of X and uncouples the row
    of b from the rest.

    With weights w every row, that of the ones included, is multiplied by ``sqrt(w_i)``, and the
    mean is the weighted one, which uncouples b again.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features; never changed.
    dtype : dtype
        Precision of the products, float32 or float64.
    weights : ndarray of shape (n_samples,), optional
        Weights of the rows, > 0; 1 by default.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        What was subtracted from X.
    total_weight : float
        Sum of the weights.
    """

    def __init__(self, X: Features, dtype: npt.DTypeLike, weights: Array | None = None) -> None:
        self.n_samples, self.n_features = X.shape
        self.dtype = np.dtype(dtype)
        self.sparse = is_sparse(X)
        self._root: Array | None = None
        if weights is None:
            self.total_weight = float(self.n_samples)
            self.mean = np.asarray(X.mean(axis=0, dtype=np.float64)).reshape(-1)
        else:
            self.total_weight = float(weights.sum())
            self.mean = np.asarray(X.T @ (weights / self.total_weight)).reshape(-1)
            self._root = np.sqrt(weights).astype(self.dtype)
        self._grams: dict[str, Array] = {}
        self._matrix: Any
        if self.sparse:
            self._matrix = X.astype(self.dtype).tocsr()
            if self._root is not None:
                self._matrix.data *= np.repeat(self._root, np.diff(self._matrix.indptr))
            self._transposed = self._matrix.T.tocsr()
            self._shift = self.mean.astype(self.dtype)
        else:
            self._matrix = np.empty((self.n_samples, self.n_features + 1), dtype=self.dtype)
            np.subtract(X, self.mean, out=self._matrix[:, :-1], casting="same_kind")
            self._matrix[:, -1] = 1
            if self._root is not None:
                self._matrix *= self._root[:, None]

    def spread(self, row: Array) -> Array:
        """Give every sample this row, times the root of its weight; maybe by broadcasting."""
        return row if self._root is None else np.outer(self._root, row)

    def gather(self, A: Array) -> Array:
        """Transpose of `spread`: the sum of the rows, of shape (n_labels,)."""
        return np.asarray(A.sum(axis=0) if self._root is None else self._root @ A)

    def times(self, V: Array) -> Array:
        """``Xt V``, of shape (n_samples, n_labels); the last row of V belongs to the ones."""
        if not self.sparse:
            return np.asarray(self._matrix @ V)
        product: Array = self._matrix @ V[:-1]
        product += self.spread(V[-1] - self._shift @ V[:-1])
        return product

    def transposed_times(self, A: Array) -> Array:
        """``Xt' A``, of shape (n_features + 1, n_labels)."""
        if not self.sparse:
            # Written this way round BLAS is a third faster, X being tall and A narrow.
            return np.ascontiguousarray((A.T @ self._matrix).T)
        sums = self.gather(A)
        product: Array = np.empty((self.n_features + 1, A.shape[1]), dtype=A.dtype)
        product[:-1] = self._transposed @ A
        product[:-1] -= np.outer(self._shift, sums)
        product[-1] = sums
        return product

    def gram(self, least_shift: float) -> Array:
        """``Xc' Xc``, of shape (n_features, n_features), for use with `least_shift` times I added.

        Large ones are computed in float32 where its rounding is far below the shift: that is good
        enough to precondition with, and twice as fast. Kept for the next call; do not change it.
        """
        large = self.n_samples * self.n_features**2 >= LARGE_GRAM
        # Rounding is below 1e-7 of the trace, which bounds the largest eigenvalue.
        enough = least_shift > 1e-5 * self._square_norm
        dtype = "float32" if large and enough else "float64"
        if dtype not in self._grams:
            total = np.zeros((self.n_features, self.n_features))
            step = _block_lines(self.n_features) if self.sparse else self.n_samples
            for start in range(0, self.n_samples, step):
                rows = slice(start, start + step)
                total += _gram(self._dense_rows(rows).astype(dtype, copy=False))
            self._grams[dtype] = total
        return self._grams[dtype]

    @cached_property
    def _square_norm(self) -> float:
        """A number not below ``|Xc|_F^2``."""
        if self.sparse:
            return float(np.vdot(self._matrix.data, self._matrix.data))
        return float(np.vdot(self._matrix, self._matrix))

    @cached_property
    def gram_diagonal(self) -> Array:
        """Diagonal of `gram`, where `gram` itself would be too large."""
        if not self.sparse:
            centred = self._matrix[:, :-1]
            return np.asarray(np.einsum("ij,ij->j", centred, centred, dtype=np.float64))
        columns = self._matrix.indices
        if self._root is None:
            squares = np.square(self._matrix.data - self.mean[columns])
            stored = np.bincount(columns, minlength=self.n_features)
        else:
            root = np.repeat(self._root, np.diff(self._matrix.indptr))
            squares = np.square(self._matrix.data - root * self.mean[columns])
            stored = np.bincount(columns, np.square(root), self.n_features)
        missing = (self.total_weight - stored) * np.square(self.mean)
        return np.asarray(np.bincount(columns, squares, self.n_features) + missing)

    @cached_property
    def kernel(self) -> Array:
        """``Xc Xc'`` in float64, of shape (n_samples, n_samples)."""
        if not self.sparse and self.dtype == np.float64:
            centred = self._matrix[:, :-1]
            return np.asarray(centred @ centred.T)
        total = np.zeros((self.n_samples, self.n_samples))
        step = _block_lines(self.n_samples)
        for start in range(0, self.n_features, step):
            total += _gram(self._dense_columns(slice(start, start + step)))
        return total

    def _dense_rows(self, rows: slice) -> Array:
        """Turn some rows of ``Xc`` into a dense float64 array."""
        if not self.sparse:
            return np.asarray(self._matrix[rows, :-1], dtype=np.float64)
        block: Array = self._matrix[rows].toarray().astype(np.float64, copy=False)
        block -= self.mean if self._root is None else np.outer(self._root[rows], self.mean)
        return block

    def _dense_columns(self, columns: slice) -> Array:
        """Turn some columns of ``Xc`` into the rows of a dense float64 array."""
        if not self.sparse:
            return np.asarray(self._matrix[:, :-1][:, columns].T, dtype=np.float64)
        block: Array = self._transposed[columns].toarray().astype(np.float64, copy=False)
        mean = self.mean[columns, None]
        block -= mean if self._root is None else mean * self._root
        return block


def _block_lines(length: int) -> int:
    """How many lines of this length fit into a block."""
    return max(1, BLOCK_BYTES // (8 * length))


def _gram(block: Array) -> Array:
    """``block' block``; as a function, so that no block outlives its product."""
    return np.asarray(block.T @ block)


class KernelFeatures:
    """What `CentredFeatures` is for features, for features behind a kernel.

    With weights w the rows, that of the ones included, are multiplied by ``sqrt(w_i)``, and the
    centre is the weighted mean.

    Parameters
    ----------
    K : CentredKernel
        The kernel; never changed.
    dtype : dtype
        Precision of the products, float32 or float64.
    weights : ndarray of shape (n_samples,), optional
        Weights of the rows, > 0; 1 by default.

    Attributes
    ----------
    kernel : ndarray of shape (n_samples, n_samples)
        ``Xc Xc'``, float64.
    shift : ndarray of shape (n_samples,)
        Inner products of the samples with the centre, up to a constant.
    total_weight : float
        Sum of the weights.
    """

    def __init__(
        self, K: CentredKernel, dtype: npt.DTypeLike, weights: Array | None = None
    ) -> None:
        self.n_samples = K.shape[0]
        self.dtype = np.dtype(dtype)
        self._root: Array | None = None
        self.kernel, self.shift = K.matrix, K.shift
        self.total_weight = float(self.n_samples)
        if weights is not None:
            self.total_weight = float(weights.sum())
            self._root = np.sqrt(weights)
            mean = K.matrix @ (weights / self.total_weight)
            self.shift = K.shift + mean
            self.kernel = K.matrix - (mean - float(weights @ mean) / self.total_weight)
            self.kernel -= mean[:, None]
            self.kernel *= self._root
            self.kernel *= self._root[:, None]

    def spread(self, row: Array) -> Array:
        """Give every sample this row, times the root of its weight; maybe by broadcasting."""
        return row if self._root is None else np.outer(self._root, row)

    def gather(self, A: Array) -> Array:
        """Transpose of `spread`: the sum of the rows, of shape (n_labels,)."""
        return np.asarray(A.sum(axis=0) if self._root is None else self._root @ A)

    def to_rows(self, coef: Array) -> Array:
        """Turn coefficients of the samples, of shape (n_labels, n_samples), into B."""
        return np.asarray(coef.T if self._root is None else coef.T / self._root[:, None])

    def to_coefficients(self, B: Array) -> Array:
        """Transpose B and multiply it by the roots of the weights; its rows then sum to zero."""
        root = np.ones(self.n_samples) if self._root is None else self._root
        # Rounding leaves a sum, which an uncentred kernel would multiply.
        centred = B - np.outer(root, self.gather(B) / self.total_weight)
        return np.ascontiguousarray((centred * root[:, None]).T)


def features_for(
    X: Features, dtype: npt.DTypeLike, weights: Array | None = None
) -> CentredFeatures | KernelFeatures:
    """Return the operator of features, or of a kernel in their place.

    Parameters
    ----------
    X : ndarray, sparse array or CentredKernel
        The features or their kernel.
    dtype, weights
        As in `CentredFeatures`.

    Returns
    -------
    CentredFeatures or KernelFeatures
        The operator.
    """
    if isinstance(X, CentredKernel):
        return KernelFeatures(X, dtype, weights)
    return CentredFeatures(X, dtype, weights)
