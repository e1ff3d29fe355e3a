"""Cells of any file in one form: text, as a CSV file would hold it, and empty text for no value."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lemll._types import MatrixLike
from lemll.exceptions import DatasetFormatError

__all__ = [
    "CELL_BYTES",
    "READABLE_SHARE",
    "Cells",
    "as_number",
    "cell_text",
    "empty_columns",
    "has_comma_in_number",
    "is_gap",
    "is_missing",
    "settle_decimals",
]

# Approximate memory of one cell: its pointers, and a short text.
CELL_BYTES = 64
# Each column of a frame costs kilobytes and time, whatever it holds.
_MOST_COLUMNS = 20_000
# A column of numbers or dates may have a few other cells, as "unknown".
READABLE_SHARE = 0.95
# What people write into a cell without a value, in any mixture of small and capital letters.
_GAPS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?"})
_WITH_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?\d+(?:[eE][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")


class Cells(NamedTuple):
    """The cells of a file.

    Attributes
    ----------
    header : list of str
        The names of the columns.
    columns : list of list of str
        The cells of each column as text; an empty text is an empty cell.
    notes : list of str
        How the file was read, where it was not obvious.
    """

    header: list[str]
    columns: list[list[str]]
    notes: list[str]


def empty_columns(header: Sequence[str], file: str) -> list[list[str]]:
    """Return one empty column per name; refuse a header that is too long."""
    if len(header) > _MOST_COLUMNS:
        raise DatasetFormatError(
            f"the table has {len(header)} columns, and at most {_MOST_COLUMNS} can be read; leave "
            "columns out",
            file=file,
        )
    return [[] for _ in header]


def is_missing(value: object) -> bool:
    """Return whether a cell has no value: None, NaN, NaT or ``pandas.NA``."""
    if isinstance(value, str):
        return False
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def is_gap(text: str) -> bool:
    """Return whether the text of a cell says that there is no value."""
    return text.lower() in _GAPS


def as_number(text: str) -> float | None:
    """Return the number that a cell holds; None if it is not a number."""
    try:
        # Python reads 1_000 as a number, and nobody else does.
        return None if "_" in text else float(text)
    except ValueError:
        return None


def cell_text(value: MatrixLike) -> str:
    """Return a typed value as the text that a CSV file would have.

    Parameters
    ----------
    value : object
        A value of Excel or Parquet.

    Returns
    -------
    str
        The text, without blanks around it. Numbers have no needless fraction, dates without a time
        of day have none, and lists are JSON.

    Examples
    --------
    >>> import datetime
    >>> cell_text(7.0), cell_text(None), cell_text(datetime.datetime(9999, 12, 31))
    ('7', '', '9999-12-31')
    """
    match value:
        case str():
            text = value.strip()
        case _ if is_missing(value):
            text = ""
        case float() if value.is_integer() and abs(value) < 2**63:
            text = str(int(value))
        case decimal.Decimal():
            text = format(value, "f")
            text = text.rstrip("0").rstrip(".") if "." in text else text
        case datetime.datetime():
            naive = value if value.tzinfo is None else value.astimezone(datetime.UTC)
            text = naive.replace(tzinfo=None).isoformat(sep=" ").removesuffix(" 00:00:00")
        case bytes():
            # Pictures and the like are no features; their column has the same value in all rows.
            text = "binary"
        case list() | tuple() | dict():
            text = json.dumps(value, ensure_ascii=False, default=cell_text)
        case _:
            text = str(value)
    return text


def settle_decimals(cells: Cells, decimal: str | None, keep: Iterable[str], file: str) -> None:
    """Write decimal commas as points, and numbers with commas between thousands without them."""
    if decimal not in (None, ".", ","):
        raise ValueError(f"--decimal must be '.' or ',', got {decimal!r}.")
    # An example of each kind of column, by which the file shows its habit.
    shown: dict[str, str] = {}
    with_commas: dict[int, str] = {}
    for j, name in enumerate(cells.header):
        different = set() if name in keep else set(cells.columns[j])
        if not any(sign in text for text in different for sign in ",."):
            continue
        different = {text for text in different if not is_gap(text)}
        given = [text for text in cells.columns[j] if text in different]
        commas = next((text for text in given if "," in text), None)
        if commas is None:
            points = next((text for text in given if "." in text), None)
            if points is not None and all(as_number(text) is not None for text in different):
                shown.setdefault(".", f"{name!r} ({points})")
            continue
        # If the user says what commas are, a single cell is enough.
        share = READABLE_SHARE if decimal is None else 0.0
        marks = _mostly(given, {t for t in different if _with_decimal_comma(t)}, share)
        groups = _mostly(given, {t for t in different if _with_groups(t)}, share)
        if marks or groups:
            sign = "either" if marks and groups else "," if marks else "."
            with_commas[j] = sign
            shown.setdefault(sign, f"{name!r} ({commas})")
    if not with_commas:
        return
    if decimal is None and ("," in shown) == ("." in shown):
        example = " and ".join(shown[sign] for sign in (".", ",", "either") if sign in shown)
        raise DatasetFormatError(
            f"a comma may be a decimal mark or separate thousands: columns {example}; pass "
            "--decimal , or --decimal .",
            file=file,
        )
    decimal = decimal or ("," if "," in shown else ".")
    fits = _with_decimal_comma if decimal == "," else _with_groups
    for j, sign in with_commas.items():
        if sign in (decimal, "either"):
            written = {
                text: text.replace(",", "." if decimal == "," else "") if fits(text) else text
                for text in set(cells.columns[j])
            }
            cells.columns[j] = [written[text] for text in cells.columns[j]]
    cells.notes.append("decimal commas" if decimal == "," else "commas between thousands")


def _with_decimal_comma(text: str) -> bool:
    return bool(_WITH_COMMA.fullmatch(text) or _WHOLE.fullmatch(text))


def has_comma_in_number(text: str) -> bool:
    """Tell whether a text is a number with a decimal comma, or with commas between thousands."""
    return bool(_WITH_COMMA.fullmatch(text) or _GROUPED.fullmatch(text))


def _with_groups(text: str) -> bool:
    return bool(_GROUPED.fullmatch(text)) or as_number(text) is not None


def _mostly(given: list[str], numbers: set[str], share: float) -> bool:
    """Tell whether this share of the cells is among these, and one of these has a comma."""
    has_comma = any("," in text for text in numbers)
    return has_comma and sum(text in numbers for text in given) >= share * len(given)
