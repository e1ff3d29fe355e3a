"""The Newton search for the minimum of Eq. (10), its certificates and its solution."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from lemll._types import Features, FloatArray
from lemll.solvers.certificate import (
    row_norms,
    smallest_objective,
    tube_loss,
    tube_weights,
    weighed,
)
from lemll.solvers.equation9 import Callback, Progress, Solution, Status, exact_step
from lemll.solvers.linear import Model, features_for, model_for

# Largest number of conjugate gradient steps per Newton step. If they are stopped early, the result
# is still a descent direction.
MAX_INNER = 300
# More damping would slow down problems with almost all rows inside the tube.
LARGEST_DAMPING = 1e-6
# Conjugate gradients stop when the residual has grown by this factor, if the model can be confined.
# With kernels of full rank, the residual did not grow so much on any data set that was tried.
GROWTH = 10.0


class Curvature(Protocol):
    """Half the Hessian of a loss with respect to the outputs, with one block per row."""

    def times(self, image: FloatArray) -> FloatArray:
        """Apply it to a change of the outputs."""


class MsvrDirection(NamedTuple):
    """A change of V and its image."""

    V: FloatArray
    image: FloatArray


class NewtonSystem:
    """The Newton system at a point, solved by preconditioned conjugate gradients.

    Half the gradient, and every residual of the system, has the form
    ``alpha [Theta'; 0] + Xt' force``. It is stored as the pair ``(V, force)``, because this is all
    that the preconditioner needs. In the form by samples, the product itself would cost products
    with X.

    Attributes
    ----------
    decrement : float
        ``<g, P^-1 g>``, where g is half the gradient. It is at most the distance of the objective
        to its minimum.
    grown : bool
        Whether the residual has large parts that do not change Theta. Then the model should be
        confined (`Model.confine`) before the next system.

    Notes
    -----
    In the form by samples, ``Theta' = Xc' B``, B can have parts with ``Xc' B = 0``: with repeated
    rows, and with more rows than dimensions. Conjugate gradients measure all residuals through the
    kernel, so they do not see these parts, and nothing keeps them small. If the curvature of the
    loss is far below the preconditioner, the steps are long, and each step multiplies the unseen
    part by about its length. It was seen to grow from 1e3 to 1e9 in three Newton steps. Then the
    rounding errors of its products hide the true gradient.
    """

    def __init__(self, point: MsvrPoint) -> None:
        self._point, self._problem = point, point.problem
        # A diagonal preconditioner is not always an upper bound of the Hessian.
        self._bounded = self._problem.bounded and self._problem.model.exact
        self._V, self._force = point.V.copy(), -point.pull
        self._first, self.decrement = self._precondition()
        self._largest = GROWTH**2 * self._square
        # The decrement is a square. Only rounding errors of unseen parts make it negative.
        self.grown = self._problem.model.confinable and self.decrement < 0

    def _precondition(self) -> tuple[MsvrDirection, float]:
        """Return ``P^-1 r`` and ``<r, P^-1 r>`` for the current residual r."""
        problem, model = self._problem, self._problem.model
        V, image, right = model.solve(problem.alpha, self._V, self._force)
        # The features are centred, so P does not couple b with Theta. The block of b in P is the
        # total weight of the rows.
        sums = problem.features.gather(self._force)
        V[-1] = sums / problem.intercept_weight
        decrement = model.force_inner(right, V, image) + float(sums @ V[-1])
        # Unlike the decrement, the plain norm of the residual contains its unseen part.
        self._square = float(np.vdot(right, right))
        return MsvrDirection(V, image + problem.features.spread(V[-1])), decrement

    def solve(self, forcing: float) -> MsvrDirection:
        """Return a direction; stop when the residual is the share `forcing` of the gradient."""
        problem = self._problem
        curvature = self._point.curvature(min(LARGEST_DAMPING, forcing))
        along, last = self._first, self.decrement
        V, image = np.zeros_like(along.V), np.zeros_like(along.image)
        for inner in range(MAX_INNER):
            bent = curvature.times(along.image)
            square = problem.alpha * problem.model.inner(along.V, along.V, along.image)
            square += float(np.vdot(along.image, bent))
            # H is positive definite, so only rounding gives no curvature. This also catches NaN.
            if not square > 0:
                break
            length = last / square
            V += length * along.V
            image += length * along.image
            if inner == 0 and self._bounded and length - 1 <= forcing**2:
                # Because H <= P, `length - 1` bounds the squared share of the gradient that is
                # left. It is small enough, so the residual need not be computed.
                break
            # ``H d = alpha [dTheta'; 0] + Xt' (C image)``, so the residual stays a pair.
            self._V -= length * along.V
            self._force -= length * bent
            towards, decrement = self._precondition()
            if not decrement > forcing**2 * self.decrement:
                break
            if problem.model.confinable and self._square > self._largest:
                self.grown = True
                break
            kept = decrement / last
            along = MsvrDirection(towards.V + kept * along.V, towards.image + kept * along.image)
            last = decrement
        return MsvrDirection(V, image)


TINY = float(np.finfo(np.float64).tiny)


class MsvrProblem:
    """The data of Eq. (10), with each row multiplied by the root of its weight.

    Weights of cells stay apart, because they differ between outputs that share the products with
    the features.

    Attributes
    ----------
    cell_roots : ndarray of shape (n_samples, n_outputs) or None
        The roots of the weights of the cells; None means 1.
    intercept_weight : float or ndarray of shape (n_outputs,)
        The total weight of each output, which is the block of b in the preconditioner.
    bounded : bool
        Whether the preconditioner bounds the Hessian.
    """

    def __init__(
        self,
        X: Features,
        T: FloatArray,
        weights: FloatArray | None,
        alpha: float,
        epsilon: float,
        *,
        cell_weight: FloatArray | None = None,
        n_alphas: int = 1,
    ) -> None:
        self.features = features_for(X, np.float64, weights)
        self.model: Model = model_for(self.features)
        self.roots = np.ones(len(T)) if weights is None else np.sqrt(weights)
        self.radii = epsilon * self.roots
        self.cell_roots = None if cell_weight is None else np.sqrt(cell_weight)
        # Half the curvature of the tube loss is at most 1. With weights of cells, the
        # preconditioner is only a typical Hessian.
        self.bounded = cell_weight is None
        self.intercept_weight: float | FloatArray = self.features.total_weight
        self._share = 1.0
        scaled = self.roots[:, None] * T
        if cell_weight is not None:
            totals = self.features.gather(self.roots[:, None] * cell_weight)
            # An output without any weight has no gradient either, so its block is arbitrary.
            self.intercept_weight = np.where(totals > 0, totals, 1.0)
            self._share = float(totals.mean()) / self.features.total_weight
        self.model.expect(n_alphas)
        self.set_alpha(alpha)
        # If the optimum is 0, the objective is only rounding error, and must not divide a gap.
        self.floor = smallest_objective(weighed(scaled, self.cell_roots), 1.0)
        # The best intercept without a tube. Centred targets keep the digits of small residuals.
        self.centre = self.features.gather(weighed(scaled, cell_weight)) / self.intercept_weight
        self.T = self.roots[:, None] * (T - self.centre)

    def set_alpha(self, alpha: float) -> None:
        """Change the weight of the penalty."""
        self.model.factorise(self._share, alpha)
        self.alpha = alpha


class MsvrPoint:
    """The unknowns ``V = [Theta'; b']`` with the residuals ``T - Xt V`` and the objective.

    Attributes
    ----------
    scaled : ndarray of shape (n_samples, n_outputs)
        ``rho_ij = sqrt(c_ij) xi_ij``: the residuals times the roots of the weights of their cells.
    norms, weights : ndarray of shape (n_samples,)
        ``|rho_i|``, and the weights a_i of Eq. (14).
    pull : ndarray of shape (n_samples, n_outputs)
        ``a_i c_ij xi_ij``: half the gradient of the loss by the residuals.
    """

    def __init__(
        self, problem: MsvrProblem, V: FloatArray, residuals: FloatArray | None = None
    ) -> None:
        self.problem, self.V = problem, V
        self.residuals = problem.T - problem.model.image(V) if residuals is None else residuals
        self.scaled = weighed(self.residuals, problem.cell_roots)
        self.norms = row_norms(self.scaled)
        self.weights = tube_weights(self.norms, problem.radii)
        if not problem.radii.any():
            # Eq. (14) gives the weight 0 to a zero residual. Without a tube the loss is a square,
            # and its curvature is the same for all rows.
            self.weights = np.ones_like(self.norms)
        self.pull = weighed(self.weights[:, None] * self.scaled, problem.cell_roots)
        # ``T - residuals`` is the image of V, so the penalty needs no product with X.
        self.objective = float(
            tube_loss(self.norms, problem.radii).sum()
        ) + problem.alpha * problem.model.inner(V, V, problem.T - self.residuals)

    def moved(self, step: float, V: FloatArray, image: FloatArray) -> MsvrPoint:
        """Return the point ``V - step * dV``, given dV and its image, without a product."""
        return MsvrPoint(self.problem, self.V - step * V, self.residuals + step * image)

    def refreshed(self) -> MsvrPoint:
        """Return the same point with recomputed residuals, without accumulated rounding errors."""
        return MsvrPoint(self.problem, self.V)

    def curvature(self, damping: float) -> Curvature:
        """Return half the Hessian of the loss."""
        return MsvrCurvature(self, damping, self.problem.cell_roots)

    def certified_gap(self) -> float:
        """Return an upper bound of the distance of the objective to its minimum.

        For any Z for which the row of b in ``Xt' Z`` is zero, D(Z) is a lower bound of Eq. (10),
        and::

            F - D(Z) = sum_i [ L(|xi_i|) + |z_i|^2/4 + epsilon |z_i| - <z_i, xi_i> ]
                       + |alpha Theta' - Xc'Z/2|_F^2 / alpha

        Here ``Z/2`` is the pull, centred by a change c of the rows outside the tube. For these
        rows the bracket is ``(|h| - p)^2 + 2 r (|h| - <h, n>)`` with ``h = z/2``,
        ``p = r - epsilon`` and ``n = xi/r``. Both differences are computed from c alone, so that
        nothing cancels.

        With weights c of the cells, the loss sees ``rho = sqrt(c) xi``. Let Z be the dual point of
        rho. Then everything above holds with rho in place of xi, and with ``sqrt(c) Z`` in place
        of Z in the condition and in the last term. Cells without a weight take no part.
        """
        problem = self.problem
        change = self._centring()
        # Rows inside the tube have no pull and no change, so they do not contribute to the gap.
        # Split the change into its part along the residual and its part across it.
        unit = self.scaled / np.maximum(self.norms, TINY)[:, None]
        along = np.einsum("ij,ij->i", change, unit)
        across = np.square(row_norms(change - along[:, None] * unit))
        forward = self.weights * self.norms + along
        length = np.sqrt(np.square(forward) + across)
        # |h| - <h, n>. If <h, n> is positive, use (|h|^2 - <h, n>^2) / (|h| + <h, n>) to avoid
        # cancellation. If it is negative, nothing cancels.
        detour = np.where(
            forward > 0,
            across / np.maximum(length + np.maximum(forward, 0.0), TINY),
            length - forward,
        )
        fenchel = np.square(along + detour) + 2 * self.norms * detour
        half_dual = self.pull + weighed(change, problem.cell_roots)
        misfit = problem.model.misfit(problem.alpha, self.V, half_dual)
        return float(fenchel.sum()) + misfit / problem.alpha

    def _centring(self) -> FloatArray:
        """Return the change of ``Z/2`` after which its sums over the rows are zero."""
        # b has no penalty, so the dual value is finite only if the sums over the rows are zero.
        # Rows outside the tube share the correction by their weights.
        problem = self.problem
        sums = -problem.features.gather(self.pull)
        shares = self.weights * problem.roots
        if problem.cell_roots is None:
            return np.outer(shares, sums / max(float(shares @ problem.roots), TINY))
        # The sums are those of sqrt(c) Z, so a cell takes part by the root of its weight.
        cells = shares[:, None] * problem.cell_roots
        totals = np.einsum("ij,ij,i->j", cells, problem.cell_roots, problem.roots)
        change: FloatArray = cells * (sums / np.maximum(totals, TINY))
        return change


class MsvrCurvature:
    """Half the Hessian of the tube loss: ``a_i I + (1 - a_i) n_i n_i'``, 0 inside the tube.

    The weights are raised slightly, from a to ``a + damping (1 - a)``. Without this, rows inside
    the tube would have no curvature. If almost all rows are inside, only they limit b, and the
    Newton step could be far too long.

    With weights c of the cells, a block is multiplied by ``diag(sqrt(c_i))`` from both sides.
    """

    def __init__(
        self, point: MsvrPoint, damping: float, cell_roots: FloatArray | None = None
    ) -> None:
        weights = point.weights + damping * (1 - point.weights)
        outside = point.weights > 0
        self._weights = weights[:, None]
        self._stretch = np.where(outside, 1 - weights, 0.0)[:, None]
        self._cell_roots = cell_roots
        self._unit = point.scaled / np.maximum(point.norms, TINY)[:, None]

    def times(self, image: FloatArray) -> FloatArray:
        """Multiply every row by its block."""
        image = weighed(image, self._cell_roots)
        along = np.einsum("ij,ij->i", self._unit, image)[:, None]
        product: FloatArray = self._weights * image + (self._stretch * along) * self._unit
        return weighed(product, self._cell_roots)


# Far from the optimum an accurate Newton step wastes time, so solve systems only to this share.
LARGEST_FORCING = 0.3
# Rounding does not allow conjugate gradients to go further than this.
SMALLEST_FORCING = 1e-7
# The systems aim at this share of the requested gap.
ENOUGH = 0.1
# After this many certificates in a row without progress, rounding is assumed to be the reason.
PATIENCE = 10
# Below this relative decrement, always certify, to see whether rounding stops the progress.
NEAR_ROUNDING = 1e-12
# Near the optimum, a Newton step that does not reduce the gap to this share is limited by rounding.
POLISH_SHARE = 0.5


@dataclass(frozen=True)
class MsvrSolution(Solution):
    """A minimiser of Eq. (10) with its certificate.

    Attributes
    ----------
    coef : ndarray of shape (n_outputs, n_features)
        ``Theta``.
    intercept : ndarray of shape (n_outputs,)
        ``b``.
    objective : float
        Eq. (10) at the solution.
    objective_trace : ndarray of shape (n_iter + 1,)
        Eq. (10) at the start and after each iteration.
    optimality : float
        Certified relative duality gap: ``(objective - minimum) / objective`` is at most this, if
        the objective is above 1e-18 of the weighted sum of squares of the targets.
    n_iter : int
        Number of Newton steps.
    status : {"converged", "max_iter", "stalled"}
        "stalled" means that rounding errors stopped the descent before the requested gap.
    """

    coef: FloatArray
    intercept: FloatArray
    objective: float
    objective_trace: FloatArray
    optimality: float
    n_iter: int


class MsvrSearch:
    """Newton steps with their trace, starting at ``Theta = 0`` or at a given point."""

    def __init__(
        self,
        problem: MsvrProblem,
        tol: float,
        max_iter: int,
        callback: Callback | None,
        clock: float,
        *,
        start: FloatArray | None = None,
    ) -> None:
        self.problem, self.tol, self.max_iter = problem, tol, max_iter
        self.callback, self.clock = callback, clock
        if start is None:
            start = np.zeros((problem.model.n_rows, problem.T.shape[1]))
        self.point = MsvrPoint(problem, start)
        self.trace = [self.point.objective]
        self.optimality = float("inf")
        # The smallest gap and the lowest objective of all certificates that failed.
        self._best = self._lowest = float("inf")

    def _run(self) -> Status:
        """Step until the certified gap is at most `tol`, or until no step makes progress."""
        status = self._approach()
        self._certify()
        if self.optimality > self.tol:
            return status
        self._polish()
        return "converged"

    def _approach(self) -> Status:
        """Step until a certificate succeeds, or until there is a reason to stop."""
        failures = 0
        while True:
            system = NewtonSystem(self.point)
            if system.grown and self._confine():
                continue
            if self._worth_certifying(system):
                self._certify()
                if self.optimality <= self.tol:
                    return "converged"
                failures = 0 if self._better() else failures + 1
            if len(self.trace) > self.max_iter:
                return "max_iter"
            if failures >= PATIENCE or not self._step(system, self.tol):
                # Unseen parts of V cause rounding errors before they have grown much.
                if not self._confine():
                    return "stalled"
                failures = 0
            elif system.grown:
                self._confine()

    def _better(self) -> bool:
        """Whether the last certificate shows progress: a smaller gap or a lower objective.

        A gap can rise for many steps while the objective falls. Rounding can make both go up and
        down. So both are compared with the best values so far.
        """
        lowered = self._lowest - self.point.objective > NEAR_ROUNDING * self._scale()
        better = lowered or self.optimality < self._best
        self._lowest = min(self._lowest, self.point.objective)
        self._best = min(self._best, self.optimality)
        return better

    def _confine(self) -> bool:
        """Remove the parts of V that do not change Theta; return False if there are none."""
        V = self.problem.model.confine(self.point.V)
        if V is None:
            return False
        self.point = MsvrPoint(self.problem, V)
        self.trace[-1] = self.point.objective
        return True

    def solution(self) -> MsvrSolution:
        """Run the search and return its solution."""
        status = self._run()
        coef, intercept = self.problem.model.decode(self.point.V)
        return MsvrSolution(
            coef=coef,
            intercept=intercept + self.problem.centre,
            objective=self.point.objective,
            objective_trace=np.array(self.trace),
            optimality=self.optimality,
            n_iter=len(self.trace) - 1,
            status=status,
        )

    def _worth_certifying(self, system: NewtonSystem) -> bool:
        # The preconditioner is an upper bound of the Hessian. So a step with it would lower the
        # objective by at least the decrement, and no certificate can prove a smaller gap. (A
        # diagonal preconditioner may not be a bound. Then the certificate is only later.)
        return not system.decrement > max(self.tol, NEAR_ROUNDING) * self._scale()

    def _scale(self) -> float:
        return max(self.point.objective, self.problem.floor)

    def _certify(self) -> None:
        # Each step adds rounding errors to the residuals. A certificate must not depend on them.
        self.point = self.point.refreshed()
        self.trace[-1] = self.point.objective
        self.optimality = self.point.certified_gap() / self._scale()

    def _step(self, system: NewtonSystem, wanted: float) -> bool:
        """Take a Newton step towards the relative gap `wanted`; return False if it only rises."""
        direction = system.solve(self._forcing(system, wanted))
        step = self._line_search(direction)
        if step == 0:
            return False
        self.point = self.point.moved(step, *direction)
        self.trace.append(self.point.objective)
        if self.callback is not None:
            now = time.perf_counter()
            self.callback(
                Progress(
                    len(self.trace) - 1, self.point.objective, self.optimality, now - self.clock
                )
            )
            self.clock += time.perf_counter() - now  # the time in the callback does not count
        return True

    def _forcing(self, system: NewtonSystem, wanted: float) -> float:
        # The decrement is quadratic in the distance to the optimum, so its root is proportional to
        # the distance. Systems solved to this accuracy keep the quadratic convergence of Newton's
        # method. Near the requested gap, less accuracy may be enough.
        relative = system.decrement / self._scale()
        gap = max(relative, wanted)
        # If few rows are outside the tube, the gap can be far above the decrement. Then only the
        # last certificate knows how far away the optimum is.
        if np.isfinite(self.optimality):
            gap = max(gap, self.optimality)
        enough = max(relative, ENOUGH * wanted / gap)
        return float(np.clip(np.sqrt(enough), SMALLEST_FORCING, LARGEST_FORCING))

    def _polish(self) -> None:
        """Reduce the gap to `tol` squared if rounding allows.

        The error of predictions is about the root of the gap, so predictions are then accurate to
        `tol`.
        """
        while self.optimality > self.tol**2 and len(self.trace) <= self.max_iter:
            point, optimality = self.point, self.optimality
            if not self._step(NewtonSystem(point), self.tol**2):
                return
            self._certify()
            # At the level of rounding, a step can raise the gap. Then keep the point before it.
            if self.optimality > optimality:
                self.point, self.optimality = point, optimality
                self.trace.pop()
            if self.optimality > POLISH_SHARE * optimality:
                return

    def _line_search(self, direction: MsvrDirection) -> float:
        point, problem = self.point, self.problem
        inner, alpha = problem.model.inner, problem.alpha
        # Along a line every squared residual is a quadratic function of the step. Three numbers per
        # row describe it, so the search costs no more products with X.
        image = weighed(direction.image, problem.cell_roots)
        found = exact_step(
            np.square(point.norms),
            np.einsum("ij,ij->i", point.scaled, image),
            np.einsum("ij,ij->i", image, image),
            linear=-alpha * inner(point.V, direction.V, direction.image),
            quadratic=alpha * inner(direction.V, direction.V, direction.image),
            epsilon=problem.radii,
        )
        return found.step
