"""The fast path for ARFF rows: NumPy parses blocks of plain numbers in a few passes.

Each function returns None for a block that it cannot parse safely. Then the simple parser is used.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lemll._types import BoolArray, FloatArray
from lemll.datasets.arff.header import Attribute

__all__ = [
    "BoolArray",
    "ColumnKinds",
    "DenseRows",
    "Rows",
    "SparseRows",
    "parse_coded_block",
    "parse_dense_block",
    "parse_sparse_block",
]

IntArray = npt.NDArray[np.int32]

_PLAIN_SPARSE = b"0123456789+-.eE{}, \t\r\n"
_DIGITS_ONLY = b"0123456789{}, \t\r\n"
_PLAIN_DENSE = b"0123456789+-.eE, \t\r\n"
_NOT_BARE = re.compile(rb"[{}'\"%?\\_]")
_ZERO = np.uint8(ord("0"))
_MAX_DIGITS = 9  # every number with 9 digits fits an int32, but not every one with 10
_TO_SPACES = bytes.maketrans(b"{},\t\r\n", b"      ")

# Classes of bytes in the sparse fast path. Classes from _COMMA on are structural characters.
_TOKEN, _SPACE, _COMMA, _OPEN, _CLOSE, _NEWLINE = range(6)
_CLASS = np.zeros(256, dtype=np.uint8)
for _characters, _kind in ((b" \t\r", _SPACE), (b",", _COMMA), (b"{", _OPEN), (b"}", _CLOSE)):
    _CLASS[list(_characters)] = _kind
_CLASS[ord("\n")] = _NEWLINE

# The grammar as two tables: which structural character may follow which, with no token between
# them or with two tokens (index and value). All other sequences are left to the simple parser.
_WITH_NONE = np.zeros((6, 6), dtype=bool)
_WITH_TWO = np.zeros((6, 6), dtype=bool)
for _before, _after in (
    (_NEWLINE, _OPEN),
    (_NEWLINE, _NEWLINE),
    (_OPEN, _CLOSE),
    (_CLOSE, _NEWLINE),
):
    _WITH_NONE[_before, _after] = True
for _before, _after in ((_OPEN, _COMMA), (_OPEN, _CLOSE), (_COMMA, _COMMA), (_COMMA, _CLOSE)):
    _WITH_TWO[_before, _after] = True


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Consecutive rows given by their non-zero cells, row after row."""

    columns: IntArray
    values: FloatArray
    lengths: IntArray


@dataclass(frozen=True, slots=True)
class DenseRows:
    """Consecutive rows given by all their cells."""

    table: FloatArray


Rows = SparseRows | DenseRows


class ColumnKinds:
    """The columns that contain only 0 and 1 (including labels), and the other nominal columns."""

    def __init__(self, attributes: tuple[Attribute, ...], is_label: BoolArray) -> None:
        self.count = len(attributes)
        self.binary = np.array([a.is_binary for a in attributes]) | is_label
        self.coded = np.array([a.values is not None and not a.is_binary for a in attributes])
        self.plain = not self.coded.any()
        self.codes = [a.codes if c else None for a, c in zip(attributes, self.coded, strict=True)]


def parse_sparse_block(block: bytes, kinds_of: ColumnKinds) -> SparseRows | None:
    """Parse whole lines of sparse rows, ``{index value, index value, ...}``."""
    if block.translate(None, _PLAIN_SPARSE) or b"{" not in block:
        return None
    # The tables of the grammar need a line end after the last row.
    if not block.endswith(b"\n"):
        block += b"\n"
    characters = np.frombuffer(block, dtype=np.uint8)
    kinds = _CLASS[characters]
    in_token = kinds == _TOKEN
    starts = in_token.copy()
    starts[1:] &= ~in_token[:-1]
    marks = np.flatnonzero(kinds >= _COMMA)
    after = kinds[marks]
    # A block begins at the start of a line, as if a line end came before it.
    before = np.concatenate(([np.uint8(_NEWLINE)], after[:-1]))
    token_number = np.cumsum(starts, dtype=np.int32)  # from 1: odd ones are column indices
    tokens_before = token_number[marks]
    between = np.diff(tokens_before, prepend=np.int32(0))
    well_formed = np.where(
        between == 0, _WITH_NONE[before, after], (between == 2) & _WITH_TWO[before, after]
    )
    if not well_formed.all():
        return None
    numbers: FloatArray | None
    if block.translate(None, _DIGITS_ONLY):
        # Column indices must be digits only: 1.0 and 1e2 are numbers, but not indices.
        no_digit = in_token & ((characters < _ZERO) | (characters > _ZERO + 9))
        if (token_number[no_digit] % 2 == 1).any():
            return None
        numbers = _parse_numbers(block.translate(_TO_SPACES), " ", int(tokens_before[-1]))
    else:
        numbers = _parse_digits(characters, in_token, starts)
    if numbers is None:
        return None
    columns, values = numbers[0::2], numbers[1::2]
    closings = tokens_before[after == _CLOSE]
    lengths = np.diff(closings, prepend=np.int32(0)) // 2
    if not _sparse_is_sound(columns, values, lengths, kinds_of):
        return None
    # A file may write zeros, but a CSR array should not store them.
    keep = values != 0
    if not keep.all():
        rows = np.repeat(np.arange(lengths.size, dtype=np.int32), lengths)
        lengths = np.bincount(rows[keep], minlength=lengths.size).astype(np.int32)
        columns, values = columns[keep], values[keep]
    return SparseRows(columns.astype(np.int32), np.array(values), lengths)


