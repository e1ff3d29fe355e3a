"""Warnings that point at the caller's line, not into the library."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

__all__ = ["warn_caller", "warn_gap", "warn_rounded_kernel"]


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside lemll, however deep inside it this is called.

    Parameters
    ----------
    message : str
        What happened, what was wanted, what to do.
    category : type of Warning
        Its class.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("lemll."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def warn_gap(name: str, solution: Any, tol: float, *, scale: str) -> None:
    """Warn of a solution whose certified gap is larger than was wanted.

    Parameters
    ----------
    name : str
        Of the method.
    solution : object
        With `n_iter`, `optimality` and `status`, as the solvers return it.
    tol : float
        The gap that was wanted.
    scale : str
        What to bring closer to 1 where rounding was in the way.
    """
    remedy = (
        "raise max_iter"
        if solution.status == "max_iter"
        else f"rounding forbids more; raise tol, or bring {scale} closer to 1"
    )
    warn_caller(
        f"{name} stopped after {solution.n_iter} iterations with a certified relative gap of "
        f"{solution.optimality:.2e}, wanted tol={tol:.2e}; {remedy}.",
        ConvergenceWarning,
    )


def warn_rounded_kernel(name: str, *, claimed: float, optimality: float, tol: float) -> None:
    """Warn of a certificate that holds for the kernel's values as rounded, and not for the kernel.

    Parameters
    ----------
    name : str
        Of the method.
    claimed : float
        The gap certified for the values as they were calculated.
    optimality : float
        The gap with their rounding included.
    tol : float
        The gap that was wanted.
    """
    warn_caller(
        f"{name} has a certified relative gap of {claimed:.2e} for the kernel's values as they "
        f"were calculated, but their rounding raises it to about {optimality:.2e}, wanted "
        f"tol={tol:.2e}; "
        "centre and rescale the features (sklearn.preprocessing.StandardScaler), or raise alpha.",
        ConvergenceWarning,
    )
