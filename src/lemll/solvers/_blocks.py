"""The two halves of Algorithm 1, each by iteratively reweighted least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lemll._types import FloatArray
from lemll.objective import row_norms, tube_loss, tube_weights

__all__ = ["LabelBlock", "MsvrBlock"]


# A step of the line search must bring this share of the decrease promised by the gradient.
ARMIJO = 1e-4
SHORTEST_STEP = 1e-16


class MsvrBlock:
    """The (Theta, b)-step of Algorithm 1: multi-output support vector regression by IRWLS (Eq. 10).

    Minimises ``sum_i L(|u_i - Theta x_i - b|) + alpha |Theta|_F^2`` for fixed targets U, from where
    the last call ended. The linear system is (d+1) x (d+1) when d < n and n x n (kernel form)
    otherwise.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features.
    n_labels : int
        Number of columns of the targets.
    alpha : float
        Weight of ``|Theta|_F^2``.
    epsilon : float
        Radius of the tube.

    Attributes
    ----------
    n_linear_solves : int
        Cholesky factorisations so far.
    """

    def __init__(self, X: FloatArray, n_labels: int, *, alpha: float, epsilon: float) -> None:
        n_samples, n_features = X.shape
        self.X, self.alpha, self.epsilon = X, alpha, epsilon
        self.kernel = X @ X.T if n_features >= n_samples else None
        self.extended = np.column_stack([X, np.ones(n_samples)])
        # Unknowns: rows of Theta' (or of the kernel coefficients), then the row of b.
        rows = n_features if self.kernel is None else n_samples
        self.unknowns = np.zeros((rows + 1, n_labels))
        self.predictions = np.zeros((n_samples, n_labels))
        self.n_linear_solves = 0

    @property
    def coef(self) -> FloatArray:
        """``Theta``, of shape (n_labels, n_features)."""
        weights = self.unknowns[:-1]
        return np.array(weights.T if self.kernel is None else weights.T @ self.X)

    @property
    def intercept(self) -> FloatArray:
        """``b``, of shape (n_labels,)."""
        return np.array(self.unknowns[-1])

    def penalty(self) -> float:
        """``alpha |Theta|_F^2`` at the current model."""
        weights = self.unknowns[:-1]
        if self.kernel is None:
            return self.alpha * float(np.vdot(weights, weights))
        return self.alpha * float(np.vdot(weights, self.kernel @ weights))

    def fit(self, U: FloatArray, *, tol: float, max_reweightings: int, floor: float = 0.0) -> None:
        """Reweight and solve until the relative decrease of Eq. (10) is at most `tol`.

        Values below `floor` count as zero.
        """
        value = self._value(U, self.predictions) + self.penalty()
        for _ in range(max_reweightings):
            before = value
            value = self._reweight(U, before)
            if before - value <= tol * max(before, floor):
                break

    def _value(self, U: FloatArray, predictions: FloatArray) -> float:
        return float(tube_loss(row_norms(U - predictions), self.epsilon).sum())

    def _reweight(self, U: FloatArray, value: float) -> float:
        """Solve for the current weights and search along the line; return the new value."""
        residuals = U - self.predictions
        weights = tube_weights(row_norms(residuals), self.epsilon)
        towards = self._solve(U, weights) - self.unknowns
        if self.kernel is None:
            moved = self.extended @ towards
            cross = float(np.vdot(self.unknowns[:-1], towards[:-1]))
            square = float(np.vdot(towards[:-1], towards[:-1]))
        else:
            image = self.kernel @ towards[:-1]
            moved = image + towards[-1]
            cross = float(np.vdot(self.unknowns[:-1], image))
            square = float(np.vdot(towards[:-1], image))
        penalty = self.penalty()
        slope = 2 * (self.alpha * cross - float(np.vdot(weights[:, None] * residuals, moved)))
        step = 1.0
        while step >= SHORTEST_STEP:
            trial = (
                self._value(U, self.predictions + step * moved)
                + penalty
                + self.alpha * step * (2 * cross + step * square)
            )
            if trial <= value + ARMIJO * step * min(slope, 0.0):
                self.unknowns += step * towards
                self.predictions += step * moved
                return min(trial, value)
            step /= 2
        return value

    def _solve(self, U: FloatArray, weights: FloatArray) -> FloatArray:
        """Minimise ``sum_i a_i |u_i - Theta x_i - b|^2 + alpha |Theta|_F^2``."""
        solution = np.zeros_like(self.unknowns)
        support = weights > 0
        if not support.any():
            # Every row is inside the tube: what is left of the quadratic is alpha |Theta|^2, which
            # asks for Theta = 0 and says nothing about b. Stopping here would not be optimal.
            solution[-1] = self.unknowns[-1]
            return solution
        self.n_linear_solves += 1
        if self.kernel is None:
            weighted = weights[:, None] * self.extended
            system = self.extended.T @ weighted
            system.flat[: -1 : len(system) + 1] += self.alpha
            factor = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
            return np.asarray(cho_solve(factor, weighted.T @ U, check_finite=False))
        # Kernel form on the support vectors: (K + alpha D^-1) B + 1 b' = U with 1'B = 0.
        system = self.kernel[np.ix_(support, support)]
        system.flat[:: len(system) + 1] += self.alpha / weights[support]
        factor = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
        right = np.column_stack([U[support], np.ones(len(system))])
        solved = cho_solve(factor, right, overwrite_b=True, check_finite=False)
        intercept = solved[:, :-1].sum(axis=0) / solved[:, -1].sum()
        solution[:-1][support] = solved[:, :-1] - np.outer(solved[:, -1], intercept)
        solution[-1] = intercept
        return solution


class LabelBlock:
    """The U-step of Algorithm 1 (Eq. 11-18): IRWLS for the numerical labels, predictions P fixed.

    Minimises ``sum_i L(|u_i - p_i|) + beta |U - Y|_F^2 + gamma tr(U' M U)``.
    """

    def __init__(
        self, Y: FloatArray, W: Any, U0: FloatArray, *, beta: float, gamma: float, epsilon: float
    ) -> None:
        n_samples = len(Y)
        difference = np.eye(n_samples) - W.toarray()
        self.Y, self.beta, self.gamma, self.epsilon = Y, beta, gamma, epsilon
        # B = beta I + gamma M; a reweighting only adds a_i to its diagonal.
        # Fortran order, so that LAPACK factorises the copy in place.
        self.hessian = np.asfortranarray(gamma * (difference.T @ difference))
        self.hessian[np.diag_indices(n_samples)] += beta
        self.U = U0.copy()
        change, rebuilt = U0 - Y, difference @ U0
        # beta |U - Y|_F^2 + gamma tr(U' M U) at the current labels.
        self.penalty = float(beta * np.vdot(change, change) + gamma * np.vdot(rebuilt, rebuilt))
        self.n_linear_solves = 0

    def fit(self, P: FloatArray, *, tol: float, max_reweightings: int, floor: float = 0.0) -> None:
        """Reweight and solve until the relative decrease of Eq. (11) is at most `tol`.

        Values below `floor` count as zero.
        """
        value = self._loss(P, self.U) + self.penalty
        for _ in range(max_reweightings):
            before = value
            value = self._reweight(P, before)
            if before - value <= tol * max(before, floor):
                break

    def _loss(self, P: FloatArray, U: FloatArray) -> float:
        return float(tube_loss(row_norms(U - P), self.epsilon).sum())

    def _reweight(self, P: FloatArray, value: float) -> float:
        weights = tube_weights(row_norms(self.U - P), self.epsilon)
        system = self.hessian.copy(order="F")
        system[np.diag_indices(len(system))] += weights
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        self.n_linear_solves += 1
        right = weights[:, None] * P + self.beta * self.Y
        towards = cho_solve(factor, right, overwrite_b=True, check_finite=False) - self.U
        image = self.hessian @ towards
        cross = float(np.vdot(image, self.U) - self.beta * np.vdot(towards, self.Y))
        square = float(np.vdot(image, towards))
        slope = 2 * (cross + float(np.vdot(weights[:, None] * (self.U - P), towards)))
        step = 1.0
        while step >= SHORTEST_STEP:
            moved = self.U + step * towards
            penalty = self.penalty + step * (2 * cross + step * square)
            trial = self._loss(P, moved) + penalty
            if trial <= value + ARMIJO * step * min(slope, 0.0):
                self.U, self.penalty = moved, penalty
                return min(trial, value)
            step /= 2
        return value
