"""The Newton steps of Eq. (10), when they are certified, and what they lead to."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from lemll._types import FloatArray
from lemll.objective import exact_step
from lemll.solvers.interface import Callback, Progress, Status
from lemll.solvers.msvr.newton import MsvrDirection, NewtonSystem
from lemll.solvers.msvr.point import MsvrPoint, MsvrProblem

__all__ = ["MsvrSearch", "MsvrSolution"]

# Far from the optimum no Newton system is solved more exactly than this.
LARGEST_FORCING = 0.3
# Nor is any solved further than rounding lets conjugate gradients go.
SMALLEST_FORCING = 1e-7
# Share of the wanted gap to aim at.
ENOUGH = 0.1
# Steps in a row without a better certificate that prove rounding to be in the way.
PATIENCE = 10
# Certificates from here on tell whether rounding lets the gap fall any further.
NEAR_ROUNDING = 1e-12
# A Newton step so near the optimum that gains less than this meets nothing but rounding.
POLISH_SHARE = 0.5


@dataclass(frozen=True)
class MsvrSolution:
    """A minimiser of Eq. (10), with the proof of how good it is.

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
        Certified relative duality gap: ``(objective - minimum) / objective`` is at most this, for
        objectives above 1e-18 of the weighted sum of squares of the targets.
    n_iter : int
        Newton steps done.
    status : {"converged", "max_iter", "stalled"}
        "stalled" means that rounding forbade any further descent before the wanted gap.
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
    """Newton steps from ``Theta = 0``, or a given start, on, with their trace."""

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

    def _run(self) -> Status:
        """Step until the certified gap is at most `tol`, or nothing moves any more."""
        status = self._approach()
        self._certify()
        if self.optimality > self.tol:
            return status
        self._polish()
        return "converged"

    def _approach(self) -> Status:
        """Step until a certificate says that it is enough, or there is a reason to give up."""
        failures = 0
        while True:
            system = NewtonSystem(self.point)
            if self._worth_certifying(system):
                before = self.optimality
                self._certify()
                if self.optimality <= self.tol:
                    return "converged"
                failures = failures + 1 if self.optimality >= before else 0
            if len(self.trace) > self.max_iter:
                return "max_iter"
            if failures >= PATIENCE or not self._step(system, self.tol):
                return "stalled"

    def solution(self) -> MsvrSolution:
        """MsvrSearch, and gather what was found."""
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
        # The preconditioner bounds the Hessian, so a step with it would lower the objective by the
        # decrement at least: no certificate can be better than that. (A diagonal one need not, and
        # then this is merely late.)
        return not system.decrement > max(self.tol, NEAR_ROUNDING) * self._scale()

    def _scale(self) -> float:
        return max(self.point.objective, self.problem.floor)

    def _certify(self) -> None:
        self.point = self.point.refreshed()
        self.trace[-1] = self.point.objective
        self.optimality = self.point.certified_gap() / self._scale()

    def _step(self, system: NewtonSystem, wanted: float) -> bool:
        """Take a Newton step towards the relative gap `wanted`; False if the line only rises."""
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
            self.clock += time.perf_counter() - now
        return True

    def _forcing(self, system: NewtonSystem, wanted: float) -> float:
        # The decrement is quadratic in the distance to the optimum; a system solved in proportion
        # to the distance leaves Newton's method its quadratic convergence. What is wanted may be
        # less than that.
        relative = system.decrement / self._scale()
        enough = max(relative, ENOUGH * wanted / max(relative, wanted))
        return float(np.clip(np.sqrt(enough), SMALLEST_FORCING, LARGEST_FORCING))

    def _polish(self) -> None:
        """Square the gap, for predictions as close as `tol`, or as close as rounding allows."""
        while self.optimality > self.tol**2 and len(self.trace) <= self.max_iter:
            point, optimality = self.point, self.optimality
            if not self._step(NewtonSystem(point), self.tol**2):
                return
            self._certify()
            if self.optimality > optimality:
                self.point, self.optimality = point, optimality
                self.trace.pop()
            if self.optimality > POLISH_SHARE * optimality:
                return

    def _line_search(self, direction: MsvrDirection) -> float:
        point, problem = self.point, self.problem
        inner, alpha = problem.model.inner, problem.alpha
        found = exact_step(
            np.square(point.norms),
            np.einsum("ij,ij->i", point.residuals, direction.image),
            np.einsum("ij,ij->i", direction.image, direction.image),
            linear=-alpha * inner(point.V, direction.V, direction.image),
            quadratic=alpha * inner(direction.V, direction.V, direction.image),
            epsilon=problem.radii,
        )
        return found.step
