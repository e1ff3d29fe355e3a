"""Read data sets from MATLAB files, the usual format of label-distribution data."""

from __future__ import annotations

import json
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO, Any, Protocol

import numpy as np
from scipy import sparse

from lemll._files import Budget
from lemll._types import Array, Features, Settings
from lemll._validation import is_sparse
from lemll.datasets._columns import Kind, check_kind
from lemll.datasets._streams import compressed_matrix, file_size, refuse_compression
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError, import_extra

__all__ = [
    "BrokenFileError",
    "Cost",
    "Element",
    "FileBytes",
    "OddVariable",
    "read_hdf5",
    "read_mat",
    "read_mat5",
    "sparse_variable",
]


class BrokenFileError(Exception):
    """The bytes are not a valid MATLAB file of their version. The message says why."""


@dataclass(frozen=True, slots=True)
class OddVariable:
    """A wanted variable that is not a matrix of real numbers."""

    description: str


class Cost(Protocol):
    """Called for each variable before it is read; raises an error if the variable is too large."""

    def __call__(
        self, variable: str, shape: tuple[int, ...], *, stored: int | None = None, extra: int = 0
    ) -> None:
        """Count a dense variable of this shape, or a sparse variable of `stored` bytes."""
        ...


def sparse_variable(
    name: str,
    values: Array,
    rows: Array,
    starts: Array,
    n_rows: int,
) -> Any:
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


class FileBytes:
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


class Element:
    """One element at the top level. Its parts are read one after the other."""

    def __init__(self, file: BufferedReader, kind: int, size: int, order: str) -> None:
        self.order = order
        self._inflated = _InflatedBytes(file, size) if kind == _COMPRESSED else None
        self._source: _Bytes = self._inflated or FileBytes(file, size)
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


_HEADER_BYTES = 128
_VERSION_5 = 1
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


