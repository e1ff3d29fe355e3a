"""Tell which columns of a table look like labels. This is only shown, never used."""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np

from lemll._types import Array, FloatArray, Frame, MatrixLike
from lemll.exceptions import LemllError
from lemll.tables.files import Table
from lemll.tables.labels import LabelSpec, read_truth, split_tags
from lemll.tables.text import (
    READABLE_SHARE,
    as_number,
    cell_text,
    has_comma_in_number,
    has_recurring_words,
    is_missing,
)

Kind = Literal["number", "vector", "date", "category", "text", "ignored"]

# Formats of dates, the unmistakable ones first.
_FORMATS = (
    "ISO8601",
    "%Y-%m",
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
_ID_SHARE = 0.9
NAMES_WITH_WORDS = "names that differ, but share words"
_FEWEST_ROWS_OF_A_COUNTER = 10
_LEADING_ZERO = re.compile(r"0\d")
# Shorter lists of whole numbers may be tags.
_FEWEST_WHOLE_NUMBERS = 8


class Column(NamedTuple):
    """What a column holds.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "vector", "date", "category", "text", "ignored"}
        How it is encoded. A vector is a list of numbers, for example an embedding.
    why : str
        What was seen, for a reader.
    format : str
        The format of dates, as in ``datetime.strptime`` or "ISO8601"; otherwise empty.
    has_hours : bool
        Whether the dates have a time of day.
    gaps : tuple of str
        Texts in a column of numbers or dates that count as missing.
    width : int
        How many numbers each cell of a column of vectors has; otherwise 0.
    """

    name: str
    kind: Kind
    why: str
    format: str = ""
    has_hours: bool = False
    gaps: tuple[str, ...] = ()
    width: int = 0


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
    width = _width(known)
    if width or any(isinstance(cell, (list, dict, set, bytes, np.ndarray)) for cell in known):
        why = f"{width} numbers per row{missing}" if width else "lists or bytes"
        return Column(name, "vector" if width else "ignored", why, width=width)
    # Tables repeat their values, so each text is looked at once.
    counts = Counter(map(_plain, known))
    if not counts or (len(counts) == 1 and not gaps):
        same = f"the same value in all rows, {min(counts)[:20]!r}" if counts else "no values"
        return Column(name, "ignored", same)
    # Codes such as 00123 are names, although they can be read as numbers.
    codes = any(_LEADING_ZERO.match(text) for text in counts)
    values = zip(counts, as_numbers(counts), strict=True)
    numbers = {} if codes else {text: value for text, value in values if np.isfinite(value)}
    n_numbers = sum(counts[text] for text in numbers)
    if n_numbers >= READABLE_SHARE * len(known):
        if len(counts) == len(cells) and _is_counter(as_numbers(cells)):
            return Column(name, "ignored", "counts the rows")
        why = f"{min(numbers.values()):g} to {max(numbers.values()):g}{missing}"
        odd = sorted(counts.keys() - numbers.keys())
        why += _said_of_gaps(counts, odd, "numbers")
        return Column(name, "number", why, gaps=tuple(odd))
    found = _date_format(counts)
    if found:
        return _date_column(name, counts, found, missing)
    return _text_column(name, counts, missing, len(cells))


def _vector(cell: MatrixLike) -> FloatArray | None:
    """Return the numbers of a list, an array or a JSON list; None if the cell is something else."""
    try:
        if isinstance(cell, str):
            cell = json.loads(cell) if cell.lstrip().startswith("[") else None
        values = np.asarray(cell)
        numbers = values.ndim == 1 and values.dtype.kind in "biuf" and np.isfinite(values).all()
        return values.astype(np.float64) if numbers else None
    except (ValueError, TypeError, RecursionError):
        return None


def _width(known: list[MatrixLike]) -> int:
    """Return how many numbers nearly all cells have, or 0 if these are not vectors."""
    if not known or _vector(known[0]) is None:
        return 0
    vectors = [values for values in map(_vector, known) if values is not None]
    ((width, count),) = Counter(map(len, vectors)).most_common(1)
    whole = all((values == np.round(values)).all() for values in vectors)
    few = width < (_FEWEST_WHOLE_NUMBERS if whole else 2)
    return 0 if few or count < READABLE_SHARE * len(known) else width


def as_vectors(cells: Iterable[MatrixLike], width: int) -> FloatArray:
    """Return one row of numbers per cell, NaN where a cell does not have `width` of them."""
    nothing = np.full(width, np.nan)
    found = [_vector(cell) for cell in cells]
    return np.array([v if v is not None and len(v) == width else nothing for v in found])


def _plain(cell: object) -> str:
    if isinstance(cell, str):
        return cell.strip()
    return str(int(cell) if isinstance(cell, (bool, np.bool_)) else cell)


def _text_column(name: str, counts: Counter[str], missing: str, n_rows: int) -> Column:
    n_texts = counts.total()
    n_words = sum(n * len(text.split()) for text, n in counts.items()) / n_texts
    length = sum(n * len(text) for text, n in counts.items()) / n_texts
    values = f"{len(counts)} values{missing}"
    # In few rows, sentences are few too, so a category must also repeat its values.
    repeats = len(counts) <= 0.5 * n_texts
    if repeats and len(counts) <= max(_FEW_VALUES, _FEW_SHARE * n_rows):
        return Column(name, "category", values)
    has_words = any(re.search(r"\w\w", text) for text in counts)
    # Some languages have no spaces. Long codes of Latin letters and digits are ids.
    unspaced = length >= _LENGTH_OF_TEXT and not all(text.isascii() for text in counts)
    if has_words and (n_words >= _WORDS_OF_TEXT or unspaced):
        return Column(name, "text", f"{n_words:.0f} words per row{missing}")
    if len(counts) >= _ID_SHARE * n_texts:
        if has_recurring_words(counts):
            return Column(name, "text", f"{NAMES_WITH_WORDS}{missing}")
        return Column(name, "ignored", "nearly all values differ, as ids do")
    return Column(name, "category", values)


def _date_column(name: str, counts: Counter[str], found: str, missing: str) -> Column:
    read = {text: date for text in counts if (date := _date(text, found)) is not None}
    why = f"{min(read)[:10]} to {max(read)[:10]}" if found == "ISO8601" else found
    if found.startswith("%d/"):
        other = found.replace("%d/%m", "%m/%d")
        if all(_date(text, other) is not None for text in read):
            why += " or month first: no day is above 12"
    odd = sorted(counts.keys() - read.keys())
    why += missing + _said_of_gaps(counts, odd, "dates")
    has_hours = any(date.hour or date.minute for date in read.values())
    return Column(name, "date", why, found, has_hours=has_hours, gaps=tuple(odd))


def _said_of_gaps(counts: Counter[str], odd: list[str], kind: str) -> str:
    if not odd:
        return ""
    n_odd = sum(counts[text] for text in odd)
    return f", {n_odd} not {kind} ({odd[0][:20]!r}) count as missing"


def _is_counter(numbers: FloatArray) -> bool:
    """Return whether a column numbers the rows, also if some rows were left out."""
    if len(numbers) < _FEWEST_ROWS_OF_A_COUNTER or np.isnan(numbers).any():
        return False
    steps = np.diff(numbers)
    whole = bool((numbers == np.round(numbers)).all())
    return whole and bool((steps >= 1).all()) and bool(np.median(steps) == 1)


def _date_format(counts: Counter[str]) -> str:
    """Return the first format that reads most cells; "" if none reads nearly all."""
    like = [text for text in counts if _DATE_LIKE.search(text) and text[0].isdigit()]
    needed = READABLE_SHARE * counts.total()
    if sum(counts[text] for text in like) < needed:
        return ""
    best, most = "", 0
    for form in _FORMATS:
        n_read = sum(counts[text] for text in like if _date(text, form) is not None)
        if n_read == counts.total():
            return form
        if n_read >= needed and n_read > most:
            best, most = form, n_read
    return best


def _date(text: str, form: str) -> datetime.datetime | None:
    """Return a date in UTC; None if the text is not one. Python's dates reach to the year 9999."""
    try:
        if form == "ISO8601":
            found = datetime.datetime.fromisoformat(text)
        else:
            found = datetime.datetime.strptime(text, form)
        if found.tzinfo is not None:
            found = found.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return found


def as_numbers(cells: Iterable[MatrixLike]) -> FloatArray:
    """Return the cells as numbers, NaN where there is none. Infinity is not a number here."""
    values = [as_number(cell) if isinstance(cell, str) else _float(cell) for cell in cells]
    numbers = np.array(values, dtype=np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _float(cell: MatrixLike) -> float | None:
    try:
        return None if is_missing(cell) else float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def as_dates(cells: Iterable[MatrixLike], column: Column) -> list[datetime.datetime | None]:
    """Return the cells as dates, None where there is none."""
    texts = ["" if is_missing(cell) else _plain(cell) for cell in cells]
    found = {text: _date(text, column.format) for text in set(texts)}
    return [found[text] for text in texts]


def as_texts(cells: MatrixLike, missing: str) -> Array:
    """Return the cells as text, with a given text where there is none."""
    texts = [missing if is_missing(cell) else _plain(cell) for cell in cells]
    return np.array(texts, dtype=object)


def check_readable(column: Column, cells: MatrixLike, read: Array) -> None:
    """Refuse new cells if most are of another kind than in training, and commas in doubt."""
    known = set(column.gaps)
    lost = [
        cell
        for cell, ok in zip(cells, read, strict=True)
        if not ok and not is_missing(cell) and str(cell).strip() not in known
    ]
    comma = next((cell for cell in lost if has_comma_in_number(str(cell).strip())), None)
    if column.kind == "number" and comma is not None:
        raise LemllError(
            f"column {column.name!r} holds the number {str(comma)[:40]!r}, and most cells do not "
            "show what its comma means; read the table with `decimal=','` or `decimal='.'`"
        )
    given = len(lost) + int(read.sum())
    if len(lost) > 0.5 * given:
        kind = f"lists of {column.width} number" if column.width else column.kind
        raise LemllError(
            f"column {column.name!r} held {kind}s in the training rows, but {len(lost)} of "
            f"{given} cells are none here, for example {str(lost[0])[:40]!r}; check the column"
        )


_SIGNS = (";", "|", ",")
# Tags repeat: on average each of them occurs in at least this number of rows.
_FEWEST_USES = 2
_LONGEST_TAG = 40
_LONGEST_MARK = 5


class Survey(NamedTuple):
    """What a table seems to hold.

    Attributes
    ----------
    columns : list of Column
        What each column holds, as `TableEncoder` would decide it.
    label_columns : list of str
        Columns that hold only 0/1, true/false or yes/no.
    tag_columns : dict of str to str
        Columns that look like tags, each with what separates them ("list" for lists).
    id_columns : list of str
        Columns whose values all differ and which are no features.
    mark_columns : list of str
        Columns with one short sign, such as x, in some rows, and empty cells in the others.
    """

    columns: list[Column]
    label_columns: list[str]
    tag_columns: dict[str, str]
    id_columns: list[str]
    mark_columns: list[str]


def survey(table: Table) -> Survey:
    """Look at every column of a table.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    Survey
        Kinds of the columns, and those that look like labels or ids.

    Examples
    --------
    >>> import pandas as pd
    >>> from lemll.tables import Table
    >>> from lemll.tables.columns import survey
    >>> frame = pd.DataFrame({"sea": ["yes", "no", None], "width": [1.5, 2.5, 3.5]})
    >>> survey(Table(frame, "photos")).label_columns
    ['sea']
    """
    columns = inspect_columns(table.frame)
    labels, tags, ids, marks = [], {}, [], []
    for column in columns:
        if column.kind == "vector":
            continue
        cells = list(table.frame[column.name])
        counts = _counted(cells)
        sign = "list" if counts is None else _separator(counts)
        if sign is not None:
            tags[column.name] = sign
        elif _is_label(table, column.name):
            labels.append(column.name)
        elif _only_marks(counts, len(cells)):
            marks.append(column.name)
        elif (
            (column.kind == "ignored" or column.why.startswith(NAMES_WITH_WORDS))
            and counts is not None
            and len(counts) == len(cells)
        ):
            ids.append(column.name)
    return Survey(columns, labels, tags, ids, marks)


def _is_label(table: Table, name: str) -> bool:
    try:
        read_truth(table, LabelSpec(labels=(name,)))
    except LemllError:
        return False
    return True


def _counted(cells: list[MatrixLike]) -> Counter[str] | None:
    """Count the texts of a column; None if it holds lists."""
    known = [cell for cell in cells if not is_missing(cell)]
    if known and all(isinstance(cell, (list, np.ndarray)) for cell in known):
        return None
    return Counter(map(cell_text, known))


def _only_marks(counts: Counter[str] | None, n_rows: int) -> bool:
    """Tell whether a column has one short sign in some rows and nothing in the others."""
    signs = [] if counts is None else [item for item in counts.items() if item[0]]
    return len(signs) == 1 and len(signs[0][0]) <= _LONGEST_MARK and signs[0][1] < n_rows


def _separator(counts: Counter[str]) -> str | None:
    """Return what seems to separate tags in a column, or None if it does not look like tags."""
    texts = [text for text in counts if text]
    if not texts:
        return None
    if all(text.startswith("[") and text.endswith("]") for text in texts):
        return "list"
    for sign in _SIGNS:
        parts: Counter[str] = Counter()
        for text in texts:
            for part in split_tags(text, sign) or ():
                parts[part] += counts[text]
        joined = any(sign in text for text in texts)
        repeated = sum(parts.values()) >= _FEWEST_USES * len(parts) > 0
        # Tags combine in many ways. A comma in a few names of a category gives no other cells.
        combined = sign != "," or len(parts) <= len(texts)
        if joined and repeated and combined and max(map(len, parts)) <= _LONGEST_TAG:
            return sign
    return None
