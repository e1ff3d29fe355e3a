"""Read a table from a file: CSV, TSV, Parquet or Excel.

The parts of an Excel file are unpacked and counted before they are parsed.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lemll._files import Budget, check_plain, without_guard
from lemll._types import FloatArray, Frame
from lemll.exceptions import DatasetFormatError, import_extra
from lemll.tables.parquet import read_parquet
from lemll.tables.text import (
    CELL_BYTES,
    Cells,
    as_number,
    cell_text,
    empty_columns,
    is_gap,
    read_text,
    settle_decimals,
)

_CHUNK_BYTES = 2**18
# XML of a sheet is about ten times larger than its packed form. A megabyte takes seconds to parse.
_MAX_RATIO, _FLOOR_BYTES = 50, 2**20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# A document type can define entities that expand without end. XML in UTF-16 would hide it.
_REFUSED = re.compile(rb"<!DOCTYPE|<!ENTITY|^\xff\xfe|^\xfe\xff|^<\0|^\0<")
_SHEET = re.compile(rb"[<:]sheet[\s/]")
_MOST_SHEETS = 1000
# A cell below so many empty rows is a slip of the hand, not a row of the table.
_MOST_EMPTY_ROWS = 1000


class _OddFile(Exception):
    """The file is readable, but it does not hold one table."""


def read_excel(path: Path, sheet: str | None, budget: Budget) -> Cells:
    """Read the cells of a sheet as text."""
    openpyxl = import_extra("openpyxl", "excel", "Reading Excel")
    try:
        with path.open("rb") as raw:
            _check_parts(raw, str(path))
            book = openpyxl.load_workbook(raw, read_only=True, data_only=True, keep_links=False)
            rows = _rows(_chosen(book, sheet))
            _, header = next(rows, (0, []))
            if not header:
                raise _OddFile("sheet is empty; expected a header line")
            columns = empty_columns(header, str(path))
            for number, row in rows:
                if len(row) > len(header):
                    place = f"{openpyxl.utils.get_column_letter(len(row))}{number}"
                    raise _OddFile(
                        f"sheet has {row[-1][:40]!r} in cell {place}, but its header names "
                        f"{len(header)} columns; name the column or delete the cell"
                    )
                budget.charge(CELL_BYTES * len(header) + sum(map(len, row)))
                for j, column in enumerate(columns):
                    column.append(row[j] if j < len(row) else "")
    except DatasetFormatError:
        raise
    except _OddFile as error:
        raise DatasetFormatError(f"the {error}", file=str(path)) from None
    except Exception as error:
        # A damaged file can fail in the archive, in its XML or in the library, each in its own way.
        raise DatasetFormatError(
            f"the file cannot be read as Excel ({error}); save it again", file=str(path)
        ) from error
    return Cells(header, columns, [])


def _check_parts(raw: BinaryIO, file: str) -> None:
    """Refuse parts that unpack to too much, and XML that is more than data."""
    packed = raw.seek(0, 2)
    budget = Budget(
        file, packed, max(_FLOOR_BYTES, _MAX_RATIO * packed), remedy="save the sheet as CSV"
    )
    sheets = 0
    with zipfile.ZipFile(raw) as archive:
        for member in archive.infolist():
            if member.compress_type not in _METHODS:
                raise _OddFile(f"file packs {member.filename[:60]!r} in an unusual way; save it "
                               "again")  # fmt: skip
            with archive.open(member) as part:
                before = b""
                while chunk := part.read(_CHUNK_BYTES):
                    budget.charge_text(len(chunk))
                    if _REFUSED.search(before + chunk):
                        raise _OddFile("file has a document type or XML in UTF-16; save it again")
                    sheets += len(_SHEET.findall(chunk))
                    before = chunk[-16:]
    if sheets > _MOST_SHEETS:
        raise _OddFile(f"file has more than {_MOST_SHEETS} sheets; save one of them as CSV")


def _chosen(book: Any, sheet: str | None) -> Any:
    names = [str(name) for name in book.sheetnames]
    if sheet is None and len(names) > 1:
        raise _OddFile(f"file has the sheets {', '.join(names)}; choose one with `sheet`")
    if sheet is not None and sheet not in names:
        raise _OddFile(f"file has no sheet {sheet!r}; it has {', '.join(names)}")
    found = book[sheet or names[0]]
    # The file says how large the sheet is, and need not be right.
    found.reset_dimensions()
    return found


def _rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield number and cells of each row from the header on, without empty cells at its end."""
    empty = 0
    begun = False
    for number, values in enumerate(sheet.iter_rows(values_only=True), start=1):
        row = [cell_text(value) for value in values]
        while row and not row[-1]:
            row.pop()
        if not row:
            empty += 1
            continue
        if empty > _MOST_EMPTY_ROWS:
            raise _OddFile(
                f"sheet has a cell in row {number}, below {empty} empty rows; delete what is not "
                "part of the table"
            )
        if begun:
            yield from ((number, []) for _ in range(empty))
        yield number, row
        begun, empty = True, 0


