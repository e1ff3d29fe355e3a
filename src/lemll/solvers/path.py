"""Minimise Eq. (9) for many (alpha, beta, gamma), where each solution starts the next search.

All parameters share the graph and the centred features, and many parameters also share one
eigendecomposition of their Gram matrix. The next solution is almost a linear combination of the
earlier solutions (`lemll.solvers.path`). The bound of
`lemll.solvers.search.tight_gap` is tight enough to prove this: most points of the grid of the
paper are certified to 1e-3 without an iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lemll._types import Array, Features, FloatArray, LabelArray, SparseMatrix
from lemll.solvers.certificate import DualityGap, Weights, row_norms, tube_weights, weighed
from lemll.solvers.equation9 import (
    LemllPoint,
    LemllSolution,
    Precision,
    Status,
    check_precision,
    check_stopping,
    check_weights,
    solution_at,
)
from lemll.solvers.joint import RECHECKS, JointProblem, code_logical, constant_point
from lemll.solvers.search import JointSearch, Point, Products

# Largest number of solutions kept. More solutions give a better fit but cost more time.
MAX_KEPT = 32
# Largest memory of the kept solutions.
MAX_BYTES = 1 << 28
# Largest number of steps to the best combination. They stop early when the predicted decrease has
# fallen to SLOPE_SHARE of the first.
MAX_STEPS = 10
SLOPE_SHARE = 1e-2


class SolutionSpan:
    """Solutions for some parameters, and their linear combinations.

    Parameters
    ----------
    point : Point
        A point of the problem, which gives the sizes and the model.
    """

    def __init__(self, point: Point) -> None:
        self._model, self._Y = point.operators.model, point.operators.Y
        self._cell_weight = point.operators.cell_weight
        one = 3 * point.U.size + point.V.size
        size = max(1, min(MAX_KEPT, MAX_BYTES // (one * point.U.itemsize)))
        # U, Xi and M U of every solution; then V of every solution.
        self._products = np.zeros((3, size, point.U.size), dtype=point.U.dtype)
        self._models = np.zeros((size, *point.V.shape), dtype=point.V.dtype)
        # Inner products between all solutions, of the labels, the residuals, M U and the models.
        # With them a step costs products of order `size`; only the tube needs all rows.
        self._grams = np.zeros((4, size, size))
        self._with_Y = np.zeros(size)
        self._places: list[Array] = []
        self._coefficients = np.zeros(size)

    def add(self, point: Point, products: Products) -> None:
        """Keep a solution; if there is no room, replace the one farthest in the parameters."""
        place = _place(point.weights)
        slot = len(self._places)
        if slot == len(self._coefficients):
            slot = int(np.argmax([np.abs(other - place).sum() for other in self._places]))
            self._places[slot] = place
        else:
            self._places.append(place)
        for kept, new in zip(self._products, products, strict=True):
            kept[slot] = new.ravel()
        self._models[slot] = point.V
        labels, residuals, rough = self._products
        image = (labels[slot] - residuals[slot]).reshape(point.U.shape)
        count = len(self._places)
        row = np.empty((4, count))
        heavy = weighed(labels[slot].reshape(point.U.shape), self._cell_weight).ravel()
        row[0] = labels[:count] @ heavy
        row[1] = residuals[:count] @ residuals[slot]
        row[2] = labels[:count] @ rough[slot]
        row[3] = [self._model.inner(V, point.V, image) for V in self._models[:count]]
        self._grams[:, slot, :count] = self._grams[:, :count, slot] = row
        self._with_Y[slot] = heavy @ self._Y.ravel()
        self._coefficients[:] = 0
        self._coefficients[slot] = 1

    def place(self, point: Point, weights: Weights) -> None:
        """Move `point` to the best combination for these parameters."""
        shares = self._best(weights)
        labels, residuals, rough = (
            (shares @ kept[: len(shares)]).reshape(point.U.shape) for kept in self._products
        )
        V = np.tensordot(shares, self._models[: len(shares)], axes=1)
        point.settle(weights, V, Products(labels, residuals, rough))

    def _best(self, weights: Weights) -> Array:
        """Return the combination that minimises Eq. (9), in the precision of the solutions.

        All terms except the tube loss are quadratic. The curvature of the tube loss is at most
        that of a square. Each step minimises the quadratic function with this curvature, which
        lies above Eq. (9). Therefore each step decreases Eq. (9).
        """
        alpha, beta, gamma, epsilon = weights
        count = len(self._places)
        of_labels, of_residuals, of_rough, of_models = self._grams[:, :count, :count]
        quadratic = beta * of_labels + gamma * of_rough + alpha * of_models
        inverse = _pseudo_inverse(quadratic + of_residuals, self._products.dtype)
        kept = self._products[1, :count]
        shares = self._coefficients[:count].copy()
        first = 0.0
        for _ in range(MAX_STEPS):
            residuals = (shares.astype(kept.dtype) @ kept).reshape(self._Y.shape)
            residuals *= tube_weights(row_norms(residuals), epsilon)[:, None]
            slope = quadratic @ shares - beta * self._with_Y[:count] + kept @ residuals.ravel()
            step = inverse @ slope
            fall = float(slope @ step)
            first = first or fall
            if not fall > 0:
                break
            shares -= step
            if fall <= SLOPE_SHARE * first:
                break
        self._coefficients[:count] = shares
        return shares.astype(kept.dtype)


def _place(weights: Weights) -> Array:
    """Return the coordinates of the parameters, in which distances are measured."""
    # Use logarithms, because the grid is geometric. gamma may be 0; compared with beta, any gamma
    # below 1e-6 beta makes no difference, so use that as the smallest value.
    return np.log([weights.alpha, weights.beta, max(weights.gamma, 1e-6 * weights.beta)])


def _pseudo_inverse(matrix: Array, dtype: npt.DTypeLike) -> Array:
    """Return the pseudo-inverse of a positive semi-definite matrix, up to rounding errors."""
    # Neighbouring solutions are almost parallel. Eigenvalues below the rounding error of the inner
    # products have no meaning, and their inverses would only amplify noise.
    values, vectors = np.linalg.eigh(matrix)
    sound = values > len(matrix) * 10 * float(np.finfo(dtype).eps) * values[-1]
    return np.asarray((vectors[:, sound] / values[sound]) @ vectors[:, sound].T)


class GridPoint(NamedTuple):
    """The three weights of Eq. (9) that are tuned."""

    alpha: float
    beta: float
    gamma: float


class PathStep(NamedTuple):
    """A solution on the path.

    Attributes
    ----------
    place : int
        Index of its parameters in the given sequence.
    solution : LemllSolution
        The certified minimiser.
    """

    place: int
    solution: LemllSolution


def path_order(points: Sequence[GridPoint]) -> list[int]:
    """Order the parameters so that neighbours follow each other and alpha changes fastest.

    Parameters
    ----------
    points : sequence of GridPoint
        The parameters.

    Returns
    -------
    list of int
        Their indices, in the order in which to solve them.

    Examples
    --------
    >>> from lemll.solvers.path import GridPoint, path_order
    >>> path_order([GridPoint(4, 1, 1), GridPoint(1, 1, 1), GridPoint(1, 4, 1)])
    [2, 0, 1]
    """
    # Start with the largest beta, where U is near Y and the start point is good. Reverse the
    # direction after each line and each plane, so that each point follows one of its neighbours.
    order: list[int] = []
    back_gamma = back_alpha = False
    for beta in sorted({point.beta for point in points}, reverse=True):
        plane = [i for i, point in enumerate(points) if point.beta == beta]
        for gamma in sorted({points[i].gamma for i in plane}, reverse=back_gamma):
            line = [i for i in plane if points[i].gamma == gamma]
            order += sorted(line, key=lambda i: points[i].alpha, reverse=back_alpha)
            back_alpha = not back_alpha
        back_gamma = not back_gamma
    return order


def solve_path(
    problem: JointProblem,
    points: Sequence[GridPoint],
    *,
    epsilon: float = 0.1,
    tol: float = 1e-3,
    max_iter: int = 1000,
    precision: Precision = "float64",
) -> Iterator[PathStep]:
    """Minimise Eq. (9) for each set of parameters, up to a certified gap.

    Parameters
    ----------
    problem : JointProblem
        The data.
    points : sequence of GridPoint
        The weights alpha, beta and gamma.
    epsilon : float, default=0.1
        Radius of the tube.
    tol : float, default=1e-3
        At each point, the search stops when the certified relative gap is at most this.
    max_iter : int, default=1000
        Largest number of iterations per point.
    precision : {"float64", "float32"}, default="float64"
        Precision of the iterates. Certificates are always computed in float64.

    Yields
    ------
    PathStep
        One step per point, in the order of `path_order`.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers.joint import JointProblem
    >>> from lemll.solvers.path import GridPoint, solve_path
    >>> from lemll.topology import reconstruction_weights
    >>> X = np.random.default_rng(0).standard_normal((30, 3))
    >>> problem = JointProblem(X, np.where(X > 0, 1.0, -1.0), reconstruction_weights(X))
    >>> grid = [GridPoint(alpha, 1.0, 1.0) for alpha in (0.1, 1.0, 10.0)]
    >>> [step.place for step in solve_path(problem, grid) if step.solution.optimality <= 1e-3]
    [0, 1, 2]
    """
    check_precision(precision)
    check_stopping(tol=tol, max_iter=max_iter)
    for alpha, beta, gamma in points:
        check_weights(alpha=alpha, beta=beta, gamma=gamma, epsilon=epsilon, precision=precision)
    solver = _Solver(problem, epsilon, tol, max_iter, precision, n_points=len(points))
    for index in path_order(points):
        yield PathStep(index, solver.solve(Weights(*points[index], epsilon)))


class _Solver:
    """Runs one search per point, each from the best combination of earlier solutions."""

    def __init__(
        self,
        problem: JointProblem,
        epsilon: float,
        tol: float,
        max_iter: int,
        precision: Precision,
        *,
        n_points: int,
    ) -> None:
        self._problem, self._epsilon = problem, epsilon
        self._tol, self._max_iter, self._n_points = tol, max_iter, n_points
        operators = problem.operators(precision)
        operators.model.expect(n_points)
        self._point = Point(operators, Weights(1.0, 1.0, 1.0, epsilon), problem.start())
        self._span = SolutionSpan(self._point)
        self._span.add(self._point, self._point.products())
        self._is_exact = precision == "float64"
        self._exact: _Solver | None = None

    def solve(self, weights: Weights) -> LemllSolution:
        """Solve one point; if float32 cannot reach the tolerance, continue in float64."""
        point = self._point
        self._span.place(point, weights)
        problem = self._problem
        search = JointSearch(problem.data, weights, self._tol, self._max_iter, None)
        status, optimality = self._run(search, point)
        if len(search.trace) > 1:
            # Without an iteration, the point is only a combination of kept solutions. Adding it
            # would not enlarge the span.
            self._span.add(point, point.products())
        if status == "stalled" and not self._is_exact:
            if self._exact is None:
                self._exact = _Solver(
                    self._problem,
                    self._epsilon,
                    self._tol,
                    self._max_iter,
                    "float64",
                    n_points=self._n_points,
                )
            exact = self._exact._point
            exact.reweigh(weights, point.U, point.V)
            status, optimality = self._run(search, exact)
            point = exact
        unknowns = point.unknowns()
        bound = point.objective * (1 - optimality)
        certificate = DualityGap(point.objective, bound, optimality)
        if status != "converged":
            # Rounding errors may have spoiled the products, so they are computed from scratch.
            certificate = problem.data.proven_gap(unknowns, weights, point.half_dual)
            if certificate.relative <= self._tol:
                status = "converged"
        solution = solution_at(unknowns, certificate, search.trace, status, search.n_linear_solves)
        return replace(solution, dual_coef=point.dual_coef(), half_dual=point.half_dual)

    def _run(self, search: JointSearch, point: Point) -> tuple[Status, float]:
        """Search until a certificate also holds for recomputed products, or until it fails."""
        for _ in range(RECHECKS):
            status = search.run(point, warm=True)
            if len(search.trace) == 1:
                return status, search.optimality
            # The search updates its products by addition, and rounding errors accumulate.
            point.refresh()
            optimality = search.certify(point, again=status == "converged")
            if optimality <= self._tol:
                return "converged", optimality
            if status != "converged":
                return status, optimality
        return "stalled", optimality


class LogicalPath:
    """Eq. (9) for logical labels 0/1 and many parameters, prepared once.

    Constant labels are solved without the solver and added afterwards, as in `solve_logical`. The
    certificates cover the labels that vary.

    Parameters
    ----------
    X, W : arrays
        As in `lemll.solvers.solve_joint`. The rows of W must sum to one up to rounding.
    Y : ndarray of shape (n_samples, n_labels), int8
        Logical labels, 0/1.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1.
    """

    def __init__(
        self, X: Features, Y: LabelArray, W: SparseMatrix, cell_weight: FloatArray | None = None
    ) -> None:
        coded, constant = code_logical(Y, cell_weight)
        self._varies = np.isnan(constant)
        self._fixed = constant_point(coded, constant, X.shape[1])
        self._problem = None
        if self._varies.any():
            part = np.ascontiguousarray(coded[:, self._varies])
            weight = None if cell_weight is None else cell_weight[:, self._varies]
            self._problem = JointProblem(X, part, W, weight)

    def solve(self, points: Sequence[GridPoint], **options: Any) -> Iterator[PathStep]:
        """Minimise Eq. (9) for each set of parameters.

        Parameters
        ----------
        points : sequence of GridPoint
            The weights alpha, beta and gamma.
        **options
            Options of `lemll.solvers.solve_path`: epsilon, tol, max_iter, precision.

        Yields
        ------
        PathStep
            One step per point, with all labels.
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
        """Add the constant labels to a solution."""
        labels, coef, intercept = (array.copy() for array in self._fixed)
        labels[:, self._varies] = solution.numerical_labels
        coef[self._varies] = solution.coef
        intercept[self._varies] = solution.intercept
        return replace(
            solution, numerical_labels=labels, coef=coef, intercept=intercept, dual_coef=None
        )
