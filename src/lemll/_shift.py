"""Products with the features about a centre of theirs, for numbers that must keep their digits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from lemll._types import FloatArray
from lemll._validation import is_sparse

__all__ = ["ShiftedFeatures"]


# Features centred at a time: no temporary array is larger than this, however large X is.
BLOCK_BYTES = 1 << 25


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

    def __init__(self, X: Any) -> None:
        self._mean: FloatArray = np.asarray(X.mean(axis=0, dtype=np.float64)).reshape(-1)
        self._sparse = is_sparse(X)
        self._matrix, self._shift = X, self._mean
        if self._sparse:
            self._matrix, self._shift = _centre_full_columns(X, self._mean)
        self._shifted = self._sparse
        if not self._sparse and 8 * X.size <= BLOCK_BYTES:
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
        step = max(1, BLOCK_BYTES // (8 * len(self._mean)))
        for start in range(0, self._matrix.shape[0], step):
            rows = slice(start, start + step)
            yield rows, self._matrix[rows] - self._shift


def _centre_full_columns(X: Any, mean: FloatArray) -> tuple[Any, FloatArray]:
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
