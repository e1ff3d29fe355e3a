"""The Newton search for the minimum of Eq. (10), its certificates and its solution."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from lemll._types import FloatArray
from lemll.objective import exact_step, weighed
from lemll.solvers.interface import Callback, Progress, Status
from lemll.solvers.msvr.newton import MsvrDirection, NewtonSystem
from lemll.solvers.msvr.point import MsvrPoint, MsvrProblem

__all__ = ["MsvrSearch", "MsvrSolution"]

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
class MsvrSolution:
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
    status: Status

    @property
    def converged(self) -> bool:
        """Whether the solver met its tolerance."""
        return self.status == "converged"


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
