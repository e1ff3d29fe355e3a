"""Read and write bytes: limited decompression, blocks of whole lines, atomic writing."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from lemll._files import Budget, whole_file
from lemll._types import Array, Features
from lemll.exceptions import DatasetFormatError


def compressed_matrix(
    make: Any,
    values: Array,
    indices: Array,
    starts: Array,
    shape: tuple[int, int],
) -> Features:
    """Make a CSR or CSC array, and check that every index is inside its shape.

    The conversions of SciPy do not check the parts, so a wrong index would write out of bounds.

    Parameters
    ----------
    make : type
        ``sparse.csr_array`` or ``sparse.csc_array``.
    values, indices, starts : ndarray
        The stored values, their positions in the row (CSR) or column (CSC), and the position at
        which each row or column begins. `values` and `indices` may be longer than needed.
    shape : tuple of int
        Rows and columns.

    Returns
    -------
    csr_array or csc_array
        The matrix. Parts are copied only if their type must change.

    Raises
    ------
    ValueError
        If the parts are not consistent.
    """
    if min(shape) < 0:
        raise ValueError(f"the shape {shape} is negative")
    if any(part.ndim != 1 for part in (values, indices, starts)):
        raise ValueError("each part must be one-dimensional")
    if any(part.dtype.kind not in "iu" for part in (indices, starts)):
        raise ValueError("indices and starts must be whole numbers")
    major, minor = shape if make is sparse.csr_array else shape[::-1]
    if starts.size != major + 1:
        raise ValueError(f"got {starts.size} starts, expected {major + 1}")
    if starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise ValueError("the starts must begin at 0 and must not decrease")
    count = int(starts[-1])
    if count > min(indices.size, values.size):
        raise ValueError(
            f"the starts announce {count} cells, but there are {indices.size} indices and "
            f"{values.size} values"
        )
    indices, values = indices[:count], values[:count]
    if count and not (indices.min() >= 0 and indices.max() < minor):
        raise ValueError(f"an index is outside of 0 ... {minor - 1}")
    # SciPy uses 32-bit indices if they suffice. They need half the memory.
    narrow = max(count, minor, major) <= np.iinfo(np.int32).max
    index_type = np.int32 if narrow else np.int64
    return make(
        (values, indices.astype(index_type, copy=False), starts.astype(index_type, copy=False)),
        shape=shape,
    )


COMPRESSIONS = (".gz", ".bz2", ".xz")

# A line is converted to numbers as a whole, and this needs many times the memory of the line.
_MAX_LINE_BYTES = 16 * 2**20
# Memory per byte of a line in the worst case, "1,1,1,...": one Python string per two bytes.
_PARTS_BYTES = 32
# Small blocks keep the arrays of one block in the processor's cache and the peak memory low.
_BLOCK_BYTES = 128 * 2**10

_BROKEN_STREAM = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class BinaryFile(Protocol):
    """The part of an open file that a writer uses."""

    def write(self, data: bytes, /) -> int: ...


def plain_suffix(path: Path) -> str:
    """Return the lower-case suffix of the format, without a suffix of compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def refuse_compression(path: Path) -> None:
    """Refuse a suffix of compression for a format that is already compressed."""
    if path.suffix.lower() in COMPRESSIONS:
        raise ValueError(
            f"{path.name!r}: {plain_suffix(path)} files are already compressed; "
            f"decompress the file, or remove the suffix {path.suffix}"
        )


def _unreadable(error: OSError, path: Path) -> DatasetFormatError:
    if isinstance(error, FileNotFoundError):
        return DatasetFormatError("no such file; check its name", file=str(path))
    return DatasetFormatError(f"cannot be read: {error.strerror or error}", file=str(path))


def file_size(path: Path) -> int:
    """Return the size of a file; raise an error if it cannot be opened."""
    try:
        with path.open("rb") as file:
            return file.seek(0, os.SEEK_END)
    except OSError as error:
        raise _unreadable(error, path) from error


def _open_compressed(path: Path) -> Any:
    match path.suffix.lower():
        case ".gz":
            return gzip.open(path, "rb")
        case ".bz2":
            return bz2.open(path, "rb")
        case ".xz":
            return lzma.open(path, "rb")
    return path.open("rb")


