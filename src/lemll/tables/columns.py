"""Decide what each column of a table holds, and turn its cells into values of one type."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import numpy as np

from lemll._types import Array, FloatArray, MatrixLike
from lemll.exceptions import LemllError, import_extra
from lemll.tables.files import Frame
from lemll.tables.labels import is_missing

__all__ = [
    "Column",
    "Kind",
    "as_days",
    "as_numbers",
    "as_texts",
    "check_readable",
    "inspect_column",
    "inspect_columns",
]

Kind = Literal["number", "date", "category", "text", "ignored"]

# Formats of dates, the unmistakable ones first.
_FORMATS = (
    "ISO8601",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%Y:%m:%d %H:%M:%S",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
)
_DATE_LIKE = re.compile(r"\d{1,4}[-/.:]\d{1,2}")
# A text with fewer different values than this, or than this share of the rows, is a category.
_FEW_VALUES, _FEW_SHARE = 20, 0.05
# Texts of fewer words, and shorter ones, are names or codes rather than sentences.
_WORDS_OF_TEXT, _LENGTH_OF_TEXT = 2.0, 16
# If nearly all values differ, a short text is an id.
# A column of numbers may have a few other cells, as "unknown"; they count as gaps.
_NUMBER_SHARE = 0.95
_ID_SHARE = 0.9
_FEWEST_ROWS_OF_A_COUNTER = 10
_LEADING_ZERO = re.compile(r"0\d")


class Column(NamedTuple):
    """What a column holds.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "date", "category", "text", "ignored"}
        How it is encoded.
    why : str
        What was seen, for a reader.
    format : str
        The format of dates, as in ``datetime.strptime`` or "ISO8601"; otherwise empty.
    has_hours : bool
        Whether the dates have a time of day.
    gaps : tuple of str
        Texts in a column of numbers that count as missing.
    """

    name: str
    kind: Kind
    why: str
    format: str = ""
    has_hours: bool = False
    gaps: tuple[str, ...] = ()


def inspect_columns(frame: Frame) -> list[Column]:
    """Decide what each column of a frame holds.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows, without their labels.

    Returns
    -------
    list of Column
        The kinds, for example for the `columns` of `TableEncoder`.
    """
    return [inspect_column(name, frame[name]) for name in frame.columns]


def inspect_column(name: str, cells: MatrixLike) -> Column:
    """Decide what a column holds.

    Parameters
    ----------
    name : str
        Its name.
    cells : pandas.Series
        Its cells.

    Returns
    -------
    Column
        The kind, and why.

    Examples
    --------
    >>> import pandas as pd
    >>> inspect_column("width", pd.Series(["1.5", "2", None, "4"])).kind
    'number'
    >>> inspect_column("when", pd.Series(["2024-05-01", "2024-06-01"])).kind
    'date'
    """
    known = [cell for cell in cells if not is_missing(cell)]
    gaps = len(cells) - len(known)
    missing = f", {gaps} missing" if gaps else ""
    useless = _why_useless(known, gaps)
    if useless is not None:
        return Column(name, "ignored", useless)
    texts = [str(cell).strip() for cell in known]
    different = set(texts)
    # Codes such as 00123 are names, although they can be read as numbers.
    codes = any(_LEADING_ZERO.match(text) for text in different)
    numbers = np.full(1, np.nan) if codes else as_numbers(cells)
    n_numbers = int(np.isfinite(numbers).sum())
    if n_numbers >= _NUMBER_SHARE * len(known):
        if _is_counter(numbers):
            return Column(name, "ignored", "counts the rows")
        why = f"{np.nanmin(numbers):g} to {np.nanmax(numbers):g}{missing}"
        odd: list[str] = []
        if n_numbers < len(known):
            odd = [text for text in different if not np.isfinite(as_numbers([text])[0])]
            why += f", {len(known) - n_numbers} not numbers ({min(odd)[:20]!r}) count as missing"
        return Column(name, "number", why, gaps=tuple(sorted(odd)))
    found = _date_format(different)
    if found is not None:
        return _date_column(name, texts, found, missing)
    return _text_column(name, texts, different, missing, len(cells))


def _why_useless(known: list[object], gaps: int) -> str | None:
    if not known:
        return "no values"
    if any(isinstance(cell, (list, dict, set, bytes, np.ndarray)) for cell in known):
        return "lists or bytes"
    first = str(known[0])
    if not gaps and all(str(cell) == first for cell in known):
        return f"the same value in all rows, {first[:20]!r}"
    return None


def _text_column(
    name: str, texts: list[str], different: set[str], missing: str, n_rows: int
) -> Column:
    n_words = float(np.mean([len(text.split()) for text in texts]))
    length = float(np.mean([len(text) for text in texts]))
    values = f"{len(different)} values{missing}"
    # In few rows, sentences are few too, so a category must also repeat its values.
    repeats = len(different) <= 0.5 * len(texts)
    if repeats and len(different) <= max(_FEW_VALUES, _FEW_SHARE * n_rows):
        return Column(name, "category", values)
    has_words = any(re.search(r"\w\w", text) for text in different)
    # Some languages have no spaces. Long codes of Latin letters and digits are ids.
    unspaced = length >= _LENGTH_OF_TEXT and not all(text.isascii() for text in different)
    if has_words and (n_words >= _WORDS_OF_TEXT or unspaced):
        return Column(name, "text", f"{n_words:.0f} words per row{missing}")
    if len(different) >= _ID_SHARE * len(texts):
        return Column(name, "ignored", "nearly all values differ, as ids do")
    return Column(name, "category", values)


def _date_column(name: str, texts: list[str], found: str, missing: str) -> Column:
    why = f"{min(texts)[:10]} to {max(texts)[:10]}" if found == "ISO8601" else found
    if found.startswith("%d/"):
        other = found.replace("%d/%m", "%m/%d")
        if _parses(set(texts), other):
            why += " or month first: no day is above 12"
    column = Column(name, "date", why + missing, found)
    dates = as_days(texts, column)
    has_hours = bool(((dates.dt.hour != 0) | (dates.dt.minute != 0)).any())
    return column._replace(has_hours=has_hours)


def _is_counter(numbers: FloatArray) -> bool:
    """Return whether a column numbers the rows, also if some rows were left out."""
    if len(numbers) < _FEWEST_ROWS_OF_A_COUNTER or np.isnan(numbers).any():
        return False
    steps = np.diff(numbers)
    whole = bool((numbers == np.round(numbers)).all())
    return whole and bool((steps >= 1).all()) and bool(np.median(steps) == 1)


def _date_format(different: set[str]) -> str | None:
    if not all(_DATE_LIKE.search(text) and text[0].isdigit() for text in different):
        return None
    return next((form for form in _FORMATS if _parses(different, form)), None)


def _parses(texts: set[str], form: str) -> bool:
    pandas = import_extra("pandas", "tables", "Reading dates")
    try:
        pandas.to_datetime(sorted(texts), format=form, utc=True)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def as_numbers(cells: MatrixLike) -> FloatArray:
    """Return the cells as numbers, NaN where there is none. Infinity is not a number here."""
    pandas = import_extra("pandas", "tables", "Reading numbers")
    plain = [np.nan if is_missing(cell) else cell for cell in cells]
    texts = [cell.strip() if isinstance(cell, str) else cell for cell in plain]
    numbers = np.asarray(
        pandas.to_numeric(pandas.Series(texts, dtype=object), errors="coerce"), dtype=np.float64
    )
    return np.where(np.isfinite(numbers), numbers, np.nan)


def as_days(cells: MatrixLike, column: Column) -> MatrixLike:
    """Return the cells as a pandas series of dates, NaT where there is none."""
    pandas = import_extra("pandas", "tables", "Reading dates")
    texts = ["" if is_missing(cell) else str(cell).strip() for cell in cells]
    # pandas would read "today" and "now" as the time of the call.
    texts = [text if text[:1].isdigit() else "" for text in texts]
    dates = pandas.to_datetime(
        pandas.Series(texts, dtype=object), format=column.format, errors="coerce", utc=True
    )
    return dates.dt.tz_localize(None)


def as_texts(cells: MatrixLike, missing: str) -> Array:
    """Return the cells as text, with a given text where there is none."""
    texts = [missing if is_missing(cell) else str(cell).strip() for cell in cells]
    return np.array(texts, dtype=object)


def check_readable(column: Column, cells: MatrixLike, read: Array) -> None:
    """Refuse new cells of a column if most of them are of another kind than in training."""
    known = set(column.gaps)
    lost = [
        cell
        for cell, ok in zip(cells, read, strict=True)
        if not ok and not is_missing(cell) and str(cell).strip() not in known
    ]
    given = len(lost) + int(read.sum())
    if len(lost) > 0.5 * given:
        raise LemllError(
            f"column {column.name!r} held {column.kind}s in the training rows, but {len(lost)} of "
            f"{given} cells are none here, for example {str(lost[0])[:40]!r}; check the column"
        )
