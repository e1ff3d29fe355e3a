"""Collect parsed ARFF rows into one Dataset, with separate features and labels."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lemll._files import Budget
from lemll._types import Array, BoolArray, Features, FloatArray, LabelArray
from lemll._validation import UNOBSERVED, is_sparse
from lemll.datasets._columns import to_number
from lemll.datasets.arff_header import Attribute, Header, unquote
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError

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
                f"missing value in {name!r}; pass `missing='nan'` to keep it as NaN", start
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


class RowCollector:
    """Collects the rows of all files, and separates features from labels.

    Parameters
    ----------
    header : Header
        The attributes.
    is_label : ndarray of bool
        Which attributes are labels.
    budget : Budget
        The budget of the first file. The memory of all rows is charged to it.
    """

    def __init__(self, header: Header, is_label: BoolArray, budget: Budget) -> None:
        self.header = header
        self.is_label = is_label
        self.budget = budget
        self.labels = np.flatnonzero(is_label)
        self.features = np.flatnonzero(~is_label)
        # The position of each column among the features, or among the labels.
        self.place = np.empty(is_label.size, dtype=np.int32)
        self.place[self.labels] = np.arange(self.labels.size)
        self.place[self.features] = np.arange(self.features.size)
        for column in self.labels:
            self._check_label(header.attributes[column], budget.file)
        self.chunks: list[SparseRows | npt.NDArray[np.float64]] = []
        self.label_chunks: list[npt.NDArray[np.int8]] = []
        self.rows = 0
        # In a sparse row, an omitted cell has the *first* nominal value, which is 1 for {1,0}.
        self.reversed_binary = next(
            (a.name for a in header.attributes if a.is_binary and (a.values or "0")[0] != "0"), None
        )

    @staticmethod
    def _check_label(attribute: Attribute, file: str) -> None:
        if attribute.values is not None and not attribute.is_binary:
            raise DatasetFormatError(
                f"label {attribute.name[:40]!r} must be declared {{0,1}} or numeric",
                file=file,
                token=f"{{{','.join(attribute.values[:9])}}}",
            )

    def go_on_with(self, header: Header, budget: Budget) -> None:
        """Continue with another file, after a check that it has the columns of the first file."""
        file = budget.file
        pairs = zip(self.header.attributes, header.attributes, strict=False)
        for mine, other in pairs:
            if (mine.name, mine.values) != (other.name, other.values):
                raise DatasetFormatError(
                    f"attribute differs from {mine.name[:40]!r} in the first file; files of one "
                    "data set need the same header",
                    file=file,
                    token=other.name,
                )
        if len(header.attributes) != len(self.header.attributes):
            raise DatasetFormatError(
                f"the file has {len(header.attributes)} attributes, but the first file has "
                f"{len(self.header.attributes)}",
                file=file,
            )
        self.budget.join(budget)

    def add(self, rows: Rows, file: str) -> None:
        """Add rows, and separate their features from their labels."""
        count = rows.lengths.size if isinstance(rows, SparseRows) else len(rows.table)
        self.rows += count
        # Charge before the copies are made.
        if isinstance(rows, DenseRows):
            size = count * self.features.size * 8
        else:
            size = rows.values.nbytes + rows.columns.nbytes + rows.lengths.nbytes
        self.budget.charge(size + count * self.labels.size)
        if isinstance(rows, DenseRows):
            self.label_chunks.append(rows.table[:, self.labels].astype(np.int8))
            self.chunks.append(rows.table[:, self.features])
        else:
            self.label_chunks.append(self._split(rows, count, file))

    def _split(self, rows: SparseRows, count: int, file: str) -> LabelArray:
        if self.reversed_binary is not None:
            raise DatasetFormatError(
                f"attribute {self.reversed_binary[:40]!r} is declared {{1,0}}, so it would be 1 "
                "where a sparse row omits it; declare it {0,1}",
                file=file,
            )
        row_of = np.repeat(np.arange(count, dtype=np.int32), rows.lengths)
        labelled = self.is_label[rows.columns]
        # The parser accepts only 0, 1 and ? here, so a wider type is not needed.
        values = np.zeros((count, self.labels.size), dtype=np.int8)
        values[row_of[labelled], self.place[rows.columns[labelled]]] = rows.values[labelled]
        kept = ~labelled
        lengths = np.bincount(row_of[kept], minlength=count).astype(np.int32)
        self.chunks.append(SparseRows(self.place[rows.columns[kept]], rows.values[kept], lengths))
        return values

    def finish(self, *, name: str, source: str, onehot: bool, allow_missing: bool) -> Dataset:
        """Join all rows into one Dataset."""
        attributes = self.header.attributes
        if not self.rows:
            raise DatasetFormatError("no row after @data", file=source or None)
        Y: Array = np.concatenate(self.label_chunks)
        self.label_chunks.clear()
        if (Y == UNOBSERVED).any():
            Y = np.where(Y == UNOBSERVED, np.nan, Y)
        X = _join(self.chunks, int(self.features.size))
        kept = [attributes[column] for column in self.features]
        names = [attribute.name for attribute in kept]
        if onehot:
            self._check_one_hot(kept, is_sparse(X))
            X, names = _one_hot(X, kept)
        return Dataset(
            X=X,
            Y=Y,
            feature_names=names,
            label_names=[attributes[column].name for column in self.labels],
            name=name,
            source=source,
            allow_missing=allow_missing,
        )

    def _check_one_hot(self, kept: list[Attribute], as_sparse: bool) -> None:
        widths, coded = _one_hot_widths(kept)
        # Even a sparse row gets one indicator per nominal attribute: a value and its column index.
        cells = self.rows * int(2 * coded.sum() if as_sparse else widths.sum())
        # Each new name contains the name of the attribute, once per nominal value.
        text = sum(len(a.name) * int(w) for a, w in zip(kept, widths, strict=True))
        self.budget.charge(8 * cells + text)


def _join(chunks: list[SparseRows | npt.NDArray[np.float64]], width: int) -> Features:
    """Concatenate the chunks; sparse chunks are freed one by one to reduce the peak memory."""
    if all(isinstance(chunk, np.ndarray) for chunk in chunks):
        return np.concatenate([chunk for chunk in chunks if isinstance(chunk, np.ndarray)])
    parts = [_to_sparse(chunk) for chunk in chunks]
    chunks.clear()
    lengths = np.concatenate([part.lengths for part in parts])
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    columns = [part.columns for part in parts]
    values = [part.values for part in parts]
    parts.clear()
    data = np.concatenate(values)
    values.clear()
    indices = np.concatenate(columns)
    # SciPy uses one type for both index arrays, and copies an array of another type.
    if data.size < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    return sparse.csr_array((data, indices, indptr), shape=(lengths.size, width))


def _to_sparse(chunk: SparseRows | npt.NDArray[np.float64]) -> SparseRows:
    if isinstance(chunk, SparseRows):
        return chunk
    rows, columns = np.nonzero(chunk)
    lengths = np.bincount(rows, minlength=len(chunk)).astype(np.int32)
    return SparseRows(columns.astype(np.int32), chunk[rows, columns], lengths)


def _one_hot_widths(attributes: list[Attribute]) -> tuple[npt.NDArray[np.int64], BoolArray]:
    """Return the number of columns of each attribute, and whether they are indicators."""
    coded = np.array([a.values is not None and not a.is_binary for a in attributes])
    sizes = (len(a.values) if c and a.values else 1 for a, c in zip(attributes, coded, strict=True))
    return np.fromiter(sizes, dtype=np.int64, count=len(attributes)), coded


def _one_hot(X: Features, attributes: list[Attribute]) -> tuple[Features, list[str]]:
    """Replace coded nominal columns by indicators. A missing value has no indicator."""
    widths, coded = _one_hot_widths(attributes)
    # The first new column of each attribute. The code of a value is the offset from there.
    first = np.cumsum(widths) - widths
    codes = X[:, coded].toarray() if is_sparse(X) else X[:, coded]
    rows, which = np.nonzero(~np.isnan(codes))
    columns = first[coded][which] + codes[rows, which].astype(np.int64)
    joined: Features
    if is_sparse(X):
        cells = X.tocoo()
        kept = ~coded[cells.col]
        rows = np.concatenate([cells.row[kept], rows])
        values = np.concatenate([cells.data[kept], np.ones(columns.size)])
        columns = np.concatenate([first[cells.col[kept]], columns])
        shape = (X.shape[0], int(widths.sum()))
        joined = sparse.csr_array((values, (rows, columns)), shape=shape)
    else:
        joined = np.zeros((X.shape[0], int(widths.sum())))
        joined[:, first[~coded]] = X[:, ~coded]
        joined[rows, columns] = 1
    names = [
        name
        for attribute, indicators in zip(attributes, coded, strict=True)
        for name in (
            [f"{attribute.name}={value}" for value in attribute.values or ()]
            if indicators
            else [attribute.name]
        )
    ]
    return joined, names
