"""Newton's method for a block of logistic regressions on the same features.

All problems of a block share the products with X. Each problem has its own step length. A problem
leaves the block when it is solved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from lemll._types import Features, FloatArray
from lemll.solvers.logistic.conjugate import conjugate_gradients, keep_problems
from lemll.solvers.logistic.features import SharedFeatures

__all__ = ["NewtonBlock", "log_loss", "probabilities"]

ARMIJO = 1e-4
SHORTEST_STEP = 2.0**-30
# If a model is very sure of a row, the curvature of the row underflows to 0 in float64. The Newton
# system divides by the curvature, so it gets this minimum.
LEAST_CURVATURE = 1e-12
# Accuracy of the first Newton systems. Later systems are solved more and more accurately.
LOOSEST_SYSTEM = 0.3


def probabilities(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return p = 1 / (1 + exp(-f)) and p (1 - p), without overflow.

    Examples
    --------
    >>> probabilities(np.array([0.0, -1000.0]))
    (array([0.5, 0. ]), array([0.25, 0.  ]))
    """
    # The exponent is never positive, so it cannot overflow. p (1 - p) is a product of both parts,
    # because 1 - p would lose all digits for p near 1.
    small = np.exp(-np.abs(scores))
    inverse = 1 / (1 + small)
    curvature = small * inverse
    p = np.where(scores >= 0, inverse, curvature)
    curvature *= inverse
    return p, curvature


