"""Solve a dense positive definite system: factorise in float32, refine in float64.

A factor in float32 takes half the time and half the memory of one in float64. Each step of the
refinement solves for the residual, which is computed in float64, so the solution becomes as
accurate as that of a factor in float64. If the system is too ill-conditioned for float32, it is
assembled and factorised again in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from lemll._types import Array, FloatArray

__all__ = ["RefinedSolution", "solve_refined"]

# The refinement stops if a step does not shrink the residual to this share.
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
        ``|b - A x| / (|A| |x| + |b|)`` in Frobenius norms: x solves a system exactly whose entries
        differ by this share.
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
    assemble: Callable[[np.dtype[Any]], Array],
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
        The right-hand sides.

    Returns
    -------
    RefinedSolution
        The solution. If the factor is in float32, the backward error is at most :math:`\sqrt n`
        units of rounding.

    Raises
    ------
    LinAlgError
        If A is not finite or not positive definite in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers import solve_refined
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> found = solve_refined(A.astype, A.__matmul__, np.array([[1.0], [0.0]]))
    >>> found.x.ravel(), found.precision
    (array([ 0.6, -0.2]), 'float32')
    """
    try:
        found = _refined(assemble, times, b, np.dtype(np.float32))
    except linalg.LinAlgError:
        found = None
    if found is not None and found.backward_error <= _goal(b):
        return found
    return _refined(assemble, times, b, np.dtype(np.float64))


def _refined(
    assemble: Callable[[np.dtype[Any]], Array],
    times: Callable[[FloatArray], FloatArray],
    b: FloatArray,
    dtype: np.dtype[Any],
) -> RefinedSolution:
    """Solve with a factor of a given precision, as far as it shrinks the residual."""
    # Entries that are too large for float32 become infinite, and then the size is not finite.
    with np.errstate(over="ignore", invalid="ignore"):
        system = assemble(dtype)
        size = float(linalg.norm(system, check_finite=False))
    if not np.isfinite(size):
        raise linalg.LinAlgError(f"the system is not finite in {dtype.name}")
    # The transpose of a symmetric array in C order is an array in Fortran order: no copy.
    factor = linalg.cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
    x, residual = np.zeros(b.shape), b
    of_b = before = float(np.linalg.norm(b))
    error, n_iter = np.inf, 0
    while error > _goal(b) and n_iter < MOST_STEPS:
        n_iter += 1
        x = x + linalg.cho_solve(factor, residual.astype(dtype), check_finite=False)
        residual = b - times(x)
        left = float(np.linalg.norm(residual))
        error = left / max(size * float(np.linalg.norm(x)) + of_b, np.finfo(float).tiny)
        if not left <= LEAST_SHRINKAGE * before:
            break
        before = left
    return RefinedSolution(x, error, n_iter, dtype.name)


def _goal(b: FloatArray) -> float:
    """Return the backward error at which the refinement stops."""
    return float(np.sqrt(len(b)) * np.finfo(np.float64).eps)
