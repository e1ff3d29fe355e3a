"""Convert text to numbers, by one rule for all formats."""

from __future__ import annotations

import math

__all__ = ["has_odd_characters", "to_number"]


def has_odd_characters(text: str) -> bool:
    """Tell whether `text` contains characters that float() accepts but data formats do not.

    float() accepts "1_000" and the digits of other scripts. No data format allows them.
    """
    return not text.isascii() or "_" in text


def to_number(text: str) -> float | None:
    """Return `text` as a finite number, or None if it is not one.

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
