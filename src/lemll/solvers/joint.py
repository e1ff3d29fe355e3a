"""The fast solver of Eq. (9): all unknowns at once, by preconditioned conjugate gradients.

Algorithm 1 alternates between the model and the labels, and factorises an n x n matrix for every
reweighting of every round. Eq. (9) is jointly convex, so nothing forces it apart: here ``U``,
``Theta`` and ``b`` move together along conjugate directions, the preconditioner knows how they are
coupled (see `lemll.solvers._preconditioner`), and the step along each direction is exact. One
iteration multiplies once by X, once by X' and twice by I - W.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lemll._types import Array
from lemll.objective import LemllPoint, duality_gap
from lemll.solvers._checks import (
    Precision,
    check_arrays,
    check_precision,
    check_size,
    check_start,
    check_stopping,
    check_weights,
)
from lemll.solvers._point import Operators, Point, Weights
from lemll.solvers._search import Search
from lemll.solvers._solution import Callback, LemllSolution, solution_at
from lemll.topology import ReconstructionOperator

__all__ = ["JointProblem", "solve_joint"]


# How often float64 may begin again where rounding stopped it, its products computed afresh.
RECHECKS = 2


def solve_joint(
    X: Any,
    Y: Any,
    W: Any,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float = 0.1,
    tol: float = 1e-4,
    max_iter: int = 1000,
    U0: Array | None = None,
    precision: Precision = "float64",
    callback: Callback | None = None,
) -> LemllSolution:
    """Minimise Eq. (9) over the numerical labels and the model together, up to a certified gap.

    Minimises ``sum_i L(|u_i - Theta x_i - b|) + alpha |Theta|_F^2 + beta |U - Y|_F^2
    + gamma tr(U' M U)`` with ``L(r) = max(0, r - epsilon)^2`` and ``M = (I-W)'(I-W)``.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features), or CentredKernel
        Features, float64 or float32; sparse features are made dense by bounded blocks only. With
        their kernel instead, the rows of `coef` hold one coefficient for each sample.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, -1 or +1. A column of zeros stays exactly zero in U, Theta and b.
    W : csr_array of shape (n_samples, n_samples)
        Rebuilding weights (Eq. 6), every row summing to one.
    alpha, beta, gamma : float
        Weights of ``|Theta|_F^2``, ``|U - Y|_F^2`` and ``tr(U' M U)``; alpha and beta positive.
    epsilon : float, default=0.1
        Radius of the tube.
    tol : float, default=1e-4
        Certified relative gap at which to stop.
    max_iter : int, default=1000
        Cap on the iterations.
    U0 : ndarray of shape (n_samples, n_labels), optional
        Numerical labels to start from; Y by default. The optimum does not depend on it.
    precision : {"float64", "float32"}, default="float64"
        Precision of the iterates. The certificate is always float64, and so are the last
        iterations when float32 cannot reach `tol`.
    callback : callable, optional
        Called with a `Progress` after each iteration.

    Returns
    -------
    LemllSolution
        The minimiser; ``optimality`` is its certified relative gap.

    See Also
    --------
    lemll.solvers.solve_reference : Algorithm 1 of the paper.
    lemll.objective.duality_gap : the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from lemll.solvers import solve_joint
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> Y = np.array([[-1.0], [1.0], [1.0]])
    >>> W = sparse.csr_array(np.array([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]]))
    >>> solution = solve_joint(X, Y, W, alpha=1.0, beta=1.0, gamma=1.0, tol=1e-8)
    >>> solution.converged, solution.optimality <= 1e-8
    (True, True)
    >>> solution.numerical_labels.shape, solution.coef.shape, solution.intercept.shape
    ((3, 1), (1, 1), (1,))
    """
    return JointProblem(X, Y, W).solve(
        alpha=alpha,
        beta=beta,
        gamma=gamma,
        epsilon=epsilon,
        tol=tol,
        max_iter=max_iter,
        U0=U0,
        precision=precision,
        callback=callback,
    )


class JointProblem:
    """The data of Eq. (9), prepared once to be solved for many parameters.

    Parameters
    ----------
    X, Y, W : arrays
        As in `solve_joint`; never changed.
    """

    def __init__(self, X: Any, Y: Any, W: Any) -> None:
        self.X, self.Y, W = check_arrays(X, Y, W)
        self.M = ReconstructionOperator(W)
        self._operators: dict[Precision, Operators] = {}

    def operators(self, precision: Precision) -> Operators:
        """Products with X and M in the given precision, made at the first call."""
        if precision not in self._operators:
            check_size(self.X, "X", precision)
            self._operators[precision] = Operators(self.X, self.Y, self.M, precision)
        return self._operators[precision]

    def solve(
        self,
        *,
        alpha: float,
        beta: float,
        gamma: float,
        epsilon: float = 0.1,
        tol: float = 1e-4,
        max_iter: int = 1000,
        U0: Array | None = None,
        start: LemllSolution | None = None,
        precision: Precision = "float64",
        callback: Callback | None = None,
    ) -> LemllSolution:
        """Minimise Eq. (9) for these parameters.

        Parameters
        ----------
        alpha, beta, gamma, epsilon, tol, max_iter, U0, precision, callback
            As in `solve_joint`.
        start : LemllSolution, optional
            A solution for other parameters to start from, instead of `U0`.

        Returns
        -------
        LemllSolution
            The minimiser.
        """
        check_precision(precision)
        check_stopping(tol=tol, max_iter=max_iter)
        weights = Weights(alpha, beta, gamma, epsilon)
        check_weights(**weights._asdict(), precision=precision)
        search = Search((self.X, self.Y, self.M), weights, tol, max_iter, callback)
        unknowns, dual_coef = self.start(U0), None
        if start is not None:
            check_start(start.numerical_labels, self.Y, name="start.numerical_labels")
            unknowns, dual_coef = start.point, start.dual_coef
        attempts: list[Precision] = ["float64"] * RECHECKS
        if precision == "float32":
            attempts.insert(0, "float32")
        for attempt in attempts:
            point = Point(self.operators(attempt), weights, unknowns, dual_coef)
            status = search.run(point, warm=start is not None)
            unknowns, dual_coef = point.unknowns(), point.dual_coef()
            if status == "max_iter":
                point.certified_gap()
            half_dual = point.half_dual
            certificate = duality_gap(
                self.X, self.Y, self.M, unknowns, **weights._asdict(), half_dual=half_dual
            )
            # The search keeps its products up to date by sums, and sums drift: the last word
            # belongs to the certificate computed afresh.
            if certificate.relative <= tol:
                status = "converged"
            elif status == "converged":
                status = "stalled"
            if status != "stalled":
                break
        solution = solution_at(unknowns, certificate, search.trace, status, search.n_linear_solves)
        return replace(solution, dual_coef=dual_coef, half_dual=half_dual)

    def start(self, U0: Array | None = None) -> LemllPoint:
        """Return where a search begins: labels Y, or those given, and no model."""
        # Theta = 0 and, but for the tube, its best intercept; U = Y is optimal for large beta.
        U = self.Y if U0 is None else check_start(U0, self.Y)
        return LemllPoint(U, np.zeros((U.shape[1], self.X.shape[1])), U.mean(axis=0))
