"""MATLAB files: layouts, faults, and every message."""

import numpy as np
import pytest
from scipy import io as scipy_io
from scipy import sparse

from lemll.datasets import read_mat
from lemll.exceptions import DatasetFormatError

X = np.array([[1.5, 0.0, -2.0], [0.0, 1e-300, 3.0]])
Y = np.array([[1, 0], [1, 1]], dtype=np.uint8)
D = np.array([[0.25, 0.75], [1.0, 0.0]])
HEADER_7_3 = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124)


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@pytest.mark.parametrize(
    ("variables", "kind"),
    [
        ({"features": X, "labels": D}, "D"),
        ({"features": X, "label_distribution": D, "logical_label": Y}, "D"),
        ({"features": X, "labels": Y}, "Y"),
        ({"data": X, "target": Y.T.astype(np.int16)}, "Y"),
        ({"data": X, "target": 2 * Y.T.astype(np.int16) - 1}, "Y"),
        ({"X": sparse.csc_array(X), "Y": sparse.csc_array(Y)}, "Y"),
    ],
)
def test_mat_layouts(tmp_path, variables, kind):
    scipy_io.savemat(tmp_path / "a.mat", variables)
    data = read_mat(tmp_path / "a.mat")
    np.testing.assert_array_equal(dense(data.X), X)
    np.testing.assert_array_equal(getattr(data, kind), {"Y": Y, "D": D}[kind])
    assert data.name == "a"


def test_mat_with_a_test_part_is_one_set(tmp_path):
    parts = {"X": sparse.csc_array(X), "Y": Y, "Xt": sparse.csc_array(2 * X), "Yt": 1 - Y}
    scipy_io.savemat(tmp_path / "a.mat", parts)
    data = read_mat(tmp_path / "a.mat")
    np.testing.assert_array_equal(dense(data.X), np.vstack([X, 2 * X]))
    np.testing.assert_array_equal(data.Y, np.vstack([Y, 1 - Y]))


def test_mat_kind_can_be_said(tmp_path):
    scipy_io.savemat(tmp_path / "a.mat", {"features": X, "labels": [[1, 0], [0, 1]]})
    assert read_mat(tmp_path / "a.mat").D is None
    assert read_mat(tmp_path / "a.mat", kind="distribution").D is not None
    with pytest.raises(ValueError, match="kind='both' must be"):
        read_mat(tmp_path / "a.mat", kind="both")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"not a mat file" * 50, "not a readable MATLAB version 5 file"),
        (b"\x89HDF\r\n\x1a\n" + b"junk" * 50, r"version 7\.3 \(HDF5\); .* save it with -v7$"),
        (HEADER_7_3 + b"\x00\x02IM" + bytes(512), r"version 7\.3 \(HDF5\); .* save it with -v7$"),
        (HEADER_7_3 + b"\x02\x00MI" + bytes(512), r"version 7\.3 \(HDF5\); .* save it with -v7$"),
        (None, "no such file"),
    ],
)
def test_mat_faults(tmp_path, content, message):
    if content is not None:
        (tmp_path / "a.mat").write_bytes(content)
    with pytest.raises(DatasetFormatError, match=message):
        read_mat(tmp_path / "a.mat")


def test_mat_without_known_variables_and_truncated(tmp_path):
    scipy_io.savemat(tmp_path / "a.mat", {"foo": X})
    with pytest.raises(DatasetFormatError, match="no known pair of variables"):
        read_mat(tmp_path / "a.mat")
    scipy_io.savemat(
        tmp_path / "b.mat", {"features": np.random.RandomState(0).rand(50, 9), "labels": Y}
    )
    whole = (tmp_path / "b.mat").read_bytes()
    (tmp_path / "b.mat").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetFormatError, match="not a readable MATLAB version 5 file"):
        read_mat(tmp_path / "b.mat")


def test_mat_that_would_not_fit_is_refused_before_it_is_read(tmp_path):
    zeros = np.zeros((9000, 9000), dtype=np.uint8)
    scipy_io.savemat(tmp_path / "a.mat", {"features": zeros, "labels": Y}, do_compression=True)
    with pytest.raises(DatasetFormatError, match="its arrays would take"):
        read_mat(tmp_path / "a.mat")


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_a_test_part_may_be_dense_and_turned(tmp_path, as_sparse, turned):
    train, test = X, np.vstack([2 * X, X])
    test_labels = np.vstack([1 - Y, Y])
    parts = {"X": sparse.csc_array(train) if as_sparse else train, "Y": Y, "Xt": test}
    parts["Yt"] = test_labels.T if turned else test_labels
    scipy_io.savemat(tmp_path / "a.mat", parts)
    data = read_mat(tmp_path / "a.mat")
    np.testing.assert_array_equal(dense(data.X), np.vstack([train, test]))
    np.testing.assert_array_equal(data.Y, np.vstack([Y, test_labels]))
    assert sparse.issparse(data.X) == as_sparse


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"X": X, "Y": Y, "Xt": X[:, :2], "Yt": Y}, "X has 3 columns and Xt has 2"),
        ({"X": X, "Y": Y, "Xt": X, "Yt": Y[:, :1]}, "Y has 2 columns and Yt has 1"),
        ({"X": X, "Y": np.eye(5)}, r"X has 2 rows, but Y has the shape \(5, 5\)"),
        ({"X": X, "Y": Y, "Xt": X, "Yt": np.eye(5)}, r"Xt has 2 rows, but Yt has .* \(5, 5\)"),
        ({"features": X + 1j, "labels": Y}, "'features' must be a matrix of real numbers"),
        ({"features": X, "labels": D + 0j}, "'labels' must be a matrix .*complex128"),
        ({"features": sparse.csc_array(X + 1j), "labels": Y}, "'features' must be a matrix"),
        ({"features": X, "labels": sparse.csc_array(D + 0j)}, "'labels' must be a matrix"),
        ({"features": X, "labels": np.array([["a"], [1]], dtype=object)}, "cells, structs, text"),
        ({"features": X, "labels": [{"a": 1}, {"a": 2}]}, "cells, structs, text"),
        ({"features": X, "labels": {"a": 1}}, "cells, structs, text"),
        ({"features": X, "labels": "text"}, "cells, structs, text"),
        ({"features": X, "labels": np.zeros((2, 2, 2))}, "'labels' must be a matrix .*3-D"),
        ({"features": X, "labels": [[-1, 0], [1, 1]]}, "Y must hold only 0 and 1, got -1"),
    ],
)
def test_parts_that_do_not_fit(tmp_path, variables, message):
    scipy_io.savemat(tmp_path / "a.mat", variables)
    with pytest.raises(DatasetFormatError, match=message) as caught:
        read_mat(tmp_path / "a.mat")
    assert caught.value.file == str(tmp_path / "a.mat")


@pytest.mark.parametrize(
    "variables",
    [
        {"features": X, "labels": sparse.csc_array((20_000, 30_000))},
        {"features": sparse.csc_array((100_000_000, 1)), "labels": Y},
        {"features": X, "label_distribution": sparse.csc_array((30_000, 20_000))},
    ],
)
def test_sparse_variables_count_as_what_they_become(tmp_path, variables):
    scipy_io.savemat(tmp_path / "a.mat", variables, do_compression=True)
    with pytest.raises(DatasetFormatError, match="its arrays would take .* pass a larger"):
        read_mat(tmp_path / "a.mat")


def test_a_compressed_mat_file_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match=r"\.mat files are already compressed; decompress"):
        read_mat(tmp_path / "a.mat.gz")
