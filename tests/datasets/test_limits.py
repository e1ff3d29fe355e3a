"""Small files cannot ask for much time or much memory."""

from __future__ import annotations

import time

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from support import Peak

from lemll.datasets import Dataset, read_arff, read_npz, read_table, write_csv, write_npz
from lemll.exceptions import DatasetFormatError

WIDTH = 100_000


@pytest.mark.slow
def test_many_named_columns_take_linear_time(tmp_path):
    names = [f"a{j}" for j in range(WIDTH)]
    header = "".join(f"@attribute {name} {{0,1}}\n" for name in names)
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + "0," * (WIDTH - 1) + "1\n")
    start = time.process_time()
    arff = read_arff(f"@relation r\n{header}@data\n{{3 1}}\n".encode(), names[1:])
    table = read_table(tmp_path / "a.csv", names[1:])
    assert time.process_time() - start < 10  # a guard against quadratic time, not a benchmark
    assert arff.label_names == table.label_names == tuple(names[1:])


def test_a_repeated_name_among_many_is_found_in_linear_time(tmp_path):
    names = [f"a{j}" for j in range(WIDTH)]
    names[-1] = names[-2]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + "0," * (WIDTH - 1) + "1\n")
    data = Dataset(X=np.zeros((1, WIDTH - 1)), Y=[[1]], feature_names=names[1:], label_names=["y"])
    start = time.process_time()
    with pytest.raises(DatasetFormatError, match="a column name occurs twice"):
        read_table(tmp_path / "a.csv", 1)
    with pytest.raises(ValueError, match="occurs twice; rename one"):
        write_csv(data, tmp_path / "b.csv")
    assert time.process_time() - start < 10


@pytest.mark.slow
def test_labels_of_sparse_rows_take_a_byte_each_even_while_reading():
    header = b"".join(b"@attribute a%d {0,1}\n" % j for j in range(20_001))
    text = b"@relation 'r: -C 20000'\n" + header + b"@data\n" + b"{3 1}\n" * 5000
    with Peak() as peak:
        data = read_arff(text)
    assert data.Y.sum() == 5000
    assert peak.bytes < 5 * data.Y.nbytes


def nominal(n_values: int, n_attributes: int, row: bytes, n_rows: int) -> bytes:
    values = ",".join(f"v{j}" for j in range(n_values)).encode()
    attributes = b"".join(b"@attribute c%d {%b}\n" % (j, values) for j in range(n_attributes))
    head = b"@relation 'r: -C 1'\n@attribute y {0,1}\n" + attributes
    return head + b"@data\n" + row * n_rows


def test_indicators_of_sparse_rows_stay_sparse():
    text = nominal(20_000, 1, b"{1 v7}\n", 20_000)
    with Peak() as peak:
        data = read_arff(text, nominal="onehot")
    assert data.X.shape == (20_000, 20_000)
    assert data.X.nnz == 20_000
    assert data.X[5, 7] == 1
    assert peak.bytes < 100 * 2**20


def test_indicators_of_dense_rows_are_measured_first():
    text = nominal(20_000, 1, b"0,v7\n", 20_000)
    with pytest.raises(DatasetFormatError, match="its arrays would take .* larger max_expanded"):
        read_arff(text, nominal="onehot")


def test_indicators_of_many_attributes_are_measured_first():
    text = nominal(2, 5000, b"{}\n", 10_000)
    with pytest.raises(DatasetFormatError, match="its arrays would take"):
        read_arff(text, nominal="onehot")


def test_indicator_names_are_measured_first():
    values = ",".join(f"v{j}" for j in range(20_000)).encode()
    head = b"@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute %b {%b}\n" % (
        b"c" * 50_000,
        values,
    )
    with pytest.raises(DatasetFormatError, match="its arrays would take"):
        read_arff(head + b"@data\n{}\n", nominal="onehot")


def test_parquet_is_measured_by_its_footer(tmp_path):
    zeros = pyarrow.array(np.zeros(5_000_000))
    table = pyarrow.table({f"c{j}": zeros for j in range(12)})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 2**20
    with Peak() as peak:
        with pytest.raises(DatasetFormatError, match="its arrays would take 480000000 bytes"):
            read_table(tmp_path / "a.parquet", ["c0"])
    assert peak.bytes < 2**20


@pytest.mark.parametrize(("width", "fits"), [(30_000_000, True), (2**31 - 1, False)])
def test_a_wide_archive(tmp_path, width, fits):
    parts = {"X_data": [1.0], "X_indices": [0], "X_indptr": [0, 1], "X_shape": [1, width]}
    np.savez(tmp_path / "a.npz", **parts, Y=[[1]])
    if not fits:
        with pytest.raises(DatasetFormatError, match="its arrays would take"):
            read_npz(tmp_path / "a.npz")
        return
    with Peak() as peak:
        data = read_npz(tmp_path / "a.npz")
        write_npz(data, tmp_path / "b.npz")
        assert read_npz(tmp_path / "b.npz").feature_names == data.feature_names
    assert len(data.feature_names) == width
    assert peak.bytes < 2**20