def _sparse_is_sound(
    columns: FloatArray, values: FloatArray, lengths: IntArray, kinds_of: ColumnKinds
) -> bool:
    if columns.size == 0:
        return True
    if columns.min() < 0 or columns.max() >= kinds_of.count:
        return False
    indices = columns.astype(np.int32)
    if (indices != columns).any() or not np.isfinite(values).all():
        return False
    rising = np.diff(indices) > 0
    first_of_row = (np.cumsum(lengths) - lengths)[lengths > 0][1:]
    rising[first_of_row - 1] = True  # the first index of a row may be smaller than the one before
    if not rising.all() or kinds_of.coded[indices].any():
        return False
    odd = (values != 0) & (values != 1)
    return not (odd & kinds_of.binary[indices]).any()


def parse_dense_block(block: bytes, kinds_of: ColumnKinds) -> DenseRows | None:
    """Parse whole lines of dense rows, which are numbers separated by commas."""
    if not kinds_of.plain or block.translate(None, _PLAIN_DENSE):
        return None
    width = kinds_of.count
    lines = [stripped for line in block.split(b"\n") if (stripped := line.strip())]
    # Count per line. A long and a short line could give the right total together.
    if any(line.count(b",") != width - 1 for line in lines):
        return None
    numbers = _parse_numbers(b",".join(lines), ",", len(lines) * width)
    if numbers is None or not np.isfinite(numbers).all():
        return None
    table = numbers.reshape(len(lines), width)
    binary = table[:, kinds_of.binary]
    if ((binary != 0) & (binary != 1)).any():
        return None
    return DenseRows(table)


def parse_coded_block(block: bytes, kinds_of: ColumnKinds) -> DenseRows | None:
    """Parse whole lines of dense rows with unquoted nominal values, column by column."""
    if kinds_of.plain or _NOT_BARE.search(block):
        return None
    width = kinds_of.count
    lines = [stripped for line in block.split(b"\n") if (stripped := line.strip())]
    if any(line.count(b",") != width - 1 for line in lines):
        return None
    text = b",".join(lines).replace(b", ", b",").decode("latin-1")
    # The simple parser decides about other white space, and about the encoding of names.
    if " " in text or not (text.isascii() and text.isprintable()):
        return None
    cells = text.split(",")
    table = np.empty((len(lines), width))
    for column, codes in enumerate(kinds_of.codes):
        values = cells[column::width]
        try:
            if codes is None:
                table[:, column] = np.array(values, dtype=np.float64)
            else:
                table[:, column] = [codes[value] for value in values]
        except (KeyError, ValueError):
            return None
    binary = table[:, kinds_of.binary]
    if ((binary != 0) & (binary != 1)).any() or not np.isfinite(table).all():
        return None
    return DenseRows(table)


def _parse_digits(
    characters: npt.NDArray[np.uint8],
    in_token: npt.NDArray[np.bool_],
    starts: npt.NDArray[np.bool_],
) -> FloatArray | None:
    """Parse all tokens of digits together, which is several times faster than strtod."""
    ends = in_token.copy()
    ends[:-1] &= ~in_token[1:]
    last = np.flatnonzero(ends)
    lengths = last - np.flatnonzero(starts) + 1
    if lengths.size == 0:
        return np.empty(0)
    if lengths.max() > _MAX_DIGITS:
        return None
    # Add the digits of all tokens from right to left: first the units, then the tens, and so on.
    # Characters outside of tokens wrap around in uint8, but are never used.
    digits = (characters - _ZERO).astype(np.int32)
    numbers = digits[last]
    for place in range(1, int(lengths.max())):
        longer = np.flatnonzero(lengths > place)
        numbers[longer] += digits[last[longer] - place] * 10**place
    return numbers.astype(np.float64)


def _parse_numbers(text: bytes, separator: str, count: int) -> FloatArray | None:
    with warnings.catch_warnings():
        # For text that is not a number, old versions of NumPy give a DeprecationWarning and a part
        # of the numbers. New versions raise ValueError.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            numbers = np.fromstring(text, dtype=np.float64, sep=separator)
        except (DeprecationWarning, ValueError):
            return None
    return numbers if numbers.size == count else None
