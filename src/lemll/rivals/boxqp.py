"""Numerical labels with the signs of the logical labels, as MLFE and ML2 compute them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.linalg import lapack
from sklearn.exceptions import ConvergenceWarning

from lemll._types import Array, Features, FloatArray, LabelArray, MatrixLike, SparseMatrix
from lemll._validation import check_number, check_whole, is_sparse, warn_caller
from lemll.enhancers.base import BaseEnhancer
from lemll.fitting.scaling import Normalization
from lemll.rivals.distances import check_two_rows
from lemll.solvers.equation9 import Solution, Status
from lemll.solvers.linear import solve_definite

# Larger systems are solved by conjugate gradients, because their factorisation would take too long.
LARGEST_FACTOR = 4000
# The largest order of a Hessian whose inverse is kept. It needs less than a gigabyte.
LARGEST_INVERSE = 10000
# Largest number of refinements: a solution by the inverse is rounded, so solve for the residual.
REFINEMENTS = 4


class Hessian:
    """The matrix ``A'A + ridge I``, as products and as systems of the free variables."""

    def __init__(self, A: Features, ridge: float) -> None:
        self.ridge, self.n_variables = ridge, int(A.shape[1])
        self.sparse = is_sparse(A)
        self.A: Features = A.tocsr() if self.sparse else A.astype(np.float64, copy=False)
        self._asked, self._invertible = 0, self.n_variables <= LARGEST_INVERSE

    @cached_property
    def _columns(self) -> Features:
        return self.A.tocsc() if self.sparse else self.A

    @cached_property
    def _adjoint(self) -> Features:
        # Store the transpose by rows, so that its product is as fast as that of the matrix.
        return self.A.T.tocsr() if self.sparse else self.A.T

    @cached_property
    def _whole(self) -> FloatArray:
        product = self._adjoint @ self.A
        return np.asarray(product.toarray() if self.sparse else product)

    def times(self, x: FloatArray) -> FloatArray:
        return np.asarray(self._adjoint @ (self.A @ x) + self.ridge * x)

    def diagonal(self) -> FloatArray:
        squares = self.A.multiply(self.A) if self.sparse else self.A**2
        return np.asarray(squares.sum(axis=0)).ravel() + self.ridge

    def block(self, free: Array) -> FloatArray:
        """Return the rows and columns of some variables, as a new dense array."""
        self._asked += len(free) ** 2
        if self._asked > self.n_variables**2 and self.n_variables <= LARGEST_FACTOR:
            # So many entries were requested that the whole matrix is cheaper than more products.
            block = self._whole[np.ix_(free, free)]
        else:
            part = self._columns[:, free]
            product = part.T @ part
            block = product.toarray() if is_sparse(product) else product
        block[np.diag_indices(len(free))] += self.ridge
        return np.asarray(block)

    def newton(self, free: Array, right: FloatArray, accuracy: float) -> FloatArray:
        """Solve the system of the free variables with the smallest possible factor."""
        n_held = self.n_variables - len(free)
        if len(free) == 0:
            return right
        if len(free) > n_held and self._invertible:
            try:
                return self._by_the_inverse(free, right, accuracy)
            except linalg.LinAlgError:
                # The Hessian is singular, or its rounded inverse is not positive definite.
                self._invertible = False
        if len(free) <= LARGEST_FACTOR:
            return solve_definite(self.block(free), right)
        return self._conjugate_gradients(free, right, accuracy)

    @cached_property
    def _inverse(self) -> FloatArray:
        """The inverse of the Hessian, which all problems share."""
        H = self._whole.copy()
        H[np.diag_indices(self.n_variables)] += self.ridge
        # H is symmetric, and its transpose has the memory order of LAPACK. So both routines work in
        # place, without a second large matrix.
        half, failed = lapack.dpotrf(H.T, lower=False, overwrite_a=True)
        if not failed:
            half, failed = lapack.dpotri(half, lower=False, overwrite_c=True)
        if failed:
            raise linalg.LinAlgError("the Hessian is singular")
        # LAPACK computes only one triangle of the inverse.
        inverse = np.triu(half, 1)
        inverse += inverse.T
        inverse[np.diag_indices(self.n_variables)] = np.diag(half)
        return np.asarray(inverse)

    def _by_the_inverse(self, free: Array, right: FloatArray, accuracy: float) -> FloatArray:
        # Schur complement: (H_ff)^-1 = (H^-1)_ff - (H^-1)_fh ((H^-1)_hh)^-1 (H^-1)_hf, for the free
        # variables f and the held variables h. Only a factor of the order of h is needed.
        inverse = self._inverse
        held = np.setdiff1d(np.arange(self.n_variables), free, assume_unique=True)
        # LAPACK does not accept an empty matrix. Without held variables the factor is not used.
        block = inverse[np.ix_(held, held)] if len(held) else np.ones((1, 1))
        factor = linalg.cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
        whole, solution, left = np.zeros(self.n_variables), np.zeros(self.n_variables), right
        for _ in range(REFINEMENTS):
            whole[held], whole[free] = 0, left
            if len(held):
                whole[held] = -linalg.cho_solve(factor, inverse[held] @ whole, check_finite=False)
            solution[free] += (inverse @ whole)[free]
            left = right - self.times(solution)[free]
            if np.abs(left).max() <= accuracy:
                break
        found: FloatArray = solution[free]
        return found

    def _conjugate_gradients(self, free: Array, right: FloatArray, accuracy: float) -> FloatArray:
        """Solve the system by conjugate gradients, preconditioned by the diagonal."""
        inverse = 1 / np.maximum(self.diagonal()[free], np.finfo(np.float64).tiny)
        whole = np.zeros(self.n_variables)
        x, r = np.zeros_like(right), right.copy()
        z = inverse * r
        p, rz = z.copy(), float(r @ z)
        for _ in range(20 * len(free)):
            if np.abs(r).max() <= accuracy:
                break
            whole[free] = p
            Hp = self.times(whole)[free]
            curvature = float(p @ Hp)
            # Only a singular block has no curvature. Then keep the solution so far.
            if curvature <= 0:
                break
            step = rz / curvature
            x += step * p
            r -= step * Hp
            z = inverse * r
            rz, before = float(r @ z), rz
            p = z + (rz / before) * p
        return x