def read_mat5(file: BufferedReader, wanted: Collection[str], cost: Cost) -> Settings:
    """Read the wanted variables of a version 5 file.

    Parameters
    ----------
    file : binary file
        The file, at its beginning. It must be seekable.
    wanted : collection of str
        Names of the variables to read. Other variables are skipped.
    cost : callable
        Called with name, shape and stored bytes of each wanted matrix before its cells are read.

    Returns
    -------
    dict
        An array, a CSC array or an `OddVariable` for each wanted variable in the file.

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
        kind, size = struct.unpack(order + "II", FileBytes(file, end - place).read(8))
        place += 8
        if size > end - place:
            raise BrokenFileError(
                f"an element has {size} bytes, but only {end - place} bytes are left"
            )
        variable = _read_variable(Element(file, kind, size, order), wanted, cost)
        if variable is not None:
            name, value = variable
            if name in found:
                raise BrokenFileError(f"the variable {name!r} occurs twice")
            found[name] = value
        # The size in the tag gives the next element, even if not all of this one was read.
        place = file.seek(place + size)
    return found


def _byte_order(header: bytes) -> str:
    # Version 5 begins with readable text. Version 4 begins with small integers of 4 bytes.
    if 0 in header[:4]:
        raise BrokenFileError("it looks like version 4; load it in MATLAB and save it with -v7")
    # The writer stores the number of the letters "MI", so swapped letters mean little-endian.
    order = {b"IM": "<", b"MI": ">"}.get(header[126:])
    if order is None or struct.unpack(order + "H", header[124:126])[0] >> 8 != _VERSION_5:
        raise BrokenFileError("its first 128 bytes are not the header of such a file")
    return order


def _read_variable(element: Element, wanted: Collection[str], cost: Cost) -> tuple[str, Any] | None:
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
        return name, OddVariable(f"{len(shape)}-D, {type_}")
    n_rows, n_columns = shape
    value: Any
    if kind == _SPARSE:
        # Charge the bytes that are left, because the announced number of cells may be wrong.
        cost(name, shape, stored=element.left())
        rows, starts = element.numbers(None, "iu"), element.numbers(n_columns + 1, "iu")
        value = sparse_variable(name, element.numbers(None), rows, starts, n_rows)
    else:
        cost(name, shape)
        # MATLAB stores matrices by columns.
        value = element.numbers(n_rows * n_columns).reshape(shape, order="F")
    element.finish()
    return name, value


def _name(element: Element) -> str | None:
    """Read the name of a variable; return None if it is longer than every wanted name."""
    _, size, small = element.tag()
    return None if size > _MAX_NAME else bytes(element.data(size, small)).decode("latin-1")


_CHILD = Path(__file__).with_name("hdf5_child.py")
_MAX_DESCRIPTION = 2**16


def read_hdf5(path: Path, wanted: Collection[str], cost: Cost, limit: int) -> Settings:
    """Read the wanted variables of a version 7.3 file.

    Parameters
    ----------
    path : Path
        The file.
    wanted : collection of str
        Names of the variables to read. Other variables are not read.
    cost : callable
        Called with name, shape and stored bytes of each wanted matrix before its cells are read.
    limit : int
        Bytes of memory that the child process may use in addition to its basic needs.

    Returns
    -------
    dict
        An array, a CSC array or an `OddVariable` for each wanted variable in the file.

    Raises
    ------
    BrokenFileError
        If the file is not a valid version 7.3 file, or if the HDF5 library crashes.
    """
    # A file can request a plug-in, which is foreign code; the value "::" forbids plug-ins. Threads
    # of OpenBLAS would only use memory, which is limited in the child.
    environment = os.environ | {"HDF5_PLUGIN_PRELOAD": "::", "OPENBLAS_NUM_THREADS": "1"}
    # -P keeps the folder of the script out of the import path, where its modules could hide others.
    command = [sys.executable, "-P", str(_CHILD), str(path.absolute()), str(limit), *sorted(wanted)]
    with (
        tempfile.TemporaryFile() as complaints,
        Popen(command, stdout=PIPE, stderr=complaints, env=environment) as child,
    ):
        assert child.stdout is not None
        try:
            return _receive(child.stdout, cost)
        except EOFError as error:
            child.stdout.close()
            raise BrokenFileError(_reason(child.wait(), complaints)) from error
        finally:
            # After an error the child may still wait to write, or run in an endless loop.
            child.kill()


def _reason(code: int, complaints: IO[bytes]) -> str:
    complaints.seek(0)
    text = complaints.read(_MAX_DESCRIPTION).decode("utf-8", "replace").strip()
    if code == 1 and text:
        return text
    return f"the HDF5 library ended with code {code} while reading it"


@dataclass(frozen=True, slots=True)
class _Part:
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk: int

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    odd: str | None
    n_rows: int | None
    parts: tuple[_Part, ...]


def _receive(stream: IO[bytes], cost: Cost) -> Settings:
    variables = _description(stream)
    for variable in variables:
        _charge(variable, cost)
    return {variable.name: _value(variable, stream) for variable in variables}


def _description(stream: IO[bytes]) -> list[_Variable]:
    """Read the child's description of the variables, and check it: the child may have crashed."""
    try:
        return [_variable(one) for one in json.loads(stream.readline(_MAX_DESCRIPTION))]
    except (ValueError, KeyError, TypeError) as error:
        raise EOFError from error


def _variable(one: Settings) -> _Variable:
    parts = tuple(
        _Part(tuple(map(int, part["shape"])), np.dtype(part["dtype"]), int(part["chunk"]))
        for part in one["parts"]
    )
    n_rows = None if one["n_rows"] is None else int(one["n_rows"])
    odd = None if one["odd"] is None else str(one["odd"])
    # A dense variable is one matrix. A sparse one has three vectors: values, rows and starts.
    dimensions = [] if odd is not None else [2] if n_rows is None else [1, 1, 1]
    sound = [len(part.shape) for part in parts] == dimensions and all(
        part.dtype.kind in "biuf" and min(*part.shape, part.chunk) >= 0 for part in parts
    )
    if not sound:
        raise ValueError("this is not the description of a variable")
    return _Variable(str(one["name"]), odd, n_rows, parts)


def _charge(variable: _Variable, cost: Cost) -> None:
    # The library unpacks whole chunks, so one chunk is needed in addition to the cells.
    if variable.n_rows is not None:
        stored = sum(part.size + part.chunk for part in variable.parts)
        cost(variable.name, (variable.n_rows, variable.parts[2].shape[0] - 1), stored=stored)
    for part in variable.parts if variable.n_rows is None else ():
        cost(variable.name, part.shape, extra=part.chunk)


