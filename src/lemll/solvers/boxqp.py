"""Solve many convex quadratic programs with bounds and a shared Hessian, to a certified optimum.

MLFE and ML2 choose the numerical labels of each label by such a program. The Hessian is
``A'A + ridge I`` with ``A = I - W``. It is the same for all labels; only the bounds differ. A
variable is either free, or held at a bound. The free variables solve their Newton system exactly.
To find which variables are free, many are exchanged at once [2]_. If this method cycles, projected
Newton steps lower the objective [1]_. The Newton system is solved with a factor of the smaller set:
that of the free variables, or that of the held ones together with the shared inverse Hessian.

References
----------
.. [1] D. P. Bertsekas, "Projected Newton methods for optimization problems with simple
   constraints", SIAM Journal on Control and Optimization 20(2), 1982.
.. [2] M. Hintermueller, K. Ito and K. Kunisch, "The primal-dual active set strategy as a semismooth
   Newton method", SIAM Journal on Optimization 13(3), 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lemll._types import Features, FloatArray
from lemll._validation import check_finite
from lemll.solvers.boxqp_hessian import Hessian
from lemll.solvers.interface import Status, check_stopping

__all__ = ["BoxQpSolution", "kkt_residual", "solve_box_qp"]


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
class BoxQpSolution:
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
    status: Status

    @property
    def converged(self) -> bool:
        """Whether every problem met the tolerance."""
        return self.status == "converged"


def solve_box_qp(
    A: Features,
    lower: Any,
    upper: Any,
    *,
    ridge: float = 0.0,
    linear: Any = None,
    tol: float = 1e-8,
    max_iter: int = 500,
) -> BoxQpSolution:
    """Minimise ``|A x|^2 / 2 + ridge |x|^2 / 2 + linear'x`` within bounds, column by column.

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
    >>> from lemll.solvers import solve_box_qp
    >>> A = np.array([[1.0, -1.0], [0.0, 1.0]])
    >>> solution = solve_box_qp(A, [[-2.0], [1.0]], [[2.0], [3.0]])
    >>> solution.x.ravel(), solution.converged
    (array([1., 1.]), True)
    """
    hessian = Hessian(A, ridge)
    low, high, slope = _check_bounds(lower, upper, linear, hessian.n_variables)
    check_stopping(tol=tol, max_iter=max_iter)
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


def _check_bounds(
    lower: Any, upper: Any, linear: Any, n_variables: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    if low.ndim != 2 or low.shape[0] != n_variables or low.shape[1] == 0 or low.shape != high.shape:
        raise ValueError(
            f"lower and upper must both be ({n_variables}, n_problems), "
            f"got {low.shape} and {high.shape}."
        )
    if not (low <= high).all():
        i, k = (int(place) for place in np.argwhere(~(low <= high))[0])
        raise ValueError(
            f"lower must not exceed upper, got {low[i, k]} and {high[i, k]} for variable {i} of "
            f"problem {k}."
        )
    if np.isposinf(low).any() or np.isneginf(high).any():
        raise ValueError("lower must be below +inf and upper above -inf; no point is allowed.")
    slope = np.zeros_like(low) if linear is None else np.asarray(linear, dtype=np.float64)
    if slope.shape != low.shape:
        raise ValueError(
            f"linear must have the shape {low.shape} of the bounds, got {slope.shape}."
        )
    check_finite(slope, name="linear")
    return low, high, slope


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
