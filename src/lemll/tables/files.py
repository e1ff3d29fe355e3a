"""Read a table from a file: CSV, TSV, Parquet or Excel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lemll._files import Budget, check_plain, without_guard
from lemll._types import MatrixLike
from lemll.exceptions import DatasetFormatError, import_extra
from lemll.tables.excel import read_excel
from lemll.tables.parquet import read_parquet
from lemll.tables.text import Cells, as_number, is_gap, read_text, settle_decimals

# A frame of pandas, which has no published types.
Frame = MatrixLike

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
        The cells of each column as they are written, for labels and ids. Without it, the frame has
        them.
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
    return Table(pandas.DataFrame(columns, dtype=object), str(path), tuple(cells.notes), written)


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
