"""Read and write CSV and Parquet tables, in which some named columns are labels."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lemll._types import BoolArray
from lemll._validation import is_sparse
from lemll.datasets._label_columns import Labels, resolve_labels
from lemll.datasets._options import Kind, Missing, check_kind, check_missing
from lemll.datasets._streams import LineBlocks, atomic_write, plain_suffix, refuse_compression
from lemll.datasets.dataset import Dataset
from lemll.datasets.tables.parquet import METADATA_KEY, read_parquet
from lemll.datasets.tables.text import read_csv
from lemll.exceptions import DatasetFormatError, import_extra

__all__ = ["read_table", "write_csv", "write_parquet"]

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
                "cannot tell which columns are labels; pass labels= (their names, or a count)",
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
