"""The fast solver of Eq. (9): all unknowns at once, by preconditioned conjugate gradients.

Algorithm 1 alternates between the model and the labels, and factorises an n x n matrix for every
reweighting of every round. Eq. (9) is jointly convex, so nothing forces it apart: here ``U``,
``Theta`` and ``b`` move together along conjugate directions, the preconditioner knows how they are
coupled (see `lemll.solvers._preconditioner`), and the step along each direction is exact. One
iteration multiplies once by X, once by X' and twice by I - W.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lemll.objective import LemllPoint, duality_gap, smallest_objective
from lemll.solvers._point import Direction, Operators, Point, Weights
from lemll.solvers._preconditioner import Preconditioner
from lemll.solvers._solution import (
    Callback,
    LemllSolution,
    Progress,
    Status,
    check_arrays,
    check_weights,
    solution_at,
)
from lemll.topology import ReconstructionOperator

__all__ = ["JointProblem", "solve_joint"]

Array = npt.NDArray[Any]
Precision = Literal["float64", "float32"]

# The certificate is computed when the preconditioned gradient suggests it, and at least this often.
LONGEST_WAIT = 25
# Consecutive certificates without progress that prove rounding to be in the way. Float64 has
# far to go before rounding matters, and on the way the gap need not fall steadily.
PATIENCE = {"float32": 3, "float64": 20}
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
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features, float64 or float32; sparse features are made dense by bounded blocks only.
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
        check_arrays(X, Y, W)
        self.X = X
        self.Y = np.asarray(Y, dtype=np.float64)
        self.M = ReconstructionOperator(W)
        self._operators: dict[Precision, Operators] = {}

    def operators(self, precision: Precision) -> Operators:
        """Products with X and M in the given precision, made at the first call."""
        if precision not in self._operators:
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
        check_weights(alpha=alpha, beta=beta, gamma=gamma, epsilon=epsilon)
        weights = Weights(alpha, beta, gamma, epsilon)
        search = _Search(self, weights, tol, max_iter, callback)
        unknowns = self._start(U0) if start is None else start.point
        dual_coef = None if start is None else start.dual_coef
        attempts: list[Precision] = ["float64"] * RECHECKS
        if precision == "float32":
            attempts.insert(0, "float32")
        for attempt in attempts:
            point = Point(self.operators(attempt), weights, unknowns, dual_coef)
            status = search.run(point)
            unknowns, dual_coef = point.unknowns(), point.dual_coef()
            certificate = duality_gap(self.X, self.Y, self.M, unknowns, **weights._asdict())
            # The search keeps its products up to date by sums, and sums drift: the last word
            # belongs to the certificate computed afresh.
            if certificate.relative <= tol:
                status = "converged"
            elif status == "converged":
                status = "stalled"
            if status != "stalled":
                break
        solution = solution_at(unknowns, certificate, search.trace, status, search.n_linear_solves)
        return replace(solution, dual_coef=dual_coef)

    def _start(self, U0: Array | None) -> LemllPoint:
        # Theta = 0 and, but for the tube, its best intercept; U = Y is optimal for large beta.
        U = self.Y if U0 is None else np.asarray(U0, dtype=np.float64)
        if U.shape != self.Y.shape:
            raise ValueError(f"U0 must have the shape of Y, {self.Y.shape}; got {U.shape}.")
        return LemllPoint(U, np.zeros((U.shape[1], self.X.shape[1])), U.mean(axis=0))


class _Search:
    """Conjugate gradients over (U, Theta, b): one solve, its trace and its certificates."""

    def __init__(
        self,
        problem: JointProblem,
        weights: Weights,
        tol: float,
        max_iter: int,
        callback: Callback | None,
    ) -> None:
        self.problem, self.weights = problem, weights
        self.tol, self.max_iter, self.callback = tol, max_iter, callback
        self.floor = smallest_objective(problem.Y, weights.beta)
        self.trace: list[float] = []
        self.optimality = float("inf")
        self.n_linear_solves = 0
        self.clock = time.perf_counter()

    def run(self, point: Point) -> Status:
        """Move `point` until its certified gap is at most `tol`, or nothing moves any more."""
        preconditioner = Preconditioner(point.operators, self.weights)
        self.n_linear_solves += point.operators.model.n_linear_solves
        if not self.trace:
            self.trace.append(point.objective)
        direction = Direction(np.zeros_like(point.stack), np.zeros_like(point.V))
        schedule = _Schedule(self.tol, PATIENCE[point.U.dtype.name])
        while True:
            towards = preconditioner.direction(point)
            if schedule.due(preconditioner.decrement / max(point.objective, self.floor)):
                self.optimality = self._certify(point)
                if self.optimality <= self.tol:
                    return "converged"
                if schedule.hopeless(self.optimality):
                    return "stalled"
            if len(self.trace) > self.max_iter:
                return "max_iter"
            direction.turn(preconditioner.conjugacy, towards)
            if not point.descend(direction):
                # Rounding has spoilt the old directions; the gradient alone may still descend.
                direction.turn(0.0, towards)
                if not point.descend(direction):
                    return self._last_word(point)
            self.trace.append(point.objective)
            self._report()

    def _certify(self, point: Point) -> float:
        """Certified relative gap; in float32 from scratch and in float64."""
        if point.U.dtype == np.float32:
            unknowns = point.unknowns()
            certificate = duality_gap(
                self.problem.X, self.problem.Y, self.problem.M, unknowns, **self.weights._asdict()
            )
            point.objective = certificate.objective
            return certificate.relative
        return point.certified_gap() / max(point.objective, self.floor)

    def _last_word(self, point: Point) -> Status:
        self.optimality = self._certify(point)
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

    The decrement ``<g, P^-1 g>`` is free and shrinks in proportion to the gap, so each certificate
    that fails tells by which factor the decrement still has to shrink.
    """

    def __init__(self, tol: float, patience: int) -> None:
        self._tol, self._patience = tol, patience
        self._threshold = tol / 4  # the gap has been some 4 to 100 times the decrement
        self._decrement = np.inf
        self._best = np.inf
        self._iterations = self._waited = self._failures = 0

    def due(self, decrement: float) -> bool:
        self._decrement = decrement
        self._iterations += 1
        self._waited += 1
        # The decrement need not fall steadily: a tenth of the iterations is enough to certify.
        hopeful = decrement <= self._threshold and 10 * self._waited >= self._iterations - 10
        return hopeful or self._waited >= LONGEST_WAIT

    def hopeless(self, optimality: float) -> bool:
        """Take note of a certificate that failed; tell whether several in a row got no better."""
        self._failures = 0 if optimality < 0.9 * self._best else self._failures + 1
        self._best = min(self._best, optimality)
        self._threshold = self._decrement * self._tol / optimality
        self._waited = 0
        return self._failures >= self._patience
