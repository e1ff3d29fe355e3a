"""Read delimited text as people have it: any usual encoding, delimiter and decimal mark."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lemll._formulas import without_guard
from lemll.exceptions import DatasetFormatError

__all__ = ["Cells", "is_gap", "is_number", "read_cells"]

# What people write into a cell without a value, in any mixture of small and capital letters.
_GAPS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?"})

# The longer marks come first: the mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
# These records decide the delimiter.
_SAMPLE = 200
_WITH_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?\d+")
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")


def is_gap(text: str) -> bool:
    """Return whether the text of a cell says that there is no value."""
    return text.lower() in _GAPS


class Cells(NamedTuple):
    """The cells of a text file.

    Attributes
    ----------
    header : list of str
        The first record.
    rows : list of list of str
        The other records, each as long as the header.
    notes : list of str
        How the file was read, where it was not obvious.
    """

    header: list[str]
    rows: list[list[str]]
    notes: list[str]


def read_cells(
    path: Path,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    keep: Sequence[str] = (),
) -> Cells:
    """Read a delimited text file.

    Parameters
    ----------
    path : Path
        The file.
    encoding, delimiter, decimal : str, optional
        The encoding, the character between the cells, and the decimal mark. By default the
        content of the file decides, and doubt is an error.
    keep : sequence of str
        Columns whose commas are never decimal marks: tags and ids.

    Returns
    -------
    Cells
        Header and rows. Decimal commas have become points.
    """
    notes: list[str] = []
    text = _decode(path, encoding, notes)
    if not text.strip():
        raise DatasetFormatError("the file is empty; expected a header line", file=str(path))
    if delimiter is None:
        delimiter = _find_delimiter(text, path)
        if delimiter != ",":
            notes.append(f"{_DELIMITERS[delimiter]} between the cells")
    elif len(delimiter) != 1:
        raise ValueError(f"--delimiter must be one character, got {delimiter!r}.")
    header, rows = _parse(text, delimiter, path)
    cells = Cells(header, rows, notes)
    _settle_decimals(cells, decimal, set(keep), path)
    return cells


def _decode(path: Path, encoding: str | None, notes: list[str]) -> str:
    data = path.read_bytes()
    if encoding is not None:
        try:
            return data.decode(encoding)
        except LookupError:
            raise ValueError(
                f"--encoding {encoding!r} is not known; use utf-8, utf-16, latin-1 or another "
                "encoding of Python."
            ) from None
        except UnicodeError as error:
            raise DatasetFormatError(
                f"the file is not {encoding} ({error}); pass another --encoding", file=str(path)
            ) from error
    found = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if found is None and b"\0" in data[:1000]:
        # Latin letters in UTF-16 have a zero byte before or after them.
        found = "utf-16-be" if data[:1] == b"\0" else "utf-16-le"
    try:
        text = data.decode(found or "utf-8")
    except UnicodeError as error:
        if found is not None:
            raise DatasetFormatError(
                f"the file looks like {found} but is not ({error}); pass --encoding",
                file=str(path),
            ) from error
        found = "latin-1"
        # Windows writes other characters than Latin-1 in a few places, and those are letters.
        text = data.decode("cp1252", errors="replace")
        if "\ufffd" in text:
            text = data.decode(found)
    if found not in (None, "utf-8-sig"):
        notes.append(f"read as {found}")
    return text


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
            f"the cells may be separated by {names}; pass --delimiter", file=str(path)
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
    rows: list[list[str]] = []
    header: list[str] = []
    try:
        for record in reader:
            if not record:
                continue
            if not header:
                header = [without_guard(" ".join(cell.split())) for cell in record]
                continue
            if len(record) != len(header):
                raise DatasetFormatError(
                    f"the header has {len(header)} cells, but this line has {len(record)}; pass "
                    "--delimiter if the cells are separated in another way, or mend the line",
                    file=str(path),
                    line=reader.line_num,
                )
            rows.append([cell.strip() for cell in record])
    except csv.Error as error:
        raise DatasetFormatError(
            f"the line cannot be read ({error}); check its quotes", file=str(path),
            line=reader.line_num,
        ) from error  # fmt: skip
    return header, rows


def _settle_decimals(cells: Cells, decimal: str | None, keep: set[str], path: Path) -> None:
    """Write decimal commas as points, and numbers with commas between thousands without them."""
    if decimal not in (None, ".", ","):
        raise ValueError(f"--decimal must be '.' or ',', got {decimal!r}.")
    # An example of each kind of column, by which the file shows its habit.
    shown: dict[str, str] = {}
    with_commas: dict[int, str] = {}
    for j, name in enumerate(cells.header):
        given = [] if name in keep else [r[j] for r in cells.rows if not is_gap(r[j])]
        commas = [cell for cell in given if "," in cell]
        if not commas:
            points = next((cell for cell in given if "." in cell), None)
            if points is not None and all(is_number(cell) for cell in given):
                shown.setdefault(".", f"{name!r} ({points})")
            continue
        marks = all(_WITH_COMMA.fullmatch(c) or _WHOLE.fullmatch(c) for c in given)
        groups = all(_GROUPED.fullmatch(c) or is_number(c) for c in given)
        if marks or groups:
            sign = "either" if marks and groups else "," if marks else "."
            with_commas[j] = sign
            shown.setdefault(sign, f"{name!r} ({commas[0]})")
    if not with_commas:
        return
    if decimal is None and ("," in shown) == ("." in shown):
        example = " and ".join(shown[sign] for sign in (".", ",", "either") if sign in shown)
        raise DatasetFormatError(
            f"a comma may be a decimal mark or separate thousands: columns {example}; pass "
            "--decimal , or --decimal .",
            file=str(path),
        )
    decimal = decimal or ("," if "," in shown else ".")
    for j, sign in with_commas.items():
        if sign in (decimal, "either"):
            for row in cells.rows:
                row[j] = row[j].replace(",", "." if decimal == "," else "")
    cells.notes.append("decimal commas" if decimal == "," else "commas between thousands")


def is_number(cell: str) -> bool:
    """Return whether a cell can be read as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
