"""Small files that ask for much memory or time: refused before they get it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import time
import zipfile

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from support import Peak

from lemll.datasets import read_arff, read_dataset, read_npz, read_table
from lemll.datasets._columns import read_label_xml
from lemll.exceptions import DatasetFormatError

pytestmark = pytest.mark.slow

X = np.array([[1.5, 0.0], [0.0, 2.0]])
Y = np.array([[1, 0], [1, 1]], dtype=np.uint8)
ARFF = b"@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute c {a,b}\n@data\n"


# Text


@pytest.mark.nightly(when=lambda row: row in (b"0\n", b"'0','a'\n"))
@pytest.mark.parametrize(
    ("name", "head", "row", "options"),
    [
        ("a.svm", b"", b"0\n", {}),
        ("a.svm", b"", b"0 1:1\n", {}),
        ("a.csv", b"x,y\n", b"1,0\n", {"labels": ["y"]}),
        ("a.arff", ARFF, b"0,a\n", {}),
        ("a.arff", ARFF, b"'0','a'\n", {}),
        ("a.arff", ARFF, b"{1 a}\n", {}),
    ],
)
def test_ten_kilobytes_of_packed_text_cannot_take_long(tmp_path, name, head, row, options):
    path = tmp_path / f"{name}.xz"
    path.write_bytes(lzma.compress(head + row * (2**22 // len(row)), preset=1))
    start = time.process_time()
    with pytest.raises(DatasetFormatError, match="expands to more than 2097152 bytes"):
        read_dataset(path, **options)
    assert time.process_time() - start < 10  # a guard, not a benchmark


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_every_packing_has_the_same_cap(tmp_path, suffix, pack):
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(pack(b"x,y\n" + b"1,0\n" * 2**20))
    with pytest.raises(DatasetFormatError, match="expands to more than"):
        read_table(path, ["y"])
    assert len(read_table(path, ["y"], max_expanded_bytes=2**26)) == 2**20


def test_cells_of_a_table_are_counted_and_kept_as_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,y\n" + b"1,0\n" * 500_000)
    with Peak() as peak:
        read_table(path, ["y"])
    assert peak.bytes < 5 * 16 * 500_000
    with pytest.raises(DatasetFormatError, match="its arrays would take .* larger max_expanded"):
        read_table(path, ["y"], max_expanded_bytes=2**20)


def test_cells_of_svmlight_rows_are_counted_and_kept_as_numbers(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"0 1:1 2:2 3:3\n" * 100_000)
    with Peak() as peak:
        read_dataset(path)
    assert peak.bytes < 25 * 2**20
    with pytest.raises(DatasetFormatError, match="its arrays would take .* larger max_expanded"):
        read_dataset(path, max_expanded_bytes=2**20)


@pytest.mark.parametrize("name", ["a.csv", "a.svm", "a.arff"])
def test_a_long_line_is_counted_before_it_is_split(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"," * 2**20 + b"\n")
    with Peak() as peak, pytest.raises(DatasetFormatError, match="its arrays would take 33554464"):
        read_dataset(path, max_expanded_bytes=2**24)
    assert peak.bytes < 2**23


def test_attributes_are_counted():
    text = b"@relation 'r: -C 1'\n" + b"@attribute a {0,1}\n" * 10_000 + b"@data\n"
    with pytest.raises(DatasetFormatError, match="its arrays would take"):
        read_arff(text, max_expanded_bytes=2**20)


def test_dense_features_of_arff_rows_are_counted():
    head = b"@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute x real\n@data\n"
    with pytest.raises(DatasetFormatError, match="its arrays would take"):
        read_arff(head + b"0,1\n" * 20_000, max_expanded_bytes=100_000)


def test_label_names_are_counted(monkeypatch):
    from lemll import _files as _budget

    monkeypatch.setattr(_budget, "_FLOOR_BYTES", 1000)
    monkeypatch.setattr(_budget, "_MAX_RATIO", 1)
    names = "".join(f"<label name='{j}'/>" for j in range(100))
    with pytest.raises(DatasetFormatError, match="its arrays would take"):
        read_label_xml(f"<labels>{names}</labels>".encode())


@pytest.mark.parametrize("row", [b"1,x y\n", b"1, b\n", b"1,\xc3\xa9\n", b"1,'x y'\n", b"1,z\n"])
def test_the_fast_path_of_bare_nominal_values_agrees_with_the_obvious_one(row):
    head = "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute c {a,b,'x y',é}\n@data\n".encode()

    def outcome(text):
        try:
            return read_arff(head + text).X.tolist()[-1]
        except DatasetFormatError as error:
            return error.problem

    assert outcome(row) == outcome(b"% slowly\n" + row)
    assert outcome(b"0,a\n" * 3 + row) == outcome(row)


def test_a_dictionary_larger_than_the_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.arff.xz"
    path.write_bytes(lzma.compress(ARFF + b"0,a\n"))

    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(lzma.LZMAFile, "read", no_memory)
    with pytest.raises(DatasetFormatError, match=r"\.xz stream needs more memory than is"):
        read_arff(path)


# Archives


LONG_HEAD = b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**27) + b" " * 2**27


def archive(path, **members: bytes):
    np.savez(path, X=X)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def array_head(dtype: str, shape: tuple[int, ...]) -> bytes:
    head = io.BytesIO()
    description = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(head, description)
    return head.getvalue()


def as_npy(array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (array_head("<U0", (200_000_000,)), "its arrays would take 1600000064 bytes"),
        (array_head("<f8", (-1, 2)), r"label_names has the negative shape \(-1, 2\)"),
        (array_head("<f8", (3,)), "label_names does not have the 24 bytes that its shape requires"),
        (array_head("<f8", (0,)) + b"x", "label_names does not have the 0 bytes"),
        (array_head("M8[s]", (0,)), "must hold numbers or text, got dtype datetime64"),
        (LONG_HEAD, "the header of an array has 134217728 bytes"),
        (b"\x93NUMPY\x03\x00" + bytes(99), r"arrays of format \(3, 0\) are not read"),
        (b"no array", "not a readable NPZ archive"),
        (b"", "not a readable NPZ archive"),
        (as_npy(np.array([1.0, 2.0])), "label_names must hold text: its dtype is float64"),
        (as_npy(np.array([b"a", b"b"])), "must hold numbers or text"),
        (
            as_npy(np.array([2**31, 7], np.uint32)).replace(b"'<u4'", b"'<U1'"),
            "it contains invalid characters",
        ),
        (as_npy(np.array(["a", "\ud800"])), "must hold text: .*surrogates not allowed"),
    ],
)
def test_odd_members_of_an_archive(tmp_path, member, message):
    path = archive(tmp_path / "a.npz", Y=as_npy(Y), label_names=member)
    with Peak() as peak, pytest.raises(DatasetFormatError, match=message):
        read_npz(path)
    assert peak.bytes < 2**22


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_packed_without_a_bound_are_refused(tmp_path, method):
    path = archive(tmp_path / "a.npz")
    with zipfile.ZipFile(path, "a", method) as file:
        file.writestr("Y.npy", as_npy(Y) + bytes(2**24))
    with (
        Peak() as peak,
        pytest.raises(DatasetFormatError, match="packed by method .* expected deflate"),
    ):
        read_npz(path)
    assert peak.bytes < 2**20


def test_a_name_that_is_no_text(tmp_path):
    path = archive(tmp_path / "a.npz", Y=as_npy(Y), name=as_npy(np.array(3.5)))
    with pytest.raises(DatasetFormatError, match="name must hold text: its dtype is float64"):
        read_npz(path)


def test_bytes_of_truth_values_are_made_true(tmp_path):
    bits = as_npy(np.array([[1, 0], [7, 2]], np.uint8)).replace(b"'|u1'", b"'|b1'")
    assert read_npz(archive(tmp_path / "a.npz", Y=bits)).Y.tolist() == [[1, 0], [1, 1]]


def test_numbers_count_as_what_they_become(tmp_path):
    np.savez_compressed(
        tmp_path / "a.npz", X=np.zeros((60_000, 1000), np.uint8), Y=np.zeros((60_000, 1))
    )
    with Peak() as peak, pytest.raises(DatasetFormatError, match="its arrays would take 480"):
        read_npz(tmp_path / "a.npz")
    assert peak.bytes < 2**22


# Parquet


def varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


def with_a_lie(path, table, rows: int, **options):
    """Write a table whose footer says that it has other rows than it has."""
    pyarrow.parquet.write_table(table, path, row_group_size=len(table), **options)
    data = path.read_bytes()
    (size,) = struct.unpack("<I", data[-8:-4])
    true, lie = varint(2 * len(table)), varint(2 * rows)
    footer = data[-8 - size : -8].replace(true, lie, 1)
    tail = struct.pack("<I", len(footer)) + b"PAR1"
    path.write_bytes(data[: -8 - size] + footer + tail)
    return path


@pytest.mark.parametrize("rows", [2, 7_000_000])
def test_a_footer_that_lies_about_rows(tmp_path, rows):
    table = pyarrow.table({"x": np.ones(5_000_000), "y": np.ones(5_000_000)})
    path = with_a_lie(tmp_path / "a.parquet", table, rows)
    before = pyarrow.total_allocated_bytes()
    with pytest.raises(DatasetFormatError, match=f"the footer announces {rows} rows, but the file"):
        read_table(path, ["y"])
    assert pyarrow.total_allocated_bytes() - before < 2**20


def test_pages_are_measured_by_their_heads(tmp_path):
    table = pyarrow.table({"x": np.zeros(40_000_000), "y": np.zeros(40_000_000)})
    options = {"compression": "zstd", "use_dictionary": False, "data_page_size": 2**29}
    path = with_a_lie(tmp_path / "a.parquet", table, 2, **options)
    with pytest.raises(DatasetFormatError, match="its arrays would take"):
        read_table(path, ["y"])
