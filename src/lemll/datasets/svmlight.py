"""Read LIBSVM text with several labels per row, such as ``3,7 1:0.5 12:1``."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np
from scipy import sparse

from lemll._files import Budget
from lemll._types import Features, LabelArray
from lemll.datasets._columns import NumberedNames, to_number
from lemll.datasets._streams import LineBlocks
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError

_MAX_INDEX = 2**31 - 1
_MAX_KNOWN_SETS = 2**10
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

    If the first line has three whole numbers, ``rows features labels`` as in the
    extreme-classification repository, it gives the shape. Without this line and without
    `n_features` and `n_labels`, the largest index in the file gives the shape, because the format
    does not mention a feature or label that never occurs.

    Parameters
    ----------
    source : str, Path or bytes
        The file (plain, ``.gz``, ``.bz2``, ``.xz``), or its content.
    n_features, n_labels : int, optional
        The shape, if the file has no header line.
    first_feature : int, optional
        Number of the first feature, 0 or 1. By default 0 if the file has a header line or an
        index 0, else 1.
    first_label : int, default=0
        Number of the first label.
    name : str, optional
        The name of the data set. By default the name of the file.
    max_expanded_bytes : int, optional
        Largest size of a compressed file after decompression, and of the arrays. By default 200
        times the size of the file, but at least 2 MiB for text and 256 MiB for arrays.

    Returns
    -------
    Dataset
        `X` is a CSR array, `Y` is 0/1. The name of a label is its number in the file.

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
            for number, line in enumerate(block.decode("latin-1").split("\n"), start=blocks.line):
                rows.add(line, number)
            # The numbers exist three times: here, as NumPy arrays, and in the Dataset.
            blocks.budget.charge(3 * rows.grown_bytes())
    asked_features = n_features
    if rows.header is not None:
        count, header_features, header_labels = rows.header
        n_features = header_features if n_features is None else n_features
        n_labels = header_labels if n_labels is None else n_labels
        first_feature = 0 if first_feature is None else first_feature
        if count != len(rows.lengths):
            raise DatasetFormatError(
                f"the header announces {count} rows, but the file has {len(rows.lengths)}",
                file=rows.file,
            )
    X, Y = rows.finish(
        shape=(n_features, n_labels),
        first=(first_feature, first_label),
        budget=blocks.budget,
    )
    if asked_features is None:
        # The number of columns needs no memory in a sparse array, but one dense row must fit.
        blocks.budget.charge(8 * X.shape[1])
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
        # Typed arrays, because a list needs a pointer and an object per number.
        self.labels = array("q")
        self.label_lengths = array("q")
        self.indices = array("q")
        self.values = array("d")
        self.lengths = array("q")
        self._counted = 0
        self._at_start = True
        self._known_sets: dict[str, tuple[int, ...]] = {}

    def grown_bytes(self) -> int:
        """Return the number of bytes that the rows have grown by since the last call."""
        parts = (self.labels, self.label_lengths, self.indices, self.values, self.lengths)
        size = sum(part.itemsize * len(part) for part in parts)
        self._counted, grown = size, size - self._counted
        return grown

    def add(self, line: str, number: int) -> None:
        text = line.partition("#")[0] if "#" in line else line
        tokens = text.split()
        if not tokens:
            return
        if self._at_start:
            self._at_start = False
            if len(tokens) == 3 and ":" not in text:
                count, features, labels = (self._whole(token, number) for token in tokens)
                self.header = (count, features, labels)
                return
        # A row without labels begins with white space or directly with a feature.
        head = tokens[0]
        has_labels = ":" not in head and not text[0].isspace()
        if has_labels:
            # The same label sets occur often, so each is parsed and checked only once.
            names = self._known_sets.get(head) or self._label_set(head, number)
            self.labels.extend(names)
            self.label_lengths.append(len(names))
        else:
            self.label_lengths.append(0)
        cells = tokens[1:] if has_labels else tokens
        for cell in cells:
            index, colon, value = cell.partition(":")
            if not colon:
                raise self._error("expected index:value", number, cell)
            self.indices.append(self._whole(index, number))
            self.values.append(self._number(value, number))
        self.lengths.append(len(cells))

    def _whole(self, token: str, number: int) -> int:
        if not (token.isascii() and token.isdigit() and len(token) <= 10):
            raise self._error("expected a whole number", number, token)
        value = int(token)
        if value > _MAX_INDEX:
            raise self._error("number too large", number, token)
        return value

    def _label_set(self, head: str, number: int) -> tuple[int, ...]:
        signed = [token for token in head.split(",") if token in _SIGNED_LABELS]
        if signed:
            raise self._error(
                "labels are coded -1/+1; expected the numbers of the labels that are relevant",
                number,
                signed[0],
            )
        labels = tuple(self._whole(token, number) for token in head.split(","))
        if len(self._known_sets) < _MAX_KNOWN_SETS and len(labels) < _MAX_KNOWN_SETS:
            self._known_sets[head] = labels
        return labels

    def _number(self, token: str, number: int) -> float:
        value = to_number(token)
        if value is None:
            raise self._error("expected a finite number", number, token)
        return value

    def _error(self, problem: str, line: int, token: str) -> DatasetFormatError:
        return DatasetFormatError(problem, file=self.file, line=line, token=token)

    def finish(
        self,
        *,
        shape: tuple[int | None, int | None],
        first: tuple[int | None, int],
        budget: Budget,
    ) -> tuple[Features, LabelArray]:
        if not self.lengths:
            raise DatasetFormatError("the file has no rows", file=self.file)
        indices = np.array(self.indices, dtype=np.int64)
        first_feature = first[0]
        if first_feature is None:
            first_feature = 0 if (indices == 0).any() else 1
        indices -= first_feature
        labels = np.array(self.labels, dtype=np.int64) - first[1]
        n_features = self._size(indices, shape[0], "feature")
        n_labels = self._size(labels, shape[1], "label")
        n_rows = len(self.lengths)
        budget.charge(n_rows * n_labels)
        Y = np.zeros((n_rows, n_labels), dtype=np.int8)
        Y[np.repeat(np.arange(n_rows), self.label_lengths), labels] = 1
        indptr = np.concatenate(([0], np.cumsum(self.lengths)))
        values = np.array(self.values, dtype=np.float64)
        X = sparse.csr_array((values, indices, indptr), shape=(n_rows, n_features))
        X.sort_indices()
        if not X.has_canonical_format:
            raise DatasetFormatError("a row contains a feature twice", file=self.file)
        return X, Y

    def _size(self, indices: np.ndarray[tuple[int], np.dtype[np.int64]], size: int | None,
              what: str) -> int:  # fmt: skip
        smallest = int(indices.min(initial=0))
        largest = int(indices.max(initial=-1))
        if smallest < 0:
            raise DatasetFormatError(
                f"a {what} index is smaller than the first one; pass first_{what}=0", file=self.file
            )
        if size is None:
            return max(largest + 1, 1)
        if largest >= size:
            raise DatasetFormatError(
                f"{what} number {largest} (from 0) does not fit {size} {what}s", file=self.file
            )
        return size
