"""CSV that a spreadsheet shows and does not execute."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["csv_text", "safe_cell"]

# What a spreadsheet takes for the beginning of a formula, also in the full width of East Asia.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


def safe_cell(value: Any) -> Any:
    """Keep a spreadsheet from taking a text for a formula; numbers stay numbers.

    Parameters
    ----------
    value : object
        Of a cell.

    Returns
    -------
    object
        A text that begins like a formula after an apostrophe; all else as it is.

    Examples
    --------
    >>> safe_cell("=cmd|' /C calc'!A0"), safe_cell("-0.5"), safe_cell(-0.5), safe_cell("-a")
    ("'=cmd|' /C calc'!A0", '-0.5', -0.5, "'-a")
    """
    if not isinstance(value, str) or not value.startswith(_FORMULA) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    r"""Write rows as CSV, every cell by `safe_cell`.

    Parameters
    ----------
    rows : iterable of iterable
        The first may be a header.

    Returns
    -------
    str
        Lines end in a line feed.

    Examples
    --------
    >>> csv_text([["method", "mean"], ["@SUM(1)", -1.5]])
    "method,mean\n'@SUM(1),-1.5\n"
    """
    return "".join(f"{','.join(map(_quoted, row))}\n" for row in rows)


def _quoted(value: Any) -> str:
    # The csv module leaves a carriage return bare, where other readers begin a new line.
    text = "" if value is None else str(safe_cell(value))
    if not any(sign in text for sign in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'
