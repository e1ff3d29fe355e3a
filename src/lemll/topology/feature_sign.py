"""Solve one lasso exactly, by feature-sign search."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from lemll._sparse import dense
from lemll._types import Features, FloatArray

__all__ = ["FeatureSign"]

# Rows in use count as linearly dependent if a squared pivot is below this share of the largest.
DEPENDENT = 1e-11


class FeatureSign:
    """One lasso, with the rows in use (the support) and their weights s."""

    def __init__(self, X: Features, row: int, share: float) -> None:
        self.X, self.row = X, row
        self.target = dense(X[[row]]).ravel()
        self.half = float(self.target @ self.target) / 2
        self.products = self._products(self.target)
        self.weight = share * float(np.abs(self.products).max())
        self.support = np.empty(0, dtype=np.intp)
        self.s, self.gram = np.empty(0), np.empty((0, 0))

    def _products(self, residual: FloatArray) -> FloatArray:
        products = np.asarray(self.X @ residual)
        products[self.row] = 0  # a row must not rebuild itself
        return products

    def run(self, tol: float, max_iter: int) -> tuple[int, float]:
        """Solve the lasso; return the number of steps and the relative gap."""
        # The row is orthogonal to all others (or zero), so the code 0 is optimal.
        if self.weight == 0:
            return 0, 0.0
        steps = 0
        while True:
            residual = self.target - self._rebuilt()
            products = self._products(residual)
            gap = self._gap(residual, products)
            # At the optimum no row outside the support has a product above the weight lambda. The
            # row that violates this most joins the support.
            outside = np.abs(products)
            outside[self.support] = 0
            newcomer = int(np.argmax(outside))
            if gap <= tol or steps >= max_iter or outside[newcomer] <= self.weight:
                return steps, gap
            signs = np.append(np.sign(self.s), np.sign(products[newcomer]))
            self._join(newcomer)
            steps += self._fit(signs, max_iter - steps)

    def _rebuilt(self) -> FloatArray:
        return np.asarray(self.X[self.support].T @ self.s) if len(self.support) else 0 * self.target

    def _gap(self, residual: FloatArray, products: FloatArray) -> float:
        # Scale the residual until it is feasible for the dual problem; this gives a lower bound.
        largest = float(np.abs(products).max())
        dual = self.target - residual * min(1.0, self.weight / largest if largest > 0 else 1.0)
        primal = float(residual @ residual) / 2 + self.weight * float(np.abs(self.s).sum())
        return max(0.0, primal - self.half + float(dual @ dual) / 2) / self.half

    def _join(self, newcomer: int) -> None:
        self.support, self.s = np.append(self.support, newcomer), np.append(self.s, 0.0)
        # Extend the Gram matrix by one row and column; all other products are known already.
        column = dense(self.X[self.support] @ self.X[[newcomer]].T).ravel()
        wider = np.empty((len(column), len(column)))
        wider[:-1, :-1], wider[-1], wider[:, -1] = self.gram, column, column
        self.gram = wider

    def _fit(self, signs: FloatArray, max_iter: int) -> int:
        """Find the best weights of the rows in use; remove rows whose weight becomes 0."""
        steps = 0
        while len(self.s) and steps < max(1, max_iter):
            steps += 1
            # For fixed signs the lasso is a quadratic function, and its minimum is a linear system.
            right = self.products[self.support] - self.weight * signs
            best, reached = self._towards(_solve_gram(self.gram, right))
            self.s = best
            if reached and (np.sign(best) == signs).all():
                break
            kept = best != 0
            self.support, self.s = self.support[kept], best[kept]
            self.gram = self.gram[np.ix_(kept, kept)]
            signs = np.sign(self.s)
        return steps

    def _towards(self, end: FloatArray) -> tuple[FloatArray, bool]:
        """Return the best of `end` and the points on the way where a weight changes its sign."""
        move = end - self.s
        with np.errstate(divide="ignore", invalid="ignore"):
            crossings = -self.s / move
        crossed = np.flatnonzero((crossings > 0) & (crossings < 1))
        points = np.vstack([end, self.s + crossings[crossed, None] * move])
        points[1 + np.arange(len(crossed)), crossed] = 0  # exactly, so that the row is removed
        values = (
            np.einsum("ij,jk,ik->i", points, self.gram, points) / 2
            - points @ self.products[self.support]
            + self.weight * np.abs(points).sum(axis=1)
        )
        best = int(np.argmin(values))
        return points[best], best == 0


def _solve_gram(gram: FloatArray, right: FloatArray) -> FloatArray:
    """Solve for the weights; if rows are dependent, go far along the undetermined direction.

    Along this direction the objective is linear until a weight changes its sign. So its best point
    is such a sign change, which `_towards` finds.
    """
    factor, failed = lapack.dpotrf(gram, lower=True)
    pivots = np.diag(factor)
    if failed or pivots.min() ** 2 <= DEPENDENT * pivots.max() ** 2:
        added = gram + DEPENDENT * np.trace(gram) * np.eye(len(gram))
        return np.asarray(linalg.solve(added, right, assume_a="pos", check_finite=False))
    return np.asarray(lapack.dpotrs(factor, right, lower=True)[0])
