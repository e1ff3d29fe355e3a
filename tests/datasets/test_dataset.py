"""What a Dataset accepts and what it refuses."""

import pickle

import numpy as np
import pandas
import pytest
from scipy import sparse
from support import Peak

from lemll.datasets import Dataset, read_svmlight
from lemll.datasets._columns import NumberedNames
from lemll.exceptions import DatasetFormatError, LemllError

X = np.array([[1.0, 2.0], [3.0, 4.0]])
Y = np.array([[0, 1], [1, 1]])


def test_names_default_and_labels_property():
    data = Dataset(X=X, Y=Y)
    assert data.feature_names == ("x0", "x1")
    assert data.label_names == ("y0", "y1")
    assert data.labels is data.Y
    assert Dataset(X=X, D=[[0.5, 0.5], [1, 0]]).labels.dtype == np.float64
    assert len(data) == 2


def test_sparse_features_become_canonical_csr_and_the_caller_keeps_his():
    coo = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    data = Dataset(X=coo, Y=Y)
    assert isinstance(data.X, sparse.csr_array)
    np.testing.assert_array_equal(data.X.toarray(), [[0, 3], [3, 0]])
    unsorted = sparse.csr_matrix(
        (np.array([2.0, 1.0]), np.array([1, 0]), np.array([0, 2, 2])), shape=(2, 2)
    )
    Dataset(X=unsorted, Y=Y)
    np.testing.assert_array_equal(unsorted.indices, [1, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_precision_is_kept(dtype):
    assert Dataset(X=X.astype(dtype), Y=Y).X.dtype == dtype
    assert Dataset(X=X.astype(int), Y=Y).X.dtype == np.float64


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"X": X}, "either logical labels Y or a distribution D, and got neither"),
        ({"X": X, "Y": Y, "D": Y / 2}, "and got both"),
        ({"X": X, "Y": Y[:1]}, "X has 2 rows and the labels have 1"),
        ({"X": X * np.nan, "Y": Y}, "X must be finite, got nan in row 0, column 0"),
        ({"X": sparse.csr_array([[0, np.inf], [0, 0]]), "Y": Y}, "X must be finite, got inf in"),
        ({"X": X, "Y": 2 * Y}, "Y must hold only 0 and 1, got 2 in row 0, label 1"),
        ({"X": X, "Y": 2 * Y - 1}, r"Y is coded -1/\+1, logical labels must be 0/1"),
        ({"X": X, "Y": Y[:, 0]}, "Y must be 2-D"),
        ({"X": X, "Y": Y.astype(str)}, "Y must hold numbers 0 and 1, got dtype"),
        ({"X": X, "D": Y / 2}, "every row of D must sum to 1, got 0.5 in row 0"),
        ({"X": X, "D": [[1.5, -0.5], [1, 0]]}, "D must not be negative, got -0.5 in row 0"),
        ({"X": X, "D": [[np.nan, 1], [1, 0]]}, "D must be finite"),
        ({"X": X, "D": [1, 0]}, "D must be 2-D"),
        ({"X": X.astype(str), "Y": Y}, "X must hold real numbers, got dtype"),
        ({"X": X[0], "Y": Y}, "X must be 2-D"),
        ({"X": X + 0j, "Y": Y}, "X must hold real numbers, got dtype complex128"),
        ({"X": sparse.csr_array(X + 0j), "Y": Y}, "X must hold real numbers, got dtype complex128"),
        ({"X": X, "D": Y[::-1] / 2 + 0j}, "D must hold real numbers"),
        ({"X": X, "D": sparse.csr_array(Y + 0j)}, "D must hold real numbers"),
        ({"X": X[:0], "Y": Y[:0]}, "Y needs at least one row and one label, got shape"),
        ({"X": X[:, :0], "Y": Y}, "got 2 rows, 0 features and 2 labels"),
        ({"X": X, "Y": Y[:, :0]}, "Y needs at least one row and one label, got shape"),
        ({"X": X, "D": [[{}]]}, "float"),
        ({"X": X, "Y": Y, "label_names": ["a"]}, "1 label name given for 2 columns"),
        ({"X": X * np.inf, "Y": Y, "allow_missing": True}, "X must not hold infinity"),
    ],
)
def test_each_fault_has_its_message(parts, message):
    with pytest.raises(DatasetFormatError, match=message) as caught:
        Dataset(**parts)
    assert isinstance(caught.value, LemllError)
    assert isinstance(caught.value, ValueError)


def test_long_tokens_are_cut_in_messages():
    error = DatasetFormatError("odd", file="f", line=3, column=4, token="x" * 500)
    assert str(error) == f"f, line 3, column 4: odd (got {'x' * 80!r})"


def test_every_fault_names_the_source():
    for parts in ({"X": X}, {"X": X, "Y": Y[:1]}, {"X": X[0], "Y": Y}, {"X": X, "Y": 2 * Y}):
        with pytest.raises(DatasetFormatError) as caught:
            Dataset(**parts, source="a.npz")
        assert caught.value.file == "a.npz"


def test_a_data_frame_gives_its_column_names():
    features = pandas.DataFrame({"height": [1.0, 2.0], "width": [3.0, 4.0]})
    labels = pandas.DataFrame({"sea": [0, 1], 7: [1, 1]})
    data = Dataset(X=features, Y=labels)
    assert data.feature_names == ("height", "width")
    assert data.label_names == ("sea", "7")
    assert Dataset(X=X, D=labels[["sea"]] * 0 + 1).label_names == ("sea",)
    named = Dataset(X=features, Y=labels, feature_names=["a", "b"], label_names=["c", "d"])
    assert (named.feature_names, named.label_names) == (("a", "b"), ("c", "d"))


def test_dense_features_share_memory_as_documented():
    assert np.shares_memory(Dataset(X=X, Y=Y).X, X)


def test_a_wide_sparse_set_costs_no_more_than_its_cells():
    with Peak() as peak:
        data = read_svmlight(b"0 30000000:1\n")
    assert data.X.shape == (1, 30_000_000)
    assert data.feature_names[-1] == "x29999999"
    assert peak.bytes < 2**20


def test_numbered_names_behave_like_a_tuple():
    names = NumberedNames("x", range(9))
    same = tuple(f"x{j}" for j in range(9))
    assert names == same
    assert same == names
    assert hash(names) == hash(same)
    assert names != same[:-1]
    assert names != list(same)
    assert NumberedNames("1", range(1, 3)) == NumberedNames("", range(11, 13))
    assert tuple(names) == same
    assert names[2:4] == same[2:4]
    assert names[-1] == "x8"
    assert "x3" in names
    assert pickle.loads(pickle.dumps(names)) == names  # noqa: S301
    assert repr(names) == "('x0', 'x1', 'x2', ..., 'x8')"
    assert repr(names[:2]) == "('x0', 'x1')"
    with pytest.raises(IndexError):
        names[9]
