"""Bombs, truncation, endless lines, and files that never appear half."""

import bz2
import gzip
import lzma
import os
import time

import numpy as np
import pytest
from support import Peak

from lemll.datasets import Dataset, read_arff, write_arff, write_dataset
from lemll.datasets._streams import atomic_write
from lemll.exceptions import DatasetFormatError

pytestmark = pytest.mark.slow

HEADER = b"@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute x numeric\n@data\n"


@pytest.mark.parametrize("filler", [b"\0", b"\n", b"{}\n", b"1,2\n", b"%"])
def test_an_xz_that_expands_without_end_is_refused_in_bounded_memory(tmp_path, filler):
    path = tmp_path / "bomb.arff.xz"
    # Sixty streams of ten megabytes are as long as one, and packed in a sixtieth of the time.
    chunk = filler * (10 * 2**20 // len(filler))
    packed = lzma.compress(HEADER, preset=1) + 60 * lzma.compress(chunk, preset=1)
    path.write_bytes(packed)
    assert path.stat().st_size < 2**18
    with Peak() as peak:
        with pytest.raises(DatasetFormatError, match="expands to more|longer than|would take"):
            read_arff(path, max_expanded_bytes=2**24 if filler == b"1,2\n" else None)
    assert peak.bytes < 600 * 2**20


def test_a_genuine_large_file_can_be_allowed(tmp_path):
    path = tmp_path / "zeros.arff.gz"
    path.write_bytes(gzip.compress(HEADER + b"0,0\n" * 1000))
    with pytest.raises(DatasetFormatError, match="pass a larger max_expanded_bytes"):
        read_arff(path, max_expanded_bytes=1000)
    assert len(read_arff(path, max_expanded_bytes=10_000)) == 1000


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_truncated_and_damaged_archives(tmp_path, suffix, compress):
    rng = np.random.RandomState(0)
    packed = compress(HEADER + b"".join(b"1,%r\n" % v for v in rng.rand(2000).tolist()))
    path = tmp_path / f"data.arff{suffix}"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DatasetFormatError, match="broken or cut short|cannot be read"):
        read_arff(path)
    path.write_bytes(b"this is no archive")
    with pytest.raises(DatasetFormatError, match="broken or cut short|cannot be read"):
        read_arff(path)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(DatasetFormatError, match="no such file"):
        read_arff(tmp_path / "nowhere.arff")
    with pytest.raises(DatasetFormatError, match="cannot be read"):
        read_arff(tmp_path)


@pytest.mark.parametrize(
    "header",
    [
        b"@attribute " + b"x" * 2**20,
        b"@attribute x {" + b"a" * 2**20,
        b"@attribute x {" + b"a," * 2**19,
        b"@attribute '" + b"\\" * 2**20,
        b"@relation '" + b"a\\'" * 2**18,
        b"@attribute x {'" + b"a','" * 2**18,
        b"{" * 2**20,
    ],
)
def test_a_megabyte_of_header_is_refused_in_linear_time(header):
    start = time.process_time()
    with pytest.raises(DatasetFormatError):
        read_arff(header + b"\n@data\n")
    assert time.process_time() - start < 5  # a guard against quadratic time, not a benchmark


@pytest.mark.parametrize("row", [b"{" + b"1 1," * 2**18, b"1," * 2**19, b"'" * 2**20, b"{0 '" * 9])
def test_a_megabyte_of_one_row_is_refused_in_linear_time(row):
    start = time.process_time()
    with pytest.raises(DatasetFormatError):
        read_arff(HEADER + row + b"\n")
    assert time.process_time() - start < 5


def test_a_wide_sparse_header_cannot_ask_for_endless_memory():
    header = b"@relation 'r: -C 100000'\n"
    header += b"".join(b"@attribute a%d {0,1}\n" % j for j in range(100_001)) + b"@data\n"
    with pytest.raises(DatasetFormatError, match="its arrays would take .* a file of this size"):
        read_arff(header + b"{}\n" * 10_000)


DATA = Dataset(X=[[1.0, 2.0]], Y=[[1]])


@pytest.mark.parametrize(
    "name", ["a.arff", "a.arff.xz", "a.csv", "a.csv.bz2", "a.npz", "a.parquet"]
)
def test_a_failing_disk_leaves_nothing_half_and_the_old_file_whole(tmp_path, name, monkeypatch):
    path = tmp_path / name
    write_dataset(DATA, path)
    before = path.read_bytes()

    def full_disk(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left on device"):
        write_dataset(Dataset(X=[[5.0, 6.0]], Y=[[0]]), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_an_interrupted_writer_leaves_no_file(tmp_path):
    path = tmp_path / "new" / "a.arff"

    def interrupted():
        with atomic_write(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(path.parent.iterdir()) == []


def test_same_data_same_bytes(tmp_path):
    write_arff(DATA, tmp_path / "a.arff.gz")
    first = (tmp_path / "a.arff.gz").read_bytes()
    time.sleep(1.1)  # gzip would store the second
    write_arff(DATA, tmp_path / "a.arff.gz")
    assert (tmp_path / "a.arff.gz").read_bytes() == first
