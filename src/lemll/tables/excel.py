"""Read a sheet of an Excel file; its parts are unpacked and counted before they are parsed."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from lemll._files import Budget
from lemll.exceptions import DatasetFormatError, import_extra
from lemll.tables.text import CELL_BYTES, Cells, cell_text, empty_columns

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
