"""Limit the memory that reading one file may use, for text, cells and names together."""

from __future__ import annotations

from lemll.exceptions import DatasetFormatError

__all__ = ["NAME_BYTES", "Budget"]

# The arrays of a file may be this many times larger than the file itself. Real data sets stay below
# 60. Results below the floor are always allowed. A few kilobytes of packed zeros must not fill the
# memory.
_MAX_RATIO = 200
_FLOOR_BYTES = 256 * 2**20
# The floor for compressed text is lower, because text is expensive: without a fast path, Python
# reads about one megabyte per second, and the numbers made from the text need memory again.
_TEXT_FLOOR_BYTES = 2 * 2**20
# Approximate memory of a short Python string and its pointer in a tuple.
NAME_BYTES = 64


class Budget:
    """Counts the bytes that a reader allocates for a file, and refuses allocations beyond a limit.

    Parameters
    ----------
    file : str
        Name of the file in error messages.
    packed : int
        Size of the file in bytes.
    limit : int or None
        The option `max_expanded_bytes` of the reader, for the text and for the arrays. By default
        200 times `packed`, but at least 2 MiB for text and 256 MiB for arrays.
    remedy : str
        What to do if a correct file is refused.
    """

    def __init__(
        self,
        file: str,
        packed: int,
        limit: int | None,
        remedy: str = "pass a larger max_expanded_bytes",
    ) -> None:
        self.file = file
        self._packed = packed
        self._limit = limit
        self._remedy = remedy
        self._text = 0
        self._arrays = 0

    def charge_text(self, size: int) -> None:
        """Count `size` bytes of text from a compressed file."""
        self._text += size
        allowed = self._allowed(_TEXT_FLOOR_BYTES)
        if self._text > allowed:
            raise DatasetFormatError(
                f"expands to more than {allowed} bytes, which is too much for a file of this "
                f"size; if the file is correct, {self._remedy}",
                file=self.file,
            )

    def charge(self, size: int) -> None:
        """Count `size` bytes of arrays and names before they are allocated."""
        self.check(size)
        self._arrays += size

    def check(self, size: int) -> None:
        """Refuse `size` bytes that do not fit, without counting them: they are freed soon."""
        total = self._arrays + size
        allowed = self._allowed(_FLOOR_BYTES)
        if total > allowed:
            raise DatasetFormatError(
                f"its arrays would take {total} bytes, more than the {allowed} that a file of this "
                f"size should need; if the file is correct, {self._remedy}",
                file=self.file,
            )

    def join(self, other: Budget) -> None:
        """Add the counts of another file of the same data set."""
        self._packed += other._packed
        self._arrays += other._arrays

    def _allowed(self, floor: int) -> int:
        return max(floor, _MAX_RATIO * self._packed) if self._limit is None else self._limit
