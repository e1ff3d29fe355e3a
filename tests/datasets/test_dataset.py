"""What a Dataset accepts and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from lemll.datasets import Dataset
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
        (
            {"X": sparse.csr_array([[0, np.inf], [0, 0]]), "Y": Y},
            "X must be finite, got inf in row 0, column 1",
        ),
        ({"X": X, "Y": 2 * Y}, "Y must hold only 0 and 1, got 2 in row 0, label 1"),
        ({"X": X, "Y": 2 * Y - 1}, r"Y is coded -1/\+1, logical labels must be 0/1"),
        ({"X": X, "Y": Y[:, 0]}, "Y must be 2-D"),
        ({"X": X, "Y": Y.astype(str)}, "Y must hold numbers 0 and 1, got dtype"),
        ({"X": X, "D": Y / 2}, "every row of D must sum to 1, got 0.5 in row 0"),
        ({"X": X, "D": [[1.5, -0.5], [1, 0]]}, "D must not be negative, got -0.5 in row 0"),
        ({"X": X, "D": [[np.nan, 1], [1, 0]]}, "D must be finite"),
        ({"X": X, "D": [1, 0]}, "D must be 2-D"),
        ({"X": X.astype(str), "Y": Y}, "X must hold numbers, got dtype"),
        ({"X": X[0], "Y": Y}, "X must be 2-D"),
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
