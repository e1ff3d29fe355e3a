"""The search along conjugate directions, and when it looks whether it has arrived."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from lemll._types import Array
from lemll.objective import duality_gap, smallest_objective
from lemll.solvers._point import Direction, Point, Weights
from lemll.solvers._preconditioner import Preconditioner
from lemll.solvers._solution import Callback, Progress, Status
from lemll.topology import ReconstructionOperator

__all__ = ["Search"]


# The certificate is computed when the preconditioned gradient suggests it, and at least this often.
LONGEST_WAIT = 25
# Consecutive certificates without progress that prove rounding to be in the way. Float64 has
# far to go before rounding matters, and on the way the gap need not fall steadily.
PATIENCE = {"float32": 3, "float64": 20}


class Search:
    """Conjugate gradients over (U, Theta, b): one solve, its trace and its certificates.

    Parameters
    ----------
    problem : tuple
        X, Y and M, in float64.
    weights : Weights
        Parameters of Eq. (9).
    tol : float
        Certified relative gap at which to stop.
    max_iter : int
        Cap on the iterations of all runs together.
    callback : callable or None
        Called with a `Progress` after each iteration.

    Attributes
    ----------
    trace : list of float
        The objective at the start and after each iteration.
    optimality : float
        The last certificate.
    n_linear_solves : int
        How many linear systems were factorised.
    """

    def __init__(
        self,
        problem: tuple[Any, Array, ReconstructionOperator],
        weights: Weights,
        tol: float,
        max_iter: int,
        callback: Callback | None,
    ) -> None:
        self.problem, self.weights = problem, weights
        self.tol, self.max_iter, self.callback = tol, max_iter, callback
        self.floor = smallest_objective(problem[1], weights.beta)
        self.trace: list[float] = []
        self.optimality = float("inf")
        self.n_linear_solves = 0
        self.clock = time.perf_counter()

    def run(self, point: Point, *, warm: bool = False) -> Status:
        """Move `point` until its certified gap is at most `tol`, or nothing moves any more.

        A `warm` one may have arrived already.
        """
        preconditioner = Preconditioner(point.operators, self.weights)
        self.n_linear_solves += point.operators.model.n_linear_solves
        if not self.trace:
            self.trace.append(point.objective)
        if warm:
            self.optimality = self.certify(point)
            if self.optimality <= self.tol:
                return "converged"
        direction = Direction(np.zeros_like(point.stack), np.zeros_like(point.V))
        schedule = _Schedule(self.tol, PATIENCE[point.U.dtype.name])
        while len(self.trace) <= self.max_iter:
            towards = preconditioner.direction(point)
            direction.turn(preconditioner.conjugacy, towards)
            if not point.descend(direction):
                # Rounding has spoilt the old directions; the gradient alone may still descend.
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

    def certify(self, point: Point, *, again: bool = False) -> float:
        """Certified relative gap; in float32 from scratch and in float64.

        Where it is certified `again`, with other products, the last dual point will do.
        """
        if point.U.dtype == np.float32:
            unknowns = point.unknowns()
            if not again:
                point.certified_gap(self.tol * point.objective)
            certificate = duality_gap(
                *self.problem, unknowns, **self.weights._asdict(), half_dual=point.half_dual
            )
            point.objective = certificate.objective
            return certificate.relative
        scale = max(point.objective, self.floor)
        gap = point.gap_again() if again else point.certified_gap(self.tol * scale)
        return gap / scale

    def _last_word(self, point: Point) -> Status:
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


class _Schedule:
    """When a certificate is worth its price: it costs about as much as half an iteration.

    What the last step took off the objective is free and shrinks in proportion to the gap, so each
    certificate that fails tells by which factor it still has to shrink.
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
        # It need not fall steadily: a tenth of the iterations is enough to certify.
        hopeful = decrease <= self._threshold and 10 * self._waited >= self._iterations - 10
        return hopeful or self._waited >= LONGEST_WAIT

    def hopeless(self, optimality: float) -> bool:
        """Take note of a certificate that failed; tell whether several in a row got no better."""
        self._failures = 0 if optimality < 0.9 * self._best else self._failures + 1
        self._best = min(self._best, optimality)
        self._threshold = self._decrease * self._tol / optimality
        self._waited = 0
        return self._failures >= self._patience
