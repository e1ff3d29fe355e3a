"""Solve many L2-regularised logistic regressions together, with shared products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from lemll._types import Features, FloatArray, MatrixLike
from lemll._validation import check_number, is_sparse
from lemll.solvers.equation9 import as_features, check_size, check_stopping
from lemll.solvers.linear import solve_definite
from lemll.solvers.logistic_rows import SharedFeatures, conjugate_gradients, keep_problems

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


# A block of problems has a few arrays of this size. They fit into the cache of the processor, and
# the memory does not depend on the number of problems.
BLOCK_BYTES = 1 << 21
# Every block reads all sparse features again, so use larger and fewer blocks.
SPARSE_BLOCKS = 2
LEAST_PROBLEMS = 16
# Directions are computed in float32, where a larger penalty 1 / C would overflow.
LEAST_C = 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticSolution:
    """The minimisers of many logistic regressions, one row per problem.

    Attributes
    ----------
    coef : ndarray of shape (n_problems, n_features)
        Coefficients of the shared features.
    extra_coef : ndarray of shape (n_problems, n_extra)
        Coefficients of the features that only some problems may use. 0 if not allowed.
    intercept : ndarray of shape (n_problems,)
        The intercepts. If all labels of a problem are equal, the model is constant, and the
        intercept is minus infinity (all 0) or plus infinity (all 1).
    objective : ndarray of shape (n_problems,)
        The minimum of each problem.
    gradient_norm : ndarray of shape (n_problems,)
        Length of the gradient, relative to the expected length at the start if the contributions
        of the rows had random signs.
    n_iter : ndarray of shape (n_problems,)
        Number of Newton steps.
    converged : ndarray of shape (n_problems,)
        Whether `gradient_norm` has reached the tolerance.
    """

    coef: FloatArray
    extra_coef: FloatArray
    intercept: FloatArray
    objective: FloatArray
    gradient_norm: FloatArray
    n_iter: npt.NDArray[np.intp]
    converged: npt.NDArray[np.bool_]


def solve_logistic(
    X: Features,
    labels: MatrixLike,
    *,
    C: float = 1.0,
    sample_weight: MatrixLike = None,
    extra: MatrixLike = None,
    allowed: MatrixLike = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    n_jobs: int | None = None,
) -> LogisticSolution:
    r"""Minimise many L2-regularised logistic losses over the same rows.

    For each column y of `labels`, with its own weights w, it minimises

    .. math::
        \sum_i w_i\log\bigl(1+e^{-(2y_i-1)(\theta^\top x_i+b)}\bigr)+\frac1{2C}\|\theta\|^2,

    as ``LogisticRegression(C=C)`` of scikit-learn does. The intercept b is not penalised.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features of all problems.
    labels : ndarray of shape (n_samples, n_problems)
        0/1.
    C : float, default=1.0
        Inverse strength of the penalty, > 0.
    sample_weight : ndarray of shape (n_samples, n_problems), optional
        Weights, not negative. A weight of 2 has the same effect as repeating the row; a weight of
        0 has the same effect as removing it.
    extra : ndarray of shape (n_samples, n_extra), optional
        Features that only some problems may use.
    allowed : ndarray of shape (n_problems, n_extra), optional
        Which of the extra features each problem may use. By default all.
    tol : float, default=1e-6
        A problem is solved when the relative length of its gradient is at most this.
    max_iter : int, default=100
        Largest number of Newton steps per problem.
    n_jobs : int, optional
        Number of threads, as in joblib. Each thread works on one block of problems at a time.

    Returns
    -------
    LogisticSolution
        The minimisers.

    Notes
    -----
    Problems are solved in blocks of limited memory. All problems of a block share the products
    with X. Each Newton system is solved by conjugate gradients with a diagonal preconditioner, or
    by a factorisation if that is cheaper. Dense features are rotated to their principal axes.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers import solve_logistic
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> solution = solve_logistic(X, np.array([[0, 1], [0, 1], [1, 1], [1, 1]]))
    >>> solution.coef.round(3), solution.intercept.round(3)
    (array([[0.958],
           [0.   ]]), array([-1.437,    inf]))
    """
    X, labels, weights, extra, free = _checked(X, labels, sample_weight, extra, allowed)
    check_stopping(tol=tol, max_iter=max_iter)
    check_inverse_penalty(C)
    n_samples, n_problems = labels.shape
    n_extra = 0 if extra is None else extra.shape[1]
    total = np.full(n_problems, n_samples) if weights is None else weights.sum(axis=0)
    positive = (labels if weights is None else labels * weights).sum(axis=0, dtype=np.float64)
    coef, extra_coef = np.zeros((n_problems, X.shape[1])), np.zeros((n_problems, n_extra))
    # If all labels are equal, the loss has no minimum: it falls as |b| grows. Use the limit.
    intercept = np.where(positive >= total, np.inf, -np.inf)
    objective, gradient_norm = np.zeros(n_problems), np.zeros(n_problems)
    n_iter, converged = np.zeros(n_problems, np.intp), np.ones(n_problems, np.bool_)
    varied = np.flatnonzero((positive > 0) & (positive < total))
    if len(varied):
        features = SharedFeatures(X, extra, 1 / C)

    def work(part: npt.NDArray[np.intp]) -> None:
        block = NewtonBlock(
            features,
            np.asarray(labels[:, part], dtype=np.float64),
            None if weights is None else np.asarray(weights[:, part], dtype=np.float64),
            None if free is None else _free_axes(free[part], features.n_axes),
            1 / C,
        )
        block.solve(tol, max_iter)
        first, second, shifted = features.given_basis(block.coef, block.intercept)
        coef[part], extra_coef[part], intercept[part] = first.T, second.T, shifted
        objective[part], gradient_norm[part] = block.objective, block.gradient_norm
        n_iter[part], converged[part] = block.n_iter, block.converged

    Parallel(n_jobs=n_jobs, require="sharedmem")(
        delayed(work)(part) for part in _blocks(varied, n_samples, is_sparse(X))
    )
    return LogisticSolution(
        coef=coef,
        extra_coef=extra_coef,
        intercept=intercept,
        objective=objective,
        gradient_norm=gradient_norm,
        n_iter=n_iter,
        converged=converged,
    )


def check_inverse_penalty(C: float) -> None:
    """Refuse a C that is not positive, or whose penalty 1 / C overflows in float32."""
    check_number("C", C, above=0)
    if C < LEAST_C:
        raise ValueError(
            f"C must be at least {LEAST_C:.0e}, got {C}; raise it, or divide X by k and multiply C "
            "by k^2, which gives the same outputs."
        )


def _blocks(
    problems: npt.NDArray[np.intp], n_samples: int, sparse: bool
) -> Iterator[npt.NDArray[np.intp]]:
    size = (SPARSE_BLOCKS if sparse else 1) * BLOCK_BYTES // (8 * n_samples)
    size = max(LEAST_PROBLEMS, size)
    for start in range(0, len(problems), size):
        yield problems[start : start + size]


def _free_axes(allowed: npt.NDArray[np.bool_], n_axes: int) -> FloatArray:
    # All problems may use the shared features, which come first.
    free = np.ones((n_axes, len(allowed)))
    free[n_axes - allowed.shape[1] :] = allowed.T
    return free


def _checked(
    X: Features,
    labels: MatrixLike,
    sample_weight: MatrixLike,
    extra: MatrixLike,
    allowed: MatrixLike,
) -> tuple[Any, ...]:
    X = as_features(X.tocsr() if is_sparse(X) else X)
    check_size(X, "X", "float64")
    labels = np.asarray(labels)
    if labels.ndim != 2 or len(labels) != X.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} rows, so labels must be ({X.shape[0]}, n_problems); "
            f"got {labels.shape}."
        )
    if ((labels != 0) & (labels != 1)).any():
        raise ValueError("labels must contain only 0 and 1; code the two classes as 0 and 1.")
    weights = None
    if sample_weight is not None:
        weights = np.asarray(sample_weight)
        if weights.shape != labels.shape:
            raise ValueError(
                f"sample_weight must have the shape of labels, {labels.shape}; got {weights.shape}."
            )
        if not (weights >= 0).all() or not np.isfinite(weights).all():
            raise ValueError("sample_weight must be finite and not negative.")
    free = None
    if extra is not None:
        extra = np.asarray(extra, dtype=np.float64)
        check_size(extra, "extra", "float64")
        if allowed is not None:
            free = np.asarray(allowed, dtype=np.bool_)
        shapes = (extra.shape[:1], free if free is None else free.shape)
        if extra.ndim != 2 or shapes != (
            (X.shape[0],), None if free is None else (labels.shape[1], extra.shape[1])
        ):  # fmt: skip
            raise ValueError(
                f"extra must be ({X.shape[0]}, n_extra) and allowed ({labels.shape[1]}, n_extra); "
                f"got extra {extra.shape} and allowed {None if free is None else free.shape}."
            )
    return X, labels, weights, extra, free
