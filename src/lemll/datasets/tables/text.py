"""Read a CSV table of numbers, many rows at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from lemll._budget import NAME_BYTES, Budget
from lemll._types import BoolArray, Settings
from lemll.datasets._numbers import has_odd_characters, to_number
from lemll.datasets._streams import LineBlocks
from lemll.exceptions import DatasetFormatError

__all__ = ["Table", "read_csv"]

# Column names, cells, and the metadata of the file about the data set.
Table = tuple[list[str], npt.NDArray[np.float64], Settings]
_BATCH_CELLS = 2**15


def read_csv(blocks: LineBlocks, may_be_empty: Callable[[list[str]], BoolArray]) -> Table:
    """Read a table: its column names and its cells as float64.

    `may_be_empty` is called with the column names, and returns in which columns an empty cell means
    NaN.
    """
    file = blocks.file
    reader = csv.reader(_text_lines(blocks), strict=True)
    try:
        columns = next(reader, None)
        if not columns:
            raise DatasetFormatError("the file is empty; expected a header line", file=file)
        blocks.budget.charge(NAME_BYTES * len(columns))
        cells = _Cells(may_be_empty(columns), blocks.budget)
        for row in reader:
            if row:
                cells.add(row, reader.line_num)
    except csv.Error as error:
        raise DatasetFormatError(
            f"not well-formed CSV: {error}", file=file, line=reader.line_num
        ) from error
    return columns, cells.finish(), {}


def _text_lines(blocks: LineBlocks) -> Iterator[str]:
    for block in blocks:
        try:
            text = block.decode("utf-8-sig" if blocks.line == 1 else "utf-8")
        except UnicodeDecodeError:
            text = block.decode("latin-1")
        yield from io.StringIO(text, newline="\n")


class _Cells:
    """Collects rows and converts many of them to numbers at once, which is faster."""

    def __init__(self, may_be_empty: BoolArray, budget: Budget) -> None:
        self.width = len(may_be_empty)
        self.budget = budget
        self.may_be_empty = may_be_empty
        self.texts: list[str] = []
        self.lines: list[int] = []
        self.chunks: list[npt.NDArray[np.float64]] = []

    def add(self, row: list[str], line: int) -> None:
        if len(row) != self.width:
            raise DatasetFormatError(
                f"the row has {len(row)} cells, but the header has {self.width}",
                file=self.budget.file,
                line=line,
            )
        self.texts += row
        self.lines.append(line)
        if len(self.texts) >= _BATCH_CELLS:
            self._convert()

    def finish(self) -> npt.NDArray[np.float64]:
        self._convert()
        if not self.chunks:
            raise DatasetFormatError("no row after the header line", file=self.budget.file)
        return np.concatenate(self.chunks).reshape(-1, self.width)

    def _convert(self) -> None:
        if not self.texts:
            return
        self.budget.charge(8 * len(self.texts))
        try:
            if has_odd_characters("".join(self.texts)):
                raise ValueError
            values = np.array(self.texts, dtype=np.float64)
        except ValueError:
            values = np.array([to_number(text) for text in self.texts], dtype=np.float64)
        for place in np.flatnonzero(~np.isfinite(values)).tolist():
            if self.texts[place].strip() or not self.may_be_empty[place % self.width]:
                raise self._not_a_number(place)
        self.chunks.append(values)
        self.texts.clear()
        self.lines.clear()

    def _not_a_number(self, place: int) -> DatasetFormatError:
        row, column = divmod(place, self.width)
        text = self.texts[place]
        hint = "" if text.strip() else "; pass missing='nan' to keep empty cells as NaN"
        return DatasetFormatError(
            f"expected a finite number{hint}",
            file=self.budget.file,
            line=self.lines[row],
            column=column + 1,
            token=text,
        )
