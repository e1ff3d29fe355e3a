"""Products with the features about a centre of theirs, for numbers that must keep their digits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, eigh

from lemll._types import Array, Features, FloatArray
from lemll._validation import is_sparse

__all__ = ["CentredKernel", "ShiftedFeatures"]

# Features centred at a time: no temporary array is larger than this, however large X is.
CERTIFICATE_BLOCK_BYTES = 1 << 25


# Relative to the largest entry; products of rows in blocks differ by rounding alone.
ASYMMETRY = 1e-8
# Eigenvalues down to minus this share of the largest are rounding.
NEGATIVE_SHARE = 1e-8
POWER_STEPS = 30


class ShiftedFeatures:
    """``X - 1 shift'``, as products in float64.

    Eq. (9) does not see a shift of the features that the intercept follows, but rounding does:
    products with X itself lose the digits that its distance from the origin takes. Dense features
    are centred; of sparse ones those are that no row lacks, which keeps the others sparse.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features; never changed.
    """

    def __init__(self, X: Features) -> None:
        self._mean: FloatArray = np.asarray(X.mean(axis=0, dtype=np.float64)).reshape(-1)
        self._sparse = is_sparse(X)
        self._matrix, self._shift = X, self._mean
        if self._sparse:
            self._matrix, self._shift = _centre_full_columns(X, self._mean)
        self._shifted = self._sparse
        if not self._sparse and 8 * X.size <= CERTIFICATE_BLOCK_BYTES:
            self._matrix, self._shifted = X - self._shift, True

    def residuals(self, U: FloatArray, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """``U - X Theta' - 1 b'``.

        Rounding in the shifted intercept ``b + Theta shift`` is that of another ``b``, for which
        the result is exact.
        """
        residuals: FloatArray = U - (intercept + coef @ self._shift)
        for rows, block in self._blocks():
            residuals[rows] -= block @ coef.T
        return residuals

    def square(self, coef: FloatArray) -> float:
        """``|Theta|_F^2``."""
        return float(np.vdot(coef, coef))

    def misfit(self, alpha: float, coef: FloatArray, half_dual: FloatArray) -> float:
        """``|alpha Theta' - X' half_dual|_F^2``, for columns of `half_dual` that sum to zero."""
        return self.square(alpha * coef - self._correlation(half_dual))

    def _correlation(self, half_dual: FloatArray) -> FloatArray:
        """``half_dual' X``."""
        product: FloatArray
        if self._sparse:
            # What is left of the sums is rounding, which the mean would multiply.
            product = (self._matrix.T @ half_dual).T
            product -= np.outer(half_dual.sum(axis=0), self._mean - self._shift)
            return product
        product = np.zeros((half_dual.shape[1], len(self._mean)))
        for rows, block in self._blocks():
            product += half_dual[rows].T @ block
        return product

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        """Rows of the shifted features, as many at a time as memory allows."""
        if self._shifted:
            yield slice(None), self._matrix
            return
        step = max(1, CERTIFICATE_BLOCK_BYTES // (8 * len(self._mean)))
        for start in range(0, self._matrix.shape[0], step):
            rows = slice(start, start + step)
            yield rows, self._matrix[rows] - self._shift


def _centre_full_columns(X: Features, mean: FloatArray) -> tuple[Features, FloatArray]:
    """Subtract the mean from the columns that have an entry in every row; also return the shift."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    full = np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]
    shift = np.where(full, mean, 0.0)
    if not full.any():
        return X, shift
    pattern = (X.data - shift[X.indices], X.indices, X.indptr)
    return sparse.csr_array(pattern, shape=X.shape), shift


class CentredKernel:
    """A kernel matrix, centred in its feature space, in the place of the features of Eq. (9).

    With the model ``p(x) = sum_j a_j k(x_j, x) + b``, one coefficient ``a_j`` (of one number per
    label) for every sample and ``sum_j a_j = 0``, the penalty ``|Theta|_F^2`` is ``tr A'KA``. The
    intercept being free, the feature space may be shifted: ``Kc = (I - 11'/n) K (I - 11'/n)`` has
    the same minimum, and ``K A = Kc A + 1 (A's)'`` with the row means s of K.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
        Symmetric; not changed unless `overwrite`.
    overwrite : bool, default=False
        Whether a float64 K may be centred in place, to save its memory once more.

    Attributes
    ----------
    matrix : ndarray of shape (n_samples, n_samples)
        Kc, float64.
    shift : ndarray of shape (n_samples,)
        Row means of K.
    shape : tuple of int
        (n_samples, n_samples): as many coefficients as samples.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.objective.features import CentredKernel
    >>> CentredKernel(np.array([[1.0, 0.0], [0.0, 1.0]])).matrix
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """

    def __init__(self, K: Any, *, overwrite: bool = False) -> None:
        K = np.asarray(K)
        if K.ndim != 2 or K.shape[0] != K.shape[1] or not K.size:
            raise ValueError(
                "a kernel matrix must be square, one row and one column for each sample; "
                f"got shape {K.shape}."
            )
        _check_symmetric(K)
        own = np.asarray if overwrite else np.array
        self.matrix: FloatArray = own(K, dtype=np.float64)
        self.shape: tuple[int, int] = (len(K), len(K))
        self.shift: FloatArray = self.matrix.mean(axis=1)
        self.matrix -= self.shift - self.shift.mean()
        self.matrix -= self.shift[:, None]

    def check_positive(self, *, rounding: float = 0.0) -> None:
        """Refuse a kernel with a negative eigenvalue: Eq. (9) would not be convex.

        Directions that the intercept takes care of do not count.

        Parameters
        ----------
        rounding : float, default=0.0
            Relative rounding of the values, where they were given in a lower precision.
        """
        share = max(NEGATIVE_SHARE, len(self.matrix) * rounding)
        slack = share * _largest_eigenvalue(self.matrix)
        shifted = self.matrix.copy()
        shifted.flat[:: len(shifted) + 1] += max(slack, np.finfo(np.float64).tiny)
        try:
            cholesky(shifted.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            smallest = eigh(
                self.matrix, eigvals_only=True, subset_by_index=(0, 0), check_finite=False
            )[0]
            raise ValueError(
                "the kernel must be positive semi-definite, but its smallest eigenvalue (centred) "
                f"is {smallest:.4g}; use another kernel or other parameters of it, or add "
                f"{-smallest:.4g} to the diagonal of a precomputed one."
            ) from None

    def rows(self, kept: npt.NDArray[np.bool_]) -> CentredKernel:
        """Return the kernel of some samples, about the centre of all of them."""
        part = object.__new__(CentredKernel)
        part.matrix = self.matrix[np.ix_(kept, kept)]
        part.shift = self.shift[kept]
        part.shape = (len(part.matrix), len(part.matrix))
        return part

    def residuals(self, U: FloatArray, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """``U - K A - 1 b'`` for coefficients ``coef = A'`` whose rows sum to zero."""
        residuals: FloatArray = U - (intercept + coef @ self.shift)
        residuals -= self.matrix @ coef.T
        return residuals

    def square(self, coef: FloatArray) -> float:
        """``|Theta|_F^2``."""
        return max(0.0, float(np.vdot(coef.T, self.matrix @ coef.T)))

    def misfit(self, alpha: float, coef: FloatArray, half_dual: FloatArray) -> float:
        """``|alpha Theta' - Xc' half_dual|_F^2``."""
        return self.square(alpha * coef - half_dual.T)


def _check_symmetric(K: Array) -> None:
    if K.dtype.kind not in "biuf":
        raise ValueError(f"a kernel matrix must hold real numbers, got dtype {K.dtype}.")
    largest = max(abs(float(K.max())), abs(float(K.min())))
    if not np.isfinite(largest):
        raise ValueError(
            "a kernel matrix must hold no NaN or infinity; look at the rows behind it."
        )
    step = max(1, CERTIFICATE_BLOCK_BYTES // (8 * len(K)))
    for start in range(0, len(K), step):
        difference = np.abs(K[start : start + step] - K[:, start : start + step].T)
        i, j = np.unravel_index(int(difference.argmax()), difference.shape)
        if difference[i, j] > ASYMMETRY * largest:
            raise ValueError(
                f"a kernel matrix must be symmetric, got {K[start + i, j]:.6g} in row {start + i}, "
                f"column {j} and {K[j, start + i]:.6g} the other way round."
            )


def _largest_eigenvalue(matrix: FloatArray) -> float:
    """Estimate the largest eigenvalue in absolute value, by powers of the matrix."""
    vector = np.cos(np.arange(1, len(matrix) + 1) ** 2.0)
    length = 0.0
    for _ in range(POWER_STEPS):
        vector /= max(float(np.linalg.norm(vector)), np.finfo(np.float64).tiny)
        vector = matrix @ vector
        length = float(np.linalg.norm(vector))
    return length