def _value(variable: _Variable, stream: IO[bytes]) -> Any:
    if variable.odd is not None:
        return OddVariable(variable.odd)
    arrays = [_array(part, stream) for part in variable.parts]
    if variable.n_rows is None:
        return arrays[0].T  # MATLAB stores matrices by columns, HDF5 by rows
    values, rows, starts = arrays
    return sparse_variable(variable.name, values, rows, starts, variable.n_rows)


def _array(part: _Part, stream: IO[bytes]) -> Array:
    data = bytearray(part.size)
    view, filled = memoryview(data), 0
    while filled < len(data):
        # A pipe may return fewer bytes than requested. No bytes mean that the child has ended.
        # The pipe of a process is a BufferedReader, but its declared type has no readinto.
        count = stream.readinto(view[filled:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        filled += count
    array = np.frombuffer(data, part.dtype).reshape(part.shape)
    return array.astype(part.dtype.newbyteorder("="), copy=False)


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
# HDF5 allows the signature at byte 0, 512, 1024, ... MATLAB puts its own header of 512 bytes first.
_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


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
        A version 5 file (MATLAB's ``-v6`` and ``-v7``), or a version 7.3 file (``-v7.3``), which
        h5py (extra ``data``) reads in a separate process. Version 4 files are refused.
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


class _Cost:
    """Charges the budget for a variable and for its later conversions, before it is read."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    def __call__(
        self, variable: str, shape: tuple[int, ...], *, stored: int | None = None, extra: int = 0
    ) -> None:
        """Count a dense variable, or a sparse one of `stored` bytes."""
        cells = int(np.prod(shape, dtype=object))
        if stored is None:
            self.budget.charge(8 * cells + extra)
        else:
            # The parts exist up to four times: as stored, in row order, with values as float64,
            # and as a copy. In addition there is one pointer per column and per row.
            dense = 8 * cells if variable in _LABELS else 0
            self.budget.charge(4 * stored + 8 * sum(shape) + dense)


def _pick(variables: Settings, file: str) -> tuple[Any, Any]:
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


def _oriented(variables: Settings, layout: tuple[str, str, bool], file: str) -> tuple[Any, Any]:
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


def _checked(matrix: Features, name: str, file: str) -> Any:
    if isinstance(matrix, OddVariable):
        raise DatasetFormatError(
            f"variable {name!r} must be a matrix of real numbers; cells, structs, text and complex "
            "numbers cannot be features or labels",
            file=file,
            token=matrix.description,
        )
    return matrix


def _joined(train: tuple[Any, Any], test: tuple[Any, Any], file: str) -> tuple[Any, Any]:
    for name, mine, other in zip(("X", "Y"), train, test, strict=True):
        if mine.shape[1] != other.shape[1]:
            raise DatasetFormatError(
                f"{name} has {mine.shape[1]} columns and {name}t has {other.shape[1]}; the two "
                "parts of a data set need the same number",
                file=file,
            )
    X: Any
    if is_sparse(train[0]) or is_sparse(test[0]):
        X = sparse.vstack([sparse.csr_array(train[0]), sparse.csr_array(test[0])], format="csr")
    else:
        X = np.vstack([train[0], test[0]])
    return X, np.vstack([train[1], test[1]])


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(512 + len(_HDF5_SIGNATURE))
    if not head:
        raise DatasetFormatError("the file is empty", file=str(path))
    return head.startswith(_HDF5_SIGNATURE) or head[512:] == _HDF5_SIGNATURE


def _load(path: Path, max_expanded_bytes: int | None) -> Settings:
    packed = file_size(path)
    budget = Budget(str(path), packed, max_expanded_bytes)
    version = "version 5"
    try:
        if _is_hdf5(path):
            version = "7.3"
            import_extra("h5py", "data", "Reading a MATLAB 7.3 file")
            return read_hdf5(path, _KNOWN, _Cost(budget), max_expanded_bytes or 4 * packed)
        with path.open("rb") as file:
            return read_mat5(file, _KNOWN, _Cost(budget))
    except BrokenFileError as error:
        raise DatasetFormatError(
            f"not a readable MATLAB {version} file: {error}", file=str(path)
        ) from error
