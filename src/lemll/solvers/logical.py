"""From 0/1 labels to Eq. (9): coding, and labels that are constant in training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lemll._validation import LabelArray
from lemll.solvers._solution import LemllSolution
from lemll.solvers.joint import solve_joint

__all__ = ["solve_logical"]


def solve_logical(X: Any, Y: LabelArray, W: Any, **options: Any) -> LemllSolution:
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
    **options
        Of `lemll.solvers.solve_joint`: alpha, beta, gamma, epsilon, tol, max_iter, precision,
        callback.

    Returns
    -------
    LemllSolution
        For all labels.
    """
    coded = 2.0 * Y.astype(np.float64) - 1.0
    varies = Y.min(axis=0) != Y.max(axis=0)
    if varies.all():
        return solve_joint(X, coded, W, **options)
    coef = np.zeros((Y.shape[1], X.shape[1]))
    intercept = coded[0].copy()
    numerical_labels = coded.copy()
    if not varies.any():
        return LemllSolution(
            coef=coef,
            intercept=intercept,
            numerical_labels=numerical_labels,
            objective=0.0,
            objective_trace=np.zeros(1),
            optimality=0.0,
            n_iter=0,
            status="converged",
            n_linear_solves=0,
        )
    solution = solve_joint(X, np.ascontiguousarray(coded[:, varies]), W, **options)
    coef[varies] = solution.coef
    intercept[varies] = solution.intercept
    numerical_labels[:, varies] = solution.numerical_labels
    return replace(solution, coef=coef, intercept=intercept, numerical_labels=numerical_labels)
