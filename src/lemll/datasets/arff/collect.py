"""Collect parsed ARFF rows into one Dataset, with separate features and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lemll._budget import Budget
from lemll._types import Array, BoolArray, Features, LabelArray
from lemll._validation import UNOBSERVED, is_sparse
from lemll.datasets.arff.fast import DenseRows, Rows, SparseRows
from lemll.datasets.arff.header import Attribute, Header
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError

__all__ = ["RowCollector"]


class RowCollector:
    """Collects the rows of all files, and separates features from labels.

    Parameters
    ----------
    header : Header
        The attributes.
    is_label : ndarray of bool
        Which attributes are labels.
    budget : Budget
        The budget of the first file. The memory of all rows is charged to it.
    """

    def __init__(self, header: Header, is_label: BoolArray, budget: Budget) -> None:
        self.header = header
        self.is_label = is_label
        self.budget = budget
        self.labels = np.flatnonzero(is_label)
        self.features = np.flatnonzero(~is_label)
        # The position of each column among the features, or among the labels.
        self.place = np.empty(is_label.size, dtype=np.int32)
        self.place[self.labels] = np.arange(self.labels.size)
        self.place[self.features] = np.arange(self.features.size)
        for column in self.labels:
            self._check_label(header.attributes[column], budget.file)
        self.chunks: list[SparseRows | npt.NDArray[np.float64]] = []
        self.label_chunks: list[npt.NDArray[np.int8]] = []
        self.rows = 0
        # In a sparse row, an omitted cell has the *first* nominal value, which is 1 for {1,0}.
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

    def go_on_with(self, header: Header, budget: Budget) -> None:
        """Continue with another file, after a check that it has the columns of the first file."""
        file = budget.file
        pairs = zip(self.header.attributes, header.attributes, strict=False)
        for mine, other in pairs:
            if (mine.name, mine.values) != (other.name, other.values):
                raise DatasetFormatError(
                    f"attribute differs from {mine.name[:40]!r} in the first file; files of one "
                    "data set need the same header",
                    file=file,
                    token=other.name,
                )
        if len(header.attributes) != len(self.header.attributes):
            raise DatasetFormatError(
                f"the file has {len(header.attributes)} attributes, but the first file has "
                f"{len(self.header.attributes)}",
                file=file,
            )
        self.budget.join(budget)

    def add(self, rows: Rows, file: str) -> None:
        """Add rows, and separate their features from their labels."""
        count = rows.lengths.size if isinstance(rows, SparseRows) else len(rows.table)
        self.rows += count
        # Charge before the copies are made.
        if isinstance(rows, DenseRows):
            size = count * self.features.size * 8
        else:
            size = rows.values.nbytes + rows.columns.nbytes + rows.lengths.nbytes
        self.budget.charge(size + count * self.labels.size)
        if isinstance(rows, DenseRows):
            self.label_chunks.append(rows.table[:, self.labels].astype(np.int8))
            self.chunks.append(rows.table[:, self.features])
        else:
            self.label_chunks.append(self._split(rows, count, file))

    def _split(self, rows: SparseRows, count: int, file: str) -> LabelArray:
        if self.reversed_binary is not None:
            raise DatasetFormatError(
                f"attribute {self.reversed_binary[:40]!r} is declared {{1,0}}, so it would be 1 "
                "where a sparse row omits it; declare it {0,1}",
                file=file,
            )
        row_of = np.repeat(np.arange(count, dtype=np.int32), rows.lengths)
        labelled = self.is_label[rows.columns]
        # The parser accepts only 0, 1 and ? here, so a wider type is not needed.
        values = np.zeros((count, self.labels.size), dtype=np.int8)
        values[row_of[labelled], self.place[rows.columns[labelled]]] = rows.values[labelled]
        kept = ~labelled
        lengths = np.bincount(row_of[kept], minlength=count).astype(np.int32)
        self.chunks.append(SparseRows(self.place[rows.columns[kept]], rows.values[kept], lengths))
        return values

    def finish(self, *, name: str, source: str, onehot: bool, allow_missing: bool) -> Dataset:
        """Join all rows into one Dataset."""
        attributes = self.header.attributes
        if not self.rows:
            raise DatasetFormatError("no row after @data", file=source or None)
        Y: Array = np.concatenate(self.label_chunks)
        self.label_chunks.clear()
        if (Y == UNOBSERVED).any():
            Y = np.where(Y == UNOBSERVED, np.nan, Y)
        X = _join(self.chunks, int(self.features.size))
        kept = [attributes[column] for column in self.features]
        names = [attribute.name for attribute in kept]
        if onehot:
            self._check_one_hot(kept, is_sparse(X))
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

    def _check_one_hot(self, kept: list[Attribute], as_sparse: bool) -> None:
        widths, coded = _one_hot_widths(kept)
        # Even a sparse row gets one indicator per nominal attribute: a value and its column index.
        cells = self.rows * int(2 * coded.sum() if as_sparse else widths.sum())
        # Each new name contains the name of the attribute, once per nominal value.
        text = sum(len(a.name) * int(w) for a, w in zip(kept, widths, strict=True))
        self.budget.charge(8 * cells + text)


def _join(chunks: list[SparseRows | npt.NDArray[np.float64]], width: int) -> Any:
    """Concatenate the chunks; sparse chunks are freed one by one to reduce the peak memory."""
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
    # SciPy uses one type for both index arrays, and copies an array of another type.
    if data.size < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    return sparse.csr_array((data, indices, indptr), shape=(lengths.size, width))


def _to_sparse(chunk: SparseRows | npt.NDArray[np.float64]) -> SparseRows:
    if isinstance(chunk, SparseRows):
        return chunk
    rows, columns = np.nonzero(chunk)
    lengths = np.bincount(rows, minlength=len(chunk)).astype(np.int32)
    return SparseRows(columns.astype(np.int32), chunk[rows, columns], lengths)


def _one_hot_widths(attributes: list[Attribute]) -> tuple[npt.NDArray[np.int64], BoolArray]:
    """Return the number of columns of each attribute, and whether they are indicators."""
    coded = np.array([a.values is not None and not a.is_binary for a in attributes])
    sizes = (len(a.values) if c and a.values else 1 for a, c in zip(attributes, coded, strict=True))
    return np.fromiter(sizes, dtype=np.int64, count=len(attributes)), coded


def _one_hot(X: Features, attributes: list[Attribute]) -> tuple[Any, list[str]]:
    """Replace coded nominal columns by indicators. A missing value has no indicator."""
    widths, coded = _one_hot_widths(attributes)
    # The first new column of each attribute. The code of a value is the offset from there.
    first = np.cumsum(widths) - widths
    codes = X[:, coded].toarray() if is_sparse(X) else X[:, coded]
    rows, which = np.nonzero(~np.isnan(codes))
    columns = first[coded][which] + codes[rows, which].astype(np.int64)
    joined: Any
    if is_sparse(X):
        cells = X.tocoo()
        kept = ~coded[cells.col]
        rows = np.concatenate([cells.row[kept], rows])
        values = np.concatenate([cells.data[kept], np.ones(columns.size)])
        columns = np.concatenate([first[cells.col[kept]], columns])
        shape = (X.shape[0], int(widths.sum()))
        joined = sparse.csr_array((values, (rows, columns)), shape=shape)
    else:
        joined = np.zeros((X.shape[0], int(widths.sum())))
        joined[:, first[~coded]] = X[:, ~coded]
        joined[rows, columns] = 1
    names = [
        name
        for attribute, indicators in zip(attributes, coded, strict=True)
        for name in (
            [f"{attribute.name}={value}" for value in attribute.values or ()]
            if indicators
            else [attribute.name]
        )
    ]
    return joined, names