# The name of the column with the rows of the array beside a table.
VECTORS = "vectors"
SUFFIXES = (".csv", ".tsv", ".tab", ".parquet", ".xlsx", ".xlsm")


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is in a file.

    Attributes
    ----------
    frame : pandas.DataFrame
        One column per column of the file, for the features. Cells are text; missing ones are None.
    source : str
        The name of the file, for messages.
    notes : tuple of str
        How the file was read, where it was not obvious: its encoding, delimiter, decimal mark.
    cells : mapping of str to list of str, optional
        The cells of each column as they are written, for labels and ids. Columns that it does not
        name are only in the frame.
    """

    frame: Frame
    source: str
    notes: tuple[str, ...] = ()
    cells: Mapping[str, list[str]] | None = None


def read_table(
    path: str | Path,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
    keep: Sequence[str] = (),
) -> Table:
    r"""Read a table with named columns of any kind.

    Parameters
    ----------
    path : str or Path
        ``.csv``, ``.tsv`` or ``.tab`` (text with any usual encoding, delimiter and decimal mark),
        ``.parquet`` (extra ``store``), ``.xlsx`` or ``.xlsm`` (extra ``excel``).
    encoding, delimiter : str, optional
        For text files: the encoding, and the character between the cells. By default the content of
        the file decides, and doubt is an error.
    decimal : str, optional
        The decimal mark of numbers that are written as text. By default the content decides.
    sheet : str, optional
        For Excel: the sheet. It is needed if the file has more than one.
    keep : sequence of str, default=()
        Columns to keep as they are: no cell except an empty one is missing, and a comma is not a
        decimal mark. Name columns with tags or ids here.

    Returns
    -------
    Table
        The cells, and notes about how they were read. If an array has the name of the table with
        the suffix ``.npy``, its rows are the column ``vectors``: features such as embeddings.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from lemll.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "photos.csv"
    ...     _ = path.write_text("name;width\na;1,5\nb;\n", encoding="utf-16")
    ...     table = read_table(path)
    >>> table.notes
    ('read as utf-16', 'semicolon between the cells', 'decimal commas')
    >>> table.frame["width"].tolist()
    ['1.5', None]
    """
    path = Path(path)
    pandas = import_extra("pandas", "tables", "Reading a table")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path}: a table must be one of {', '.join(SUFFIXES)}, got {suffix!r}; save it as "
            "one of these."
        )
    check_plain(path.stat().st_mode)
    text = is_text(path)
    given = {"encoding": encoding, "delimiter": delimiter}
    wrong = [name for name, value in given.items() if value is not None and not text]
    wrong += ["sheet"] if sheet is not None and not suffix.startswith(".xls") else []
    if wrong:
        raise ValueError(f"{path}: `{wrong[0]}` has no meaning for a {suffix} file; leave it out.")
    if text:
        cells = read_text(path, encoding=encoding, delimiter=delimiter)
    else:
        budget = Budget(str(path), path.stat().st_size, None, remedy="save the table as CSV")
        is_parquet = suffix == ".parquet"
        cells = read_parquet(path, budget) if is_parquet else read_excel(path, sheet, budget)
    header = _check_header(cells, path)
    written = dict(zip(header, cells.columns, strict=True))
    cells = cells._replace(header=header, columns=list(cells.columns))
    settle_decimals(cells, decimal, keep, str(path))
    columns = {
        name: _with_gaps(column, name in keep)
        for name, column in zip(header, cells.columns, strict=True)
    }
    frame, notes = pandas.DataFrame(columns, dtype=object), list(cells.notes)
    beside = path.with_suffix(".npy")
    if beside.exists():
        vectors = _read_vectors(beside, frame)
        frame[VECTORS] = pandas.Series(list(vectors), dtype=object)
        notes.append(f"{beside.name} gives {vectors.shape[1]} features, in the column {VECTORS}")
    return Table(frame, str(path), tuple(notes), written)


def _read_vectors(path: Path, frame: Frame) -> FloatArray:
    """Read the array beside a table. It is mapped, so its size is at most that of the file."""
    check_plain(path.stat().st_mode)
    try:
        vectors = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:
        # NumPy fails in many ways on a damaged file.
        raise DatasetFormatError(
            f"it cannot be read as an array ({error}); save it with numpy.save, or move it away",
            file=str(path),
        ) from error
    if vectors.ndim != 2 or vectors.dtype.kind not in "iuf" or len(vectors) != len(frame):
        raise DatasetFormatError(
            f"it holds an array of {vectors.dtype} of the shape {vectors.shape}, but the table "
            f"beside it needs numbers in {len(frame)} rows; save it again, or move it away",
            file=str(path),
        )
    if VECTORS in frame.columns:
        raise DatasetFormatError(
            f"its rows would be the column {VECTORS!r}, which the table has; rename the column",
            file=str(path),
        )
    return np.array(vectors, dtype=np.float64)


def is_text(path: Path) -> bool:
    """Return whether a file is text with delimiters, by its name."""
    return path.suffix.lower() in (".csv", ".tsv", ".tab")


def _with_gaps(column: list[str], kept: bool) -> list[str | None]:
    """Return cells with None where there is no value; a kept column only has empty gaps."""
    gaps = {text for text in set(column) if (text == "" if kept else is_gap(text))}
    return [None if text in gaps else text for text in column]


def _check_header(cells: Cells, path: Path) -> list[str]:
    """Return the names of the columns, or refuse a header that is none and a table without rows."""
    # Headings of spreadsheets have line breaks, which nobody can type as an option.
    names = [without_guard(" ".join(name.split())) for name in cells.header]
    if all(as_number(name.replace(",", ".")) is not None for name in names):
        raise DatasetFormatError(
            "the first line must name the columns, but it holds numbers; add a line with names",
            file=str(path),
            token=names[0] if names else "",
        )
    # The index of a frame is often written as a first column without a name.
    names = [name or f"column {j + 1}" for j, name in enumerate(names)]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DatasetFormatError(
            "two columns have the same name; rename one of them", file=str(path), token=twice
        )
    if not cells.columns[0]:
        raise DatasetFormatError("the table has no rows below its header", file=str(path))
    return names
