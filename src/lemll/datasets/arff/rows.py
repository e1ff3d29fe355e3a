"""Parse the rows of an ARFF file block by block.

NumPy parses a block of plain numbers in a few passes over its bytes. A block with anything else
(quotes, nominal values, missing values, comments, errors) goes to a simple parser. It reads line by
line, and it either accepts the line or reports the position of the error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lemll._validation import UNOBSERVED
from lemll.datasets._numbers import to_number
from lemll.datasets.arff.fast import (
    ColumnKinds,
    DenseRows,
    Rows,
    SparseRows,
    parse_coded_block,
    parse_dense_block,
    parse_sparse_block,
)
from lemll.datasets.arff.header import Header, unquote
from lemll.exceptions import DatasetFormatError

__all__ = ["RowParser"]

# Possessive repeats ("*+") never go back, so the time is linear in the length of the line.
_GAP = re.compile(r"\s*+")
_VALUE = re.compile(
    r"""\s*+(?:('(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+")|([^\s,{}'"%][^\s,{}]*+))""", re.DOTALL
)
_INDEX = re.compile(r"\s*+([0-9]{1,10})(?=\s)")
_BITS = {"0": 0.0, "1": 1.0}
_END = re.compile(r"\s*+(?:%.*)?\Z", re.DOTALL)


class RowParser:
    """Convert blocks of ARFF text to rows of numbers, for one header.

    Parameters
    ----------
    header : Header
        The attributes. They alone decide the number of columns.
    is_label : ndarray of bool
        Which attributes are labels. A label must be 0 or 1.
    file : str
        Name of the file in error messages.
    allow_missing : bool
        Whether "?" in a feature becomes NaN. Otherwise it is an error.
    """

    def __init__(
        self, header: Header, is_label: npt.NDArray[np.bool_], file: str, *, allow_missing: bool
    ) -> None:
        self.attributes = header.attributes
        self.encoding = header.encoding
        self.file = file
        self.allow_missing = allow_missing
        self.is_label = is_label.tolist()
        self.kinds = ColumnKinds(header.attributes, is_label)

    def parse(self, block: bytes, line: int) -> Iterator[Rows]:
        """Parse one block of whole lines that begins at line number `line`."""
        if not block.strip():
            return
        fast = (
            parse_sparse_block(block, self.kinds)
            or parse_dense_block(block, self.kinds)
            or parse_coded_block(block, self.kinds)
        )
        if fast is not None:
            yield fast
        else:
            yield from self._parse_lines(block, line)

    def _parse_lines(self, block: bytes, first: int) -> Iterator[Rows]:
        dense: list[list[float]] = []
        sparse: list[dict[int, float]] = []
        for number, raw in enumerate(block.split(b"\n"), start=first):
            line = _Line(self._decode(raw), number, self.file)
            if line.at_end():
                continue
            # One file may mix dense and sparse rows. Yield in the order of the file.
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
            # The encoding was found in the header alone. latin-1 accepts every byte: a comment in
            # another encoding does no harm, and a wrong value is reported with its position.
            return raw.decode("latin-1")

    def _dense_line(self, line: _Line) -> list[float]:
        values: list[float] = []
        for column in range(len(self.attributes)):
            if values and not line.take(","):
                raise line.error(
                    f"expected ',' here: {len(values)} values so far, the header has "
                    f"{len(self.attributes)} attributes"
                )
            values.append(self._value(column, line))
        if not line.at_end():
            raise line.error(
                f"unexpected text after the {len(self.attributes)} values of the header"
            )
        return values

    def _sparse_line(self, line: _Line) -> dict[int, float]:
        cells: dict[int, float] = {}
        closed = line.take("}")
        while not closed:
            column = line.index()
            if column >= len(self.attributes):
                raise line.error(
                    f"column index {column} is too large; the header has {len(self.attributes)} "
                    "attributes"
                )
            if column in cells:
                raise line.error(f"column {column} occurs twice in one row")
            cells[column] = self._value(column, line)
            closed = line.take("}")
            if not closed and not line.take(","):
                raise line.error("expected ',' or '}' here")
        if not line.at_end():
            raise line.error("unexpected text after the row")
        return cells

    def _value(self, column: int, line: _Line) -> float:
        attribute = self.attributes[column]
        start = line.position
        text, quoted = line.value()
        # Most cells of labels are "0" or "1", so look them up before the general rules.
        bit = _BITS.get(text)
        if bit is not None and (attribute.is_binary or self.is_label[column]):
            return bit
        name = attribute.name[:40]
        if self.is_label[column]:
            if text == "?" and not quoted:
                return float(UNOBSERVED)
            value = to_number(text)
            if value in (0, 1):
                return value
            problem = f"label {name!r} must be 0 or 1 in every row"
            if value == -1:
                problem += "; labels -1/+1 must be converted to 0/1"
            raise line.error(problem, start)
        # Only an unquoted ? is a missing value; in quotes it is a nominal value.
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
        value = to_number(text)
        if value is None or (attribute.is_binary and value not in (0, 1)):
            wanted = "0 or 1" if attribute.is_binary else "a finite number"
            raise line.error(f"expected {wanted} for {name!r}", start)
        return value


class _Line:
    """A line of text with a position, which only moves forward."""

    def __init__(self, text: str, number: int, file: str) -> None:
        self.text = text
        self.number = number
        self.file = file
        self.position = 0

    def at_end(self) -> bool:
        """Tell whether only white space or a comment is left."""
        return self.position == len(self.text) or _END.match(self.text, self.position) is not None

    def take(self, character: str) -> bool:
        """Skip `character` and the white space before it; return False if it does not come next."""
        end = self.position
        if self.text[end : end + 1].isspace():
            match = _GAP.match(self.text, end)
            end = end if match is None else match.end()
        if self.text[end : end + 1] != character:
            return False
        self.position = end + 1
        return True

    def index(self) -> int:
        """Read a column index."""
        match = _INDEX.match(self.text, self.position)
        if match is None:
            raise self.error("expected a column index, a space and a value")
        self.position = match.end()
        return int(match[1])

    def value(self) -> tuple[str, bool]:
        """Read a value; return it, and whether it was quoted."""
        match = _VALUE.match(self.text, self.position)
        if match is None:
            raise self.error("expected a value here")
        self.position = match.end()
        return (match[2], False) if match[1] is None else (unquote(match[1]), True)

    def error(self, problem: str, position: int | None = None) -> DatasetFormatError:
        """Make the error for a problem at `position`, by default the current position."""
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
