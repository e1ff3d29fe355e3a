"""Warnings that point at the caller's line, not into the library."""

from __future__ import annotations

import sys
import warnings

__all__ = ["warn_caller"]


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
