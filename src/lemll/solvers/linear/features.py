"""Products with the centred features and a column of ones, for dense, sparse and kernel data."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lemll._types import Array, Features
from lemll._validation import is_sparse
from lemll.objective import CentredKernel

__all__ = ["CentredFeatures", "KernelFeatures", "features_for"]

# To compute a Gram matrix, sparse features are converted to dense in blocks of this size.
BLOCK_BYTES = 1 << 25
# From this many multiplications on, a Gram matrix takes enough time to prefer float32.
LARGE_GRAM = 10_000_000


class CentredFeatures:
    """``Xt = [X - 1 mean', 1]`` as an operator. Sparse X becomes dense only in limited blocks.

    With centred features, Eq. (9) has the same minimum, the same U and the same Theta. The
    intercept becomes ``b + Theta mean``. Centring has two advantages: a translation of X does not
    change the work of the solver, and the systems for b and Theta are independent.

    With weights w, every row is multiplied by ``sqrt(w_i)``, including its entry in the column of
    ones. The mean is then the weighted mean, so that b and Theta are independent again.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features. They are never changed.
    dtype : dtype
        Precision of the products, float32 or float64.
    weights : ndarray of shape (n_samples,), optional
        Weights of the rows, > 0. By default 1.
    mean : ndarray of shape (n_features,), optional
        What to subtract, if these are only some of the rows; by default the mean of X.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        The mean that was subtracted from X.
    total_weight : float
        Sum of the weights.
    """

    def __init__(
        self,
        X: Features,
        dtype: npt.DTypeLike,
        weights: Array | None = None,
        mean: Array | None = None,
    ) -> None:
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
        if mean is not None:
            self.mean = mean
        self._grams: dict[str, Array] = {}
        self._matrix: Any
        # Subtracting the mean would fill a sparse matrix. Keep X sparse and correct each product.
        if self.sparse:
            # Without weights nothing is changed in place, so float32 rows need no copy.
            self._matrix = X.astype(self.dtype, copy=weights is not None).tocsr()
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
        """Return this row for every sample, times the root of its weight (or broadcastable)."""
        return row if self._root is None else np.outer(self._root, row)

    def gather(self, A: Array) -> Array:
        """Return the weighted sum of the rows, of shape (n_labels,): the transpose of `spread`."""
        return np.asarray(A.sum(axis=0) if self._root is None else self._root @ A)

    def times(self, V: Array) -> Array:
        """Return ``Xt V``, of shape (n_samples, n_labels); the last row of V is the intercept."""
        if not self.sparse:
            return np.asarray(self._matrix @ V)
        product: Array = self._matrix @ V[:-1]
        product += self.spread(V[-1] - self._shift @ V[:-1])
        return product

    def transposed_times(self, A: Array) -> Array:
        """Return ``Xt' A``, of shape (n_features + 1, n_labels)."""
        if not self.sparse:
            # For a tall X and a narrow A, BLAS computes A' X a third faster than X' A.
            return np.ascontiguousarray((A.T @ self._matrix).T)
        sums = self.gather(A)
        product: Array = np.empty((self.n_features + 1, A.shape[1]), dtype=A.dtype)
        product[:-1] = self._transposed @ A
        product[:-1] -= np.outer(self._shift, sums)
        product[-1] = sums
        return product

    def gram(self, least_shift: float) -> Array:
        """Return ``Xc' Xc``, to which the caller adds at least `least_shift` times I.

        A large Gram matrix is computed in float32 if the rounding error is far below the shift.
        This is accurate enough for a preconditioner, and twice as fast. The result is kept for the
        next call, so the caller must not change it.
        """
        large = self.n_samples * self.n_features**2 >= LARGE_GRAM
        # The rounding error is below 1e-7 of the trace, and the trace is at least the largest
        # eigenvalue. A shift above 1e-5 of it hides this error.
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
        """An upper bound of ``|Xc|_F^2``."""
        if self.sparse:
            return float(np.vdot(self._matrix.data, self._matrix.data))
        return float(np.vdot(self._matrix, self._matrix))

    @cached_property
    def gram_diagonal(self) -> Array:
        """The diagonal of `gram`, used if `gram` itself would be too large."""
        if not self.sparse:
            centred = self._matrix[:, :-1]
            return np.asarray(np.einsum("ij,ij->j", centred, centred, dtype=np.float64))
        # Sum the squared deviations of the stored entries, and add mean^2 for each zero entry. The
        # shorter formula sum x^2 - n mean^2 would lose digits.
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
        """The matrix ``Xc Xc'`` in float64, of shape (n_samples, n_samples)."""
        if not self.sparse and self.dtype == np.float64:
            centred = self._matrix[:, :-1]
            return np.asarray(centred @ centred.T)
        total = np.zeros((self.n_samples, self.n_samples))
        step = _block_lines(self.n_samples)
        for start in range(0, self.n_features, step):
            total += _gram(self._dense_columns(slice(start, start + step)))
        return total

    def _dense_rows(self, rows: slice) -> Array:
        """Return some rows of ``Xc`` as a dense float64 array."""
        if not self.sparse:
            return np.asarray(self._matrix[rows, :-1], dtype=np.float64)
        block: Array = self._matrix[rows].toarray().astype(np.float64, copy=False)
        block -= self.mean if self._root is None else np.outer(self._root[rows], self.mean)
        return block

    def _dense_columns(self, columns: slice) -> Array:
        """Return some columns of ``Xc`` as the rows of a dense float64 array."""
        if not self.sparse:
            return np.asarray(self._matrix[:, :-1][:, columns].T, dtype=np.float64)
        block: Array = self._transposed[columns].toarray().astype(np.float64, copy=False)
        mean = self.mean[columns, None]
        block -= mean if self._root is None else mean * self._root
        return block


def _block_lines(length: int) -> int:
    """Return how many rows or columns of this length fit into a block."""
    return max(1, BLOCK_BYTES // (8 * length))


def _gram(block: Array) -> Array:
    """Return ``block' block``. As a function, it frees the block right after the product."""
    return np.asarray(block.T @ block)


class KernelFeatures:
    """The counterpart of `CentredFeatures` for features that are known only through a kernel.

    With weights w, every row is multiplied by ``sqrt(w_i)``, including its entry in the column of
    ones. The centre is the weighted mean.

    Parameters
    ----------
    K : CentredKernel
        The kernel. It is never changed.
    dtype : dtype
        Precision of the products, float32 or float64.
    weights : ndarray of shape (n_samples,), optional
        Weights of the rows, > 0. By default 1.

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
            # K is centred at the unweighted mean. Move the centre to the weighted mean, by the same
            # formula as in `CentredKernel`, and then multiply rows and columns by sqrt(w).
            mean = K.matrix @ (weights / self.total_weight)
            self.shift = K.shift + mean
            self.kernel = K.matrix - (mean - float(weights @ mean) / self.total_weight)
            self.kernel -= mean[:, None]
            self.kernel *= self._root
            self.kernel *= self._root[:, None]

    def spread(self, row: Array) -> Array:
        """Return this row for every sample, times the root of its weight (or broadcastable)."""
        return row if self._root is None else np.outer(self._root, row)

    def gather(self, A: Array) -> Array:
        """Return the weighted sum of the rows, of shape (n_labels,): the transpose of `spread`."""
        return np.asarray(A.sum(axis=0) if self._root is None else self._root @ A)

    def to_rows(self, coef: Array) -> Array:
        """Convert coefficients of the samples, of shape (n_labels, n_samples), to B."""
        return np.asarray(coef.T if self._root is None else coef.T / self._root[:, None])

    def to_coefficients(self, B: Array) -> Array:
        """Convert B to coefficients of the samples, whose rows sum to zero."""
        root = np.ones(self.n_samples) if self._root is None else self._root
        # The sums are zero only up to rounding, and an uncentred kernel would multiply the error.
        centred = B - np.outer(root, self.gather(B) / self.total_weight)
        return np.ascontiguousarray((centred * root[:, None]).T)


def features_for(
    X: Features, dtype: npt.DTypeLike, weights: Array | None = None
) -> CentredFeatures | KernelFeatures:
    """Return the operator of features or of a kernel.

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
