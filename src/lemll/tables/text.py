"""Read delimited text as people have it: any usual encoding, delimiter and decimal mark."""

from __future__ import annotations

import codecs
import csv
import datetime
import decimal
import io
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lemll._types import MatrixLike
from lemll.exceptions import DatasetFormatError

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
        case np.ndarray():
            text = json.dumps(value.tolist())
        case list() | tuple() | dict():
            text = json.dumps(value, ensure_ascii=False, default=cell_text)
        case _:
            text = str(value)
    return text


def settle_decimals(cells: Cells, decimal: str | None, keep: Iterable[str], file: str) -> None:
    """Write decimal commas as points, and numbers with commas between thousands without them."""
    if decimal not in (None, ".", ","):
        raise ValueError(f"`decimal` must be '.' or ',', got {decimal!r}.")
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
            "`decimal=','` or `decimal='.'`",
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


# The longer marks come first: the mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
# These records decide the delimiter.
_SAMPLE = 200


class OpenText(NamedTuple):
    """The text of a file, and how to write it back.

    Attributes
    ----------
    text : str
        The text, without a mark of its encoding.
    delimiter : str
        The character between the cells.
    notes : list of str
        How the file was read, where it was not obvious.
    mark : bytes
        The mark of the encoding at the beginning of the file, or nothing.
    encoding : str
        The encoding of the rest.
    """

    text: str
    delimiter: str
    notes: list[str]
    mark: bytes
    encoding: str

    def encode(self, text: str) -> bytes:
        """Return another text as the bytes of such a file."""
        return self.mark + text.encode(self.encoding)


def read_text(path: Path, *, encoding: str | None, delimiter: str | None) -> Cells:
    """Read the cells of a delimited text file; `open_text` has the options."""
    opened = open_text(path, encoding=encoding, delimiter=delimiter)
    return Cells(*_parse(opened.text, opened.delimiter, path), opened.notes)


def open_text(path: Path, *, encoding: str | None, delimiter: str | None) -> OpenText:
    """Find out encoding and delimiter of a text file.

    Parameters
    ----------
    path : Path
        The file.
    encoding, delimiter : str or None
        The encoding, and the character between the cells. With None, the content of the file
        decides, and doubt is an error.

    Returns
    -------
    OpenText
        The text, and how it was read.
    """
    given = encoding
    text, mark, encoding = _decode(path.read_bytes(), given, path)
    # A mark tells more than the order of the bytes; Windows' letters are Latin-1 to most people.
    shown = encoding[:6] if mark else encoding.replace("cp1252", "latin-1")
    notes = [f"read as {shown}"] if shown not in ("utf-8", given) else []
    if not text.strip():
        raise DatasetFormatError("the file is empty; expected a header line", file=str(path))
    if delimiter is None and path.suffix.lower() != ".csv":
        delimiter = "\t"
    elif delimiter is None:
        delimiter = _find_delimiter(text, path)
        if delimiter != ",":
            notes.append(f"{_DELIMITERS[delimiter]} between the cells")
    elif len(delimiter) != 1:
        raise ValueError(f"`delimiter` must be one character, got {delimiter!r}.")
    return OpenText(text, delimiter, notes, mark, encoding)


