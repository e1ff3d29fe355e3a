"""Eq. (9) in 320-bit arithmetic: what is true of a fitted LEMLL, whatever its float64 says.

Slow and independent of the library: kernels by their definitions, the objective term by term, the
minimum by a damped Newton method on all unknowns at once. Arrays hold gmpy2's numbers as objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gmpy2
import numpy as np

gmpy2.get_context().precision = 320
# Where the Hessian is singular this keeps the Newton step defined; a share of its largest entry.
DAMPING = gmpy2.mpfr("1e-60")
NEWTON_STEPS = 500
SMALLEST_SLOPE = 1e-25
BISECTIONS = 300
NEARLY_FLAT, LONGEST_STEP = 0.1, 2.0**40

exact = np.vectorize(gmpy2.mpfr, otypes=[object])
_exp = np.vectorize(gmpy2.exp, otypes=[object])
_tanh = np.vectorize(gmpy2.tanh, otypes=[object])
_sqrt = np.vectorize(gmpy2.sqrt, otypes=[object])


class Truth(NamedTuple):
    """The objective at a point, the least objective, and how flat it is there."""

    objective: Any
    minimum: Any
    slope: float


def gram(name: str, rows: Any, others: Any, *, gamma: Any, coef0: Any, degree: int) -> Any:
    """Values of a kernel by its definition."""
    if name == "rbf":
        difference = rows[:, None, :] - others[None, :, :]
        return _exp(-gamma * (difference * difference).sum(axis=2))
    if name == "cosine":
        return _unit(rows) @ _unit(others).T
    inner = rows @ others.T
    if name == "linear":
        return inner
    base = gamma * inner + coef0
    return base**degree if name == "poly" else _tanh(base)


def _unit(rows: Any) -> Any:
    length = _sqrt((rows * rows).sum(axis=1))
    length[length == 0] = gmpy2.mpfr(1)
    return rows / length[:, None]


def kernel_of(model: Any, X: Any) -> Any:
    """Values that a fitted model's coefficients belong to, about the row it takes them about."""
    kernel = model.kernel_
    if kernel.name == "precomputed":
        return exact(X)
    if kernel.name == "callable":
        return exact(kernel.function(X, X))
    rows = exact(np.asarray(X, dtype=np.float64))
    options = {
        "gamma": gmpy2.mpfr(kernel.gamma),
        "coef0": gmpy2.mpfr(kernel.coef0),
        "degree": kernel.degree,
    }
    centre = getattr(kernel, "centre", None)
    if kernel.name == "cosine":
        unit = _unit(rows) - (exact(centre) if centre is not None else 0)
        return unit @ unit.T
    values = gram(kernel.name, rows, rows, **options)
    if kernel.name == "poly":
        # Without a centre the library of today takes the origin; the first one took none.
        if centre is None and not hasattr(kernel, "centre"):
            return values
        m = exact(np.zeros(X.shape[1]) if centre is None else centre)[None, :]
        column = gram("poly", rows, m, **options)
        values = values - column - column.T + gram("poly", m, m, **options)
    return values


