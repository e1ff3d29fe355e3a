"""Checks of estimators' parameters, with messages that name the remedy."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

__all__ = ["check_flag", "check_number", "check_whole"]


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
    number = float(value)
    if not math.isfinite(number) or number < above or (number == above and not inclusive):
        raise ValueError(f"{name} must be finite{bound and ' and' + bound}, got {value!r}.")
    return number


def check_whole(name: str, value: Any, *, least: int) -> int:
    """Return a whole-number parameter not below `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}.")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Return a parameter that is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    return bool(value)
