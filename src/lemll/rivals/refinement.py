"""Solve a dense positive definite system: factorise in float32, refine in float64.

A factor in float32 takes half the time and half the memory of one in float64. Each step of the
refinement solves for the residual, which is computed in float64, until only rounding errors of
float64 are left. If the system is too ill-conditioned for float32, it is assembled and factorised
again in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from lemll._types import Array, DType, FloatArray

# The refinement stops at the first of these: the backward error is at most this, a step does not
# shrink the residual to this share, or the number of steps is reached.
SMALLEST_ERROR = 2.0**-53
LEAST_SHRINKAGE = 0.25
MOST_STEPS = 20


@dataclass(frozen=True)
class RefinedSolution:
    """The solution of a system.

    Attributes
    ----------
    x : ndarray of shape (n, n_right)
        The solution.
    backward_error : float
        ``|b - A x| / (|A| |x| + |b|)`` in Frobenius norms: x is the exact solution of a system
        that differs from the given one by at most this share, in norm.
    n_iter : int
        Number of refinement steps.
    precision : {"float32", "float64"}
        The precision of the factor.
    """

    x: FloatArray
    backward_error: float
    n_iter: int
    precision: str


def solve_refined(
    assemble: Callable[[DType], Array],
    times: Callable[[FloatArray], FloatArray],
    b: FloatArray,
) -> RefinedSolution:
    r"""Solve :math:`Ax = b` for a symmetric positive definite A.

    Parameters
    ----------
    assemble : callable
        Takes a type of numbers and returns a new array A of this type, which is overwritten.
    times : callable
        Takes x and returns A x, computed in float64.
    b : ndarray of shape (n, n_right)
        The right-hand sides, finite.

    Returns
    -------
    RefinedSolution
        The solution. A factor in float32 is accepted only if the backward error is at most
        :math:`2^{-52}\sqrt n`. In most cases it is below :math:`2^{-53}`.

    Raises
    ------
    LinAlgError
        If A is not positive definite in float64, or if the sum of its squares is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.rivals.refinement import solve_refined
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> found = solve_refined(A.astype, A.__matmul__, np.array([[1.0], [0.0]]))
    >>> found.x.ravel(), found.precision
    (array([ 0.6, -0.2]), 'float32')
    """
    try:
        found = _refined(assemble, times, b, np.dtype(np.float32))
    except linalg.LinAlgError:
        found = None
    if found is not None and found.backward_error <= np.sqrt(len(b)) * np.finfo(np.float64).eps:
        return found
    return _refined(assemble, times, b, np.dtype(np.float64))


def _refined(
    assemble: Callable[[DType], Array],
    times: Callable[[FloatArray], FloatArray],
    b: FloatArray,
    dtype: DType,
) -> RefinedSolution:
    """Solve with a factor of a given precision, as far as it shrinks the residual."""
    # The size of entries that are too large for float32 is not finite.
    with np.errstate(over="ignore", invalid="ignore"):
        system = assemble(dtype)
        size = float(linalg.norm(system, check_finite=False))
    if not np.isfinite(size):
        raise linalg.LinAlgError(f"the system is too large for {dtype.name}")
    # The transpose of a symmetric array in C order is an array in Fortran order: no copy.
    factor = linalg.cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
    of_b = float(np.linalg.norm(b))
    x, residual, left = np.zeros(b.shape), b, of_b
    error, n_iter = (1.0, 0) if of_b > 0 else (0.0, 0)
    while error > SMALLEST_ERROR and n_iter < MOST_STEPS:
        # A residual of length 1 fits into the range of float32.
        step = linalg.cho_solve(factor, (residual / left).astype(dtype), check_finite=False)
        trial = x + left * step.astype(np.float64)
        residual = b - times(trial)
        before, left = left, float(np.linalg.norm(residual))
        if not left < before:
            break
        n_iter += 1
        x, error = trial, left / (size * float(np.linalg.norm(trial)) + of_b)
        if left > LEAST_SHRINKAGE * before:
            break
    return RefinedSolution(x, error, n_iter, dtype.name)
