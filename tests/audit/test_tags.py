"""Tags and probabilities in all forms, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from lemll.audit.tags import read_probabilities, read_tags

INDICATOR = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 0]], dtype=np.int8)
CLASSES = [[0, 2], [], [1], [1, 0]]


@pytest.mark.parametrize(
    "given",
    [
        INDICATOR,
        INDICATOR.astype(bool),
        INDICATOR.astype(float),
        INDICATOR.tolist(),
        sparse.csr_array(INDICATOR),
        pd.DataFrame(INDICATOR, columns=["a", "b", "c"]),
        pl.DataFrame(INDICATOR, schema=["a", "b", "c"]),
        CLASSES,
        tuple(map(tuple, CLASSES)),
        [set(row) for row in CLASSES],
        pd.Series(CLASSES),
        np.array([list(row) for row in CLASSES], dtype=object),
        [np.array(row, dtype=int) for row in CLASSES],
    ],
    ids=lambda given: type(given).__name__,
)
def test_forms_of_the_same_tags(given):
    np.testing.assert_array_equal(read_tags(given).Y, INDICATOR)


def test_lists_of_names():
    found = read_tags([["sea", "sun"], [], ["hill"]])
    assert found.names == ("hill", "sea", "sun")
    np.testing.assert_array_equal(found.Y, [[0, 1, 1], [0, 0, 0], [1, 0, 0]])
    wider = read_tags([["sea"], []], names=["snow", "sea"])
    np.testing.assert_array_equal(wider.Y, [[0, 1], [0, 0]])


def test_number_of_classes_comes_from_the_probabilities():
    assert read_tags([[0], [1]], n_labels=5).Y.shape == (2, 5)
    assert read_tags([[0], [1]]).Y.shape == (2, 2)


def test_unknown_cells_and_names():
    found = read_tags(pd.DataFrame({"a": [1, None], "b": [0, 1]}))
    np.testing.assert_array_equal(found.Y, [[1, 0], [-1, 1]])
    assert found.names == ("a", "b")
    assert read_tags(INDICATOR, names=["x", "y", "z"]).names == ("x", "y", "z")
    assert found.known == 3


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ([0, 1, 1], {}, "one column per label, got 1-D tags"),
        ([[0.5], [1]], {}, "class numbers >= 0 or tag names, got 0.5"),
        ([[-1], [1]], {}, "class numbers >= 0 or tag names, got -1"),
        ([[True], [False, True]], {}, "class numbers >= 0 or tag names, got"),
        ([[7], [1]], {"n_labels": 3}, "must be 0 to 2, got 7"),
        ([[], []], {}, "no row of Y has a tag, so the labels are unknown; pass label_names="),
        ([[0], None], {}, "row 1 of Y is None, but lists of tags have no unknown rows; pass a 0/1"),
        ([["a"], ["b"]], {"names": ["a"]}, "the tag 'b', which is not among the label names"),
        (INDICATOR, {"names": ["a"]}, "one name per label, 3, got 1"),
        (INDICATOR, {"names": ["a", "b", "a"]}, "must differ, got 'a' twice; rename one"),
        ([["a"], ["b"]], {"names": ["a", "b", "a"]}, "must differ, got 'a' twice; rename one"),
        (CLASSES, {"names": ["a", "b", "a"]}, "must differ, got 'a' twice; rename one"),
        ([["a"], ["b"]], {"names": "ab"}, "must be a list of names, got the text 'ab'; pass"),
        (CLASSES, {"names": "abc"}, "must be a list of names, got the text 'abc'; pass"),
        (INDICATOR, {"names": "abc"}, "must be a list of names, got the text 'abc'; pass"),
        (np.array([[1], [2], [3]]), {}, "must hold only 0 and 1, got 2"),
        (np.full((3, 2), np.nan), {}, "no cell of Y is known"),
        (np.array([[0, 2], [1, 0]]), {}, "must hold only 0 and 1, got 2"),
    ],
)
def test_refused_tags(given, options, message):
    with pytest.raises(ValueError, match=message):
        read_tags(given, **options)


def test_probabilities_are_checked():
    tags = read_tags(pd.DataFrame(INDICATOR, columns=["a", "b", "c"]))
    p = np.full(INDICATOR.shape, 0.5)
    frame = pd.DataFrame(p, columns=["a", "b", "c"])
    np.testing.assert_array_equal(read_probabilities(frame, tags), p)
    np.testing.assert_array_equal(read_probabilities(sparse.csr_array(p), tags), p)
    with pytest.raises(ValueError, match=r"columns of pred_probs must be the labels in the order"):
        read_probabilities(frame[["b", "a", "c"]], tags)
    with pytest.raises(ValueError, match=r"one column per label, \(4, 3\), got \(4, 2\)"):
        read_probabilities(p[:, :2], tags)
    p[1, 2] = 1.2
    with pytest.raises(ValueError, match=r"from 0 to 1, got 1.2 in row 1, label 2; turn scores"):
        read_probabilities(p, tags)
    with pytest.raises(ValueError, match="from 0 to 1, got x in row 0, label 0"):
        read_probabilities(np.full(INDICATOR.shape, "x"), tags)
