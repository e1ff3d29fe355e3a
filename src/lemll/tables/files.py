"""Read a table from a file: CSV, TSV, Parquet or Excel."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lemll._formulas import without_guard
from lemll._plain_files import check_plain
from lemll._types import MatrixLike
from lemll.exceptions import DatasetFormatError, import_extra
from lemll.tables.text import is_gap, is_number, read_cells

__all__ = ["SUFFIXES", "Frame", "Table", "read_table"]

# A frame of pandas, which has no published types.
Frame = MatrixLike

SUFFIXES = (".csv", ".tsv", ".tab", ".parquet", ".xlsx", ".xlsm")


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is in a file.

    Attributes
    ----------
    frame : pandas.DataFrame
        One column per column of the file. Cells of text files are text; missing cells are None.
    source : str
        The name of the file, for messages.
    notes : tuple of str
        How the file was read, where it was not obvious: its encoding, delimiter, decimal mark.
    """

    frame: Frame
    source: str
    notes: tuple[str, ...] = ()


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
    encoding, delimiter, decimal : str, optional
        For text: the encoding, the character between the cells, and the decimal mark. By default
        the content of the file decides, and doubt is an error.
    sheet : str, optional
        For Excel: the sheet. It is needed if the file has more than one.
    keep : sequence of str, default=()
        Columns to keep as they are: no cell except an empty one is missing, and a comma is not a
        decimal mark. Name columns with tags or ids here.

    Returns
    -------
    Table
        The cells, and notes about how they were read.

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
    text = suffix in (".csv", ".tsv", ".tab")
    given = {"--encoding": encoding, "--delimiter": delimiter, "--decimal": decimal}
    wrong = [name for name, value in given.items() if value is not None and not text]
    wrong += ["--sheet"] if sheet is not None and not suffix.startswith(".xls") else []
    if wrong:
        raise ValueError(f"{path}: {wrong[0]} has no meaning for a {suffix} file; leave it out.")
    if text:
        cells = read_cells(
            path,
            encoding=encoding,
            delimiter="\t" if delimiter is None and suffix != ".csv" else delimiter,
            decimal=decimal,
            keep=keep,
        )
        header = _check_header(cells.header, path)
        columns = {
            name: [_cell(row[j], name in keep) for row in cells.rows]
            for j, name in enumerate(header)
        }
        frame = pandas.DataFrame(columns, dtype=object)
        notes = cells.notes
    else:
        frame = _read_parquet(path) if suffix == ".parquet" else _read_excel(path, sheet)
        notes = []
    if frame.shape[0] == 0:
        raise DatasetFormatError("the table has no rows below its header", file=str(path))
    return Table(frame, str(path), tuple(notes))


def _cell(text: str, kept: bool) -> str | None:
    return None if (text == "" if kept else is_gap(text)) else text


def _check_header(header: Sequence[object], path: Path) -> list[str]:
    """Return the names of the columns, or refuse a header that is none."""
    # Headings of spreadsheets have line breaks, which nobody can type as an option.
    names = ["" if _absent(name) else without_guard(" ".join(str(name).split())) for name in header]
    if all(is_number(name.replace(",", ".")) for name in names):
        raise DatasetFormatError(
            "the first line must name the columns, but it holds numbers; add a line with names",
            file=str(path),
            token=names[0],
        )
    # The index of a frame is often written as a first column without a name.
    names = [name or f"column {j + 1}" for j, name in enumerate(names)]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DatasetFormatError(
            "two columns have the same name; rename one of them", file=str(path), token=twice
        )
    return names


def _absent(name: object) -> bool:
    return name is None or (isinstance(name, float) and math.isnan(name))


def _read_parquet(path: Path) -> Frame:
    parquet = import_extra("pyarrow.parquet", "store", "Reading Parquet")
    try:
        # The metadata of pandas would hide an index; as a column it may hold the ids.
        frame = parquet.read_table(path).to_pandas(ignore_metadata=True)
    except (ValueError, OSError, KeyError) as error:
        raise DatasetFormatError(
            f"the file cannot be read as Parquet ({error}); write it again", file=str(path)
        ) from error
    frame.columns = _check_header(list(frame.columns), path)
    return frame


def _read_excel(path: Path, sheet: str | None) -> Frame:
    pandas = import_extra("pandas", "tables", "Reading a table")
    import_extra("openpyxl", "excel", "Reading Excel")
    try:
        with pandas.ExcelFile(path, engine="openpyxl") as book:
            names = [str(name) for name in book.sheet_names]
            if sheet is None and len(names) > 1:
                raise _SheetError(f"has the sheets {', '.join(names)}; choose one with --sheet")
            if sheet is not None and sheet not in names:
                raise _SheetError(f"has no sheet {sheet!r}; it has {', '.join(names)}")
            cells = pandas.read_excel(book, sheet_name=sheet or names[0], header=None, dtype=object)
    except _SheetError as error:
        raise DatasetFormatError(f"the file {error}", file=str(path)) from None
    except Exception as error:
        # A damaged file can fail in the archive, in its XML or in the library, each in its own way.
        raise DatasetFormatError(
            f"the file cannot be read as Excel ({error}); save it again", file=str(path)
        ) from error
    if not len(cells):
        raise DatasetFormatError("the sheet is empty; expected a header line", file=str(path))
    frame = cells.iloc[1:].reset_index(drop=True)
    frame.columns = _check_header(cells.iloc[0].tolist(), path)
    return frame


class _SheetError(Exception):
    """The sheet is not clear."""
