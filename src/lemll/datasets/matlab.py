"""Read data sets from MATLAB files, the usual format of label-distribution data."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from lemll._files import Budget
from lemll._types import Array, Features, Settings, SparseMatrix
from lemll._validation import is_sparse
from lemll.datasets._columns import Kind, check_kind
from lemll.datasets._streams import compressed_matrix, file_size, refuse_compression
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError


class BrokenFileError(Exception):
    """The bytes are not a valid MATLAB file of version 5. The message says why."""


@dataclass(frozen=True, slots=True)
class _OddVariable:
    """A wanted variable that is not a matrix of real numbers."""

    description: str


def _charge(budget: Budget, variable: str, shape: tuple[int, ...], stored: int | None) -> None:
    """Count a variable and its later conversions: dense, or a sparse one of `stored` bytes."""
    cells = int(np.prod(shape, dtype=object))
    if stored is None:
        budget.charge(8 * cells)
    else:
        # The parts exist up to four times: as stored, in row order, with values as float64, and as
        # a copy. In addition there is one pointer per column and per row.
        dense = 8 * cells if variable in _LABELS else 0
        budget.charge(4 * stored + 8 * sum(shape) + dense)


def _sparse_variable(
    name: str,
    values: Array,
    rows: Array,
    starts: Array,
    n_rows: int,
) -> SparseMatrix:
    """Make the CSC array of a sparse variable; raise an error if its parts are not valid."""
    try:
        shape = (n_rows, starts.size - 1)
        matrix = compressed_matrix(sparse.csc_array, values, rows, starts, shape)
    except ValueError as error:
        raise BrokenFileError(f"the sparse variable {name!r} is broken: {error}") from error
    # MATLAB stores the row numbers of each column in rising order, but a file may not do so.
    matrix.sort_indices()
    if not matrix.has_canonical_format:
        raise BrokenFileError(f"the sparse variable {name!r} contains a cell twice")
    return matrix


# The numbers of the types in the format: miMATRIX, miCOMPRESSED, and the types of plain numbers.
_MATRIX, _COMPRESSED = 14, 15
_STORAGE = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip
_BLOCK_BYTES = 64 * 2**10


class _Bytes(Protocol):
    def read(self, size: int) -> bytearray: ...


class _FileBytes:
    """A part of the file that is not compressed."""

    def __init__(self, file: BufferedReader, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int) -> bytearray:
        """Return the next bytes; raise an error if the file ends before them."""
        # Do not allocate more than the file can contain, because `size` comes from the file.
        data = bytearray(size if size <= self._left else 0)
        if self._file.readinto(data) < size:
            raise BrokenFileError("it is cut short")
        self._left -= size
        return data


class _InflatedBytes:
    """A compressed part of the file, which is decompressed only as far as it is read."""

    def __init__(self, file: BufferedReader, size: int) -> None:
        self._file = file
        self._left = size
        self._zlib = zlib.decompressobj()

    def read(self, size: int) -> bytearray:
        data = bytearray()
        while len(data) < size:
            piece = self._inflate(size - len(data))
            if not piece and (self._zlib.eof or not (self._left or self._zlib.unconsumed_tail)):
                raise BrokenFileError("a compressed variable is cut short")
            data += piece
        return data

    def _inflate(self, at_most: int) -> bytes:
        packed = self._zlib.unconsumed_tail
        if not packed:
            packed = self._file.read(min(self._left, _BLOCK_BYTES))
            self._left -= len(packed)
        try:
            # The limit matters: one kilobyte of compressed zeros expands to a megabyte.
            return self._zlib.decompress(packed, min(at_most, _BLOCK_BYTES))
        except zlib.error as error:
            raise BrokenFileError(f"a compressed variable is damaged: {error}") from error

    def finish(self) -> None:
        """Read up to the check sum, which zlib compares. Only padding may come before it."""
        extra = 0
        while not self._zlib.eof and extra <= 8 and (self._left or self._zlib.unconsumed_tail):
            extra += len(self._inflate(8))
        if not self._zlib.eof:
            raise BrokenFileError("a compressed variable does not end where its matrix does")


class _Element:
    """One element at the top level. Its parts are read one after the other."""

    def __init__(self, file: BufferedReader, kind: int, size: int, order: str) -> None:
        self.order = order
        self._inflated = _InflatedBytes(file, size) if kind == _COMPRESSED else None
        self._source: _Bytes = self._inflated or _FileBytes(file, size)
        self._left = size
        if self._inflated is not None:
            # A compressed element contains one complete element, with its own tag.
            kind, self._left = struct.unpack(order + "II", self._source.read(8))
        if kind != _MATRIX:
            raise BrokenFileError(f"found an element of type {kind}, expected a matrix")

    def tag(self) -> tuple[int, int, bool]:
        """Read a tag; return the storage type, the size, and whether the tag contains the data."""
        first = self._take(4)
        (word,) = struct.unpack(self.order + "I", first)
        # The small format has the size in the upper 16 bits and up to 4 bytes of data in place of
        # the second word. In the normal format these bits are 0, because types are small numbers.
        if word >> 16:
            kind, size = word & 0xFFFF, word >> 16
            if size > 4:
                raise BrokenFileError(f"a small element has {size} bytes, expected at most 4")
            return kind, size, True
        return word, struct.unpack(self.order + "I", self._take(4))[0], False

    def data(self, size: int, small: bool) -> bytearray:
        """Read the bytes after a tag, and the padding after them."""
        data = self._take(size)
        padding = 4 - size if small else -size % 8
        self._take(min(padding, self._left))  # some writers omit the last padding
        return data

    def numbers(
        self, count: int | None, allowed: str = "iuf", *, at_most: int | None = None
    ) -> Array:
        """Read an element of `count` numbers (any number, if None) of a kind in `allowed`.

        The storage type may be smaller than the class of the variable: MATLAB stores a matrix of
        doubles that are small whole numbers as bytes.
        """
        kind, size, small = self.tag()
        if kind not in _STORAGE or np.dtype(_STORAGE[kind]).kind not in allowed:
            raise BrokenFileError(f"numbers are stored as type {kind}, which is not valid here")
        dtype = np.dtype(self.order + _STORAGE[kind])
        stored, rest = divmod(size, dtype.itemsize)
        if rest or count not in (None, stored) or (at_most is not None and stored > at_most):
            raise BrokenFileError(f"{size} bytes of {dtype.name} do not fit their variable")
        numbers = np.frombuffer(self.data(size, small), dtype)
        return numbers.astype(dtype.newbyteorder("="), copy=False)

    def left(self) -> int:
        """Return the number of bytes that are left."""
        return self._left

    def finish(self) -> None:
        """Check the end of a compressed element, where its check sum is."""
        if self._inflated is not None:
            self._inflated.finish()

    def _take(self, size: int) -> bytearray:
        if size > self._left:
            raise BrokenFileError(
                f"a part of {size} bytes is in a matrix with only {self._left} bytes left"
            )
        self._left -= size
        return self._source.read(size)


# Features and labels.
_Pair = tuple[Features, Features]
_HEADER_BYTES = 128
_VERSION_5, _VERSION_7_3 = 1, 2
_SPARSE = 5
# The classes of the format whose elements begin with flags, dimensions and a name.
_NAMED_CLASSES = {
    1: "cell", 2: "struct", 3: "object", 4: "char", _SPARSE: "float64", 6: "float64", 7: "float32",
    8: "int8", 9: "uint8", 10: "int16", 11: "uint16", 12: "int32", 13: "uint32", 14: "int64",
    15: "uint64",
}  # fmt: skip
_FIRST_NUMERIC = _SPARSE
_COMPLEX = 0x0800
_MAX_DIMENSIONS = 64
_MAX_NAME = 256


def read_mat5(file: BufferedReader, wanted: Collection[str], budget: Budget) -> Settings:
    """Read the wanted variables of a version 5 file.

    Parameters
    ----------
    file : binary file
        The file, at its beginning. It must be seekable.
    wanted : collection of str
        Names of the variables to read. Other variables are skipped.
    budget : Budget
        Charged for each wanted matrix before its cells are read.

    Returns
    -------
    dict
        An array, a CSC array or an `_OddVariable` for each wanted variable in the file.

    Raises
    ------
    BrokenFileError
        If the bytes are not a valid version 5 file.
    """
    order = _byte_order(file.read(_HEADER_BYTES))
    end = file.seek(0, os.SEEK_END)
    place = file.seek(_HEADER_BYTES)
    found: Settings = {}
    while place < end:
        kind, size = struct.unpack(order + "II", _FileBytes(file, end - place).read(8))
        place += 8
        if size > end - place:
            raise BrokenFileError(
                f"an element has {size} bytes, but only {end - place} bytes are left"
            )
        variable = _read_variable(_Element(file, kind, size, order), wanted, budget)
        if variable is not None:
            name, value = variable
            if name in found:
                raise BrokenFileError(f"the variable {name!r} occurs twice")
            found[name] = value
        # The size in the tag gives the next element, even if not all of this one was read.
        place = file.seek(place + size)
    return found


def _byte_order(header: bytes) -> str:
    if not header:
        raise BrokenFileError("the file is empty")
    # Version 5 begins with readable text. Version 4 begins with small integers of 4 bytes.
    if 0 in header[:4]:
        raise BrokenFileError("it looks like version 4; load it in MATLAB and save it with -v7")
    # The writer stores the number of the letters "MI", so swapped letters mean little-endian.
    order = {b"IM": "<", b"MI": ">"}.get(header[126:])
    version = struct.unpack(order + "H", header[124:126])[0] >> 8 if order else None
    # MATLAB writes its own header before the HDF5 data of version 7.3; other programs do not.
    if version == _VERSION_7_3 or header.startswith(b"\x89HDF"):
        raise BrokenFileError("it is version 7.3 (HDF5); load it in MATLAB and save it with -v7")
    if order is None or version != _VERSION_5:
        raise BrokenFileError("its first 128 bytes are not the header of such a file")
    return order


def _read_variable(
    element: _Element, wanted: Collection[str], budget: Budget
) -> tuple[str, Any] | None:
    """Read class, dimensions and name; read the cells if the name is wanted."""
    flags = int(element.numbers(2, "u")[0])
    kind = flags & 0xFF
    if kind not in _NAMED_CLASSES:
        return None  # for example function handles, whose parts have another order
    shape = tuple(int(size) for size in element.numbers(None, "i", at_most=_MAX_DIMENSIONS))
    name = _name(element)
    if name is None or name not in wanted:
        return None
    if len(shape) < 2 or min(shape) < 0:
        raise BrokenFileError(f"the variable {name!r} has the dimensions {shape}")
    if kind < _FIRST_NUMERIC or flags & _COMPLEX or len(shape) > 2:
        type_ = "complex128" if flags & _COMPLEX else _NAMED_CLASSES[kind]
        return name, _OddVariable(f"{len(shape)}-D, {type_}")
    n_rows, n_columns = shape
    value: Features
    if kind == _SPARSE:
        # Charge the bytes that are left, because the announced number of cells may be wrong.
        _charge(budget, name, shape, element.left())
        rows, starts = element.numbers(None, "iu"), element.numbers(n_columns + 1, "iu")
        value = _sparse_variable(name, element.numbers(None), rows, starts, n_rows)
    else:
        _charge(budget, name, shape, None)
        # MATLAB stores matrices by columns.
        value = element.numbers(n_rows * n_columns).reshape(shape, order="F")
    element.finish()
    return name, value


def _name(element: _Element) -> str | None:
    """Read the name of a variable; return None if it is longer than every wanted name."""
    _, size, small = element.tag()
    return None if size > _MAX_NAME else bytes(element.data(size, small)).decode("latin-1")


# Common pairs of variable names, the most specific first. The third entry says whether the label
# matrix has one row per label, as in multi-label programs for MATLAB that call it `target`.
_LAYOUTS = (
    ("features", "label_distribution", False),
    ("features", "labels", False),
    ("data", "target", True),
    ("X", "Y", False),
)
_TEST_PART = ("Xt", "Yt", False)
_KNOWN = frozenset(name for layout in (*_LAYOUTS, _TEST_PART) for name in layout[:2])
_LABELS = frozenset(layout[1] for layout in (*_LAYOUTS, _TEST_PART))


def read_mat(
    path: str | Path,
    *,
    kind: Kind = "auto",
    name: str | None = None,
    max_expanded_bytes: int | None = None,
) -> Dataset:
    """Read a data set from a MATLAB file.

    Known pairs of variables: ``features`` with ``label_distribution`` or ``labels``; ``data`` with
    ``target`` (one row per label); ``X`` with ``Y``. Rows of ``Xt`` and ``Yt``, if they exist, are
    appended to ``X`` and ``Y``. Labels -1/+1, which are common in MATLAB, become 0/1.

    Parameters
    ----------
    path : str or Path
        A version 5 file, as MATLAB's ``-v6`` and ``-v7`` write them. Versions 4 and 7.3 are
        refused.
    kind : {"auto", "logical", "distribution"}, default="auto"
        The content of the label matrix. By default, labels are logical if all values are -1, 0
        or 1.
    name : str, optional
        The name of the data set. By default the name of the file.
    max_expanded_bytes : int, optional
        Largest size of the arrays. A sparse label matrix counts with its size as a dense array. By
        default 200 times the size of the file, but at least 256 MiB.

    Returns
    -------
    Dataset
        The data set, with `Y` or `D`.
    """
    check_kind(kind)
    path = Path(path)
    refuse_compression(path)
    X, labels = _pick(_load(path, max_expanded_bytes), str(path))
    codes = np.unique(labels)
    if kind == "auto":
        # A distribution cannot contain -1. Treated as logical labels, -1 gives a clear error.
        kind = "logical" if np.isin(codes, (-1, 0, 1)).all() else "distribution"
    if kind == "logical":
        if np.isin(codes, (-1, 1)).all():
            labels = labels > 0
        return Dataset(X=X, Y=labels, name=name or path.stem, source=str(path))
    return Dataset(X=X, D=labels, name=name or path.stem, source=str(path))


def _pick(variables: Settings, file: str) -> _Pair:
    for layout in _LAYOUTS:
        if layout[0] in variables and layout[1] in variables:
            X, Y = _oriented(variables, layout, file)
            # Files with these names keep training and test rows apart. A Dataset has all rows.
            if layout[:2] == ("X", "Y") and all(name in variables for name in _TEST_PART[:2]):
                X, Y = _joined((X, Y), _oriented(variables, _TEST_PART, file), file)
            return X, Y
    pairs = ", ".join(f"{features}/{labels}" for features, labels, _ in _LAYOUTS)
    raise DatasetFormatError(
        f"no known pair of variables; expected one of {pairs}",
        file=file,
        token=", ".join(sorted(variables)),
    )


def _oriented(variables: Settings, layout: tuple[str, str, bool], file: str) -> _Pair:
    """Check features and labels of one part, and transpose the labels to one row per example."""
    features, labels, by_label = layout
    X, Y = (_checked(variables[name], name, file) for name in (features, labels))
    Y = np.asarray(Y.toarray() if is_sparse(Y) else Y)
    Y, turned = (Y.T, Y) if by_label else (Y, Y.T)
    # Some files use the other orientation for the same name. The number of rows decides, but a
    # square matrix fits both ways and keeps the usual orientation.
    if Y.shape[0] != X.shape[0] and turned.shape[0] == X.shape[0]:
        Y = turned
    if Y.shape[0] != X.shape[0]:
        raise DatasetFormatError(
            f"{features} has {X.shape[0]} rows, but {labels} has the shape "
            f"{variables[labels].shape}; one side of it must also be {X.shape[0]}",
            file=file,
        )
    return X, Y


def _checked(matrix: Features, name: str, file: str) -> Features:
    if isinstance(matrix, _OddVariable):
        raise DatasetFormatError(
            f"variable {name!r} must be a matrix of real numbers; cells, structs, text and complex "
            "numbers cannot be features or labels",
            file=file,
            token=matrix.description,
        )
    return matrix


def _joined(train: _Pair, test: _Pair, file: str) -> _Pair:
    for name, mine, other in zip(("X", "Y"), train, test, strict=True):
        if mine.shape[1] != other.shape[1]:
            raise DatasetFormatError(
                f"{name} has {mine.shape[1]} columns and {name}t has {other.shape[1]}; the two "
                "parts of a data set need the same number",
                file=file,
            )
    X: Features
    if is_sparse(train[0]) or is_sparse(test[0]):
        X = sparse.vstack([sparse.csr_array(train[0]), sparse.csr_array(test[0])], format="csr")
    else:
        X = np.vstack([train[0], test[0]])
    return X, np.vstack([train[1], test[1]])


def _load(path: Path, max_expanded_bytes: int | None) -> Settings:
    budget = Budget(str(path), file_size(path), max_expanded_bytes)
    try:
        with path.open("rb") as file:
            return read_mat5(file, _KNOWN, budget)
    except BrokenFileError as error:
        raise DatasetFormatError(
            f"not a readable MATLAB version 5 file: {error}", file=str(path)
        ) from error
