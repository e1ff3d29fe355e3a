"""Checks of estimators' parameters, with messages that name the remedy."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

__all__ = ["check_flag", "check_n_jobs", "check_number", "check_whole"]

# No array has more elements, and no loop would come to its end.
LARGEST_WHOLE = 2**63 - 1


def check_number(
    name: str, value: Any, *, above: float = -math.inf, inclusive: bool = False
) -> float:
    """Return a finite real parameter greater than `above`, or at least that if `inclusive`.

    Examples
    --------
    >>> check_number("alpha", 1, above=0)
    1.0
    """
    bound = f" {'>=' if inclusive else '>'} {above:g}" if math.isfinite(above) else ""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} must be a number{bound}, got {value!r}.")
    try:
        number = float(value)
    except OverflowError:  # a whole number of more than 300 digits
        number = math.inf
    if not math.isfinite(number) or number < above or (number == above and not inclusive):
        raise ValueError(f"{name} must be finite{bound and ' and' + bound}, got {_shown(value)}.")
    return number


def check_whole(name: str, value: Any, *, least: int) -> int:
    """Return a whole-number parameter not below `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {_shown(value)}.")
    whole = int(value)
    if whole > LARGEST_WHOLE:
        raise ValueError(f"{name} must be at most 2**63 - 1, got {_shown(value)}.")
    return whole


def check_n_jobs(n_jobs: Any) -> int | None:
    """Return a number of processes or threads: None, or a whole number that is not 0."""
    if n_jobs is None:
        return None
    whole = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if not whole or n_jobs == 0 or abs(n_jobs) > LARGEST_WHOLE:
        raise ValueError(
            f"n_jobs must be None, a whole number > 0, or -1 for all processors; "
            f"got {_shown(n_jobs)}."
        )
    return int(n_jobs)


def _shown(value: Any) -> str:
    """Show a value in a message, also one whose digits would fill it."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write integers of thousands of digits
        return f"an integer of {value.bit_length()} bits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_flag(name: str, value: Any) -> bool:
    """Return a parameter that is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    return bool(value)