# A step must achieve this share of the decrease predicted by the gradient (Armijo's rule).
SUFFICIENT = 1e-4
SMALLEST_STEP = 2.0**-40
# A variable this close to a bound counts as held if the gradient pushes it against the bound.
NEAR_BOUND = 1e-6
# The exchange stops after this many steps without a smaller number of wrong variables.
PATIENCE = 5
# Number of descent steps between two attempts to exchange variables.
DESCENTS = 10


@dataclass(frozen=True)
class BoxQpSolution(Solution):
    """Minimisers of quadratic programs with bounds, one column per problem.

    Attributes
    ----------
    x : ndarray of shape (n_variables, n_problems)
        The minimisers. They satisfy their bounds exactly.
    objective : ndarray of shape (n_problems,)
        ``|A x|^2 / 2 + ridge |x|^2 / 2 + linear'x``.
    residual : ndarray of shape (n_problems,)
        Largest violation of the optimality conditions; see `kkt_residual`.
    n_iter : ndarray of shape (n_problems,)
        Number of Newton steps.
    status : {"converged", "max_iter", "stalled"}
        The status of the worst problem. "stalled" means that rounding errors stopped the descent.
    """

    x: FloatArray
    objective: FloatArray
    residual: FloatArray
    n_iter: npt.NDArray[np.intp]


def solve_box_qp(
    A: Features,
    lower: MatrixLike,
    upper: MatrixLike,
    *,
    ridge: float = 0.0,
    linear: MatrixLike = None,
    tol: float = 1e-8,
    max_iter: int = 500,
) -> BoxQpSolution:
    """Minimise ``|A x|^2 / 2 + ridge |x|^2 / 2 + linear'x`` within bounds, column by column.

    The arguments are not checked, because the enhancers make them.

    Parameters
    ----------
    A : ndarray or sparse array of shape (n_rows, n_variables)
        The matrix of the shared Hessian ``A'A + ridge I``.
    lower, upper : ndarray of shape (n_variables, n_problems)
        Bounds of each problem. They may be infinite.
    ridge : float, default=0.0
        Weight of ``|x|^2 / 2``, not negative.
    linear : ndarray of shape (n_variables, n_problems), optional
        Linear terms. By default 0.
    tol : float, default=1e-8
        The solver stops when `kkt_residual` is at most this.
    max_iter : int, default=500
        Largest number of Newton steps per problem.

    Returns
    -------
    BoxQpSolution
        One column per problem.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.rivals.boxqp import solve_box_qp
    >>> A = np.array([[1.0, -1.0], [0.0, 1.0]])
    >>> solution = solve_box_qp(A, [[-2.0], [1.0]], [[2.0], [3.0]])
    >>> solution.x.ravel(), solution.converged
    (array([1., 1.]), True)
    """
    hessian = Hessian(A, ridge)
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    slope = np.zeros_like(low) if linear is None else np.asarray(linear, dtype=np.float64)
    solved = [
        _solve_one(_Problem(hessian, low[:, k], high[:, k], slope[:, k]), tol, max_iter)
        for k in range(low.shape[1])
    ]
    x = np.column_stack([column for column, _, _ in solved])
    gradient = hessian.times(x) + slope
    residual = kkt_residual(x, gradient, low, high)
    statuses = [status for _, _, status in solved]
    worst: Status = "converged"
    if (residual > tol).any():
        worst = "max_iter" if "max_iter" in statuses else "stalled"
    return BoxQpSolution(
        x=x,
        objective=np.einsum("ij,ij->j", x, gradient + slope) / 2,
        residual=residual,
        n_iter=np.array([steps for _, steps, _ in solved], dtype=np.intp),
        status=worst,
    )