def _decode(data: bytes, encoding: str | None, path: Path) -> tuple[str, bytes, str]:
    """Return the text of a file, the mark before it, and its encoding."""
    mark, found = next((pair for pair in _MARKS if data.startswith(pair[0])), (b"", None))
    if encoding is not None:
        # With its mark, the encoding says less than the file: utf-16 has two orders of bytes.
        marked = found is not None and encoding.lower().startswith(("utf", "u"))
        given, mark = (found or encoding, mark) if marked else (encoding, b"")
        try:
            return data[len(mark) :].decode(given), mark, given
        except LookupError:
            raise ValueError(
                f"`encoding` {encoding!r} is not known; use utf-8, utf-16, latin-1 or another "
                "encoding of Python."
            ) from None
        except UnicodeError as error:
            raise DatasetFormatError(
                f"the file is not {encoding} ({error}); pass another `encoding`", file=str(path)
            ) from error
    if found is None and b"\0" in data[:1000]:
        # Latin letters in UTF-16 have a zero byte before or after them.
        found = "utf-16-be" if data[:1] == b"\0" else "utf-16-le"
    try:
        return data[len(mark) :].decode(found or "utf-8"), mark, found or "utf-8"
    except UnicodeError as error:
        if found is not None:
            raise DatasetFormatError(
                f"the file looks like {found[:6]} but is not ({error}); pass `encoding`",
                file=str(path),
            ) from error
    # Windows writes other characters than Latin-1 in a few places, and those are letters.
    text = data.decode("cp1252", errors="replace")
    if "\ufffd" in text:
        return data.decode("latin-1"), b"", "latin-1"
    return text, b"", "cp1252"


def _find_delimiter(text: str, path: Path) -> str:
    """Return the delimiter that gives all first records the same number of cells."""
    first = _first_record(text)
    candidates = [sign for sign in _DELIMITERS if sign in first]
    even = [sign for sign in candidates if _is_even(text, sign)]
    if len(even) == 1:
        return even[0]
    if len(even) > 1:
        names = " and ".join(_DELIMITERS[sign] for sign in even)
        raise DatasetFormatError(
            f"the cells may be separated by {names}; pass `delimiter`", file=str(path)
        )
    # No delimiter fits: read with the most frequent one, which says where the records differ.
    return max(candidates, key=first.count, default=",")


def _first_record(text: str) -> str:
    """Return the text up to the first line break that is not within quotes."""
    quotes = begin = 0
    for line in io.StringIO(text, newline=""):
        begin += len(line)
        quotes += line.count('"')
        if quotes % 2 == 0:
            return text[:begin]
    return text


def _is_even(text: str, sign: str) -> bool:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sign)
    lengths = set()
    try:
        for record, _ in zip(reader, range(_SAMPLE), strict=False):
            if record:
                lengths.add(len(record))
    except csv.Error:
        return False
    return len(lengths) == 1 and lengths != {1}


def _parse(text: str, delimiter: str, path: Path) -> tuple[list[str], list[list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    columns: list[list[str]] = []
    # Equal cells share one text: most tables repeat a few values.
    same: dict[str, str] = {}
    try:
        for record in reader:
            if not record:
                continue
            if not header:
                header = record
                columns = empty_columns(header, str(path))
                continue
            if len(record) != len(header):
                raise DatasetFormatError(
                    f"the header has {len(header)} cells, but this line has {len(record)}; pass "
                    "`delimiter` if the cells are separated in another way, or mend the line",
                    file=str(path),
                    line=reader.line_num,
                )
            for column, cell in zip(columns, record, strict=True):
                stripped = cell.strip()
                column.append(same.setdefault(stripped, stripped))
    except csv.Error as error:
        raise DatasetFormatError(
            f"the line cannot be read ({error}); check its quotes", file=str(path),
            line=reader.line_num,
        ) from error  # fmt: skip
    return header, columns


# Words of names are features if enough names share them.
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_FEWEST_NAMES = 3


def has_recurring_words(names: Collection[str]) -> bool:
    """Tell whether the words of names, such as those of files, say what rows have in common.

    Parameters
    ----------
    names : collection of str
        Names, which differ from each other.

    Returns
    -------
    bool
        Whether half of the names have a word that at least three have, and at most half of all.

    Examples
    --------
    >>> has_recurring_words(["sea-01.jpg", "sea-02.jpg", "sea-03.jpg", "bay-01.png", "bay-02.png"])
    False
    >>> has_recurring_words([f"{place} {i}" for place in ("sea", "bay") for i in range(3)])
    True
    """
    words = [set(_LETTERS.findall(name.casefold())) for name in names]
    counts = Counter(word for found in words for word in found)
    most = len(words) / 2
    telling = {word for word, n in counts.items() if _FEWEST_NAMES <= n <= most}
    return sum(bool(found & telling) for found in words) >= most
