"""The Hessian that all quadratic programs of a call share, and the solution of its systems."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from lemll._types import Features, FloatArray
from lemll._validation import check_finite, is_sparse

__all__ = ["Hessian"]

# Larger systems are solved by conjugate gradients, because their factorisation would take too long.
LARGEST_FACTOR = 4000
# The largest order of a Hessian whose inverse is kept. It needs less than a gigabyte.
LARGEST_INVERSE = 10000
# Largest number of refinements: a solution by the inverse is rounded, so solve for the residual.
REFINEMENTS = 4
# Added to the diagonal of a singular system, relative to its trace. It is multiplied by ten until
# the factorisation succeeds.
JITTER = 1e-14


class Hessian:
    """The matrix ``A'A + ridge I``, as products and as systems of the free variables."""

    def __init__(self, A: Features, ridge: float) -> None:
        matrix: Features = A if is_sparse(A) else np.asarray(A)
        if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.kind not in "biuf":
            raise ValueError(
                "A must be a 2-D matrix of real numbers with rows and columns, got shape "
                f"{matrix.shape} and dtype {matrix.dtype}."
            )
        check_finite(matrix, name="A")
        if not (np.isfinite(ridge) and ridge >= 0):
            raise ValueError(f"ridge must be a number >= 0, got {ridge!r}.")
        self.ridge, self.n_variables = float(ridge), int(matrix.shape[1])
        self.sparse = is_sparse(matrix)
        self.A: Any = matrix.tocsr() if self.sparse else matrix.astype(np.float64, copy=False)
        self._asked, self._invertible = 0, self.n_variables <= LARGEST_INVERSE

    @cached_property
    def _columns(self) -> Features:
        return self.A.tocsc() if self.sparse else self.A

    @cached_property
    def _adjoint(self) -> Features:
        # Store the transpose by rows, so that its product is as fast as that of the matrix.
        return self.A.T.tocsr() if self.sparse else self.A.T

    @cached_property
    def _whole(self) -> FloatArray:
        product = self._adjoint @ self.A
        return np.asarray(product.toarray() if self.sparse else product)

    def times(self, x: FloatArray) -> FloatArray:
        return np.asarray(self._adjoint @ (self.A @ x) + self.ridge * x)

    def diagonal(self) -> FloatArray:
        squares = self.A.multiply(self.A) if self.sparse else self.A**2
        return np.asarray(squares.sum(axis=0)).ravel() + self.ridge

    def block(self, free: Any) -> FloatArray:
        """Return the rows and columns of some variables, as a new dense array."""
        self._asked += len(free) ** 2
        if self._asked > self.n_variables**2 and self.n_variables <= LARGEST_FACTOR:
            # So many entries were requested that the whole matrix is cheaper than more products.
            block = self._whole[np.ix_(free, free)]
        else:
            part = self._columns[:, free]
            product = part.T @ part
            block = product.toarray() if is_sparse(product) else product
        block[np.diag_indices(len(free))] += self.ridge
        return np.asarray(block)

    def newton(self, free: Any, right: FloatArray, accuracy: float) -> FloatArray:
        """Solve the system of the free variables with the smallest possible factor."""
        n_held = self.n_variables - len(free)
        if len(free) == 0:
            return right
        if len(free) > n_held and self._invertible:
            try:
                return self._by_the_inverse(free, right, accuracy)
            except linalg.LinAlgError:
                # The Hessian is singular, or its rounded inverse is not positive definite.
                self._invertible = False
        if len(free) <= LARGEST_FACTOR:
            return solve_spd(self.block(free), right)
        return self._conjugate_gradients(free, right, accuracy)

    @cached_property
    def _inverse(self) -> FloatArray:
        """The inverse of the Hessian, which all problems share."""
        H = self._whole.copy()
        H[np.diag_indices(self.n_variables)] += self.ridge
        # H is symmetric, and its transpose has the memory order of LAPACK. So both routines work in
        # place, without a second large matrix.
        half, failed = lapack.dpotrf(H.T, lower=False, overwrite_a=True)
        if not failed:
            half, failed = lapack.dpotri(half, lower=False, overwrite_c=True)
        if failed:
            raise linalg.LinAlgError("the Hessian is singular")
        # LAPACK computes only one triangle of the inverse.
        inverse = np.triu(half, 1)
        inverse += inverse.T
        inverse[np.diag_indices(self.n_variables)] = np.diag(half)
        return np.asarray(inverse)

    def _by_the_inverse(self, free: Any, right: FloatArray, accuracy: float) -> FloatArray:
        # Schur complement: (H_ff)^-1 = (H^-1)_ff - (H^-1)_fh ((H^-1)_hh)^-1 (H^-1)_hf, for the free
        # variables f and the held variables h. Only a factor of the order of h is needed.
        inverse = self._inverse
        held = np.setdiff1d(np.arange(self.n_variables), free, assume_unique=True)
        # LAPACK does not accept an empty matrix. Without held variables the factor is not used.
        block = inverse[np.ix_(held, held)] if len(held) else np.ones((1, 1))
        factor = linalg.cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
        whole, solution, left = np.zeros(self.n_variables), np.zeros(self.n_variables), right
        for _ in range(REFINEMENTS):
            whole[held], whole[free] = 0, left
            if len(held):
                whole[held] = -linalg.cho_solve(factor, inverse[held] @ whole, check_finite=False)
            solution[free] += (inverse @ whole)[free]
            left = right - self.times(solution)[free]
            if np.abs(left).max() <= accuracy:
                break
        found: FloatArray = solution[free]
        return found

    def _conjugate_gradients(self, free: Any, right: FloatArray, accuracy: float) -> FloatArray:
        """Solve the system by conjugate gradients, preconditioned by the diagonal."""
        inverse = 1 / np.maximum(self.diagonal()[free], np.finfo(np.float64).tiny)
        whole = np.zeros(self.n_variables)
        x, r = np.zeros_like(right), right.copy()
        z = inverse * r
        p, rz = z.copy(), float(r @ z)
        for _ in range(20 * len(free)):
            if np.abs(r).max() <= accuracy:
                break
            whole[free] = p
            Hp = self.times(whole)[free]
            curvature = float(p @ Hp)
            # Only a singular block has no curvature. Then keep the solution so far.
            if curvature <= 0:
                break
            step = rz / curvature
            x += step * p
            r -= step * Hp
            z = inverse * r
            rz, before = float(r @ z), rz
            p = z + (rz / before) * p
        return x


def solve_spd(H: FloatArray, right: FloatArray) -> FloatArray:
    jitter = JITTER * max(float(np.trace(H)), float(np.finfo(np.float64).tiny))
    while True:
        try:
            factor = linalg.cho_factor(H, lower=True, check_finite=False)
        except linalg.LinAlgError:
            H[np.diag_indices(len(H))] += jitter
            jitter *= 10
            continue
        return np.asarray(linalg.cho_solve(factor, right, check_finite=False))
