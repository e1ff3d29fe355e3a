"""Shared parts of the readers of both versions of MATLAB files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from scipy import sparse

from lemll._types import Array
from lemll.datasets._compressed import compressed_matrix

__all__ = ["BrokenFileError", "Cost", "OddVariable", "sparse_variable"]


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
