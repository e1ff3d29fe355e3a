"""Read and write CSV and Parquet tables, in which some named columns are labels."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lemll._files import NAME_BYTES, Budget
from lemll._types import BoolArray, Settings
from lemll._validation import is_sparse
from lemll.datasets._columns import (
    Kind,
    Labels,
    Missing,
    check_kind,
    check_missing,
    has_odd_characters,
    resolve_labels,
    to_number,
)
from lemll.datasets._streams import (
    LineBlocks,
    atomic_write,
    file_size,
    plain_suffix,
    refuse_compression,
)
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError, import_extra
from lemll.tables import open_parquet

# Column names, cells, and the metadata of the file about the data set.
Table = tuple[list[str], npt.NDArray[np.float64], Settings]
_BATCH_CELLS = 2**15


def read_csv(blocks: LineBlocks, may_be_empty: Callable[[list[str]], BoolArray]) -> Table:
    """Read a table: its column names and its cells as float64.

    `may_be_empty` is called with the column names, and returns in which columns an empty cell means
    NaN.
    """
    file = blocks.file
    reader = csv.reader(_text_lines(blocks), strict=True)
    try:
        columns = next(reader, None)
        if not columns:
            raise DatasetFormatError("the file is empty; expected a header line", file=file)
        blocks.budget.charge(NAME_BYTES * len(columns))
        cells = _Cells(may_be_empty(columns), blocks.budget)
        for row in reader:
            if row:
                cells.add(row, reader.line_num)
    except csv.Error as error:
        raise DatasetFormatError(
            f"not well-formed CSV: {error}", file=file, line=reader.line_num
        ) from error
    return columns, cells.finish(), {}


def _text_lines(blocks: LineBlocks) -> Iterator[str]:
    for block in blocks:
        try:
            text = block.decode("utf-8-sig" if blocks.line == 1 else "utf-8")
        except UnicodeDecodeError:
            text = block.decode("latin-1")
        yield from io.StringIO(text, newline="\n")


class _Cells:
    """Collects rows and converts many of them to numbers at once, which is faster."""

    def __init__(self, may_be_empty: BoolArray, budget: Budget) -> None:
        self.width = len(may_be_empty)
        self.budget = budget
        self.may_be_empty = may_be_empty
        self.texts: list[str] = []
        self.lines: list[int] = []
        self.chunks: list[npt.NDArray[np.float64]] = []

    def add(self, row: list[str], line: int) -> None:
        if len(row) != self.width:
            raise DatasetFormatError(
                f"the row has {len(row)} cells, but the header has {self.width}",
                file=self.budget.file,
                line=line,
            )
        self.texts += row
        self.lines.append(line)
        if len(self.texts) >= _BATCH_CELLS:
            self._convert()

    def finish(self) -> npt.NDArray[np.float64]:
        self._convert()
        if not self.chunks:
            raise DatasetFormatError("no row after the header line", file=self.budget.file)
        return np.concatenate(self.chunks).reshape(-1, self.width)

    def _convert(self) -> None:
        if not self.texts:
            return
        self.budget.charge(8 * len(self.texts))
        try:
            if has_odd_characters("".join(self.texts)):
                raise ValueError
            values = np.array(self.texts, dtype=np.float64)
        except ValueError:
            values = np.array([to_number(text) for text in self.texts], dtype=np.float64)
        for place in np.flatnonzero(~np.isfinite(values)).tolist():
            if self.texts[place].strip() or not self.may_be_empty[place % self.width]:
                raise self._not_a_number(place)
        self.chunks.append(values)
        self.texts.clear()
        self.lines.clear()

    def _not_a_number(self, place: int) -> DatasetFormatError:
        row, column = divmod(place, self.width)
        text = self.texts[place]
        hint = "" if text.strip() else "; pass `missing='nan'` to keep empty cells as NaN"
        return DatasetFormatError(
            f"expected a finite number{hint}",
            file=self.budget.file,
            line=self.lines[row],
            column=column + 1,
            token=text,
        )


METADATA_KEY = b"lemll"


def read_parquet(path: Path, max_expanded_bytes: int | None) -> Table:
    """Read a table: its column names, its cells as float64, and the metadata written by lemll."""
    refuse_compression(path)
    budget = Budget(str(path), file_size(path), max_expanded_bytes)
    try:
        with open_parquet(path, budget, cell_bytes=8) as (file, batches):
            columns = list(file.schema_arrow.names)
            known = _known(file.schema_arrow.metadata or {}, path)
            _check_types(file.schema_arrow, path)
            cells = np.empty((file.metadata.num_rows, len(columns)))
            filled = 0
            for batch in batches:
                stop = filled + batch.num_rows
                for j, column in enumerate(batch.columns):
                    cells[filled:stop, j] = column.to_numpy(zero_copy_only=False)
                filled = stop
    except DatasetFormatError:
        raise
    except Exception as error:
        raise DatasetFormatError(f"not a readable Parquet file: {error}", file=str(path)) from error
    if not cells.size:
        raise DatasetFormatError("the table has no rows or no columns", file=str(path))
    return columns, cells, known


def names_its_labels(path: str | Path) -> bool:
    """Return whether a Parquet file says which of its columns are labels, as those of lemll do.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    bool
        False also if the file does not exist or cannot be read.
    """
    parquet = import_extra("pyarrow.parquet", "store", "Reading Parquet")
    try:
        known = _known(parquet.read_schema(path).metadata or {}, Path(path))
    except (ValueError, OSError):
        return False
    return "labels" in known


def _check_types(schema: Any, path: Path) -> None:
    types = import_extra("pyarrow.types", "store", "Reading Parquet")
    for field in schema:
        kind = field.type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise DatasetFormatError(
                f"column {field.name[:40]!r} must hold numbers; encode text columns first",
                file=str(path),
                token=str(kind),
            )


def _known(metadata: dict[bytes, bytes], path: Path) -> Settings:
    """Return the metadata of `write_parquet`: name, kind and labels."""
    known = json.loads(metadata.get(METADATA_KEY, b"{}"))
    sound = (
        isinstance(known, dict)
        and isinstance(known.get("name", ""), str)
        and known.get("kind", "logical") in ("logical", "distribution")
        and isinstance(known.get("labels", []), list)
        and all(isinstance(label, str) for label in known.get("labels", []))
    )
    if not sound:
        raise DatasetFormatError(
            "the metadata about the labels are broken; expected name, kind and labels",
            file=str(path),
            token=str(known),
        )
    return dict(known)


_MAX_DENSE_BYTES = 2**31


def read_table(
    path: str | Path,
    labels: Labels | None = None,
    *,
    kind: Kind = "auto",
    missing: Missing = "error",
    name: str | None = None,
    max_expanded_bytes: int | None = None,
) -> Dataset:
    """Read a CSV or Parquet table with named columns, some of which are labels.

    Parameters
    ----------
    path : str or Path
        A ``.csv`` file (also compressed), comma separated, with a header line; or a ``.parquet``
        file (extra ``store``).
    labels : str, Path, int or sequence of str, optional
        The name or the names of the label columns; or their number, if they are the first columns
        (positive) or the last columns (negative); or the path of a Mulan XML file. A Parquet file
        written by lemll contains this information.
    kind : {"auto", "logical", "distribution"}, default="auto"
        The content of the label columns. By default, a Parquet file written by lemll contains this
        information. In other files, labels are logical if all cells are 0 or 1.
    missing : {"error", "nan"}, default="error"
        Whether an empty cell of a feature is an error or becomes NaN.
    name : str, optional
        The name of the data set. By default the name of the file.
    max_expanded_bytes : int, optional
        Largest size of a compressed file after decompression, and of the arrays. By default 200
        times the size of the file, but at least 2 MiB for text and 256 MiB for arrays.

    Returns
    -------
    Dataset
        `X` is dense. Features and labels are in the order of the table.
    """
    check_kind(kind)
    check_missing(missing)
    path = Path(path)

    def label_columns(columns: list[str], labels: Labels | None) -> BoolArray:
        twice = _repeated(columns)
        if twice is not None:
            raise DatasetFormatError("a column name occurs twice", file=str(path), token=twice)
        if labels is None:
            raise DatasetFormatError(
                "cannot tell which columns are labels; pass `labels` (their names, or a count)",
                file=str(path),
            )
        return resolve_labels(columns, labels, str(path))

    match plain_suffix(path):
        case ".csv":
            # An empty cell of a label means that nobody observed it.
            with LineBlocks(path, max_expanded_bytes) as blocks:
                columns, cells, known = read_csv(
                    blocks, lambda names: label_columns(names, labels) | (missing == "nan")
                )
        case ".parquet":
            columns, cells, known = read_parquet(path, max_expanded_bytes)
        case suffix:
            raise ValueError(f"read_table reads .csv and .parquet, got {suffix!r} ({path})")
    is_label = label_columns(columns, known.get("labels") if labels is None else labels)
    degrees = cells[:, is_label]
    if kind == "auto":
        # A distribution cannot contain -1. Treated as logical labels, -1 gives a clear error.
        binary = (np.isin(degrees, (-1, 0, 1)) | np.isnan(degrees)).all()
        kind = known.get("kind", "logical" if binary else "distribution")
    return Dataset(
        X=cells[:, ~is_label],
        Y=degrees if kind == "logical" else None,
        D=degrees if kind == "distribution" else None,
        feature_names=[c for c, label in zip(columns, is_label, strict=True) if not label],
        label_names=[c for c, label in zip(columns, is_label, strict=True) if label],
        name=name or known.get("name") or path.name.partition(".")[0],
        source=str(path),
        allow_missing=missing == "nan",
    )


def _repeated(columns: Sequence[str]) -> str | None:
    return next((column for column, count in Counter(columns).items() if count > 1), None)


def _columns(dataset: Dataset) -> list[str]:
    columns = [*dataset.feature_names, *dataset.label_names]
    twice = _repeated(columns)
    if twice is not None:
        raise ValueError(
            f"a table needs different column names, but {twice!r} occurs twice; rename one column"
        )
    size = 8 * len(dataset) * len(columns)
    if is_sparse(dataset.X) and size > _MAX_DENSE_BYTES:
        raise ValueError(
            f"as a dense table this set would take {size} bytes; write NPZ or ARFF instead"
        )
    return columns


def write_csv(dataset: Dataset, path: str | Path) -> None:
    """Write features, then labels, as comma-separated text with a header line.

    Numbers are written with enough digits to read back exactly the same values. The file appears
    only when it is complete. Its suffix selects the compression.

    Parameters
    ----------
    dataset : Dataset
        The data set. A sparse `X` is written as a dense table.
    path : str or Path
        For example ``tags.csv`` or ``tags.csv.gz``.
    """
    columns = _columns(dataset)
    with atomic_write(Path(path)) as file:
        buffer = io.StringIO(newline="")
        # Quote all names, because a header with one empty name would be a blank line.
        csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(columns)
        file.write(buffer.getvalue().encode())
        for i in range(len(dataset)):
            features = dataset.X[[i]].toarray()[0] if is_sparse(dataset.X) else dataset.X[i]
            cells = ["" if math.isnan(value) else repr(float(value)) for value in features]
            cells += map(_label_text, dataset.labels[i])
            file.write((",".join(cells) + "\n").encode())


def _label_text(value: np.generic) -> str:
    """Write a label: an unknown one as an empty cell, a logical one without a fraction."""
    number = value.item()
    if isinstance(number, float):
        if math.isnan(number):
            return ""
        if number in (0.0, 1.0):
            return repr(int(number))
    return repr(number)


def write_parquet(dataset: Dataset, path: str | Path) -> None:
    """Write features, then labels, as a Parquet table, with metadata that names the labels.

    This needs the extra ``store``.

    Parameters
    ----------
    dataset : Dataset
        The data set. A sparse `X` is written as a dense table.
    path : str or Path
        The file to write.
    """
    pyarrow = import_extra("pyarrow", "store", "Writing Parquet")
    parquet = import_extra("pyarrow.parquet", "store", "Writing Parquet")
    refuse_compression(Path(path))
    columns = _columns(dataset)
    X = dataset.X.toarray() if is_sparse(dataset.X) else dataset.X
    arrays = [*(X[:, j] for j in range(X.shape[1])), *dataset.labels.T]
    table = pyarrow.table([pyarrow.array(array) for array in arrays], names=columns)
    known = {
        "name": dataset.name,
        "kind": "logical" if dataset.D is None else "distribution",
        "labels": list(dataset.label_names),
    }
    table = table.replace_schema_metadata({METADATA_KEY: json.dumps(known).encode()})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    with atomic_write(Path(path)) as file:
        file.write(buffer.getvalue())
