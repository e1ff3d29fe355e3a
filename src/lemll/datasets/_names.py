"""Default column names, which are created only when they are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

__all__ = ["NumberedNames"]

_SHOWN = 6


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NumberedNames(Sequence[str]):
    """The names ``x0, x1, ...``. Each name is created when it is used.

    A sparse data set may have millions of columns. One string per column would need more memory
    than the data.

    Parameters
    ----------
    prefix : str
        The text before the number.
    numbers : range
        The numbers.

    Examples
    --------
    >>> NumberedNames("x", range(3))
    ('x0', 'x1', 'x2')
    >>> NumberedNames("x", range(30_000_000))
    ('x0', 'x1', 'x2', ..., 'x29999999')
    """

    prefix: str
    numbers: range

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> NumberedNames: ...
    def __getitem__(self, index: int | slice) -> str | NumberedNames:
        if isinstance(index, slice):
            return NumberedNames(self.prefix, self.numbers[index])
        return f"{self.prefix}{self.numbers[index]}"

    def __iter__(self) -> Iterator[str]:
        return (f"{self.prefix}{number}" for number in self.numbers)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames) and self.prefix == other.prefix:
            return self.numbers == other.numbers
        if isinstance(other, tuple | NumberedNames):
            return len(self) == len(other) and all(
                mine == theirs for mine, theirs in zip(self, other, strict=True)
            )
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))  # equal objects must have equal hashes, and this may equal a tuple

    def __repr__(self) -> str:
        if len(self) <= _SHOWN:
            return repr(tuple(self))
        first = ", ".join(map(repr, self[:3]))
        return f"({first}, ..., {self[-1]!r})"