def kkt_residual(
    x: FloatArray, gradient: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Return ``max_i |x_i - clip(x_i - gradient_i, lower_i, upper_i)|`` of each column.

    It is zero if and only if the Karush-Kuhn-Tucker conditions hold: the gradient is zero for
    variables inside their bounds, and a descent step would leave the box at the bounds. The problem
    is convex, so these conditions are sufficient for a minimum.

    Parameters
    ----------
    x, gradient, lower, upper : ndarray of shape (n_variables, n_problems) or (n_variables,)
        A point within its bounds, and the gradient there.

    Returns
    -------
    ndarray of shape (n_problems,) or ()
        The largest violations.

    Examples
    --------
    >>> import numpy as np
    >>> kkt_residual(np.array([1.0]), np.array([3.0]), np.array([1.0]), np.array([2.0])).item()
    0.0
    """
    return np.asarray(np.abs(x - np.clip(x - gradient, lower, upper)).max(axis=0))


class _Problem(NamedTuple):
    """One of the problems."""

    hessian: Hessian
    low: FloatArray
    high: FloatArray
    slope: FloatArray

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.hessian.times(x) + self.slope

    def clip(self, x: FloatArray) -> FloatArray:
        return np.clip(x, self.low, self.high)

    def residual(self, x: FloatArray, gradient: FloatArray) -> float:
        return float(kkt_residual(x, gradient, self.low, self.high))


def _solve_one(problem: _Problem, tol: float, max_iter: int) -> tuple[FloatArray, int, Status]:
    """Alternate between exchanges of variables and descent steps until one of them succeeds."""
    x, steps = problem.clip(np.zeros_like(problem.low)), 0
    while True:
        x, done = _exchange(problem, x, tol, max_iter - steps)
        steps += done
        x, done, status = _descend(problem, x, tol, min(DESCENTS, max_iter - steps))
        steps += done
        if status != "max_iter" or steps >= max_iter:
            return x, steps, status


def _exchange(
    problem: _Problem, best: FloatArray, tol: float, max_iter: int
) -> tuple[FloatArray, int]:
    """Guess which variables are at their bounds, solve for the others, and improve the guess.

    This is the primal-dual active set method [2]_. In each step, all free variables that leave the
    box become held, and all held variables that the gradient pushes inside become free. The method
    either ends in a few steps or cycles. If it cycles, the best point found in the box is returned.
    """
    gradient = problem.gradient(best)
    # x'(Hx + 2 slope) is twice the objective. Only comparisons are made, so the factor is left.
    least = float(best @ (gradient + problem.slope))
    at_low, at_high = (
        (best <= problem.low) & (gradient > 0),
        (best >= problem.high) & (gradient < 0),
    )
    fewest, failures, step = len(best) + 1, 0, 0
    while step < max_iter and failures < PATIENCE:
        step += 1
        free = np.flatnonzero(~(at_low | at_high))
        x = np.where(at_low, problem.low, np.where(at_high, problem.high, best))
        # The systems are solved more accurately than the tolerance, so their error cannot be the
        # reason for a residual above it.
        x[free] += problem.hessian.newton(free, -problem.gradient(x)[free], 0.1 * tol)
        gradient = problem.gradient(x)
        below, above = x < problem.low, x > problem.high
        freed = (at_low & (gradient < 0)) | (at_high & (gradient > 0))
        wrong = int((below | above | freed).sum())
        inside = problem.clip(x)
        at_inside = problem.gradient(inside)
        value = float(inside @ (at_inside + problem.slope))
        if value < least:
            best, least = inside, value
        if problem.residual(inside, at_inside) <= tol:
            return inside, step
        failures = failures + 1 if wrong >= fewest else 0
        fewest = min(fewest, wrong)
        at_low, at_high = (at_low & ~freed) | below, (at_high & ~freed) | above
    return best, step


def _descend(
    problem: _Problem, x: FloatArray, tol: float, max_iter: int
) -> tuple[FloatArray, int, Status]:
    """Take projected Newton steps [1]_, each of which lowers the objective."""
    low, high = problem.low, problem.high
    gradient, iteration = problem.gradient(x), 0
    while True:
        residual = problem.residual(x, gradient)
        if residual <= tol:
            return x, iteration, "converged"
        if iteration >= max_iter:
            return x, iteration, "max_iter"
        # The margin shrinks with the residual, so at the solution only true bounds are held.
        # Without a margin, variables close to a bound would force very short steps [1]_.
        near = min(NEAR_BOUND, residual)
        held = ((x - low <= near) & (gradient > 0)) | ((high - x <= near) & (gradient < 0))
        free = np.flatnonzero(~held)
        # Move held variables exactly to their bounds, so that they do not keep a residual.
        direction = np.where(held, np.where(gradient > 0, low, high) - x, 0.0)
        direction[free] = problem.hessian.newton(free, -gradient[free], 0.1 * tol)
        step = _along_the_box(problem, x, gradient, direction)
        if step is None:
            return x, iteration, "stalled"
        x = problem.clip(x + step * direction)
        gradient = problem.gradient(x)
        iteration += 1


def _along_the_box(
    problem: _Problem, x: FloatArray, gradient: FloatArray, direction: FloatArray
) -> float | None:
    """Return a step whose projection onto the box lowers the objective enough, or None."""
    step = 1.0
    while step >= SMALLEST_STEP:
        move = problem.clip(x + step * direction) - x
        promised = float(gradient @ move)
        curved = float(move @ problem.hessian.times(move)) / 2
        # The objective is quadratic, so its change is exactly `promised + curved`. The difference
        # of two objectives would lose digits.
        if promised < 0 and promised + curved <= SUFFICIENT * promised:
            return step
        step /= 2
    return None


@dataclass(eq=False, repr=False, kw_only=True)
class BoxedEnhancer(BaseEnhancer):
    """Base of the enhancers of ML2 and MLFE.

    For each label they minimise |(I - W) u|^2 + ridge |u|^2 with lower <= y u <= upper. A subclass
    implements `_rebuilding`.
    """

    lower: float = 1.0
    upper: float | None = None
    ridge: float = 0.0
    graph: SparseMatrix = None
    normalization: Normalization = "sigmoid"
    feature_scale: str = "none"
    tol: float = 1e-8
    max_iter: int = 500

    @abstractmethod
    def _rebuilding(self, X: Features, n_labels: int) -> Features:
        """Return W, the weights that rebuild each row from other rows."""

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        name = type(self).__name__
        check_two_rows(X, name.removesuffix("Enhancer"))
        # Check these before the graph, which takes most of the time.
        lower, upper = check_number("lower", self.lower, above=0), np.inf
        if self.upper is not None:
            upper = check_number("upper", self.upper, above=lower, inclusive=True)
        ridge = check_number("ridge", self.ridge, above=0, inclusive=True)
        tol = check_number("tol", self.tol, above=0)
        max_iter = check_whole("max_iter", self.max_iter, least=1)
        W = self._rebuilding(X, Y.shape[1])
        if is_sparse(W):
            A: Features = sparse.csr_array(sparse.eye_array(W.shape[0], format="csr") - W)
        else:
            A = np.negative(W)
            A[np.diag_indices(len(A))] += 1
        # lower <= y u <= upper is a box: [lower, upper] if y = +1, [-upper, -lower] if y = -1.
        low, high = np.where(Y == 1, lower, -upper), np.where(Y == 1, upper, -lower)
        solution = solve_box_qp(A, low, high, ridge=ridge, tol=tol, max_iter=max_iter)
        self.kkt_residual_ = float(solution.residual.max())
        self.n_iter_ = int(solution.n_iter.max())
        if not solution.converged:
            unsolved = int((solution.residual > tol).sum())
            warn_caller(
                f"{name} left {unsolved} of {Y.shape[1]} labels unsolved, with a residual of up "
                f"to {self.kkt_residual_:.2e}, wanted tol={tol:.2e}; "
                + ("raise max_iter." if solution.status == "max_iter" else "raise tol or ridge."),
                ConvergenceWarning,
            )
        return solution.x
