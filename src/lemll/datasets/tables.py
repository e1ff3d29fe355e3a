"""Tables with named columns, some of which are labels: CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lemll._validation import is_sparse
from lemll.datasets._streams import LineBlocks, atomic_write, plain_suffix
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError, import_extra

__all__ = ["read_table", "write_csv", "write_parquet"]

Kind = Literal["auto", "logical", "distribution"]
Table = tuple[list[str], Any, dict[str, Any]]

_MAX_DENSE_BYTES = 2**31
_METADATA_KEY = b"lemll"


def read_table(
    path: str | Path,
    labels: Sequence[str] | int | None = None,
    *,
    kind: Kind = "auto",
    missing: Literal["error", "nan"] = "error",
    name: str | None = None,
    max_expanded_bytes: int | None = None,
) -> Dataset:
    """Read a CSV or Parquet table whose label columns are named.

    Parameters
    ----------
    path : str or Path
        ``.csv`` (also compressed), comma separated, with a header line; or ``.parquet`` (extra
        ``store``).
    labels : sequence of str or int, optional
        Names of the label columns; or how many there are at the beginning, or, if negative, at the
        end. A Parquet file written by lemll knows them itself.
    kind : {"auto", "logical", "distribution"}, default="auto"
        What the label columns hold; by default logical labels if all cells are 0 or 1.
    missing : {"error", "nan"}, default="error"
        What to do with an empty cell of a feature.
    name : str, optional
        The set's name; by default the file's.
    max_expanded_bytes : int, optional
        Cap on a compressed file's decompressed size.

    Returns
    -------
    Dataset
        With dense `X`; features and labels in the table's order.
    """
    path = Path(path)
    if kind not in ("auto", "logical", "distribution"):
        raise ValueError(f"kind={kind!r} must be 'auto', 'logical' or 'distribution'")
    match plain_suffix(path):
        case ".csv":
            columns, cells, known = _read_csv(path, missing == "nan", max_expanded_bytes)
        case ".parquet":
            columns, cells, known = _read_parquet(path)
        case suffix:
            raise ValueError(f"read_table reads .csv and .parquet, got {suffix!r} ({path})")
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise DatasetFormatError("a column name occurs twice", file=str(path), token=twice)
    is_label = _label_mask(columns, known.get("labels") if labels is None else labels, path)
    degrees = cells[:, is_label]
    logical = kind == "logical" or (kind == "auto" and np.isin(degrees, (0, 1)).all())
    return Dataset(
        X=cells[:, ~is_label],
        Y=degrees if logical and known.get("kind") != "distribution" else None,
        D=None if logical and known.get("kind") != "distribution" else degrees,
        feature_names=[c for c, label in zip(columns, is_label, strict=True) if not label],
        label_names=[c for c, label in zip(columns, is_label, strict=True) if label],
        name=name or known.get("name") or path.name.partition(".")[0],
        source=str(path),
        allow_missing=missing == "nan",
    )


def _label_mask(columns: list[str], labels: Sequence[str] | int | None, path: Path) -> Any:
    if labels is None:
        raise DatasetFormatError(
            "cannot tell which columns are labels; pass labels= (their names, or a count)",
            file=str(path),
        )
    mask = np.zeros(len(columns), dtype=bool)
    if isinstance(labels, int):
        if labels == 0 or abs(labels) >= len(columns):
            raise DatasetFormatError(
                f"{labels} label columns asked for among {len(columns)}; want between 1 and "
                f"{len(columns) - 1} (negative: counted from the end)",
                file=str(path),
            )
        mask[labels:] = labels < 0
        mask[:labels] |= labels > 0
        return mask
    absent = [label for label in labels if label not in columns]
    if absent:
        raise DatasetFormatError(
            f"{len(absent)} of the {len(labels)} label columns are not in the table",
            file=str(path),
            token=absent[0],
        )
    return np.isin(columns, list(labels))


def _text_lines(blocks: LineBlocks) -> Iterator[str]:
    for block in blocks:
        try:
            text = block.decode("utf-8-sig" if blocks.line == 1 else "utf-8")
        except UnicodeDecodeError:
            text = block.decode("latin-1")
        yield from io.StringIO(text, newline="\n")


def _read_csv(path: Path, allow_missing: bool, max_expanded_bytes: int | None) -> Table:
    with LineBlocks(path, max_expanded_bytes) as blocks:
        reader = csv.reader(_text_lines(blocks), strict=True)
        try:
            columns = next(reader, None)
            if not columns:
                raise DatasetFormatError("the file is empty, want a header line", file=str(path))
            rows = [
                _csv_row(row, len(columns), reader.line_num, path, allow_missing)
                for row in reader
                if row
            ]
        except csv.Error as error:
            raise DatasetFormatError(
                f"not well-formed CSV: {error}", file=str(path), line=reader.line_num
            ) from error
    if not rows:
        raise DatasetFormatError("no row below the header line", file=str(path))
    return columns, np.array(rows), {}


def _csv_row(row: list[str], width: int, line: int, path: Path, allow_missing: bool) -> Any:
    if len(row) != width:
        raise DatasetFormatError(
            f"{len(row)} cells where the header has {width}", file=str(path), line=line
        )
    try:
        values = np.array(row, dtype=np.float64)
    except ValueError:
        values = np.array([_csv_cell(cell) for cell in row])
    bad = np.flatnonzero(~np.isfinite(values))
    for column in bad:
        if row[column].strip() or not allow_missing:
            raise DatasetFormatError(
                "want a finite number"
                + (
                    "" if row[column].strip() else "; pass missing='nan' to keep empty cells as NaN"
                ),
                file=str(path),
                line=line,
                column=int(column) + 1,
                token=row[column],
            )
    return values


def _csv_cell(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _read_parquet(path: Path) -> Table:
    parquet = import_extra("pyarrow.parquet", "store", "Reading Parquet")
    try:
        table = parquet.read_table(path)
        known = json.loads((table.schema.metadata or {}).get(_METADATA_KEY, b"{}"))
    except FileNotFoundError as error:
        raise DatasetFormatError("no such file", file=str(path)) from error
    except Exception as error:
        raise DatasetFormatError(f"not a readable Parquet file: {error}", file=str(path)) from error
    columns = []
    for column_name, column in zip(table.column_names, table.columns, strict=True):
        values = column.to_numpy()
        if values.dtype.kind not in "biuf":
            raise DatasetFormatError(
                f"column {column_name[:40]!r} must hold numbers; encode text columns first",
                file=str(path),
                token=str(column.type),
            )
        columns.append(values.astype(np.float64))
    if not columns or not len(columns[0]):
        raise DatasetFormatError("the table has no row or no column", file=str(path))
    return list(table.column_names), np.column_stack(columns), known


def _columns(dataset: Dataset) -> list[str]:
    columns = [*dataset.feature_names, *dataset.label_names]
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise ValueError(
            f"a table needs different column names, and {twice!r} occurs twice; rename it first"
        )
    size = 8 * len(dataset) * len(columns)
    if is_sparse(dataset.X) and size > _MAX_DENSE_BYTES:
        raise ValueError(
            f"as a dense table this set would take {size} bytes; write NPZ or ARFF instead"
        )
    return columns


def write_csv(dataset: Dataset, path: str | Path) -> None:
    """Write features, then labels, as comma-separated text with a header line.

    Numbers are written so that reading gives them back exactly. The file appears only when it is
    complete; its suffix chooses the compression.

    Parameters
    ----------
    dataset : Dataset
        The set; a sparse `X` is written out in full.
    path : str or Path
        For example ``tags.csv`` or ``tags.csv.gz``.
    """
    columns = _columns(dataset)
    with atomic_write(Path(path)) as file:
        buffer = io.StringIO(newline="")
        # Quote names always: an empty or strange one must not look like a blank line.
        csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(columns)
        file.write(buffer.getvalue().encode())
        for i in range(len(dataset)):
            features = dataset.X[[i]].toarray()[0] if is_sparse(dataset.X) else dataset.X[i]
            cells = ["" if math.isnan(value) else repr(float(value)) for value in features]
            cells += [repr(value.item()) for value in dataset.labels[i]]
            file.write((",".join(cells) + "\n").encode())


def write_parquet(dataset: Dataset, path: str | Path) -> None:
    """Write features, then labels, as a Parquet table that knows which columns are labels.

    Parameters
    ----------
    dataset : Dataset
        The set; a sparse `X` is written out in full.
    path : str or Path
        Where to. Needs the extra ``store``.
    """
    pyarrow = import_extra("pyarrow", "store", "Writing Parquet")
    parquet = import_extra("pyarrow.parquet", "store", "Writing Parquet")
    columns = _columns(dataset)
    X = dataset.X.toarray() if is_sparse(dataset.X) else dataset.X
    arrays = [*(X[:, j] for j in range(X.shape[1])), *dataset.labels.T]
    table = pyarrow.table([pyarrow.array(array) for array in arrays], names=columns)
    known = {
        "name": dataset.name,
        "kind": "logical" if dataset.D is None else "distribution",
        "labels": list(dataset.label_names),
    }
    table = table.replace_schema_metadata({_METADATA_KEY: json.dumps(known).encode()})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    with atomic_write(Path(path)) as file:
        file.write(buffer.getvalue())
