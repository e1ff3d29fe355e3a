"""Systems ``share * matrix + alpha I`` with a positive semi-definite matrix: one, or many."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, eigh
from scipy.linalg.lapack import get_lapack_funcs

from lemll._types import Array

__all__ = ["Cholesky", "Factor", "Factorised", "Spectrum"]


class Factorised(Protocol):
    """A system ready to be solved."""

    def solve(self, right: Array) -> Array:
        """Solve for all columns of `right`."""
        ...


class Factor(Protocol):
    """Turns a matrix and its shift into a system ready to be solved."""

    def __call__(self, matrix: Array, share: float, alpha: float, dtype: Any) -> Factorised:
        """Prepare ``share * matrix + alpha I``, to be solved in this precision."""
        ...


class Cholesky:
    """Cholesky factor of one system."""

    def __init__(self, matrix: Array, share: float, alpha: float, dtype: Any) -> None:
        diagonal = share * matrix.diagonal() + alpha
        jitter = 0.0
        while True:
            system = share * matrix
            system.flat[:: len(system) + 1] = diagonal * (1 + jitter)
            try:
                factor, _ = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
                break
            except LinAlgError:
                # Beside the rest of the matrix alpha is below rounding.
                jitter = max(10 * jitter, 1e-15)
        self._factor = factor.astype(dtype, copy=False)
        self._solve: Any = get_lapack_funcs("potrs", (self._factor,))

    def solve(self, right: Array) -> Array:
        """Solve for all columns of `right`."""
        solution, _ = self._solve(self._factor, right, lower=True)
        return np.asarray(solution)


class Spectrum:
    """Eigenvectors of the matrix, which all shares and shifts have in common."""

    def __init__(self, matrix: Array, dtype: Any) -> None:
        values, vectors = eigh(matrix, check_finite=False)
        # Below zero there is only rounding.
        self._values = np.maximum(values, 0.0)
        self._vectors = vectors.astype(dtype, copy=False)

    @property
    def values(self) -> Array:
        """Eigenvalues, as a column."""
        return np.asarray(self._values.astype(self._vectors.dtype)[:, None])

    def rotate(self, A: Array) -> Array:
        """Coordinates of the columns of `A` along the eigenvectors."""
        return np.asarray(self._vectors.T @ A)

    def rotate_back(self, A: Array) -> Array:
        """Turn coordinates along the eigenvectors into columns."""
        return np.asarray(self._vectors @ A)

    def __call__(self, matrix: Array, share: float, alpha: float, dtype: Any) -> Factorised:
        """Prepare a system with the matrix that the eigenvectors are of."""
        inverse = 1 / (share * self._values + alpha)
        return _Diagonalised(self._vectors, inverse.astype(dtype)[:, None])


class _Diagonalised:
    def __init__(self, vectors: Array, inverse: Array) -> None:
        self._vectors, self._inverse = vectors, inverse

    def solve(self, right: Array) -> Array:
        rotated = self._vectors.T @ right
        rotated *= self._inverse
        return np.asarray(self._vectors @ rotated)
