"""Small parts of the readers: sparse parts, and the sizes in Parquet files."""

from __future__ import annotations

import io
import struct

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from scipy import sparse

from lemll.datasets._streams import compressed_matrix
from lemll.tables.parquet import CompactReader, unpacked_sizes


def test_sparse_parts_of_unsigned_and_long_numbers():
    parts = (
        np.array([1.0, 2.0, 9.0]),
        np.array([1, 0, 0], np.uint64),
        np.array([0, 1, 2], np.uint8),
    )
    for make, expected in (
        (sparse.csr_array, [[0, 1], [2, 0]]),
        (sparse.csc_array, [[0, 2], [1, 0]]),
    ):
        assert compressed_matrix(make, *parts, (2, 2)).toarray().tolist() == expected


@pytest.mark.parametrize("options", [{}, {"compression": "none"}, {"data_page_version": "2.0"}])
@pytest.mark.parametrize("dictionary", [True, False])
def test_sizes_of_pages_agree_with_the_footer(options, dictionary):
    rng = np.random.RandomState(0)
    table = pyarrow.table({f"c{j}": rng.randint(0, 50, 10_000) for j in range(20)})
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(
        table,
        buffer,
        row_group_size=4000,
        use_dictionary=dictionary,
        data_page_size=2000,
        **options,
    )
    metadata = pyarrow.parquet.ParquetFile(buffer).metadata
    sizes = list(unpacked_sizes(buffer))
    assert len(sizes) == metadata.num_row_groups == 3
    for number, (size, values) in enumerate(sizes):
        group = metadata.row_group(number)
        announced = sum(group.column(j).total_uncompressed_size for j in range(20))
        assert 0.8 * announced < size <= announced  # the footer counts the heads too
        assert values == 20 * group.num_rows


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x15", "it is cut short"),
        (b"\x15" + b"\xff" * 11, "a number does not end"),
        (b"\x1d", "a field has the unknown type 13"),
        (b"\x1c" * 20, "nested too deeply"),
        (b"\x19\xf5\xff\x7f", "a list does not end"),
        (b"\x19" * 30, "a list does not end"),
        (b"\x18\x7f", "it is cut short"),
    ],
)
def test_broken_thrift(data, message):
    with pytest.raises(ValueError, match=message):
        CompactReader(data).struct({})


def test_every_type_of_thrift_is_stepped_over():
    truth, byte, double, text = b"\x11", b"\x13\x07", b"\x17" + bytes(8), b"\x18\x02ab"
    truths, numbers = b"\x19\x21\x01\x02", b"\x1a\x25\x02\x04"
    by_long_form = b"\x05\x28\x0a"
    data = truth + byte + double + text + truths + numbers + by_long_form + b"\x00"
    reader = CompactReader(data)
    assert reader.struct({20: None}) == {20: 5}
    assert reader.place == len(data)


def parquet(footer: bytes, pages: bytes = b"PAR1") -> io.BytesIO:
    return io.BytesIO(pages + footer + struct.pack("<I", len(footer)) + b"PAR1")


def footer_of(chunk: bytes) -> bytes:
    """One row group of one column, whose description is given."""
    return b"\x49\x1c\x19\x1c\x3c" + chunk + bytes(4)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (io.BytesIO(b"PAR1" + struct.pack("<I", 99) + b"PAR1"), "its footer has 99 bytes, but the"),
        (parquet(footer_of(b"")), "the footer does not say where a column is"),
        (parquet(footer_of(b"\x76\x02\x26\x03")), "a column begins before the file"),
        (parquet(footer_of(b"\x76\x04\x26\x08"), b"PAR1\x00\x00"), "the header of a page gives no"),
    ],
)
def test_broken_footers(file, message):
    with pytest.raises(ValueError, match=message):
        list(unpacked_sizes(file))
