"""Limit the memory that reading one file may use, for text, cells and names together."""

from __future__ import annotations

from lemll.exceptions import DatasetFormatError

__all__ = ["NAME_BYTES", "Budget"]

# What comes out of a file may be this many times larger than the file (real data sets stay below
# 60), unless it stays below the floor anyway: a few kilobytes of zeros must not fill the memory.
_MAX_RATIO = 200
_FLOOR_BYTES = 256 * 2**20
# Compressed text has the lower floor: it is read by Python at about a megabyte per second where no
# fast path fits, and grows once more when it is turned into numbers.
_TEXT_FLOOR_BYTES = 2 * 2**20
# A Python string with its place in a tuple, about.
NAME_BYTES = 64


class Budget:
    """Counts the bytes that a reader allocates for a file, and refuses too large allocations.

    Parameters
    ----------
    file : str
        For messages.
    packed : int
        Bytes of the file.
    limit : int or None
        The reader's `max_expanded_bytes`, for the text and for the arrays; by default 200 times
        `packed`, and never below 2 MiB of text and 256 MiB of arrays.
    """

    def __init__(self, file: str, packed: int, limit: int | None) -> None:
        self.file = file
        self._packed = packed
        self._limit = limit
        self._text = 0
        self._arrays = 0

    def charge_text(self, size: int) -> None:
        """Count `size` bytes of text that came out of a compressed file."""
        self._text += size
        allowed = self._allowed(_TEXT_FLOOR_BYTES)
        if self._text > allowed:
            raise DatasetFormatError(
                f"expands to more than {allowed} bytes, which no data set of this file size "
                "does; if it is genuine, pass a larger max_expanded_bytes",
                file=self.file,
            )

    def charge(self, size: int) -> None:
        """Count `size` bytes of arrays and names that are about to be made."""
        self.check(size)
        self._arrays += size

    def check(self, size: int) -> None:
        """Refuse `size` bytes that would not fit, without counting what is soon freed again."""
        total = self._arrays + size
        allowed = self._allowed(_FLOOR_BYTES)
        if total > allowed:
            raise DatasetFormatError(
                f"its arrays would take {total} bytes, more than the {allowed} that a file "
                "of this size should ask for; if it is genuine, pass a larger max_expanded_bytes",
                file=self.file,
            )

    def join(self, other: Budget) -> None:
        """Take in the account of a further file of the same data set."""
        self._packed += other._packed
        self._arrays += other._arrays

    def _allowed(self, floor: int) -> int:
        return max(floor, _MAX_RATIO * self._packed) if self._limit is None else self._limit