class _Capped:
    """A stream that decompresses a file up to a limit. Every error is a DatasetFormatError."""

    def __init__(self, path: Path, max_expanded_bytes: int | None) -> None:
        self.path = path
        self.budget = Budget(str(path), file_size(path), max_expanded_bytes)
        self.packed = path.suffix.lower() in COMPRESSIONS
        try:
            self.stream = _open_compressed(path)
        except OSError as error:
            raise _unreadable(error, path) from error

    def read(self, size: int) -> bytes:
        try:
            chunk: bytes = self.stream.read(size)
        except _BROKEN_STREAM as error:
            raise DatasetFormatError(
                f"the {self.path.suffix} stream is broken or cut short: {error}",
                file=str(self.path),
            ) from error
        except MemoryError as error:  # the header of .xz sets the size of the dictionary
            raise DatasetFormatError(
                f"the {self.path.suffix} stream needs more memory than is available; compress it "
                "again with a default preset",
                file=str(self.path),
            ) from error
        except OSError as error:  # bz2 raises this for damaged files, and open files for folders
            raise _unreadable(error, self.path) from error
        if self.packed:
            self.budget.charge_text(len(chunk))
        return chunk


def read_capped(path: Path) -> tuple[bytes, Budget]:
    """Read and decompress a whole small file, such as the label XML, with the same limit."""
    capped = _Capped(path, None)
    with capped.stream:
        chunks = iter(lambda: capped.read(_BLOCK_BYTES), b"")
        return b"".join(chunks), capped.budget


class LineBlocks:
    """Iterate over a file in blocks of whole lines.

    Parameters
    ----------
    source : Path or bytes
        The file (plain, .gz, .bz2, .xz), or its content.
    max_expanded_bytes : int, optional
        Largest size after decompression, and of the arrays made from it; see `Budget`.

    Attributes
    ----------
    line : int
        Number of the first line of the most recent block, counted from 1.
    budget : Budget
        The memory that the file may use. The readers charge it for values and names.
    """

    def __init__(self, source: Path | bytes, max_expanded_bytes: int | None = None) -> None:
        self._stream: _Readable
        if isinstance(source, bytes):
            self.file = "<bytes>"
            buffer = io.BytesIO(source)
            self._stream, self._close = buffer, buffer.close
            self.budget = Budget(self.file, len(source), max_expanded_bytes)
        else:
            self.file = str(source)
            capped = _Capped(source, max_expanded_bytes)
            self._stream, self._close = capped, capped.stream.close
            self.budget = capped.budget
        self.line = 1
        self._next_line = 1
        self._pushed: bytes | None = None
        # The incomplete last line. It is an attribute, so that a new iteration can continue.
        self._carry = bytearray()

    def __enter__(self) -> LineBlocks:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def push_back(self, block: bytes, line: int) -> None:
        """Return the unused end of the last block, which begins at `line`, to the stream."""
        self._pushed = block
        self.line = line

    def __iter__(self) -> Iterator[bytes]:
        while True:
            if self._pushed is not None:
                block, self._pushed = self._pushed, None
                self._next_line = self.line + block.count(b"\n")
                yield block
                continue
            chunk = self._stream.read(_BLOCK_BYTES)
            cut = chunk.rfind(b"\n") + 1
            if chunk and not cut:
                self._carry += chunk
                if len(self._carry) > _MAX_LINE_BYTES:
                    raise DatasetFormatError(
                        f"a line is longer than {_MAX_LINE_BYTES} bytes; the file is not a text "
                        "data set, or its line ends are missing",
                        file=self.file,
                        line=self._next_line,
                    )
                continue
            block = bytes(self._carry) + chunk[:cut]
            self._carry = bytearray(chunk[cut:])
            if len(block) > 2 * _BLOCK_BYTES:
                # One line is longer than a block, and all its parts exist at the same time.
                self.budget.check(_PARTS_BYTES * len(block))
            if block:
                self.line = self._next_line
                self._next_line += block.count(b"\n")
                yield block
            if not chunk:
                return


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[BinaryFile]:
    """Open a file for writing. It gets its name only when it is complete.

    The suffix selects the compression. After an error, the incomplete file is removed, and an
    existing file with this name is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as raw:
        match path.suffix.lower():
            case ".gz":
                # Without a time stamp, the same data always give the same bytes.
                with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                    yield packed
            case ".bz2":
                with bz2.open(raw, "wb") as packed:
                    yield packed
            case ".xz":
                with lzma.open(raw, "wb") as packed:
                    yield packed
            case _:
                yield raw
