"""What may be passed as labels, and the way back."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from lemll._labels import code_labels


def test_a_label_matrix_stays_one():
    for given in ([[0, 1], [1, 1]], np.array([[False, True], [True, True]]), [[0.0, 1.0], [1, 1]]):
        Y, coding = code_labels(given)
        np.testing.assert_array_equal(Y, [[0, 1], [1, 1]])
        assert Y.dtype == np.int8
        assert coding.multilabel
        predicted = coding.labels(np.array([[0.5, -1.0], [0.0, 2.0]]))
        np.testing.assert_array_equal(predicted, [[1, 0], [0, 1]])  # a score of 0 is irrelevant


def test_sparse_in_sparse_out_with_stored_zeros():
    given = sparse.csr_array(([1, 0, 1], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    Y, coding = code_labels(given)
    np.testing.assert_array_equal(Y, [[1, 0], [0, 1]])
    assert isinstance(coding.labels(np.eye(2)), sparse.csr_array)


@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
def test_every_sparse_form_is_read(form):
    dense = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1]])
    given = sparse.csr_array(dense).asformat(form)
    Y, coding = code_labels(given)
    np.testing.assert_array_equal(Y, dense)
    assert coding.sparse


def test_entries_given_twice_are_added_up_and_refused():
    twice = sparse.coo_array(([1, 1, 1], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    rows = sparse.csr_array((np.ones(3), [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    for given in (twice, rows):
        with pytest.raises(ValueError, match="must hold only 0 and 1, got 2"):
            code_labels(given)
    assert rows.nnz == 3  # the caller's matrix is as it was


@pytest.mark.parametrize("sign", [";", "|", ","])
def test_tags_in_one_string_are_refused(sign):
    tags = [f"sea{sign}sky", "sky", f"sky{sign} people"]
    message = rf"several tags in one string, got 'sea\{sign}sky'; .*MultiLabelBinarizer.*split"
    for given in (tags, np.array(tags, dtype=object), np.array(tags)):
        with pytest.raises(ValueError, match=message):
            code_labels(given)
    assert code_labels(["New York", "Rio de Janeiro", "Rome"])[1].names[0] == "New York"


@pytest.mark.parametrize(
    ("target", "classes", "Y"),
    [
        ([3, 3], [3], [[0], [0]]),
        (["b", "a"], ["a", "b"], [[1], [0]]),
        ([5, 7, 6], [5, 6, 7], [[1, 0, 0], [0, 0, 1], [0, 1, 0]]),
    ],
)
def test_one_dimensional_targets(target, classes, Y):
    coded, coding = code_labels(target)
    np.testing.assert_array_equal(coded, Y)
    np.testing.assert_array_equal(coding.classes, classes)
    np.testing.assert_array_equal(coding.labels(2.0 * coded - 1), target)
    assert coding.scores(2.0 * coded - 1).ndim == (1 if len(classes) <= 2 else 2)


def test_a_column_is_one_label_unless_it_holds_classes():
    Y, coding = code_labels([[0], [1], [1]])
    assert coding.multilabel
    np.testing.assert_array_equal(Y, [[0], [1], [1]])
    with pytest.warns(DataConversionWarning, match="column-vector"):
        _, coding = code_labels([[0], [1], [2]])
    assert not coding.multilabel
    with pytest.raises(ValueError, match=r"coded -1/\+1"):
        code_labels([[-1], [1]])


def test_continuous_targets_are_refused():
    with pytest.raises(ValueError, match="continuous"):
        code_labels([0.5, 1.5, 2.5])
    with pytest.raises(ValueError, match="contains infinity"):
        code_labels([0.0, np.inf])


@pytest.mark.parametrize(
    "tags",
    [
        [["sea", "sky"], ["sky"], []],
        [["sea", "sky"], ["sky", "dog"], ["sea", "dog"]],
        [{"sea"}, {"sky"}, set()],
    ],
)
def test_lists_of_tags_are_refused_with_the_remedy(tags):
    for y in (tags, np.fromiter(tags, dtype=object, count=3)):
        with pytest.raises(ValueError, match="y holds lists of tags, got .*MultiLabelBinarizer"):
            code_labels(y)
