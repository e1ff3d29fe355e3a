"""The conjugate gradient search, its preconditioner, and the schedule of certificates.

The preconditioner is an approximate inverse of the Hessian of Eq. (9). It sets all tube weights to
1. This is the true curvature of the tube loss along the residual, and an upper bound in all other
directions. Then half the Hessian in ``(U, V)`` with ``V = [Theta'; b']`` is::

    [ T     -Xt             ]        T = (1 + beta c) I + gamma M, one per label
    [ -Xt'  Xt'Xt + alpha R ]        R = diag(1, .., 1, 0), because b is not penalised

Eliminating U leaves ``S = alpha R + Xt' (I - T^-1) Xt``. Two facts make this cheap:

* T is well conditioned after its rows are scaled by its diagonal. A few terms of a Chebyshev series
  approximate ``T^-1`` well enough. Each term costs two sparse products.
* On the span of X, one number can replace M: the mean of its diagonal. Then T is ``1 + kappa`` and
  S is ``kappa / (1 + kappa) Xc'Xc + alpha I``, so one Gram matrix serves all parameters. In fact X
  is smoother along its own neighbourhoods than this number says. Of the two possible errors this
  is the better one: smaller values needed more iterations on every data set that we tried. On the
  column of ones M is zero, and kappa is exactly beta.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh_tridiagonal
from scipy.linalg.blas import get_blas_funcs

from lemll._types import Array, Features, SparseMatrix
from lemll.solvers.certificate import (
    GapParts,
    Weights,
    row_norms,
    smallest_objective,
    tube_loss,
    tube_weights,
    weighed,
)
from lemll.solvers.equation9 import (
    Callback,
    Data,
    LemllPoint,
    Progress,
    Status,
    exact_step,
    objective_value,
)
from lemll.solvers.linear import Model, features_for, model_for
from lemll.topology import ReconstructionOperator

# The Lanczos iteration finds the largest eigenvalue in a few steps. The margin covers the small
# increase that further steps would bring.
LANCZOS_STEPS = 8
LANCZOS_MARGIN = 1.05
# If the next off-diagonal entry is this small, the iteration has found the eigenvalue.
LANCZOS_END = 1e-3
# Each step subtracts its decrease from the objective, so the absolute rounding error stays that of
# the first value. When the objective has fallen to this share, four digits are lost, and it is
# recomputed.
LARGEST_FALL = 1e-4


class Products(NamedTuple):
    """The products that Eq. (9) consists of: ``U``, ``Xi = U - Xt V`` and ``M U``."""

    labels: Array
    residuals: Array
    rough: Array


class LabelOperators:
    """The data of the label terms of Eq. (9), in one precision, with bounds that are needed.

    Attributes
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels.
    cell_weight : ndarray of shape (n_samples, n_labels) or None
        The weights c of the cells of Y; None means 1.
    smoothness : ReconstructionOperator
        M.
    roughness : ndarray of shape (n_samples,)
        Diagonal of M, in float64.
    """

    def __init__(
        self, Y: Array, W: SparseMatrix, dtype: npt.DTypeLike, cell_weight: Array | None = None
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.cell_weight = None if cell_weight is None else cell_weight.astype(self.dtype)
        self.Y = Y.astype(self.dtype, copy=False)
        exact = ReconstructionOperator.of(W)
        self.roughness: Array = exact.diagonal()
        self.smoothness = exact.astype(self.dtype)
        # The last Chebyshev series. The preconditioner can reuse it for the next parameters.
        self.last_series: tuple[tuple[float, ...], Any] | None = None

    @cached_property
    def roughness_bound(self) -> float:
        """An upper bound of the largest eigenvalue of ``diag(M)^-1 M``, by Lanczos iteration."""
        scale = np.zeros(len(self.Y), dtype=self.dtype)
        root = np.sqrt(self.roughness)
        np.divide(1, root, out=scale, where=root > 0, casting="same_kind")
        # A start vector without a regular pattern, but reproducible.
        vector = np.cos(np.arange(1, len(scale) + 1) ** 2.0).astype(self.dtype)
        vector /= math.sqrt(_square(vector))
        last, off = np.zeros_like(vector), 0.0
        diagonal: list[float] = []
        beside: list[float] = []
        for _ in range(LANCZOS_STEPS):
            image = scale * (self.smoothness @ (scale * vector))
            diagonal.append(float(image @ vector))
            image -= diagonal[-1] * vector + off * last
            off = math.sqrt(_square(image))
            beside.append(off)
            if off <= LANCZOS_END:
                break
            last, vector = vector, image / off
        values, vectors = eigh_tridiagonal(diagonal, beside[:-1])
        # The distance from the Ritz value to an eigenvalue is at most its residual, so add it.
        return max(1.0, LANCZOS_MARGIN * float(values[-1] + off * abs(vectors[-1, -1])))

    def raise_roughness_bound(self) -> None:
        """Increase `roughness_bound` after a product has proven that it is too low."""
        self.roughness_bound *= 1.5


class Operators(LabelOperators):
    """The data of Eq. (9) in one precision, as operators.

    Attributes
    ----------
    model : Model
        The linear model on the centred features.
    """

    def __init__(
        self,
        X: Features,
        Y: Array,
        W: SparseMatrix,
        dtype: npt.DTypeLike,
        cell_weight: Array | None = None,
    ) -> None:
        super().__init__(Y, W, dtype, cell_weight)
        self.model: Model = model_for(features_for(X, self.dtype))


class Direction:
    """A change of the point, with the change of its products, which depend on it linearly.

    Attributes
    ----------
    stack : ndarray of shape (3, n_samples, n_labels)
        Change of ``U``, of ``Xi = U - Xt V`` and of ``C = beta c (U - Y) + gamma M U``.
    V : ndarray of shape (n_features + 1, n_labels)
        Change of ``[Theta'; b']``.
    """

    def __init__(self, stack: Array, V: Array) -> None:
        self.stack, self.V = stack, V

    def turn(self, share: float, towards: Direction) -> None:
        """Replace this direction by ``share * self + towards``."""
        self.stack *= share
        self.stack += towards.stack
        self.V *= share
        self.V += towards.V


class Point:
    """``(U, V)`` with ``Xi = U - Xt V``, ``C = beta c (U - Y) + gamma M U`` and the objective.

    All three arrays change linearly along a line, so a step does not need a matrix product.
    `refresh` recomputes them when too many digits are lost.

    Parameters
    ----------
    operators : Operators
        The data. They determine the precision.
    weights : Weights
        Parameters of Eq. (9).
    start : LemllPoint
        The initial point.
    dual_coef : ndarray of shape (n_samples, n_labels), optional
        B of ``Theta' = Xc' B`` at the initial point, if the model stores coefficients of samples.
    """

    def __init__(
        self,
        operators: Operators,
        weights: Weights,
        start: LemllPoint,
        dual_coef: Array | None = None,
    ) -> None:
        U = start.numerical_labels
        self.operators, self.weights, self.dtype = operators, weights, operators.dtype
        self._model = operators.model
        self.stack = np.empty((3, *U.shape), dtype=operators.dtype)
        self.U, self.residuals, self.label_gradient = self.stack
        self.U[...] = U
        self.V = self._model.encode(start, dual_coef)
        # Z/2 of the last certificate. The solution returns it as the proof of its gap.
        self.half_dual: Array | None = None
        self._axpy = get_blas_funcs("axpy", (self.stack,))
        self.refresh()

    def reweigh(self, weights: Weights, U: Array, V: Array) -> None:
        """Move to other parameters and unknowns, and recompute the products."""
        self.weights = weights
        self.U[...] = U
        self.V[...] = V
        self.refresh()

    def settle(self, weights: Weights, V: Array, products: Products) -> None:
        """Move to other parameters and to unknowns whose products are already known."""
        alpha, beta, gamma, epsilon = self.weights = weights
        labels, residuals, rough = products
        self.U[...], self.V[...], self.residuals[...] = labels, V, residuals
        change = labels - self.operators.Y
        weighed_change = weighed(change, self.operators.cell_weight)
        np.multiply(weighed_change, beta, out=self.label_gradient)
        self.label_gradient += gamma * rough
        self.objective = self._fresh_objective = (
            float(tube_loss(row_norms(residuals), epsilon).sum())
            + alpha * self._model.inner(V, V, labels - residuals)
            + beta * float(np.vdot(change, weighed_change))
            + gamma * float(np.vdot(labels, rough))
        )

    def products(self) -> Products:
        """Compute the products of Eq. (9) from U and V."""
        image = self._model.image(self.V)
        return Products(self.U, self.U - image, self.operators.smoothness @ self.U)

    def unknowns(self) -> LemllPoint:
        """Return ``(U, Theta, b)`` in float64, for the original features."""
        return LemllPoint(self.U.astype(np.float64), *self._model.decode(self.V))

    def dual_coef(self) -> Array | None:
        """Return B of ``Theta' = Xc' B``, if the model stores coefficients of samples."""
        return self._model.dual_coef(self.V)

    def refresh(self) -> None:
        """Compute the products and the objective from U and V."""
        _, beta, gamma, _ = self.weights
        image = self._model.image(self.V)
        np.subtract(self.U, image, out=self.residuals)
        change = self.U - self.operators.Y
        smoothness = self.operators.smoothness
        rebuilt = smoothness.residual(self.U)
        cell_weight = self.operators.cell_weight
        self.label_gradient[...] = beta * weighed(change, cell_weight)
        self.label_gradient += gamma * smoothness.adjoint(rebuilt)
        self.objective = objective_value(
            self.residuals,
            self._model.inner(self.V, self.V, image),
            change,
            rebuilt,
            self.weights,
            cell_weight=cell_weight,
        )
        self._fresh_objective = self.objective

    def certified_gap(self, enough: float = 0.0) -> float:
        """Return the absolute gap; try dual points until the gap is at most `enough`."""
        found = tight_gap(self._parts(), self._model, self.weights.alpha, self.V, enough)
        self.half_dual = found.half_dual
        return found.gap

    def gap_again(self) -> float:
        """Return the absolute gap of the last dual point, from the current products."""
        if self.half_dual is None:
            return self.certified_gap()
        parts, half_dual = self._parts(), self.half_dual
        if self.operators.cell_weight is not None:
            # The label gradient has changed, and a feasible dual point depends on it.
            half_dual = parts.feasible(half_dual)
        return parts.gap(half_dual, self._model.misfit(self.weights.alpha, self.V, half_dual))

    def _parts(self) -> GapParts:
        return GapParts(
            self.residuals, self.label_gradient, self.weights, self.operators.cell_weight
        )

    def descend(self, direction: Direction) -> bool:
        """Step against `direction` to the minimum on the line; return False if it only rises."""
        alpha = self.weights.alpha
        moved_U, moved_residuals, moved_gradient = direction.stack
        image = moved_U - moved_residuals
        found = exact_step(
            np.einsum("ij,ij->i", self.residuals, self.residuals),
            -np.einsum("ij,ij->i", self.residuals, moved_residuals),
            np.einsum("ij,ij->i", moved_residuals, moved_residuals),
            linear=-alpha * self._model.inner(self.V, direction.V, image)
            - float(np.vdot(self.label_gradient, moved_U)),
            quadratic=alpha * self._model.inner(direction.V, direction.V, image)
            + float(np.vdot(moved_U, moved_gradient)),
            epsilon=self.weights.epsilon,
        )
        if found.step == 0:
            return False
        # BLAS axpy updates in place; NumPy would allocate an array for step * direction.
        for mine, theirs in ((self.stack, direction.stack), (self.V, direction.V)):
            self._axpy(theirs.ravel(), mine.reshape(-1), a=-found.step)
        self.objective -= found.decrease
        if self.objective < LARGEST_FALL * self._fresh_objective:
            self.refresh()
        return True


def _square(array: Array) -> float:
    return float(np.vdot(array, array))


class Bound(NamedTuple):
    """A certified gap, and Z/2 of the dual point that proves it."""

    gap: float
    half_dual: Array


def tight_gap(parts: GapParts, model: Model, alpha: float, V: Array, enough: float) -> Bound:
    """Bound the gap of Eq. (9) by better and better dual points, until one is good enough.

    The first two dual points come from the point itself and cost one product each. The gap is
    convex in Z, and the two have different weaknesses. So the best point between them often has a
    gap several times smaller, and it costs no product. Its remaining gap comes mostly from the
    force: Z is not the dual point of the model. The system that preconditions the search gives a
    change of Z that makes the force small. This costs three more products.

    Parameters
    ----------
    parts : GapParts
        The point.
    model : Model
        The model, with a factorised system.
    alpha : float
        Weight of ``|Theta|_F^2``.
    V : ndarray
        The unknowns of the model.
    enough : float
        Stop as soon as the gap is at most this.

    Returns
    -------
    Bound
        The best bound found.
    """
    tried: list[Bound] = []

    def good_enough(half_dual: Array, square: float) -> bool:
        tried.append(Bound(parts.gap(half_dual, square), half_dual))
        return tried[-1].gap <= enough

    first, second = parts.from_tube(), parts.from_labels()
    force, image = model.force(alpha, V, first)
    square = float(np.vdot(force, image))
    if good_enough(first, square):
        return tried[-1]
    other, other_image = model.force(alpha, V, second)
    squares = square, float(np.vdot(force, other_image)), float(np.vdot(other, other_image))
    if good_enough(second, squares[2]):
        return tried[-1]
    share = parts.best_between(first, second, squares)
    between = (1 - share) * first + share * second
    force = (1 - share) * force + share * other
    image = (1 - share) * image + share * other_image
    if not good_enough(between, float(np.vdot(force, image))):
        change = model.reconcile(alpha, force)
        if change is not None:
            change += between
            made = parts.feasible(change)
            # The factor of the system is rounded, and may be one of a slightly greater matrix. So
            # the force that is left is measured, not derived from the system.
            good_enough(made, model.misfit(alpha, V, made))
    return min(tried, key=lambda bound: bound.gap)


# The certificate is computed when the last decrease suggests that it may succeed, and at the latest
# after this many iterations.
LONGEST_WAIT = 25
# After this many consecutive certificates without progress, rounding is assumed to be the reason,
# and the search stops. In float64 the number is higher: rounding matters only near the end, and
# before that the gap does not have to fall in every certificate.
PATIENCE = {"float32": 3, "float64": 20}
# Largest number of terms of the Chebyshev series of T^-1.
MAX_TERMS = 8


class Search(ABC):
    """Conjugate gradients over (U, Theta, b): one search with its trace and its certificates.

    Parameters
    ----------
    weights : Weights
        Parameters of Eq. (9).
    floor : float
        The smallest objective that a gap is divided by.
    tol : float
        The search stops when the certified relative gap is at most this.
    max_iter : int
        Largest number of iterations of all runs together.
    callback : callable or None
        Called with a `Progress` after each iteration.

    Attributes
    ----------
    trace : list of float
        The objective at the start and after each iteration.
    optimality : float
        The last certificate.
    n_linear_solves : int
        Number of factorised linear systems.
    """

    def __init__(
        self, weights: Weights, floor: float, tol: float, max_iter: int, callback: Callback | None
    ) -> None:
        self.weights, self.floor = weights, floor
        self.tol, self.max_iter, self.callback = tol, max_iter, callback
        self.trace: list[float] = []
        self.optimality = float("inf")
        self.n_linear_solves = 0
        self.clock = time.perf_counter()

    @abstractmethod
    def _begin(self, point: Any) -> tuple[Any, Any]:
        """Return the preconditioner, and a direction of length zero."""

    @abstractmethod
    def certify(self, point: Any) -> float:
        """Return the certified relative gap."""

    def run(self, point: Any, *, warm: bool = False) -> Status:
        """Move `point` until its certified gap is at most `tol`, or until it cannot move further.

        A `warm` point may already be good enough, so it is certified first.
        """
        preconditioner, direction = self._begin(point)
        if not self.trace:
            self.trace.append(point.objective)
        if warm:
            self.optimality = self.certify(point)
            if self.optimality <= self.tol:
                return "converged"
        schedule = _Schedule(self.tol, PATIENCE[np.dtype(point.dtype).name])
        while len(self.trace) <= self.max_iter:
            towards = preconditioner.direction(point)
            direction.turn(preconditioner.conjugacy, towards)
            if not point.descend(direction):
                # Rounding errors can make the conjugate direction useless. Restart with the
                # preconditioned gradient alone, which may still descend.
                direction.turn(0.0, towards)
                if not point.descend(direction):
                    return self._last_word(point)
            self.trace.append(point.objective)
            self._report()
            decrease = self.trace[-2] - self.trace[-1]
            if schedule.due(decrease / max(point.objective, self.floor)):
                self.optimality = self.certify(point)
                if self.optimality <= self.tol:
                    return "converged"
                if schedule.hopeless(self.optimality):
                    return "stalled"
        return "max_iter"

    def _last_word(self, point: Any) -> Status:
        self.optimality = self.certify(point)
        return "converged" if self.optimality <= self.tol else "stalled"

    def _report(self) -> None:
        if self.callback is None:
            return
        now = time.perf_counter()
        self.callback(
            Progress(len(self.trace) - 1, self.trace[-1], self.optimality, now - self.clock)
        )
        self.clock += time.perf_counter() - now


class JointSearch(Search):
    """The search with all rows in this process.

    Parameters
    ----------
    problem : tuple
        X, Y, M and the weights of the cells or None, in float64.
    weights, tol, max_iter, callback
        As in `Search`.
    """

    def __init__(
        self, data: Data, weights: Weights, tol: float, max_iter: int, callback: Callback | None
    ) -> None:
        floor = smallest_objective(data.Y, weights.beta)
        super().__init__(weights, floor, tol, max_iter, callback)
        self.data = data

    def _begin(self, point: Point) -> tuple[Preconditioner, Direction]:
        preconditioner = Preconditioner(point.operators, self.weights)
        self.n_linear_solves += point.operators.model.n_linear_solves
        return preconditioner, Direction(np.zeros_like(point.stack), np.zeros_like(point.V))

    def certify(self, point: Point, *, again: bool = False) -> float:
        """Return the certified relative gap. For a float32 point, compute it in float64.

        With `again`, the products have changed but the last dual point is used again.
        """
        if point.U.dtype == np.float32:
            unknowns = point.unknowns()
            if not again:
                point.certified_gap(self.tol * point.objective)
            certificate = self.data.proven_gap(unknowns, self.weights, point.half_dual)
            point.objective = certificate.objective
            return certificate.relative
        scale = max(point.objective, self.floor)
        gap = point.gap_again() if again else point.certified_gap(self.tol * scale)
        return gap / scale


class _Schedule:
    """Decides when to compute a certificate, which costs about half an iteration.

    The decrease of the objective in the last step is known without cost, and it is roughly
    proportional to the gap. So a certificate that fails shows by which factor the decrease must
    still shrink before the next one may succeed.
    """

    def __init__(self, tol: float, patience: int) -> None:
        self._tol, self._patience = tol, patience
        self._threshold = tol
        self._decrease = np.inf
        self._best = np.inf
        self._iterations = self._waited = self._failures = 0

    def due(self, decrease: float) -> bool:
        self._decrease = decrease
        self._iterations += 1
        self._waited += 1
        # The decrease may vary from step to step. Limit the certificates to about a tenth of the
        # iterations, so that a few small decreases do not cause many useless certificates.
        hopeful = decrease <= self._threshold and 10 * self._waited >= self._iterations - 10
        return hopeful or self._waited >= LONGEST_WAIT

    def hopeless(self, optimality: float) -> bool:
        """Record a failed certificate; return whether too many in a row did not improve."""
        self._failures = 0 if optimality < 0.9 * self._best else self._failures + 1
        self._best = min(self._best, optimality)
        # The gap must shrink by tol / optimality, and the decrease shrinks in proportion.
        self._threshold = self._decrease * self._tol / optimality
        self._waited = 0
        return self._failures >= self._patience


class Preconditioner:
    """Turns the gradient at a point into a search direction.

    Parameters
    ----------
    operators : Operators
        The data.
    weights : Weights
        Parameters of Eq. (9).

    Attributes
    ----------
    decrement : float
        ``<g, P^-1 g>``, where g is half the last gradient. It estimates the distance of F to its
        minimum.
    conjugacy : float
        The share of the old direction to keep, by the rule of Polak and Ribiere, at least 0.
    """

    def __init__(self, operators: Operators, weights: Weights) -> None:
        self._operators, self._weights = operators, weights
        alpha, beta, gamma, _ = weights
        mean_weight: Array | float = 1.0
        if operators.cell_weight is not None:
            # One number per label. A model of all labels needs a single one: their mean.
            mean_weight = operators.cell_weight.mean(axis=0)
        kappa = beta * float(np.mean(mean_weight)) + gamma * float(operators.roughness.mean())
        self._on_features = 1 / (1 + kappa)
        # On the ones kappa is beta. Compute 1 - 1 / (1 + beta) as beta / (1 + beta), because the
        # difference would lose the digits of a small beta.
        on_ones = beta * mean_weight
        self._on_ones, self._kept_on_ones = 1 / (1 + on_ones), on_ones / (1 + on_ones)
        operators.model.factorise(kappa / (1 + kappa), alpha)
        self.decrement = self.conjugacy = 0.0
        self._last: tuple[Array, Array, Array] | None = None

    def direction(self, point: Point) -> Direction:
        """Return ``P^-1 g`` at `point` with its products; set `decrement` and `conjugacy`.

        With ``gU = A + C`` (A the pull of the tube) and ``gV = alpha R V - Xt'A``, the model moves
        by ``dV = S^-1 (gV + Xt' gU / (1 + kappa))`` and the labels by
        ``dU = T^-1 gU + Xt dV / (1 + kappa)``.
        """
        alpha, beta, gamma, epsilon = self._weights
        model = self._operators.model
        pull = point.residuals * tube_weights(row_norms(point.residuals), epsilon)[:, None]
        label_part = pull + point.label_gradient
        label_step = self._label_step(label_part)
        # This is on_ones (A + C) - A, summed over the rows. In this form nothing cancels.
        label_sums, pull_sums = point.label_gradient.sum(axis=0), pull.sum(axis=0)
        intercept_part = self._on_ones * label_sums - self._kept_on_ones * pull_sums
        force = self._on_features * label_part
        force -= pull
        V, image, model_part = model.solve(alpha, point.V, force)
        V[-1] = intercept_part / (self._kept_on_ones * len(pull))

        def inner(label_part: Array, model_part: Array, intercept_part: Array) -> float:
            return (
                float(np.vdot(label_part, label_step))
                + model.force_inner(model_part, V, image)
                + float(intercept_part @ V[-1])
            )

        last_decrement = self.decrement
        self.decrement = inner(label_part, model_part, intercept_part)
        # Polak-Ribiere needs <g - g_old, P^-1 g>. Keep the parts of the old gradient for it.
        if self._last is not None and last_decrement > 0:
            kept = (self.decrement - inner(*self._last)) / last_decrement
            self.conjugacy = max(0.0, kept)
        self._last = label_part, model_part, intercept_part
        # The products of the direction: with them, a step along it needs no further product.
        stack = np.empty_like(point.stack)
        U, residuals, label_gradient = stack
        np.multiply(image, self._on_features, out=U)
        U += label_step
        U += self._on_ones * V[-1]
        np.subtract(U, image, out=residuals)
        residuals -= V[-1]
        np.multiply(weighed(U, self._operators.cell_weight), beta, out=label_gradient)
        if gamma > 0:
            rough = self._operators.smoothness @ U
            rough *= gamma
            label_gradient += rough
        return Direction(stack, V)

    def _label_step(self, label_part: Array) -> Array:
        """Return ``T^-1 gU``; if the series is not positive definite, repair it first."""
        step, repaired = label_step(
            self._operators, self._weights.beta, self._weights.gamma, label_part
        )
        if repaired:
            # Directions made with the old series are not conjugate to those of the new one.
            self._last, self.conjugacy = None, 0.0
        return step


def label_step(
    operators: LabelOperators, beta: float, gamma: float, label_part: Array
) -> tuple[Array, bool]:
    """Return ``T^-1 gU``, and whether the series of ``T^-1`` had to be repaired.

    Parameters
    ----------
    operators : LabelOperators
        The data of the label terms.
    beta, gamma : float
        Parameters of Eq. (9).
    label_part : ndarray of shape (n_samples, n_labels)
        ``gU``, half the derivative of Eq. (9) with respect to U.

    Returns
    -------
    step : ndarray of shape (n_samples, n_labels)
        The approximate solution.
    repaired : bool
        Whether the bound of the spectrum was too low, so that the series was not positive definite.
    """
    step, repaired = series_for(operators, beta, gamma).apply(label_part), False
    while float(np.vdot(label_part, step)) < 0:
        operators.raise_roughness_bound()
        step, repaired = series_for(operators, beta, gamma).apply(label_part), True
    return step, repaired


def series_for(operators: LabelOperators, beta: float, gamma: float) -> ChebyshevSeries:
    """Return the series; reuse the last one if beta, gamma and the bound are the same."""
    key = beta, gamma, operators.roughness_bound
    if operators.last_series is None or operators.last_series[0] != key:
        operators.last_series = key, ChebyshevSeries(operators, beta, gamma)
    series: ChebyshevSeries = operators.last_series[1]
    return series


class ChebyshevSeries:
    """An approximate inverse of ``T = (1 + beta c) I + gamma M``, by Chebyshev iteration from zero.

    It is a fixed polynomial in ``D^-1 T``, where D is the diagonal of T. Therefore it is linear and
    symmetric. It is positive definite if the upper bound of the spectrum holds. Conjugate gradients
    need all three properties.
    """

    def __init__(self, operators: LabelOperators, beta: float, gamma: float) -> None:
        # Not the operators: they hold the series, and a cycle of references would keep the features
        # and the labels in memory after the solver has returned.
        self._smoothness = operators.smoothness
        # Of shape (n_samples, 1), or (n_samples, n_labels) if the cells have weights.
        shift: Array = np.full((len(operators.Y), 1), 1 + beta)
        if operators.cell_weight is not None:
            shift = 1 + beta * operators.cell_weight.astype(np.float64)
        diagonal = shift + gamma * operators.roughness[:, None]
        self._inverse_diagonal = (1 / diagonal).astype(operators.dtype)
        # D^-1 T = shift D^-1 + gamma D^-1 (I-W)' (I-W)
        self._scaled_shift = (shift / diagonal).astype(operators.dtype)
        self._gamma = gamma
        self._scaled_adjoint = None
        if operators.cell_weight is None:
            # The same factor for all labels can be a part of the sparse matrix.
            factor = gamma / diagonal.ravel()
            self._scaled_adjoint = operators.smoothness.scaled_adjoint(factor)
        # M <= bound diag(M). So the eigenvalues of D^-1 T are at most a weighted mean of 1 and the
        # bound; it is largest in the row where M has its largest diagonal entry.
        roughest, least = gamma * float(operators.roughness.max()), float(shift.min())
        top = (least + operators.roughness_bound * roughest) / (least + roughest)
        # M maps the vector of ones to zero. Its Rayleigh quotient estimates the lower end.
        bottom = float((shift.sum(axis=0) / diagonal.sum(axis=0)).min())
        # The error of a Chebyshev series falls with the number of terms divided by the square root
        # of the condition number. If that needs too many terms, ignore the lowest eigenvalues.
        self.n_terms = min(MAX_TERMS, max(1, round(0.9 * math.sqrt(top / bottom))))
        bottom = max(bottom, top / self.n_terms**2) if self.n_terms > 1 else bottom
        self._centre, self._radius = (top + bottom) / 2, (top - bottom) / 2

    def apply(self, right: Array) -> Array:
        """Return an approximation of ``T^-1 right``."""
        residual: Array = right * self._inverse_diagonal
        step = residual / self._centre
        solution: Array = step.copy() if self.n_terms > 1 else step
        ratio = self._radius / self._centre
        for _ in range(self.n_terms - 1):
            residual -= self._scaled_roughness(step)
            residual -= self._scaled_shift * step
            next_ratio = 1 / (2 * self._centre / self._radius - ratio)
            step *= next_ratio * ratio
            residual_share = 2 * next_ratio / self._radius
            step += residual_share * residual
            ratio = next_ratio
            solution += step
        return solution

    def _scaled_roughness(self, step: Array) -> Array:
        """Return ``gamma D^-1 M step``."""
        if self._scaled_adjoint is not None:
            return np.asarray(self._scaled_adjoint @ self._smoothness.residual(step))
        rough = self._smoothness @ step
        rough *= self._gamma
        rough *= self._inverse_diagonal
        return np.asarray(rough)
