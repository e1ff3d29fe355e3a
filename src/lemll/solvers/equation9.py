"""Eq. (9): its value, its certificate, the checks of what solvers take, and what they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from lemll._types import Array, Features, FloatArray, MatrixLike, SparseMatrix
from lemll._validation import check_finite, check_number, check_whole, is_sparse
from lemll.solvers.certificate import (
    CentredKernel,
    DualityGap,
    GapParts,
    ShiftedFeatures,
    Weights,
    row_norms,
    smallest_objective,
    tube_loss,
    weighed,
)
from lemll.topology import ReconstructionOperator


class LemllPoint(NamedTuple):
    """The three unknowns of Eq. (9), or the derivatives of Eq. (9) with respect to them.

    Attributes
    ----------
    numerical_labels : ndarray of shape (n_samples, n_labels)
        ``U``.
    coef : ndarray of shape (n_labels, n_features)
        ``Theta``.
    intercept : ndarray of shape (n_labels,)
        ``b``.
    """

    numerical_labels: FloatArray
    coef: FloatArray
    intercept: FloatArray


def objective_value(
    residuals: FloatArray,
    coef_square: float,
    change: FloatArray,
    rebuilt: FloatArray,
    weights: Weights,
    *,
    cell_weight: FloatArray | None = None,
) -> float:
    """Evaluate Eq. (9) from products that are already known.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples, n_labels)
        ``U - X Theta' - 1 b'``.
    coef_square : float
        ``|Theta|_F^2``.
    change : ndarray of shape (n_samples, n_labels)
        ``U - Y``.
    rebuilt : ndarray of shape (n_samples, n_labels)
        ``(I - W) U``.
    weights : Weights
        The weights of Eq. (9) and the radius of its tube.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1.

    Returns
    -------
    float
        The objective.
    """
    alpha, beta, gamma, epsilon = weights
    return (
        float(tube_loss(row_norms(residuals), epsilon).sum())
        + alpha * coef_square
        + beta * float(np.vdot(change, weighed(change, cell_weight)))
        + gamma * _square(rebuilt)
    )


def duality_gap(
    X: Features,
    Y: MatrixLike,
    W: SparseMatrix,
    point: LemllPoint,
    *,
    half_dual: MatrixLike = None,
    cell_weight: FloatArray | None = None,
    **weights: float,
) -> DualityGap:
    """Bound the distance of a point to the optimum of Eq. (9), without solving a linear system.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features), or CentredKernel
        Features, or their kernel. With a kernel, the rows of Theta hold one coefficient per sample.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, -1 or +1.
    W : sparse array of shape (n_samples, n_samples) or ReconstructionOperator
        Rebuilding weights. The bound holds for any `W`. It is tightest if its rows sum to one.
    point : LemllPoint
        The point ``(U, Theta, b)``.
    half_dual : ndarray of shape (n_samples, n_labels), optional
        ``Z/2`` of a dual point, for example from a solution. Every dual point gives a valid bound;
        a better dual point gives a tighter bound. By default two dual points are computed from
        `point`, and the better one is used.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1. Each label needs a positive weight.
    **weights : float
        alpha, beta and gamma, the weights of ``|Theta|_F^2``, ``|U - Y|_F^2`` and ``tr(U' M U)``,
        and epsilon, the radius of the tube. `alpha` and `beta` must be positive.

    Returns
    -------
    DualityGap
        Objective, lower bound and certified relative gap.

    See Also
    --------
    lemll.solvers.certificate.GapParts : the same from products that a solver already has.

    Examples
    --------
    At the optimum the gap is 0. In this example the labels are constant and the optimum is 0.

    >>> import numpy as np
    >>> from scipy import sparse
    >>> from lemll.solvers.equation9 import LemllPoint, duality_gap
    >>> Y = np.ones((2, 1))
    >>> W = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> point = LemllPoint(Y, np.zeros((1, 2)), np.ones(1))
    >>> duality_gap(np.eye(2), Y, W, point, alpha=1.0, beta=1.0, gamma=1.0, epsilon=0.1)
    DualityGap(objective=0.0, lower_bound=0.0, relative=0.0)
    """
    Y, point = _as_float(Y), LemllPoint(*map(_as_float, point))
    U, coef, _ = point
    features, smoothness, change = _centred(X), ReconstructionOperator.of(W), U - Y
    residuals, rebuilt = features.residuals(*point), smoothness.residual(U)
    parameters = Weights(**weights)
    alpha, beta, gamma, _ = parameters
    objective = objective_value(
        residuals, features.square(coef), change, rebuilt, parameters, cell_weight=cell_weight
    )
    gradient = beta * weighed(change, cell_weight) + gamma * smoothness.adjoint(rebuilt)
    parts = GapParts(residuals, gradient, parameters, cell_weight)
    if half_dual is None:
        duals = [parts.from_tube(), parts.from_labels()]
    else:
        duals = [parts.feasible(_as_float(half_dual))]
    gap = min(parts.gap(dual, features.misfit(alpha, coef, dual)) for dual in duals)
    # The floor avoids 0 / 0 if the optimum is exactly 0.
    scale = max(objective, smallest_objective(Y, beta))
    return DualityGap(objective, objective - gap, gap / scale)


def _centred(X: Features) -> CentredKernel | ShiftedFeatures:
    return X if isinstance(X, CentredKernel) else ShiftedFeatures(X)


def _square(array: FloatArray) -> float:
    return float(np.vdot(array, array))


def _as_float(array: MatrixLike) -> FloatArray:
    return np.asarray(array, dtype=np.float64)


# Above this size of one float64 array of n_samples x n_labels, the certificate goes by blocks of
# rows. `duality_gap` holds about fourteen such arrays, more than a search in float32. By blocks,
# only U and (I - W) U exist as a whole in float64.
LARGE_LABEL_BYTES = 1 << 25

# Size of one float64 array of a block of rows and all labels.
BLOCK_BYTES = 1 << 25


class Data(NamedTuple):
    """The data of Eq. (9), checked."""

    X: Features
    Y: Array
    M: ReconstructionOperator
    cell_weight: Array | None

    def proven_gap(
        self, point: LemllPoint, weights: Weights, half_dual: Array | None
    ) -> DualityGap:
        """Return the certificate of `duality_gap`, for large problems with less memory."""
        X, Y, M, cell_weight = self
        plain = cell_weight is None and not isinstance(X, CentredKernel)
        if plain and half_dual is not None and 8 * Y.size > LARGE_LABEL_BYTES:
            return duality_gap_by_blocks(X, Y, M, point, weights, half_dual=half_dual)
        return duality_gap(
            X, Y, M, point, half_dual=half_dual, cell_weight=cell_weight, **weights._asdict()
        )


def duality_gap_by_blocks(
    X: Features,
    Y: Array,
    M: ReconstructionOperator,
    point: LemllPoint,
    weights: Weights,
    *,
    half_dual: Array,
) -> DualityGap:
    """Return the same certificate as `duality_gap` for a given dual point, with less memory.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, -1/+1.
    M : ReconstructionOperator
        M of the weights W, in float64.
    point : LemllPoint
        The point ``(U, Theta, b)``.
    weights : Weights
        The weights of Eq. (9) and the radius of its tube.
    half_dual : ndarray of shape (n_samples, n_labels)
        ``Z/2`` of a dual point. Its columns are centred here.

    Returns
    -------
    DualityGap
        Objective, lower bound and certified relative gap.
    """
    coef = np.asarray(point.coef, dtype=np.float64)
    U = np.asarray(point.numerical_labels, dtype=np.float64)
    rebuilt = M.residual(U)
    mean = half_dual.mean(axis=0, dtype=np.float64)
    alpha, beta, gamma, _ = weights
    features = ShiftedFeatures(X)
    correlation, sums = np.zeros(coef.shape), np.zeros(len(coef))
    objective = alpha * features.square(coef)
    gap = 0.0
    step = max(1, BLOCK_BYTES // (8 * U.shape[1]))
    for start in range(0, len(U), step):
        rows = slice(start, min(start + step, len(U)))
        residuals = features.residuals_of(rows, U[rows], coef, point.intercept)
        change = U[rows] - Y[rows]
        objective += objective_value(residuals, 0.0, change, rebuilt[rows], weights)
        gradient = beta * change + gamma * M.adjoint_rows(rows, rebuilt)
        dual: FloatArray = half_dual[rows] - mean
        gap += GapParts(residuals, gradient, weights).gap(dual, 0.0)
        correlation += features.correlation_of(rows, dual)
        sums += dual.sum(axis=0)
    difference = alpha * coef - features.without_sums(correlation, sums)
    gap += float(np.vdot(difference, difference)) / alpha
    scale = max(objective, smallest_objective(Y, beta))
    return DualityGap(objective, objective - gap, gap / scale)


MAX_TRIALS = 50


# The line search stops when the slope is this share of the first slope. Near the minimum the
# objective is quadratic, so its remaining error is about the square of this share.
SLOPE_SHARE = 1e-3


class LineSearch(NamedTuple):
    """The step along a line (0 if the line does not descend), and the decrease of the objective."""

    step: float
    decrease: float


def exact_step(
    square: FloatArray,
    cross: FloatArray,
    speed: FloatArray,
    *,
    linear: float,
    quadratic: float,
    epsilon: float | FloatArray,
    other: Callable[[float], tuple[float, float]] | None = None,
) -> LineSearch:
    """Minimise Eq. (9) along a line.

    On the line the residuals are ``xi_i + s h_i``. Up to a constant, the objective is
    ``phi(s) = sum_i L(sqrt(square_i + 2 s cross_i + s^2 speed_i)) + 2 s linear + s^2 quadratic``.
    It is convex and continuously differentiable. Newton's method finds the zero of phi' inside a
    bracket.

    Parameters
    ----------
    square, cross, speed : ndarray of shape (n_samples,)
        ``|xi_i|^2``, ``<xi_i, h_i>`` and ``|h_i|^2``.
    linear, quadratic : float
        Half the slope and half the curvature of the quadratic terms of Eq. (9).
    epsilon : float or ndarray of shape (n_samples,)
        Radius of the tube, or one radius per row.
    other : callable, optional
        Returns half the slope and half the curvature of a further convex term at s.

    Returns
    -------
    LineSearch
        The step s and the decrease ``phi(0) - phi(s) >= 0``, without the term `other`.
    """
    start_norms = np.sqrt(square)
    start_loss = np.maximum(start_norms - epsilon, 0.0)
    step, low, high = 0.0, 0.0, np.inf
    norms = start_norms
    first_slope = 0.0
    for trial in range(MAX_TRIALS):
        # The derivative of |xi + s h|^2 / 2 with respect to s.
        drift = cross + step * speed
        safe = np.maximum(norms, epsilon)
        safe[safe == 0] = 1.0  # happens only if epsilon = 0, where every weight is 1
        weights = 1.0 - epsilon / safe
        more_slope, more_curvature = (0.0, 0.0) if other is None else other(step)
        slope = float(weights @ drift) + linear + step * quadratic + more_slope
        if trial == 0:
            first_slope = slope
            if not slope < 0:
                return LineSearch(0.0, 0.0)
        elif abs(slope) <= SLOPE_SHARE * -first_slope:
            break
        if slope < 0:
            low = step
        else:
            high = step
        # Second derivative of the tube loss. Besides `weights @ speed` it has the term
        # (1 - a) (drift / norm)^2, because the weight a itself changes along the line.
        inside = norms <= epsilon
        bend = drift / safe
        bend *= bend
        bend *= 1.0 - weights
        bend[inside] = 0.0
        curvature = float(weights @ speed) + float(bend.sum()) + quadratic + more_curvature
        newton = step - slope / curvature if curvature > 0 else np.inf
        # The curvature jumps at the edge of the tube, so a Newton step may leave the bracket. Then
        # double the step, or bisect if both ends of the bracket are known.
        if not low < newton < high:
            newton = 2 * step + 1.0 if np.isinf(high) else (low + high) / 2
        if newton in (low, high):
            break
        step = newton
        norms = np.sqrt(np.maximum(square + step * (2 * cross + step * speed), 0.0))
    loss = np.maximum(norms - epsilon, 0.0)
    # Use a^2 - b^2 = (a - b)(a + b) for each row. The decrease may be tiny compared with F, and
    # the difference of two sums would lose its digits.
    decrease = float((start_loss - loss) @ (start_loss + loss)) - step * (
        2 * linear + step * quadratic
    )
    # phi is convex and its slope at 0 is negative. A negative decrease is a rounding error.
    return LineSearch(step, max(decrease, 0.0))


Precision = Literal["float64", "float32"]

# Squares, sums and products of numbers up to this size do not overflow, and those of their inverses
# do not underflow.
LARGEST: dict[Precision, float] = {"float64": 1e100, "float32": 1e12}


Status = Literal["converged", "max_iter", "stalled"]


def check_arrays(
    X: Features, Y: MatrixLike, W: SparseMatrix
) -> tuple[Features, Array, SparseMatrix]:
    """Return the arrays of Eq. (9) in the form that the solvers need, or raise a ValueError.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_samples, n_features), or CentredKernel
        Features, or their kernel.
    Y : array-like of shape (n_samples, n_labels)
        Logical labels.
    W : array-like or sparse array of shape (n_samples, n_samples)
        Rebuilding weights.

    Returns
    -------
    X : ndarray, sparse array or CentredKernel
        The features. They are not copied.
    Y : ndarray, float64
        The labels. They are copied only if necessary.
    W : sparse array
        The weights. They are not copied if they are sparse.
    """
    X, Y = as_features(X), np.asarray(Y)
    W = W if is_sparse(W) else sparse.csr_array(np.atleast_2d(np.asarray(W)))
    check_real(Y, "Y")
    check_real(W, "W")
    n_samples = X.shape[0]
    if Y.ndim != 2 or Y.shape[0] != n_samples or W.shape != (n_samples, n_samples):
        raise ValueError(
            f"X has {n_samples} rows, so Y must be ({n_samples}, n_labels) and W "
            f"({n_samples}, {n_samples}); got Y {Y.shape} and W {W.shape}."
        )
    check_size(Y, "Y", "float64")
    check_size(W, "W", "float64")
    return X, np.asarray(Y, dtype=np.float64), W


def as_features(X: Features) -> Features:
    """Return features as a 2-D array, sparse array or kernel, or raise a ValueError.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_samples, n_features), or CentredKernel
        Features, or their kernel.

    Returns
    -------
    ndarray, sparse array or CentredKernel
        The features, copied only if necessary.
    """
    if isinstance(X, CentredKernel):
        return X
    X = X if is_sparse(X) else np.asarray(X)
    check_real(X, "X")
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must be 2-D with rows and features, got shape {X.shape}; reshape it.")
    return X


def check_real(array: MatrixLike, name: str) -> None:
    """Refuse complex numbers, strings and objects."""
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold real numbers, got dtype {array.dtype}; convert it first."
        )


def check_size(array: MatrixLike, name: str, precision: Precision) -> None:
    """Refuse NaN, infinity, and numbers whose squares would overflow.

    Parameters
    ----------
    array : ndarray, sparse array or CentredKernel
        The array to check.
    name : str
        Name of the array, for the error message.
    precision : {"float64", "float32"}
        Precision in which it will be squared.
    """
    if isinstance(array, CentredKernel):
        array = array.matrix
    values = array.data if is_sparse(array) else array
    # Two passes need no copy of the array. With NaN the comparison is False, so NaN is also caught.
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest <= LARGEST[precision]:
        return
    check_finite(array, name=name)
    raise ValueError(
        f"{name} holds numbers of size {largest:.3g}, whose squares overflow in {precision}, "
        f"where at most {LARGEST[precision]:.0e} is allowed; divide {name} by its largest "
        "absolute value."
    )


def check_cell_weight(
    cell_weight: MatrixLike, shape: tuple[int, ...], *, every_label: bool = True
) -> Array:
    """Return the weights of the cells of Y in float64, or refuse them.

    Parameters
    ----------
    cell_weight : array-like of shape (n_samples, n_labels)
        The weights.
    shape : tuple of int
        Shape of Y.
    every_label : bool, default=True
        Whether each label needs a positive weight. Otherwise one label with it is enough.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The weights.
    """
    weights = np.asarray(cell_weight, dtype=np.float64)
    if weights.shape != shape:
        raise ValueError(f"cell_weight must have the shape of Y, {shape}; got {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(
            "cell_weight must be finite and not negative, got "
            f"{weights[~(np.isfinite(weights) & (weights >= 0))].flat[0]}; use 0 for cells that "
            "nobody observed."
        )
    empty = np.flatnonzero(~(weights > 0).any(axis=0))
    if len(empty) if every_label else len(empty) == shape[1]:
        raise ValueError(f"label {empty[0]} has no cell with a positive weight; leave it out.")
    return weights


def check_start(U0: MatrixLike, Y: Array, *, name: str = "U0") -> Array:
    """Return the initial numerical labels as float64, or raise a ValueError."""
    U = np.asarray(U0, dtype=np.float64)
    if U.shape != Y.shape:
        raise ValueError(f"{name} must have the shape of Y, {Y.shape}; got {U.shape}.")
    check_size(U, name, "float64")
    return U


def check_precision(precision: str) -> None:
    """Refuse a precision that the solver does not know."""
    if precision not in LARGEST:
        raise ValueError(f'precision must be "float64" or "float32", got {precision!r}.')


def check_stopping(*, tol: float, max_iter: int) -> None:
    """Refuse an invalid tolerance or an invalid largest number of iterations.

    Parameters
    ----------
    tol : float
        Must be finite and positive.
    max_iter : int
        Must be a whole number of at least 0.
    """
    check_number("tol", tol, above=0)
    check_whole("max_iter", max_iter, least=0)


def check_weights(
    *, alpha: float, beta: float, gamma: float, epsilon: float, precision: Precision = "float64"
) -> None:
    """Refuse parameters for which Eq. (9) is not strictly convex in U and Theta, or overflows.

    Parameters
    ----------
    alpha, beta, gamma, epsilon : float
        Parameters of Eq. (9).
    precision : {"float64", "float32"}, default="float64"
        Precision in which they will be used.
    """
    largest = LARGEST[precision]
    for name, value in (("alpha", alpha), ("beta", beta), ("gamma", gamma), ("epsilon", epsilon)):
        check_number(name, value, above=0, inclusive=name in ("gamma", "epsilon"))
        if value and not 1 / largest <= value <= largest:
            raise ValueError(
                f"{name}={value} would overflow in {precision}, where weights lie between "
                f"{1 / largest:.0e} and {largest:.0e}; scale X and the weights together."
            )


class Progress(NamedTuple):
    """A progress report of a solver.

    Attributes
    ----------
    iteration : int
        Number of iterations so far.
    objective : float
        Eq. (9) at the current point.
    optimality : float
        The last certified relative gap. Infinity before the first certificate.
    elapsed : float
        Seconds since the solver was called, without the time spent in callbacks.
    """

    iteration: int
    objective: float
    optimality: float
    elapsed: float


Callback = Callable[[Progress], None]


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Part of the results of iterative solvers."""

    status: Status

    @property
    def converged(self) -> bool:
        """Whether the solver met its tolerance."""
        return self.status == "converged"


