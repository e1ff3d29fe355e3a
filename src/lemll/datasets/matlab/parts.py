"""Shared parts of the readers of both versions of MATLAB files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from scipy import sparse

from lemll._types import Array
from lemll.datasets._compressed import compressed_matrix

__all__ = ["BrokenFileError", "Cost", "OddVariable", "sparse_variable"]


class BrokenFileError(Exception):
    """The bytes are not a MATLAB file of the version they pretend; the text says why."""


@dataclass(frozen=True, slots=True)
class OddVariable:
    """Stands for a wanted variable that is not a matrix of real numbers."""

    description: str


class Cost(Protocol):
    """Is told of each variable before it is read, and raises if that is too much."""

    def __call__(
        self, variable: str, shape: tuple[int, ...], *, stored: int | None = None, extra: int = 0
    ) -> None:
        """Count a variable of this shape, or one that takes `stored` bytes."""
        ...


def sparse_variable(
    name: str,
    values: Array,
    rows: Array,
    starts: Array,
    n_rows: int,
) -> Any:
    """Make the CSC array of a sparse variable, or say what is wrong with its parts."""
    try:
        shape = (n_rows, starts.size - 1)
        matrix = compressed_matrix(sparse.csc_array, values, rows, starts, shape)
    except ValueError as error:
        raise BrokenFileError(f"the sparse variable {name!r} is broken: {error}") from error
    matrix.sort_indices()
    if not matrix.has_canonical_format:
        raise BrokenFileError(f"the sparse variable {name!r} gives one cell twice")
    return matrix
