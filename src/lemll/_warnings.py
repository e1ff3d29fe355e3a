"""Warnings that point at the line of the caller, and not into the library."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

__all__ = ["warn_caller", "warn_gap", "warn_rounded_kernel"]


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning that points at the innermost line outside lemll.

    Parameters
    ----------
    message : str
        What happened, what was requested, and what to do.
    category : type of Warning
        The class of the warning.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("lemll."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def warn_gap(name: str, solution: Any, tol: float, *, scale: str) -> None:
    """Warn about a solution whose certified gap is larger than requested.

    Parameters
    ----------
    name : str
        Name of the method.
    solution : object
        A solution of a solver, with `n_iter`, `optimality` and `status`.
    tol : float
        The requested gap.
    scale : str
        What the user should bring closer to 1 if rounding stopped the solver.
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
    """Warn about a certificate that holds only for the rounded kernel values.

    Parameters
    ----------
    name : str
        Name of the method.
    claimed : float
        The certified gap for the computed kernel values.
    optimality : float
        The gap with their rounding errors included.
    tol : float
        The requested gap.
    """
    warn_caller(
        f"{name} has a certified relative gap of {claimed:.2e} for the kernel's values as they "
        f"were calculated, but their rounding raises it to about {optimality:.2e}, wanted "
        f"tol={tol:.2e}; "
        "centre and rescale the features (sklearn.preprocessing.StandardScaler), or raise alpha.",
        ConvergenceWarning,
    )
