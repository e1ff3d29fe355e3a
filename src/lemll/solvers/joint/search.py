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
from typing import Any

import numpy as np

from lemll._types import Array
from lemll.objective import proven_gap, row_norms, smallest_objective, tube_weights, weighed
from lemll.solvers.interface import Callback, Progress, Status
from lemll.solvers.joint.point import Direction, LabelOperators, Operators, Point, Weights
from lemll.topology import ReconstructionOperator

__all__ = ["JointSearch", "Preconditioner", "Search"]

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
        self,
        weights: Weights,
        floor: float,
        tol: float,
        max_iter: int,
        callback: Callback | None,
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
        self,
        problem: tuple[Any, Array, ReconstructionOperator, Array | None],
        weights: Weights,
        tol: float,
        max_iter: int,
        callback: Callback | None,
    ) -> None:
        floor = smallest_objective(problem[1], weights.beta)
        super().__init__(weights, floor, tol, max_iter, callback)
        self.problem, self.cell_weight = problem[:3], problem[3]

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
            certificate = proven_gap(
                *self.problem,
                unknowns,
                **self.weights._asdict(),
                half_dual=point.half_dual,
                cell_weight=self.cell_weight,
            )
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
        mean_weight: Any = 1.0
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
        shift: Any = np.full((len(operators.Y), 1), 1 + beta)
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
