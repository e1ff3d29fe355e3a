"""Gathers parsed ARFF rows into one Dataset, features and labels apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lemll._validation import is_sparse
from lemll.datasets._arff_fast import DenseRows, Rows, SparseRows
from lemll.datasets._arff_header import Attribute, Header
from lemll.datasets._streams import LineBlocks
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError

__all__ = ["RowCollector"]

# A dense Y may take this many bytes whatever the file, and this many times the text read.
_Y_FLOOR_BYTES = 256 * 2**20
_Y_RATIO = 64


class RowCollector:
    """Gathers the rows of all files, features and labels apart."""

    def __init__(self, header: Header, labels: npt.NDArray[np.int32], file: str) -> None:
        self.header = header
        self.labels = labels
        width = len(header.attributes)
        self.is_label = np.zeros(width, dtype=bool)
        self.is_label[labels] = True
        self.features = np.flatnonzero(~self.is_label)
        if self.features.size == 0:
            raise DatasetFormatError(
                f"all {width} attributes are labels, none a feature", file=file
            )
        self.place = np.empty(width, dtype=np.int32)  # of a column among its own kind
        self.place[labels] = np.arange(labels.size)
        self.place[self.features] = np.arange(self.features.size)
        for column in labels:
            self._check_label(header.attributes[column], file)
        self.chunks: list[SparseRows | npt.NDArray[np.float64]] = []
        self.label_chunks: list[npt.NDArray[np.int8]] = []
        self.rows = 0
        # In a sparse row an omitted cell is the *first* nominal value, which for {1,0} would be 1.
        self.reversed_binary = next(
            (a.name for a in header.attributes if a.is_binary and (a.values or "0")[0] != "0"), None
        )

    @staticmethod
    def _check_label(attribute: Attribute, file: str) -> None:
        if attribute.values is not None and not attribute.is_binary:
            raise DatasetFormatError(
                f"label {attribute.name[:40]!r} must be declared {{0,1}} or numeric",
                file=file,
                token=f"{{{','.join(attribute.values[:9])}}}",
            )

    def check_same(self, header: Header, file: str) -> None:
        """Refuse a further file whose columns are not those of the first."""
        pairs = zip(self.header.attributes, header.attributes, strict=False)
        for mine, other in pairs:
            if (mine.name, mine.values) != (other.name, other.values):
                raise DatasetFormatError(
                    f"attribute differs from the first file's {mine.name[:40]!r}; files read as "
                    "one set need the same header",
                    file=file,
                    token=other.name,
                )
        if len(header.attributes) != len(self.header.attributes):
            raise DatasetFormatError(
                f"{len(header.attributes)} attributes where the first file has "
                f"{len(self.header.attributes)}",
                file=file,
            )

    def add(self, rows: Rows, blocks: LineBlocks) -> None:
        """Take some rows, splitting features from labels."""
        count = rows.lengths.size if isinstance(rows, SparseRows) else len(rows.table)
        self.rows += count
        if self.rows * self.labels.size > max(_Y_FLOOR_BYTES, _Y_RATIO * blocks.bytes_read):
            raise DatasetFormatError(
                f"{self.rows} rows x {self.labels.size} labels need more memory than a file of "
                "this size should ask for",
                file=blocks.file,
            )
        if isinstance(rows, DenseRows):
            values = rows.table[:, self.labels]
            self.chunks.append(rows.table[:, self.features])
        else:
            values = self._split(rows, count)
        if not np.isin(values, (0, 1)).all():
            bad = np.argwhere(~np.isin(values, (0, 1)))[0]
            name = self.header.attributes[self.labels[bad[1]]].name
            raise DatasetFormatError(
                f"label {name[:40]!r} must be 0 or 1 in every row",
                file=blocks.file,
                token=f"{values[tuple(bad)]:g}",
            )
        self.label_chunks.append(values.astype(np.int8))

    def _split(self, rows: SparseRows, count: int) -> npt.NDArray[np.float64]:
        if self.reversed_binary is not None:
            raise DatasetFormatError(
                f"attribute {self.reversed_binary[:40]!r} is declared {{1,0}}: omitted from a "
                "sparse row it would mean 1; declare it {0,1}"
            )
        row_of = np.repeat(np.arange(count, dtype=np.int32), rows.lengths)
        labelled = self.is_label[rows.columns]
        values = np.zeros((count, self.labels.size))
        values[row_of[labelled], self.place[rows.columns[labelled]]] = rows.values[labelled]
        kept = ~labelled
        lengths = np.bincount(row_of[kept], minlength=count).astype(np.int32)
        self.chunks.append(SparseRows(self.place[rows.columns[kept]], rows.values[kept], lengths))
        return values

    def finish(self, *, name: str, source: str, onehot: bool, allow_missing: bool) -> Dataset:
        """Join everything into one Dataset."""
        attributes = self.header.attributes
        if not self.rows:
            raise DatasetFormatError("no row behind @data", file=source or None)
        Y = np.concatenate(self.label_chunks)
        self.label_chunks.clear()
        X = _join(self.chunks, int(self.features.size))
        kept = [attributes[column] for column in self.features]
        names = [attribute.name for attribute in kept]
        if onehot:
            X, names = _one_hot(X, kept)
        return Dataset(
            X=X,
            Y=Y,
            feature_names=names,
            label_names=[attributes[column].name for column in self.labels],
            name=name,
            source=source,
            allow_missing=allow_missing,
        )


def _join(chunks: list[SparseRows | npt.NDArray[np.float64]], width: int) -> Any:
    """Concatenate the chunks, freeing them on the way: the peak is one extra copy of one part."""
    if all(isinstance(chunk, np.ndarray) for chunk in chunks):
        return np.concatenate([chunk for chunk in chunks if isinstance(chunk, np.ndarray)])
    parts = [_to_sparse(chunk) for chunk in chunks]
    chunks.clear()
    lengths = np.concatenate([part.lengths for part in parts])
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    columns = [part.columns for part in parts]
    values = [part.values for part in parts]
    parts.clear()
    data = np.concatenate(values)
    values.clear()
    indices = np.concatenate(columns)
    if data.size < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    return sparse.csr_array((data, indices, indptr), shape=(lengths.size, width))


def _to_sparse(chunk: SparseRows | npt.NDArray[np.float64]) -> SparseRows:
    if isinstance(chunk, SparseRows):
        return chunk
    rows, columns = np.nonzero(chunk)
    lengths = np.bincount(rows, minlength=len(chunk)).astype(np.int32)
    return SparseRows(columns.astype(np.int32), chunk[rows, columns], lengths)


def _one_hot(X: Any, attributes: list[Attribute]) -> tuple[Any, list[str]]:
    """Replace coded nominal columns by indicators; a missing value has none."""
    columns: list[Any] = []
    names: list[str] = []
    by_column = X.tocsc() if is_sparse(X) else X
    for j, attribute in enumerate(attributes):
        column = by_column[:, [j]]
        if attribute.values is None or attribute.is_binary:
            columns.append(column)
            names.append(attribute.name)
            continue
        codes = column.toarray() if is_sparse(X) else column
        indicators = (codes == np.arange(len(attribute.values))).astype(np.float64)
        columns.append(sparse.csc_array(indicators) if is_sparse(X) else indicators)
        names += [f"{attribute.name}={value}" for value in attribute.values]
    joined = sparse.hstack(columns, format="csr") if is_sparse(X) else np.hstack(columns)
    return joined, names
