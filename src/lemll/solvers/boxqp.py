"""Many convex quadratic programs with bounds and one Hessian, to a certified optimum.

MLFE and ML2 choose the numerical labels of each label by such a program. The Hessian is that of a
reconstruction, ``A'A + ridge I`` with ``A = I - W``, the same for all labels; bounds differ. Free
variables solve their Newton system exactly; which ones are free is found by exchanging them
between free and held, many at once [2]_, and should that go in circles, by steps along the box
that lower the objective [1]_. Either the free or the held variables are the fewer: a factor of
their order suffices, the latter with the inverse Hessian that all problems share.

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


# Armijo's share of the decrease that the gradient promises.
SUFFICIENT = 1e-4
SMALLEST_STEP = 2.0**-40
# Variables this near a bound that the gradient pushes against it count as on it.
NEAR_BOUND = 1e-6
# Exchanges of variables in a row without fewer of them being wrong.
PATIENCE = 5
# Steps of descent between two attempts at exchanging.
DESCENTS = 10


@dataclass(frozen=True)
class BoxQpSolution:
    """Minimisers of quadratic programs with bounds, one a column, and how optimal they are.

    Attributes
    ----------
    x : ndarray of shape (n_variables, n_problems)
        The minimisers, within their bounds exactly.
    objective : ndarray of shape (n_problems,)
        ``|A x|^2 / 2 + ridge |x|^2 / 2 + linear'x``.
    residual : ndarray of shape (n_problems,)
        Largest violation of the optimality conditions, see `kkt_residual`.
    n_iter : ndarray of shape (n_problems,)
        Newton steps done.
    status : {"converged", "max_iter", "stalled"}
        Of the worst problem; "stalled" means that rounding forbade any further descent.
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
        Root of the Hessian that all problems share, up to the ridge.
    lower, upper : ndarray of shape (n_variables, n_problems)
        Bounds of each problem; infinite ones are none.
    ridge : float, default=0.0
        Not negative.
    linear : ndarray of shape (n_variables, n_problems), optional
        Linear terms; none by default.
    tol : float, default=1e-8
        `kkt_residual` at which to stop.
    max_iter : int, default=500
        Cap on the Newton steps of one problem.

    Returns
    -------
    BoxQpSolution
        One column for each problem.

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

    It is zero exactly where the gradient vanishes inside the bounds and points outwards at them,
    the conditions of Karush, Kuhn and Tucker, which suffice as the problem is convex.

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
    """Exchange variables as long as that leads on, descend some steps, exchange again."""
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
    """Guess which variables are on their bounds, solve for the others, guess anew.

    The primal-dual active set method [2]_: free variables that leave the box are held, held ones
    that the gradient drives inside are freed, all at once. It ends in few steps or not at all;
    what is returned is then the best point within the box, or where it started.
    """
    gradient = problem.gradient(best)
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
        near = min(NEAR_BOUND, residual)
        held = ((x - low <= near) & (gradient > 0)) | ((high - x <= near) & (gradient < 0))
        free = np.flatnonzero(~held)
        # A variable near its bound is put on it: what is held must not keep a residual.
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
    """Return a step whose projection onto the box lowers the objective enough, if there is one."""
    step = 1.0
    while step >= SMALLEST_STEP:
        move = problem.clip(x + step * direction) - x
        promised = float(gradient @ move)
        curved = float(move @ problem.hessian.times(move)) / 2
        if promised < 0 and promised + curved <= SUFFICIENT * promised:
            return step
        step /= 2
    return None
