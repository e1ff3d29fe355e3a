"""Text to number, by one rule for all formats."""

from __future__ import annotations

import math

__all__ = ["has_odd_characters", "to_number"]


def has_odd_characters(text: str) -> bool:
    """Tell whether float() might take `text` for more than a plain number.

    It would accept "1_000" and the digits of other scripts, which no data format means.
    """
    return not text.isascii() or "_" in text


def to_number(text: str) -> float | None:
    """Return the finite number that `text` spells, or None.

    >>> to_number("2.5"), to_number("1_000"), to_number("inf")
    (2.5, None, None)
    """
    if has_odd_characters(text):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