@dataclass(frozen=True)
class LemllSolution(Solution):
    """A minimiser of Eq. (9) with its certificate.

    Attributes
    ----------
    coef : ndarray of shape (n_labels, n_features)
        ``Theta``. With a kernel: the coefficients of the samples, of shape (n_labels, n_samples).
    intercept : ndarray of shape (n_labels,)
        ``b``.
    numerical_labels : ndarray of shape (n_samples, n_labels)
        ``U``.
    objective : float
        Eq. (9) at the solution, recomputed in float64.
    objective_trace : ndarray of shape (n_iter + 1,)
        Eq. (9) at the start and after each iteration.
    optimality : float
        Certified relative duality gap: ``(objective - min F) / max(objective, zero)`` is at most
        this, where ``zero = 1e-18 min(beta, 1) |Y|_F^2`` is `smallest_objective`.
        For every objective above `zero` it bounds the relative error, up to rounding.
    n_iter : int
        Number of iterations.
    status : {"converged", "max_iter", "stalled"}
        "stalled" means that rounding errors stopped the descent before the requested gap.
    n_linear_solves : int
        Number of factorised linear systems; 0 if the points of a long path share one decomposition.
    dual_coef : ndarray of shape (n_samples, n_labels) or None
        B of ``Theta' = (X - mean)' B``. Set by the joint solver if n_samples <= n_features.
    half_dual : ndarray of shape (n_samples, n_labels) or None
        ``Z/2`` of the dual point that proves `optimality`. Set by the joint solver. The user can
        check the proof with `duality_gap`. None if that function finds an equally
        good dual point itself.
    """

    coef: FloatArray
    intercept: FloatArray
    numerical_labels: FloatArray
    objective: float
    objective_trace: FloatArray
    optimality: float
    n_iter: int
    n_linear_solves: int
    dual_coef: FloatArray | None = None
    half_dual: FloatArray | None = None

    @property
    def point(self) -> LemllPoint:
        """The three unknowns of Eq. (9)."""
        return LemllPoint(self.numerical_labels, self.coef, self.intercept)


def solution_at(
    point: LemllPoint,
    certificate: DualityGap,
    trace: list[float],
    status: Status,
    n_linear_solves: int,
) -> LemllSolution:
    """Build a solution from the point ``(U, Theta, b)``, its certificate and its trace."""
    numerical_labels, coef, intercept = point
    return LemllSolution(
        coef=coef,
        intercept=intercept,
        numerical_labels=numerical_labels,
        objective=certificate.objective,
        objective_trace=np.array(trace),
        optimality=certificate.relative,
        n_iter=len(trace) - 1,
        status=status,
        n_linear_solves=n_linear_solves,
    )
