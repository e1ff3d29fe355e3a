"""Read the elements of a MATLAB file of version 5: tags, padding, byte order and compression.

The format is described in "MAT-File Format" by The MathWorks. A file is a sequence of elements. An
element is a tag (type and size) and its data, padded to a multiple of 8 bytes.
"""

from __future__ import annotations

import struct
import zlib
from io import BufferedReader
from typing import Protocol

import numpy as np

from lemll._types import Array
from lemll.datasets.matlab.parts import BrokenFileError

__all__ = ["Element", "FileBytes"]

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
