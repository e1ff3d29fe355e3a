"""LIBSVM text with several labels a row: ``3,7 1:0.5 12:1``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lemll._validation import LabelArray
from lemll.datasets._names import NumberedNames
from lemll.datasets._numbers import to_number
from lemll.datasets._streams import LineBlocks, check_expansion
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError

__all__ = ["read_svmlight"]

_MAX_INDEX = 2**31 - 1
_SIGNED_LABELS = ("-1", "+1")


def read_svmlight(
    source: str | Path | bytes,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    first_feature: int | None = None,
    first_label: int = 0,
    name: str | None = None,
    max_expanded_bytes: int | None = None,
) -> Dataset:
    r"""Read a multi-label data set in LIBSVM's text format.

    A first line of three whole numbers, ``rows features labels`` as in the extreme-classification
    repository, gives the shape. Without it and without `n_features`, `n_labels` the format cannot
    tell of a last feature or label that never occurs: the largest index seen decides.

    Parameters
    ----------
    source : str, Path or bytes
        The file (plain, ``.gz``, ``.bz2``, ``.xz``), or its text.
    n_features, n_labels : int, optional
        The shape, where the file has no header line.
    first_feature : int, optional
        Number of the first feature, 0 or 1; by default 0 if the file has a header line or an
        index 0, else 1.
    first_label : int, default=0
        Number of the first label.
    name : str, optional
        The set's name; by default the file's.
    max_expanded_bytes : int, optional
        Cap on a compressed file's decompressed size, and on the size of `Y`.

    Returns
    -------
    Dataset
        `X` as CSR array, `Y` 0/1; labels are named by their number in the file.

    Examples
    --------
    >>> read_svmlight(b"0,2 1:0.5\n1 2:1 3:2\n").Y
    array([[1, 0, 1],
           [0, 1, 0]], dtype=int8)
    """
    path = source if isinstance(source, bytes) else Path(source)
    with LineBlocks(path, max_expanded_bytes) as blocks:
        rows = _Rows(blocks.file)
        for block in blocks:
            for number, raw in enumerate(block.split(b"\n"), start=blocks.line):
                rows.add(raw, number)
        size = blocks.bytes_read
    asked_features = n_features
    if rows.header is not None:
        count, header_features, header_labels = rows.header
        n_features = header_features if n_features is None else n_features
        n_labels = header_labels if n_labels is None else n_labels
        first_feature = 0 if first_feature is None else first_feature
        if count != len(rows.lengths):
            raise DatasetFormatError(
                f"the header announces {count} rows, and {len(rows.lengths)} follow",
                file=rows.file,
            )
    X, Y = rows.finish(
        shape=(n_features, n_labels),
        first=(first_feature, first_label),
        size=size,
        max_expanded_bytes=max_expanded_bytes,
    )
    if asked_features is None:
        # The width costs nothing here, but whoever makes one dense row of it must survive that.
        check_expansion(8 * X.shape[1], size, rows.file, max_expanded_bytes)
    return Dataset(
        X=X,
        Y=Y,
        label_names=NumberedNames("", range(first_label, first_label + Y.shape[1])),
        name=Path(rows.file).stem if name is None else name,
        source="" if isinstance(source, bytes) else rows.file,
    )


class _Rows:
    def __init__(self, file: str) -> None:
        self.file = file
        self.header: tuple[int, int, int] | None = None
        self.labels: list[int] = []
        self.label_lengths: list[int] = []
        self.indices: list[int] = []
        self.values: list[float] = []
        self.lengths: list[int] = []

    def add(self, raw: bytes, number: int) -> None:
        text = raw.partition(b"#")[0].decode("latin-1")
        if not text.strip():
            return
        tokens = text.split()
        if not self.lengths and self.header is None and len(tokens) == 3 and ":" not in text:
            count, features, labels = (self._whole(token, number) for token in tokens)
            self.header = (count, features, labels)
            return
        # A row without labels begins with white space, or at once with a feature.
        has_labels = not text[0].isspace() and ":" not in tokens[0]
        names = tokens[0].split(",") if has_labels else []
        self.labels += [self._label(label, number) for label in names]
        self.label_lengths.append(len(names))
        cells = tokens[1:] if has_labels else tokens
        for cell in cells:
            index, colon, value = cell.partition(":")
            if not colon:
                raise self._error("want index:value", number, cell)
            self.indices.append(self._whole(index, number))
            self.values.append(self._number(value, number))
        self.lengths.append(len(cells))

    def _whole(self, token: str, number: int) -> int:
        if not (token.isascii() and token.isdigit() and len(token) <= 10):
            raise self._error("want a whole number", number, token)
        value = int(token)
        if value > _MAX_INDEX:
            raise self._error("number too large", number, token)
        return value

    def _label(self, token: str, number: int) -> int:
        if token in _SIGNED_LABELS:
            raise self._error(
                "labels are coded -1/+1; want the numbers of the labels that are relevant",
                number,
                token,
            )
        return self._whole(token, number)

    def _number(self, token: str, number: int) -> float:
        value = to_number(token)
        if value is None:
            raise self._error("want a finite number", number, token)
        return value

    def _error(self, problem: str, line: int, token: str) -> DatasetFormatError:
        return DatasetFormatError(problem, file=self.file, line=line, token=token)

    def finish(
        self,
        *,
        shape: tuple[int | None, int | None],
        first: tuple[int | None, int],
        size: int,
        max_expanded_bytes: int | None,
    ) -> tuple[Any, LabelArray]:
        if not self.lengths:
            raise DatasetFormatError("no row in the file", file=self.file)
        indices = np.array(self.indices, dtype=np.int64)
        first_feature = first[0]
        if first_feature is None:
            first_feature = 0 if (indices == 0).any() else 1
        indices -= first_feature
        labels = np.array(self.labels, dtype=np.int64) - first[1]
        n_features = self._size(indices, shape[0], "feature")
        n_labels = self._size(labels, shape[1], "label")
        n_rows = len(self.lengths)
        check_expansion(n_rows * n_labels, size, self.file, max_expanded_bytes)
        Y = np.zeros((n_rows, n_labels), dtype=np.int8)
        Y[np.repeat(np.arange(n_rows), self.label_lengths), labels] = 1
        indptr = np.concatenate(([0], np.cumsum(self.lengths)))
        X = sparse.csr_array((self.values, indices, indptr), shape=(n_rows, n_features))
        X.sort_indices()
        if not X.has_canonical_format:
            raise DatasetFormatError("a row gives one feature twice", file=self.file)
        return X, Y

    def _size(self, indices: np.ndarray[tuple[int], np.dtype[np.int64]], size: int | None,
              what: str) -> int:  # fmt: skip
        smallest = int(indices.min(initial=0))
        largest = int(indices.max(initial=-1))
        if smallest < 0:
            raise DatasetFormatError(
                f"a {what} index lies before the first; pass first_{what}=0", file=self.file
            )
        if size is None:
            return max(largest + 1, 1)
        if largest >= size:
            raise DatasetFormatError(
                f"{what} number {largest} (from 0) does not fit {size} {what}s", file=self.file
            )
        return size
