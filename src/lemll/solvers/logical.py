"""From 0/1 labels to Eq. (9): coding, and labels that are constant in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lemll._types import LabelArray
from lemll.objective import DualityGap, LemllPoint, duality_gap, smallest_objective
from lemll.solvers._solution import LemllSolution, solution_at
from lemll.solvers.joint import JointProblem, solve_joint
from lemll.solvers.path import GridPoint, PathStep, solve_path

__all__ = ["LogicalPath", "solve_logical"]


def solve_logical(
    X: Any,
    Y: LabelArray,
    W: Any,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float = 0.1,
    tol: float = 1e-4,
    **options: Any,
) -> LemllSolution:
    """Minimise Eq. (9) for logical labels 0/1.

    The solver sees -1/+1, and only the labels that vary. For a label that is the same in every
    row, U equal to it, Theta = 0 and b equal to it make every term vanish, whatever the other
    labels do; so it is left out and put back. The virtual label of the paper is such a label, with
    value 0: its outputs are exactly 0, and "greater than the virtual label" means "positive".

    Parameters
    ----------
    X, W : arrays
        As in `lemll.solvers.solve_joint`.
    Y : ndarray of shape (n_samples, n_labels), int8
        Logical labels, 0/1.
    alpha, beta, gamma, epsilon, tol : float
        As in `lemll.solvers.solve_joint`.
    **options
        Of `lemll.solvers.solve_joint`: max_iter, precision, callback.

    Returns
    -------
    LemllSolution
        For all labels, and certified for all of them.
    """
    coded = 2.0 * Y.astype(np.float64) - 1.0
    weights: dict[str, Any] = {"alpha": alpha, "beta": beta, "gamma": gamma, "epsilon": epsilon}
    varies = Y.min(axis=0) != Y.max(axis=0)
    if varies.all():
        return solve_joint(X, coded, W, **weights, tol=tol, **options)
    coef = np.zeros((Y.shape[1], X.shape[1]))
    point = LemllPoint(coded.copy(), coef, coded[0].copy())
    solution = None
    if varies.any():
        part = np.ascontiguousarray(coded[:, varies])
        solution = solve_joint(X, part, W, **weights, tol=tol, **options)
        point.numerical_labels[:, varies] = solution.numerical_labels
        point.coef[varies] = solution.coef
        point.intercept[varies] = solution.intercept
    certificate = duality_gap(X, coded, W, point, **weights)
    if certificate.relative > tol and (solution is None or solution.converged):
        # Rows of W that sum to one only roughly (in float32, say) charge constant labels too.
        return solve_joint(X, coded, W, **weights, tol=tol, **options)
    if solution is None:
        if certificate.objective <= smallest_objective(coded, beta):
            # What there is comes from rounding in the sums of the rows of W.
            certificate = DualityGap(0.0, 0.0, 0.0)
        return solution_at(point, certificate, [certificate.objective], "converged", 0)
    return replace(
        solution,
        coef=point.coef,
        intercept=point.intercept,
        numerical_labels=point.numerical_labels,
        objective=certificate.objective,
        optimality=certificate.relative,
    )


class LogicalPath:
    """Eq. (9) for logical labels 0/1 and many parameters, prepared once.

    Labels that are the same in every row are left out and put back, as in `solve_logical`; the
    certificates are those of the labels that vary.

    Parameters
    ----------
    X, W : arrays
        As in `lemll.solvers.solve_joint`; the rows of W must sum to one up to rounding.
    Y : ndarray of shape (n_samples, n_labels), int8
        Logical labels, 0/1.
    """

    def __init__(self, X: Any, Y: LabelArray, W: Any) -> None:
        coded = 2.0 * Y.astype(np.float64) - 1.0
        self._varies = Y.min(axis=0) != Y.max(axis=0)
        self._fixed = LemllPoint(coded, np.zeros((Y.shape[1], X.shape[1])), coded[0])
        self._problem = None
        if self._varies.any():
            self._problem = JointProblem(X, np.ascontiguousarray(coded[:, self._varies]), W)

    def solve(self, points: Sequence[GridPoint], **options: Any) -> Iterator[PathStep]:
        """Minimise Eq. (9) for each of many parameters.

        Parameters
        ----------
        points : sequence of GridPoint
            The weights alpha, beta and gamma.
        **options
            Of `lemll.solvers.solve_path`: epsilon, tol, max_iter, precision.

        Yields
        ------
        PathStep
            One for each of `points`, with all labels.
        """
        if self._problem is None:
            certificate = DualityGap(0.0, 0.0, 0.0)
            for place in range(len(points)):
                fixed = LemllPoint(*(array.copy() for array in self._fixed))
                yield PathStep(place, solution_at(fixed, certificate, [0.0], "converged", 0))
            return
        for place, solution in solve_path(self._problem, points, **options):
            yield PathStep(place, solution if self._varies.all() else self._whole(solution))

    def _whole(self, solution: LemllSolution) -> LemllSolution:
        """Put the constant labels back."""
        labels, coef, intercept = (array.copy() for array in self._fixed)
        labels[:, self._varies] = solution.numerical_labels
        coef[self._varies] = solution.coef
        intercept[self._varies] = solution.intercept
        return replace(
            solution, numerical_labels=labels, coef=coef, intercept=intercept, dual_coef=None
        )