def log_loss(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Return log(1 + exp(f)) - y f for labels 0/1, without overflow."""
    loss: FloatArray = np.log1p(np.exp(-np.abs(scores)))
    loss += np.maximum(scores, 0)
    loss -= labels * scores
    return loss


@dataclass(slots=True)
class _NewtonState:
    """The arrays of the problems that are not solved yet; the last axis is the problem."""

    place: npt.NDArray[np.intp]
    labels: FloatArray
    weights: FloatArray | None
    free: FloatArray | None
    coef: FloatArray
    intercept: FloatArray
    scores: FloatArray
    value: FloatArray
    scale: FloatArray


class NewtonBlock:
    """Solve a block of problems together.

    Parameters
    ----------
    features : SharedFeatures
        The features of all problems.
    labels : ndarray of shape (n_samples, n_problems)
        0/1. Each column must have both values among the rows with a positive weight.
    weights : ndarray of shape (n_samples, n_problems) or None
        Weights of the rows.
    free : ndarray of shape (n_axes, n_problems) or None
        1 where a problem may use a feature, else 0.
    penalty : float
        1 / C.
    """

    def __init__(
        self,
        features: SharedFeatures,
        labels: FloatArray,
        weights: FloatArray | None,
        free: FloatArray | None,
        penalty: float,
    ) -> None:
        self.features, self.penalty = features, penalty
        n_problems = labels.shape[1]
        mean = (
            labels.mean(axis=0)
            if weights is None
            else (weights * labels).sum(axis=0) / weights.sum(axis=0)
        )
        # The minimum for theta = 0 is the logit of the frequency.
        intercept = np.log(mean) - np.log1p(-mean)
        surprise = labels - mean
        if weights is not None:
            surprise = surprise * weights
        # The expected length of the first gradient if its contributions from the rows had random
        # signs. Unlike the true first gradient, it is never accidentally small.
        scale = np.sqrt((surprise * surprise).T @ (1 + features.row_squares()))
        self.state = _NewtonState(
            place=np.arange(n_problems),
            labels=labels,
            weights=weights,
            free=free,
            coef=np.zeros((features.n_axes, n_problems)),
            intercept=intercept,
            scores=np.tile(intercept, (len(labels), 1)),
            value=np.zeros(n_problems),
            scale=scale,
        )
        self.state.value = self._value(self.state.scores, self.state.coef)
        self.coef = np.zeros((features.n_axes, n_problems))
        self.intercept = intercept.copy()
        self.objective = self.state.value.copy()
        self.gradient_norm = np.zeros(n_problems)
        self.n_iter = np.zeros(n_problems, dtype=np.intp)
        self.converged = np.zeros(n_problems, dtype=np.bool_)
        self._exact = False

    def solve(self, tol: float, max_iter: int) -> None:
        """Iterate until every gradient is below `tol` times its scale, or for `max_iter` steps."""
        for step in range(max_iter + 1):
            state = self.state
            p, curvature = probabilities(state.scores)
            residuals = p - state.labels
            if state.weights is not None:
                residuals *= state.weights
                curvature *= state.weights
            slope = self.features.gathered(residuals) + self.penalty * state.coef
            if state.free is not None:
                slope *= state.free
            slope_of_intercept = residuals.sum(axis=0)
            norm = np.sqrt((slope * slope).sum(axis=0) + slope_of_intercept**2) / state.scale
            done = norm <= tol
            self._store(norm, done, step)
            if done.all() or step == max_iter:
                return
            if done.any():
                keep_problems(state, ~done)
                slope, curvature = slope[:, ~done], curvature[:, ~done]
                slope_of_intercept, norm = slope_of_intercept[~done], norm[~done]
            np.maximum(curvature, LEAST_CURVATURE, out=curvature)
            # A row with the weight 0 must not get the minimum curvature either.
            if state.weights is not None:
                curvature *= state.weights > 0
            direction, of_intercept = self._direction(slope, slope_of_intercept, curvature, norm)
            moved = self._search(slope, slope_of_intercept, direction, of_intercept)
            if not moved.any():
                return
            if not moved.all():
                keep_problems(state, moved)

    def _store(self, norm: FloatArray, done: npt.NDArray[np.bool_], step: int) -> None:
        state = self.state
        self.coef[:, state.place] = state.coef
        self.intercept[state.place] = state.intercept
        self.objective[state.place] = state.value
        self.gradient_norm[state.place] = norm
        self.converged[state.place] = done
        self.n_iter[state.place] = step

    def _value(self, scores: FloatArray, coef: FloatArray) -> FloatArray:
        loss = log_loss(scores, self.state.labels)
        if self.state.weights is not None:
            loss *= self.state.weights
        return np.asarray(loss.sum(axis=0) + self.penalty / 2 * (coef * coef).sum(axis=0))

    def _search(
        self, slope: FloatArray, slope0: FloatArray, direction: FloatArray, direction0: FloatArray
    ) -> npt.NDArray[np.bool_]:
        """Halve the step of each problem until its value falls enough; return which moved."""
        state = self.state
        promised = (slope * direction).sum(axis=0) + slope0 * direction0
        change = self.features.times(direction) + direction0
        length = np.ones(len(state.place))
        while True:
            coef = state.coef + length * direction
            scores = state.scores + length * change
            value = self._value(scores, coef)
            # An increase within the rounding error of the sum does not count as a failure.
            slack = 1e-13 * (1 + np.abs(state.value))
            short = ~(value <= state.value + ARMIJO * length * promised + slack) & (length > 0)
            if not short.any():
                break
            length[short] /= 2
            length[length < SHORTEST_STEP] = 0
        state.coef, state.scores, state.value = coef, scores, value
        state.intercept = state.intercept + length * direction0
        return np.asarray(length > 0)

    def _direction(
        self, slope: FloatArray, slope0: FloatArray, curvature: FloatArray, norm: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        if self._exact and self.features.dense is not None:
            return self._exact_direction(slope, slope0, curvature)
        dtype = self.features.cg_dtype
        free = self.state.free
        found, used = conjugate_gradients(
            self.features,
            np.vstack([slope, slope0]),
            curvature.astype(dtype, copy=False),
            free=None if free is None else free.astype(dtype, copy=False),
            penalty=self.penalty,
            # Far from the minimum an accurate step is wasted work. The root of the gradient norm
            # still gives superlinear convergence.
            forcing=np.minimum(LOOSEST_SYSTEM, np.sqrt(norm)),
        )
        # A conjugate gradient iteration costs 4 n d operations. An exact step costs n d^2, and its
        # factorisation d^3 / 3. Use exact steps from now on if they are cheaper.
        n_axes = self.features.n_axes
        self._exact = used > n_axes / 4 * (1 + n_axes / (3 * len(curvature)))
        return found[:-1], found[-1]

    def _exact_direction(
        self, slope: FloatArray, slope0: FloatArray, curvature: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Factorise the Hessian of each problem."""
        X, free = self.features.dense, self.state.free
        assert X is not None
        direction, direction0 = np.zeros_like(slope), np.zeros_like(slope0)
        extended = np.column_stack([X, np.ones(len(X))])
        for t in range(slope.shape[1]):
            used = np.ones(extended.shape[1], dtype=bool)
            if free is not None:
                used[:-1] = free[:, t] > 0
            A: Features = extended if used.all() else extended[:, used]
            hessian = A.T @ (curvature[:, t, None] * A)
            # All diagonal entries except the last one, which belongs to the intercept.
            hessian.flat[: -1 : len(hessian) + 1] += self.penalty
            right = -np.append(slope[:, t], slope0[t])[used]
            found = np.zeros(extended.shape[1])
            found[used] = solve_definite(hessian, right)
            direction[:, t], direction0[t] = found[:-1], found[-1]
        return direction, direction0


def solve_definite(hessian: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a system whose matrix is positive definite, except for rounding errors."""
    # A positive diagonal term makes the matrix definite again. The step is then shorter, but it is
    # still a descent direction.
    lift = 0.0
    size = float(np.trace(hessian)) / len(hessian)
    while True:
        lifted = hessian + lift * np.eye(len(hessian)) if lift else hessian
        try:
            factor = cho_factor(lifted.T, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            lift = 10 * lift or 1e-14 * size
            continue
        return np.asarray(cho_solve(factor, right, check_finite=False))
