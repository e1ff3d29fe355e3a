"""Count what a Parquet file unpacks to, from its footer and from its page headers.

A compressed page may be a hundred thousand times smaller than its content, and the footer may give
a wrong size. The header of the page must be correct, because the library allocates memory by it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from lemll.tables.thrift import CompactReader, Wanted

__all__ = ["Unpacked", "unpacked_sizes"]

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