class Problem:
    """Eq. (9) for a model by samples: ``Theta' = Phi' A`` with the kernel ``K = Phi Phi'``."""

    def __init__(self, K: Any, Y: Any, W: Any, *, weights: dict[str, float]) -> None:
        self.K, self.Y = K, exact(Y)
        rough = exact(np.eye(len(Y))) - exact(W.toarray())
        self.M = rough.T @ rough
        self.alpha, self.beta, self.gamma, self.epsilon = (
            gmpy2.mpfr(weights[name]) for name in ("alpha", "beta", "gamma", "epsilon")
        )

    def objective(self, outputs: Any, penalty: Any, U: Any) -> Any:
        """Eq. (9), from the outputs and ``|Theta|_F^2``."""
        residuals = U - outputs
        excess = np.maximum(_sqrt((residuals * residuals).sum(axis=1)) - self.epsilon, 0)
        off = U - self.Y
        return (
            (excess * excess).sum()
            + self.alpha * penalty
            + self.beta * (off * off).sum()
            + self.gamma * (U * (self.M @ U)).sum()
        )

    def value(self, V: Any) -> Any:
        """Eq. (9) at ``V = [A; b'; U]``."""
        n = len(self.Y)
        A, U = V[:n], V[n + 1 :]
        KA = self.K @ A
        return self.objective(KA + V[n], (A * KA).sum(), U)

    def gradient(self, V: Any) -> Any:
        """Half the gradient of Eq. (9)."""
        n = len(self.Y)
        A, U = V[:n], V[n + 1 :]
        KA = self.K @ A
        pull = self._pull(U - KA - V[n])
        return np.vstack(
            [
                self.alpha * KA - self.K @ pull,
                -pull.sum(axis=0)[None, :],
                pull + self.beta * (U - self.Y) + self.gamma * (self.M @ U),
            ]
        )

    def _pull(self, residuals: Any) -> Any:
        norms = _sqrt((residuals * residuals).sum(axis=1))
        shares = [1 - self.epsilon / r if r > self.epsilon else gmpy2.mpfr(0) for r in norms]
        return np.array(shares, dtype=object)[:, None] * residuals

    def hessian(self, V: Any) -> Any:
        """Half the Hessian of Eq. (9), of order ``(2 n + 1) l``, label by label within a row."""
        n, labels = self.Y.shape
        residuals = V[n + 1 :] - self.K @ V[:n] - V[n]
        # Residuals by the unknowns [A; b; U] of one label.
        to_residuals = np.hstack([-self.K, exact(-np.ones((n, 1))), exact(np.eye(n))])
        order = (2 * n + 1) * labels
        H = exact(np.zeros((order, order)))
        quadratic = exact(np.zeros((2 * n + 1, 2 * n + 1)))
        quadratic[:n, :n] = self.alpha * self.K
        quadratic[n + 1 :, n + 1 :] = self.beta * exact(np.eye(n)) + self.gamma * self.M
        for p in range(labels):
            H[p::labels, p::labels] += quadratic
        for i in range(n):
            length = gmpy2.sqrt((residuals[i] * residuals[i]).sum())
            if length <= self.epsilon:
                continue
            share = 1 - self.epsilon / length
            unit = residuals[i] / length
            block = share * exact(np.eye(labels)) + (1 - share) * np.outer(unit, unit)
            square = np.outer(to_residuals[i], to_residuals[i])
            for p in range(labels):
                for q in range(labels):
                    H[p::labels, q::labels] += block[p, q] * square
        return H

    def _length(self, V: Any, step: Any) -> Any:
        return _line_search(lambda t: (self.gradient(V - t * step) * step).sum())

    def minimum(self, V: Any) -> tuple[Any, float]:
        """Minimise from V on; return the least objective, and half the relative Newton decrement.

        The latter is what a quadratic model of the objective would still gain.
        """
        slope = np.inf
        for _ in range(NEWTON_STEPS):
            gradient, H = self.gradient(V), self.hessian(V)
            # Unknowns of very different size: each has its own damping.
            diagonal = np.array([max(abs(h), gmpy2.mpfr("1e-300")) for h in H.diagonal()])
            H[np.diag_indices(len(H))] += DAMPING * diagonal + gmpy2.mpfr("1e-90")
            step = _solve(H, gradient.ravel()).reshape(V.shape)
            scale = max(self.value(V), gmpy2.mpfr("1e-300"))
            slope = float((gradient * step).sum() / scale)
            if not slope > SMALLEST_SLOPE:
                break
            V = V - self._length(V, step) * step
        return self.value(V), slope


def _line_search(descent: Callable[[Any], Any]) -> Any:
    """Return about the step at which the derivative along the line vanishes."""
    low, high = gmpy2.mpfr(0), gmpy2.mpfr(1)
    at_start, at_end = descent(low), descent(high)
    if abs(at_end) <= NEARLY_FLAT * at_start:
        return high
    while at_end > 0 and high < LONGEST_STEP:
        low, high = high, 2 * high
        at_end = descent(high)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        slope = descent(middle)
        if abs(slope) <= NEARLY_FLAT * at_start:
            return middle
        low, high = (middle, high) if slope > 0 else (low, middle)
    return low


def _solve(H: Any, right: Any) -> Any:
    """Solve a positive definite system by Cholesky's method."""
    L = H.copy()
    order = len(L)
    for j in range(order):
        L[j, j] = gmpy2.sqrt(L[j, j])
        L[j + 1 :, j] /= L[j, j]
        L[j + 1 :, j + 1 :] -= np.outer(L[j + 1 :, j], L[j + 1 :, j])
    x = right.copy()
    for j in range(order):
        x[j] /= L[j, j]
        x[j + 1 :] -= L[j + 1 :, j] * x[j]
    for j in range(order - 1, -1, -1):
        x[j] /= L[j, j]
        x[:j] -= L[j, :j] * x[j]
    return x


def truth_of(model: Any, X: Any, Y: Any, W: Any) -> Truth:
    """Evaluate a fitted `lemll.LEMLL` and find the true minimum of its problem."""
    weights = {name: getattr(model, name) for name in ("alpha", "beta", "gamma", "epsilon")}
    U, b = exact(model.numerical_labels_), exact(model.intercept_)
    dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    linear = not hasattr(model, "kernel_")
    if linear:
        rows, theta = exact(dense), exact(model.coef_)
        centre = rows.sum(axis=0) / len(rows)
        K = (rows - centre) @ (rows - centre).T
        outputs, penalty = rows @ theta.T + b, (theta * theta).sum()
        start = exact(np.zeros(U.shape))
    else:
        K = kernel_of(model, dense)
        start = exact(model.dual_coef_).T
        outputs, penalty = K @ start + b, (start * (K @ start)).sum()
    problem = Problem(K, Y, W, weights=weights)
    mean = (U - K @ start).sum(axis=0) / len(U)
    minimum, slope = problem.minimum(np.vstack([start, mean[None, :], U]))
    return Truth(problem.objective(outputs, penalty, U), minimum, slope)
