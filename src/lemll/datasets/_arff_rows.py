"""The rows of an ARFF file, block by block.

A block of plain numbers is parsed by NumPy in a few passes over its bytes. Whatever that path is
not sure of (quotes, nominal values, missing values, comments, any fault) goes through the obvious
parser, line by line, which either understands it or says where it is wrong.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lemll.datasets._arff_header import Attribute, Header, unquote
from lemll.exceptions import DatasetFormatError

__all__ = ["DenseRows", "RowParser", "Rows", "SparseRows"]

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]

_PLAIN_SPARSE = b"0123456789+-.eE{}, \t\r\n"
_DIGITS_ONLY = b"0123456789{}, \t\r\n"
_PLAIN_DENSE = b"0123456789+-.eE, \t\r\n"
_ZERO = np.uint8(ord("0"))
_MAX_DIGITS = 9  # more would not fit an int32
_TO_SPACES = bytes.maketrans(b"{},\t\r\n", b"      ")

# Byte classes of the sparse fast path.
_TOKEN, _SPACE, _COMMA, _OPEN, _CLOSE, _NEWLINE = range(6)
_CLASS = np.zeros(256, dtype=np.uint8)
for _characters, _kind in ((b" \t\r", _SPACE), (b",", _COMMA), (b"{", _OPEN), (b"}", _CLOSE)):
    _CLASS[list(_characters)] = _kind
_CLASS[ord("\n")] = _NEWLINE

# Which structural character may follow which, with no token or with two tokens between them.
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

_GAP = re.compile(r"\s*+")
_VALUE = re.compile(
    r"""\s*+(?:('(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+")|([^\s,{}'"%][^\s,{}]*+))""", re.DOTALL
)
_INDEX = re.compile(r"\s*+([0-9]{1,10})(?=\s)")
_END = re.compile(r"\s*+(?:%.*)?\Z", re.DOTALL)


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


class RowParser:
    """Turn blocks of ARFF text into rows of numbers, for one header.

    Parameters
    ----------
    header : Header
        The attributes, which alone decide how many columns there are.
    file : str
        For messages.
    allow_missing : bool
        Whether "?" becomes NaN; otherwise it is refused.
    """

    def __init__(self, header: Header, file: str, *, allow_missing: bool) -> None:
        self.attributes = header.attributes
        self.encoding = header.encoding
        self.file = file
        self.allow_missing = allow_missing
        self.binary = np.array([a.is_binary for a in header.attributes])
        self.coded = np.array([a.values is not None and not a.is_binary for a in header.attributes])
        self.plain = not self.coded.any()

    def parse(self, block: bytes, line: int) -> Iterator[Rows]:
        """Parse one block of whole lines that begins at line number `line`."""
        if not block.strip():
            return
        fast = self._parse_sparse(block) or self._parse_dense(block)
        if fast is not None:
            yield fast
        else:
            yield from self._parse_lines(block, line)

    def _parse_sparse(self, block: bytes) -> SparseRows | None:
        if block.translate(None, _PLAIN_SPARSE) or b"{" not in block:
            return None
        if not block.endswith(b"\n"):
            block += b"\n"
        characters = np.frombuffer(block, dtype=np.uint8)
        kinds = _CLASS[characters]
        in_token = kinds == _TOKEN
        starts = in_token.copy()
        starts[1:] &= ~in_token[:-1]  # a block begins with "{", so its first byte is no token
        marks = np.flatnonzero(kinds >= _COMMA)
        after = kinds[marks]
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
        if not self._sparse_is_sound(columns, values, lengths):
            return None
        keep = values != 0
        if not keep.all():
            rows = np.repeat(np.arange(lengths.size, dtype=np.int32), lengths)
            lengths = np.bincount(rows[keep], minlength=lengths.size).astype(np.int32)
            columns, values = columns[keep], values[keep]
        return SparseRows(columns.astype(np.int32), np.array(values), lengths)

    def _sparse_is_sound(self, columns: FloatArray, values: FloatArray, lengths: IntArray) -> bool:
        if columns.size == 0:
            return True
        if columns.min() < 0 or columns.max() >= len(self.attributes):
            return False
        indices = columns.astype(np.int32)
        if (indices != columns).any() or not np.isfinite(values).all():
            return False
        rising = np.diff(indices) > 0
        first_of_row = (np.cumsum(lengths) - lengths)[lengths > 0][1:]
        rising[first_of_row - 1] = True  # a new row starts anew
        if not rising.all() or self.coded[indices].any():
            return False
        odd = (values != 0) & (values != 1)
        return not (odd & self.binary[indices]).any()

    def _parse_dense(self, block: bytes) -> DenseRows | None:
        if not self.plain or block.translate(None, _PLAIN_DENSE):
            return None
        width = len(self.attributes)
        lines = [stripped for line in block.split(b"\n") if (stripped := line.strip())]
        if any(line.count(b",") != width - 1 for line in lines):
            return None
        numbers = _parse_numbers(b",".join(lines), ",", len(lines) * width)
        if numbers is None or not np.isfinite(numbers).all():
            return None
        table = numbers.reshape(len(lines), width)
        binary = table[:, self.binary]
        if ((binary != 0) & (binary != 1)).any():
            return None
        return DenseRows(table)

    def _parse_lines(self, block: bytes, first: int) -> Iterator[Rows]:
        dense: list[list[float]] = []
        sparse: list[dict[int, float]] = []
        for number, raw in enumerate(block.split(b"\n"), start=first):
            line = _Line(self._decode(raw), number, self.file)
            if line.at_end():
                continue
            if line.take("{"):
                if dense:
                    yield DenseRows(np.array(dense))
                    dense = []
                sparse.append(self._sparse_line(line))
            else:
                if sparse:
                    yield _sparse_rows(sparse)
                    sparse = []
                dense.append(self._dense_line(line))
        if dense:
            yield DenseRows(np.array(dense))
        if sparse:
            yield _sparse_rows(sparse)

    def _decode(self, raw: bytes) -> str:
        try:
            return raw.decode(self.encoding)
        except UnicodeDecodeError:
            return raw.decode("latin-1")

    def _dense_line(self, line: _Line) -> list[float]:
        values: list[float] = []
        for attribute in self.attributes:
            if values and not line.take(","):
                raise line.error(
                    f"want ',' here: {len(values)} values so far, the header has "
                    f"{len(self.attributes)} attributes"
                )
            values.append(self._value(attribute, line))
        if not line.at_end():
            raise line.error(
                f"unexpected text behind the {len(self.attributes)} values the header announces"
            )
        return values

    def _sparse_line(self, line: _Line) -> dict[int, float]:
        cells: dict[int, float] = {}
        closed = line.take("}")
        while not closed:
            column = line.index()
            if column >= len(self.attributes):
                raise line.error(
                    f"column index {column} beyond the header's {len(self.attributes)} attributes"
                )
            if column in cells:
                raise line.error(f"column {column} occurs twice in one row")
            cells[column] = self._value(self.attributes[column], line)
            closed = line.take("}")
            if not closed and not line.take(","):
                raise line.error("want ',' or '}' here")
        if not line.at_end():
            raise line.error("unexpected text behind the row")
        return cells

    def _value(self, attribute: Attribute, line: _Line) -> float:
        start = line.position
        text, quoted = line.value()
        name = attribute.name[:40]
        if text == "?" and not quoted:
            if self.allow_missing:
                return math.nan
            raise line.error(
                f"missing value in {name!r}; pass missing='nan' to keep it as NaN", start
            )
        if attribute.values is not None and not attribute.is_binary:
            code = attribute.codes.get(text)
            if code is None:
                raise line.error(f"not among the nominal values of {name!r}", start)
            return float(code)
        value = _to_number(text)
        if value is None or (attribute.is_binary and value not in (0, 1)):
            wanted = "0 or 1" if attribute.is_binary else "a finite number"
            raise line.error(f"want {wanted} for {name!r}", start)
        return value


class _Line:
    """A line of text with a place in it; every step moves forward, none goes back."""

    def __init__(self, text: str, number: int, file: str) -> None:
        self.text = text
        self.number = number
        self.file = file
        self.position = 0

    def at_end(self) -> bool:
        """Whether only white space or a comment is left."""
        return _END.match(self.text, self.position) is not None

    def take(self, character: str) -> bool:
        """Step over `character` and the white space before it, if it comes next."""
        match = _GAP.match(self.text, self.position)
        end = self.position if match is None else match.end()
        if self.text[end : end + 1] != character:
            return False
        self.position = end + 1
        return True

    def index(self) -> int:
        """Step over a column index."""
        match = _INDEX.match(self.text, self.position)
        if match is None:
            raise self.error("want a column index, a space and a value")
        self.position = match.end()
        return int(match[1])

    def value(self) -> tuple[str, bool]:
        """Step over a value; return it, and whether it was quoted."""
        match = _VALUE.match(self.text, self.position)
        if match is None:
            raise self.error("want a value here")
        self.position = match.end()
        return (match[2], False) if match[1] is None else (unquote(match[1]), True)

    def error(self, problem: str, position: int | None = None) -> DatasetFormatError:
        """Describe a fault at `position`, by default here."""
        place = self.position if position is None else position
        return DatasetFormatError(
            problem,
            file=self.file,
            line=self.number,
            column=place + 1,
            token=self.text[place : place + 80].strip(),
        )


def _sparse_rows(rows: list[dict[int, float]]) -> SparseRows:
    cells = [sorted((column, value) for column, value in row.items() if value != 0) for row in rows]
    flat = [cell for row in cells for cell in row]
    return SparseRows(
        np.array([column for column, _ in flat], dtype=np.int32),
        np.array([value for _, value in flat], dtype=np.float64),
        np.array([len(row) for row in cells], dtype=np.int32),
    )


def _to_number(text: str) -> float | None:
    # float() would also take "1_000", "infinity" and digits of other scripts.
    if not text.isascii() or "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _parse_digits(
    characters: npt.NDArray[np.uint8],
    in_token: npt.NDArray[np.bool_],
    starts: npt.NDArray[np.bool_],
) -> FloatArray | None:
    """Parse tokens that consist of digits only, all at once: several times faster than strtod."""
    ends = in_token.copy()
    ends[:-1] &= ~in_token[1:]
    last = np.flatnonzero(ends)
    lengths = last - np.flatnonzero(starts) + 1
    if lengths.size == 0:
        return np.empty(0)
    if lengths.max() > _MAX_DIGITS:
        return None
    digits = (characters - _ZERO).astype(np.int32)
    numbers = digits[last]
    for place in range(1, int(lengths.max())):
        longer = np.flatnonzero(lengths > place)
        numbers[longer] += digits[last[longer] - place] * 10**place
    return numbers.astype(np.float64)


def _parse_numbers(text: bytes, separator: str, count: int) -> FloatArray | None:
    with warnings.catch_warnings():
        # NumPy reports text that is not numbers by a DeprecationWarning, later by a ValueError.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            numbers = np.fromstring(text, dtype=np.float64, sep=separator)
        except (DeprecationWarning, ValueError):
            return None
    return numbers if numbers.size == count else None
