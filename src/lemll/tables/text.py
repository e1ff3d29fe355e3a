"""Read delimited text as people have it: any usual encoding, delimiter and decimal mark."""

from __future__ import annotations

import codecs
import csv
import io
from pathlib import Path
from typing import NamedTuple

from lemll.exceptions import DatasetFormatError
from lemll.tables.cells import Cells, empty_columns

__all__ = ["OpenText", "open_text", "read_text"]

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
        raise ValueError(f"--delimiter must be one character, got {delimiter!r}.")
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
                f"--encoding {encoding!r} is not known; use utf-8, utf-16, latin-1 or another "
                "encoding of Python."
            ) from None
        except UnicodeError as error:
            raise DatasetFormatError(
                f"the file is not {encoding} ({error}); pass another --encoding", file=str(path)
            ) from error
    if found is None and b"\0" in data[:1000]:
        # Latin letters in UTF-16 have a zero byte before or after them.
        found = "utf-16-be" if data[:1] == b"\0" else "utf-16-le"
    try:
        return data[len(mark) :].decode(found or "utf-8"), mark, found or "utf-8"
    except UnicodeError as error:
        if found is not None:
            raise DatasetFormatError(
                f"the file looks like {found[:6]} but is not ({error}); pass --encoding",
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
                    "--delimiter if the cells are separated in another way, or mend the line",
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
