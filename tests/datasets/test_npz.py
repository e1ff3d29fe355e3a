"""The NPZ layout: round trips, faults, and every message."""

import io
import zipfile

import numpy as np
import pytest
from scipy import sparse

from lemll.datasets import Dataset, read_npz, write_npz
from lemll.exceptions import DatasetFormatError

X = np.array([[1.5, 0.0, -2.0], [0.0, 1e-300, 3.0]])
Y = np.array([[1, 0], [1, 1]], dtype=np.uint8)
D = np.array([[0.25, 0.75], [1.0, 0.0]])


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@pytest.mark.parametrize("features", [X, X.astype(np.float32), sparse.csr_array(X)])
@pytest.mark.parametrize("labels", [{"Y": Y}, {"D": D}])
def test_npz_round_trip(tmp_path, features, labels):
    data = Dataset(X=features, **labels, name="é", label_names=["a", "ü"])
    write_npz(data, tmp_path / "a.npz")
    back = read_npz(tmp_path / "a.npz")
    np.testing.assert_array_equal(dense(back.X), dense(data.X))
    np.testing.assert_array_equal(back.labels, data.labels)
    assert (back.D is None) == (data.D is None)
    assert back.label_names == data.label_names == ("a", "ü")
    assert back.feature_names == data.feature_names == ("x0", "x1", "x2")
    assert back.X.dtype == data.X.dtype
    assert back.name == "é"
    assert sparse.issparse(back.X) == sparse.issparse(features)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Y": Y}, "neither X nor all of X_data"),
        ({"X": X}, "neither Y nor D"),
        ({"X": X, "Y": Y, "feature_names": np.array(["a"])}, "1 feature name given for 3 columns"),
        ({"X": np.array([object()]), "Y": Y}, "not a readable NPZ archive"),
        (
            {"X_data": [1.0], "X_indices": [9], "X_indptr": [0, 1, 1], "X_shape": [2, 3], "Y": Y},
            "the CSR parts do not fit",
        ),
    ],
)
def test_npz_faults(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DatasetFormatError, match=message):
        read_npz(tmp_path / "a.npz")


@pytest.mark.slow
def test_npz_bomb_damage_and_absence(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(2**26))
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", buffer.getvalue())
    with pytest.raises(DatasetFormatError, match="its arrays would take .* bytes, more than"):
        read_npz(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_bytes(b"junk")
    with pytest.raises(DatasetFormatError, match="not a readable NPZ archive"):
        read_npz(tmp_path / "b.npz")
    with pytest.raises(DatasetFormatError, match="no such file"):
        read_npz(tmp_path / "c.npz")
    with pytest.raises(ValueError, match="it ends with a NUL character"):
        write_npz(Dataset(X=X, Y=Y, label_names=["a", "b\0"]), tmp_path / "d.npz")


@pytest.mark.parametrize("features", [X, sparse.csr_array(X)])
def test_missing_values_come_back_on_request(tmp_path, features):
    features = features.copy()
    features[0, 2] = np.nan
    write_npz(Dataset(X=features, Y=Y, allow_missing=True), tmp_path / "a.npz")
    back = read_npz(tmp_path / "a.npz", missing="nan")
    np.testing.assert_array_equal(dense(back.X), dense(features))
    with pytest.raises(DatasetFormatError, match=r"a\.npz: X must be finite, got nan in row 0"):
        read_npz(tmp_path / "a.npz")
    with pytest.raises(ValueError, match="missing='drop' must be 'error' or 'nan'"):
        read_npz(tmp_path / "a.npz", missing="drop")


def test_an_archive_is_not_compressed_again(tmp_path):
    with pytest.raises(ValueError, match=r"\.npz files are already compressed.*suffix \.gz"):
        write_npz(Dataset(X=X, Y=Y), tmp_path / "a.npz.gz")
    with pytest.raises(ValueError, match="are already compressed; decompress"):
        read_npz(tmp_path / "a.npz.xz")
    assert list(tmp_path.iterdir()) == []


def csr_parts(n_columns, **others):
    parts = {"X_data": [1.0], "X_indices": [0], "X_indptr": [0, 1], "X_shape": [1, n_columns]}
    return {**parts, "Y": [[1]], **others}


@pytest.mark.parametrize(
    "parts",
    [
        csr_parts(np.inf),
        csr_parts(3, X_indices=[0.5]),
        csr_parts(3, X_indptr=[0.0, 1.0]),
        csr_parts(3, X_shape=3),
        csr_parts(3, X_data=["a"]),
        csr_parts(3, X_data=[1j]),
    ],
)
def test_odd_csr_parts_are_refused(tmp_path, parts):
    np.savez(tmp_path / "a.npz", **parts)
    with pytest.raises(DatasetFormatError, match="the CSR parts do not fit|must hold real numbers"):
        read_npz(tmp_path / "a.npz")


def test_the_cap_can_be_raised(tmp_path):
    write_npz(Dataset(X=X, Y=Y), tmp_path / "a.npz")
    with pytest.raises(DatasetFormatError, match="pass a larger max_expanded_bytes"):
        read_npz(tmp_path / "a.npz", max_expanded_bytes=100)
    assert len(read_npz(tmp_path / "a.npz", max_expanded_bytes=10_000)) == 2
