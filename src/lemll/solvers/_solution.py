"""What every solver of Eq. (9) returns, and what it reports while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from lemll._types import FloatArray
from lemll.objective import DualityGap, LemllPoint

__all__ = [
    "Callback",
    "LemllSolution",
    "Progress",
    "Status",
    "solution_at",
]

Status = Literal["converged", "max_iter", "stalled"]


class Progress(NamedTuple):
    """One line of a solver's report.

    Attributes
    ----------
    iteration : int
        How many iterations are done.
    objective : float
        Eq. (9) at the current point.
    optimality : float
        Certified relative gap when it was last computed; infinity before the first time.
    elapsed : float
        Seconds since the solver was called, the time spent in callbacks taken out.
    """

    iteration: int
    objective: float
    optimality: float
    elapsed: float


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class LemllSolution:
    """A minimiser of Eq. (9), with the proof of how good it is.

    Attributes
    ----------
    coef : ndarray of shape (n_labels, n_features)
        ``Theta``; with a kernel the coefficients of the samples, of shape (n_labels, n_samples).
    intercept : ndarray of shape (n_labels,)
        ``b``.
    numerical_labels : ndarray of shape (n_samples, n_labels)
        ``U``.
    objective : float
        Eq. (9) at the solution, computed afresh in float64.
    objective_trace : ndarray of shape (n_iter + 1,)
        Eq. (9) at the start and after each iteration.
    optimality : float
        Certified relative duality gap: ``(objective - min F) / max(objective, zero)`` is at most
        this, where ``zero = 1e-18 min(beta, 1) |Y|_F^2`` is `lemll.objective.smallest_objective`.
        So it bounds the relative error of every objective above `zero`, up to rounding.
    n_iter : int
        Iterations done.
    status : {"converged", "max_iter", "stalled"}
        "stalled" means that rounding forbade any further descent before the wanted gap.
    n_linear_solves : int
        How many linear systems were factorised.
    dual_coef : ndarray of shape (n_samples, n_labels) or None
        B of ``Theta' = (X - mean)' B``, from the joint solver where n_samples <= n_features.
    half_dual : ndarray of shape (n_samples, n_labels) or None
        ``Z/2`` of the dual point that proves `optimality`, from the joint solver: anyone can check
        with `lemll.objective.duality_gap`. None where that function finds as good a one itself.
    """

    coef: FloatArray
    intercept: FloatArray
    numerical_labels: FloatArray
    objective: float
    objective_trace: FloatArray
    optimality: float
    n_iter: int
    status: Status
    n_linear_solves: int
    dual_coef: FloatArray | None = None
    half_dual: FloatArray | None = None

    @property
    def point(self) -> LemllPoint:
        """The three unknowns of Eq. (9)."""
        return LemllPoint(self.numerical_labels, self.coef, self.intercept)

    @property
    def converged(self) -> bool:
        """Whether the solver met its tolerance."""
        return self.status == "converged"


def solution_at(
    point: LemllPoint,
    certificate: DualityGap,
    trace: list[float],
    status: Status,
    n_linear_solves: int,
) -> LemllSolution:
    """Gather a solution from the point ``(U, Theta, b)`` and what is known about it."""
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
