"""Read a Parquet table; its pages are counted before one of them is unpacked."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from lemll._files import NAME_BYTES, Budget
from lemll.exceptions import DatasetFormatError, import_extra
from lemll.tables.text import CELL_BYTES, Cells, cell_text, empty_columns

# The fields of a struct to keep, with the fields to keep inside each of them; None for a number.
Wanted = dict[int, "Wanted | None"]

_BYTE, _DOUBLE, _TEXT, _LIST, _SET, _STRUCT = 3, 7, 8, 9, 10, 12
_BOOLEANS = (1, 2)
_NUMBERS = (4, 5, 6)
_MAX_DEPTH = 12
_NOTHING: Wanted = {}


class CompactReader:
    """Reads structs and keeps the wanted fields.

    Parameters
    ----------
    data : bytes
        Data in the compact protocol.

    Attributes
    ----------
    place : int
        Number of bytes read so far.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    def struct(self, wanted: Wanted, depth: int = _MAX_DEPTH) -> dict[int, Any]:
        """Read a struct; return its wanted fields: numbers, structs (dict) and lists of structs.

        Raises
        ------
        ValueError
            If the bytes are not a struct.
        """
        if depth == 0:
            raise ValueError("its structs are nested too deeply")
        found: dict[int, Any] = {}
        field = 0
        # A zero byte ends a struct. In other cases the high four bits are the step to the number of
        # the field, or 0 if the number itself follows. The low four bits are the type.
        while first := self._byte():
            field = field + (first >> 4) if first >> 4 else self._number()
            value = self._value(first & 15, wanted.get(field), depth)
            if field in wanted:
                found[field] = value
        return found

    def _value(self, kind: int, wanted: Wanted | None, depth: int) -> Any:
        if kind in _NUMBERS:
            return self._number()
        if kind == _TEXT:
            self._step(self._varint())
        elif kind == _STRUCT:
            return self.struct(wanted or _NOTHING, depth - 1)
        elif kind in (_LIST, _SET):
            return self._list(wanted, depth)
        elif kind in (_BYTE, _DOUBLE):
            self._step(1 if kind == _BYTE else 8)
        elif kind not in _BOOLEANS:
            raise ValueError(f"a field has the unknown type {kind}")
        return None

    def _list(self, wanted: Wanted | None, depth: int) -> list[Any]:
        first = self._byte()
        count, kind = first >> 4, first & 15
        if count == 15:
            count = self._varint()
        if kind in _BOOLEANS:  # one byte each, although in a struct the type itself is the value
            self._step(count)
            return []
        if depth == 0 or count > len(self._data):
            raise ValueError("a list does not end")
        values = (self._value(kind, wanted, depth - 1) for _ in range(count))
        if wanted is None:
            for _ in values:
                pass
            return []
        return list(values)

    def _byte(self) -> int:
        self._step(1)
        return self._data[self.place - 1]

    def _step(self, size: int) -> None:
        self.place += size
        if self.place > len(self._data):
            raise ValueError("it is cut short")

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number does not end")

    def _number(self) -> int:
        """Read a number in zigzag coding, in which small negative numbers also need few bytes."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


# Numbers of the fields in FileMetaData, RowGroup, ColumnChunk and ColumnMetaData of parquet.thrift.
_ROW_GROUPS, _COLUMNS, _COLUMN = 4, 1, 3
_TOTAL_PACKED, _DATA_PLACE, _DICTIONARY_PLACE = 7, 9, 11
_FOOTER: Wanted = {
    _ROW_GROUPS: {
        _COLUMNS: {_COLUMN: {_TOTAL_PACKED: None, _DATA_PLACE: None, _DICTIONARY_PLACE: None}}
    }
}
# Numbers of the fields in PageHeader, in DataPageHeader (version 1) and in DataPageHeaderV2.
_UNPACKED, _PACKED, _VERSION_1, _VERSION_2 = 2, 3, 5, 8
_VALUES, _ENCODING_1, _ENCODING_2 = 1, 2, 4
_HEAD: Wanted = {
    _UNPACKED: None,
    _PACKED: None,
    _VERSION_1: {_VALUES: None, _ENCODING_1: None},
    _VERSION_2: {_VALUES: None, _ENCODING_2: None},
}
_HEAD_BYTES = 2**12
# A file ends with the length of the footer, 4 bytes, and the letters PAR1.
_TAIL_BYTES = 8
# Texts of this encoding repeat the beginning of the one before, so no header tells their size.
_SHARED_BEGINNINGS = 7


class Unpacked(NamedTuple):
    """What the pages of a row group unpack to.

    Attributes
    ----------
    size : int
        Bytes of all pages.
    values : int
        Cells, and elements of lists in cells.
    """

    size: int
    values: int


def unpacked_sizes(raw: BinaryIO) -> Iterator[Unpacked]:
    """Yield the total size of the unpacked pages of each row group.

    Parameters
    ----------
    raw : binary file
        The Parquet file. Its position changes.

    Yields
    ------
    Unpacked
        Number of bytes and of values.

    Raises
    ------
    ValueError
        If the footer or a page header is broken.
    """
    end = raw.seek(0, os.SEEK_END)
    raw.seek(max(0, end - _TAIL_BYTES))
    size = int.from_bytes(raw.read(4), "little")
    if size > end - _TAIL_BYTES:
        raise ValueError(f"its footer has {size} bytes, but the file has only {end}")
    raw.seek(end - _TAIL_BYTES - size)
    footer = CompactReader(raw.read(size)).struct(_FOOTER)
    for group in footer.get(_ROW_GROUPS, ()):
        chunks = [_chunk(column.get(_COLUMN), raw) for column in group.get(_COLUMNS, ())]
        yield Unpacked(sum(one.size for one in chunks), sum(one.values for one in chunks))


def _chunk(chunk: dict[int, int] | None, raw: BinaryIO) -> Unpacked:
    if chunk is None or not {_TOTAL_PACKED, _DATA_PLACE} <= chunk.keys():
        raise ValueError("the footer does not say where a column is")
    place = chunk[_DATA_PLACE]
    # The page of the dictionary, if there is one, comes before the pages of data.
    if 0 < chunk.get(_DICTIONARY_PLACE, 0) < place:
        place = chunk[_DICTIONARY_PLACE]
    end = place + chunk[_TOTAL_PACKED]
    size = values = 0
    while place < end:
        if place < 0:
            raise ValueError("a column begins before the file")
        raw.seek(place)
        reader = CompactReader(raw.read(_HEAD_BYTES))
        head = reader.struct(_HEAD)
        packed, unpacked = head.get(_PACKED, -1), head.get(_UNPACKED, -1)
        if min(packed, unpacked) < 0:
            raise ValueError("the header of a page gives no sizes")
        first, second = head.get(_VERSION_1, {}), head.get(_VERSION_2, {})
        if _SHARED_BEGINNINGS in (first.get(_ENCODING_1), second.get(_ENCODING_2)):
            raise ValueError("it has the encoding DELTA_BYTE_ARRAY; use PLAIN or a dictionary")
        size += unpacked
        values += max(0, first.get(_VALUES, 0), second.get(_VALUES, 0))
        place += reader.place + packed
    return Unpacked(size, values)


_BATCH_CELLS = 2**20


@contextmanager
def open_parquet(
    path: Path, budget: Budget, cell_bytes: int
) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Open a Parquet file whose content fits into a budget.

    Parameters
    ----------
    path : Path
        The file.
    budget : Budget
        Is charged for the cells and the names of the columns.
    cell_bytes : int
        What the caller needs for one cell.

    Yields
    ------
    ParquetFile
        The open file, of pyarrow.
    iterator of RecordBatch
        Its rows; columns of text have dictionaries.

    Raises
    ------
    Exception
        Of any kind, if the file is damaged.
    """
    parquet = import_extra("pyarrow.parquet", "store", "Reading Parquet")
    with path.open("rb") as raw:
        groups = list(unpacked_sizes(raw))
        budget.charge(cell_bytes * sum(group.values for group in groups))
        budget.check(max((group.size for group in groups), default=0))
        schema = parquet.read_metadata(path).schema
        leaves = [schema.column(j) for j in range(len(schema))]
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        # A text that repeats is kept once.
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            rows, width = file.metadata.num_rows, len(leaves)
            if rows < 0:
                raise ValueError(f"the footer announces {rows} rows")
            budget.charge(NAME_BYTES * width)
            yield file, _batches(file, rows, max(1, _BATCH_CELLS // max(1, width)))


def _batches(file: Any, rows: int, size: int) -> Iterator[Any]:
    """Yield batches, and count them: the file may have more rows than the footer announces."""
    count = 0
    for batch in file.iter_batches(size, use_threads=False):
        count += batch.num_rows
        if count > rows:
            break
        yield batch
    if count != rows:
        raise ValueError(f"the footer announces {rows} rows, but the file has another number")


def read_parquet(path: Path, budget: Budget) -> Cells:
    """Read the cells of a Parquet file as text."""
    try:
        with open_parquet(path, budget, CELL_BYTES) as (file, batches):
            # The metadata of pandas would hide an index; as a column it may hold the ids.
            names = [str(name) for name in file.schema_arrow.names]
            columns = empty_columns(names, str(path))
            for batch in batches:
                for column, values in zip(columns, batch.columns, strict=True):
                    column.extend(_texts(values, budget))
    except DatasetFormatError:
        raise
    except Exception as error:
        # A damaged file fails in many ways.
        raise DatasetFormatError(
            f"the file cannot be read as Parquet ({error}); write it again", file=str(path)
        ) from error
    return Cells(names, columns, [])


def _texts(values: Any, budget: Budget) -> list[str]:
    """Return the cells of a column as text; equal cells share one text."""
    types = import_extra("pyarrow.types", "store", "Reading Parquet")
    if types.is_fixed_size_list(values.type):
        pyarrow = import_extra("pyarrow", "store", "Reading Parquet")
        values = values.cast(pyarrow.list_(values.type.value_type))
    if types.is_list(values.type) or types.is_large_list(values.type):
        flat = values.flatten()
        numbers = types.is_floating(flat.type) or types.is_integer(flat.type)
        elements = iter(flat.to_pylist() if numbers else _texts(flat, budget))
        counts = values.value_lengths().to_pylist()
        lists = [None if n is None else list(itertools.islice(elements, n)) for n in counts]
        return [cell_text(cell) for cell in lists]
    if types.is_nested(values.type):
        # No feature and no tag; the column has the same value in all rows.
        return ["nested"] * len(values)
    if not types.is_dictionary(values.type):
        values = values.dictionary_encode()
    # The last text is that of cells without a value.
    different = [*map(cell_text, _python_values(values.dictionary)), ""]
    places = np.asarray(values.indices.fill_null(len(different) - 1))
    budget.charge(int(np.array([len(text) for text in different], dtype=np.int64)[places].sum()))
    shared = np.array(different, dtype=object)
    return list(shared[places])


def _python_values(values: Any) -> list[Any]:
    """Return Python's values; those of times in nanoseconds have no type but that of pandas."""
    types = import_extra("pyarrow.types", "store", "Reading Parquet")
    pyarrow = import_extra("pyarrow", "store", "Reading Parquet")
    if types.is_timestamp(values.type) and values.type.unit == "ns":
        values = values.cast(pyarrow.timestamp("us", values.type.tz), safe=False)
    found: list[Any] = values.to_pylist()
    return found
