"""Binarising distributions against a row-by-row oracle, published cardinalities, and by hand."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from scipy.io import loadmat

from lemll.datasets.describe import binarize_distribution


def slow(D, threshold):
    Y = np.zeros(D.shape, dtype=np.int8)
    for i, row in enumerate(D):
        total = 0.0
        for label in sorted(range(len(row)), key=lambda j: -row[j]):
            Y[i, label] = 1
            total += row[label]
            if total > threshold:
                break
    return Y


@st.composite
def distributions(draw):
    shape = (draw(st.integers(1, 6)), draw(st.integers(1, 7)))
    degrees = draw(hnp.arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, 2.0, 5.0])))
    assume((degrees.sum(axis=1) > 0).all())
    return degrees / degrees.sum(axis=1, keepdims=True)


@settings(max_examples=200, deadline=None)
@given(D=distributions(), threshold=st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 0.99]))
def test_it_is_the_rule_row_by_row(D, threshold):
    Y = binarize_distribution(D, threshold)
    assert Y.dtype == np.int8
    assert_array_equal(Y, slow(D, threshold))


def test_by_hand():
    D = [[0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]]
    assert_array_equal(binarize_distribution(D, 0.3), [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    # 0.5 does not exceed 0.5: one more, and of equals the lower index
    assert_array_equal(binarize_distribution(D, 0.5), [[1, 1, 0], [1, 0, 1], [1, 0, 0]])
    assert_array_equal(binarize_distribution(D, 0.75), [[1, 1, 1], [1, 1, 1], [1, 0, 0]])
    assert_array_equal(binarize_distribution([[1.0]], 0.5), [[1]])


def test_a_row_that_rounding_keeps_below_the_threshold_takes_all():
    D = [[0.5, 0.499999, 0.0]]
    assert_array_equal(binarize_distribution(D, 0.9999999), [[1, 1, 1]])


@pytest.mark.parametrize(
    ("file", "cardinalities"),
    [("SJAFFE", (1.000, 1.681, 2.695)), ("Yeast_spoem", (1.000, 1.000, 1.006))],
)
def test_mean_cardinality_of_real_sets(data_dir, file, cardinalities):
    D = loadmat(data_dir / "distribution" / f"{file}.mat")["labels"]
    for threshold, expected in zip((0.1, 0.3, 0.5), cardinalities, strict=True):
        assert round(binarize_distribution(D, threshold).sum(axis=1).mean(), 3) == expected


def test_the_callers_array_stays():
    D = np.random.default_rng(0).dirichlet(np.ones(5), size=20)
    before = D.copy()
    D.flags.writeable = False
    binarize_distribution(D, 0.3)
    assert_array_equal(D, before)


@pytest.mark.parametrize("threshold", [0, 1, -0.1, 1.5, math.nan, math.inf, "0.3", None])
def test_bad_threshold(threshold):
    with pytest.raises(ValueError, match="threshold must be a number between 0 and 1, got"):
        binarize_distribution([[0.5, 0.5]], threshold)


@pytest.mark.parametrize(
    ("D", "message"),
    [
        ([[0.5, 0.4]], "every row of D must sum to 1, got 0.9 in row 0"),
        ([[1.5, -0.5]], "D must not be negative, got -0.5 in row 0, label 1"),
        ([[np.nan, 1.0]], "D must be finite, got nan"),
        ([0.5, 0.5], "D must be 2-D"),
    ],
)
def test_bad_distribution(D, message):
    with pytest.raises(ValueError, match=message):
        binarize_distribution(D, 0.3)
