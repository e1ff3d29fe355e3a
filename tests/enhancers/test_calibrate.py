"""The scale: not to be known from logical labels, and known from a few rated rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from lemll.datasets import binarize_distribution, make_artificial
from lemll.enhancers import (
    ENHANCERS,
    BlendEnhancer,
    LabelGraphEnhancer,
    LEMLLEnhancer,
    UniformEnhancer,
)
from lemll.fitting.scaling import normalize
from lemll.metrics import chebyshev
from lemll.rivals import RIVAL_ENHANCERS, KMEnhancer


@pytest.fixture(scope="module")
def data():
    artificial = make_artificial(200, random_state=0)
    return artificial.X, artificial.D, binarize_distribution(artificial.D, 0.5)


def power(D, exponent):
    raised = D**exponent
    return raised / raised.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("method", [*ENHANCERS, *RIVAL_ENHANCERS])
def test_a_distribution_and_its_cube_cannot_be_told_apart(data, method):
    X, D, _ = data
    steep = power(D, 3)
    flat_labels, steep_labels = (binarize_distribution(d, 0.1) for d in (D, steep))
    assert (flat_labels.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(steep_labels, flat_labels)
    enhancers = [method(), method()]
    for enhancer in enhancers:
        if hasattr(enhancer, "random_state"):
            enhancer.set_params(random_state=0)
    flat, cubed = (
        e.fit(X, labels).numerical_labels_
        for e, labels in zip(enhancers, (flat_labels, steep_labels), strict=True)
    )
    np.testing.assert_array_equal(flat, cubed)
    assert chebyshev(D, steep) > 0.1


def test_rated_rows_tell_them_apart(data):
    X, D, _ = data
    enhancer = LEMLLEnhancer().fit(X, binarize_distribution(D, 0.1))
    rows = np.arange(0, 200, 10)
    scales = [enhancer.calibrate(rows, power(D, t)[rows]).scale_ for t in (0.3, 1, 3)]
    assert scales[0] < scales[1] < scales[2]


def test_the_scale_minimises_the_mean_squared_error_of_the_rated_rows(data):
    X, D, Y = data
    rows = np.array([3, 50, 51, 120, 7])
    enhancer = LEMLLEnhancer().fit(X, Y).calibrate(rows, D[rows], random_state=0)
    U = enhancer.numerical_labels_[rows]

    def loss(scale):
        return ((normalize(U, scale=scale) - D[rows]) ** 2).sum(axis=1).mean()

    tried = [loss(scale) for scale in np.geomspace(1 / 64, 64, 500)]
    assert loss(enhancer.scale_) <= min(tried) + 1e-9
    others = np.setdiff1d(np.arange(len(D)), rows)
    np.testing.assert_allclose(
        enhancer.label_distribution_[others],
        normalize(enhancer.numerical_labels_, scale=enhancer.scale_)[others],
    )
    np.testing.assert_array_equal(enhancer.label_distribution_[rows], D[rows])
    np.testing.assert_allclose(
        enhancer.enhance(X),
        normalize(X @ enhancer.coef_.T + enhancer.intercept_, scale=enhancer.scale_),
    )


def test_ten_rows_help_the_others(data):
    X, D, Y = data
    # A temperature other than 1 is what calibration is for.
    steep = power(D, 3)
    enhancer = LEMLLEnhancer().fit(X, Y)
    others = np.arange(10, 200)
    before = chebyshev(steep[others], enhancer.label_distribution_[others])
    enhancer.calibrate(np.arange(10), steep[:10])
    assert chebyshev(steep[others], enhancer.label_distribution_[others]) < 0.8 * before


def test_more_rows_make_it_surer(data):
    X, D, Y = data
    enhancer = LEMLLEnhancer().fit(X, Y)
    widths = []
    for n_rated in (5, 150):
        rows = np.arange(n_rated)
        enhancer.calibrate(rows, D[rows], random_state=0)
        low, high = enhancer.scale_interval_
        assert low <= enhancer.scale_ <= high
        widths.append(np.log(high / low))
    assert widths[1] < 0.7 * widths[0]


def test_one_row_is_enough_but_says_nothing_of_how_sure_it_is(data):
    X, D, Y = data
    enhancer = LEMLLEnhancer().fit(X, Y).calibrate([4], D[[4]])
    assert enhancer.scale_ > 0
    assert enhancer.scale_interval_ is None


def test_ratings_that_contradict_the_labels_are_told(data):
    X, _, Y = data
    enhancer = LEMLLEnhancer().fit(X, Y)
    rows = np.arange(10)
    against = np.exp(-5 * enhancer.numerical_labels_[rows])
    against /= against.sum(axis=1, keepdims=True)
    with pytest.warns(UserWarning, match="a scale at the end of its range, .* look at the ratings"):
        enhancer.calibrate(rows, against)


def test_divided_by_sums_the_scale_is_a_power(data):
    X, _, Y = data
    enhancer = KMEnhancer().fit(X, Y)
    rows = np.flatnonzero(Y.sum(axis=1) > 1)[:10]
    wanted = power(enhancer.label_distribution_, 2.5)
    enhancer.calibrate(rows, wanted[rows])
    assert enhancer.scale_ == pytest.approx(2.5, rel=1e-3)
    np.testing.assert_allclose(enhancer.label_distribution_, wanted, atol=1e-3)


def test_where_the_scale_changes_nothing_it_is_refused(data):
    X, D, Y = data
    with pytest.raises(ValueError, match="the scale changes nothing in the rated rows"):
        UniformEnhancer().fit(X, Y).calibrate([0, 1], D[:2])
    alone = np.flatnonzero(Y.sum(axis=1) == 1)[:3]
    with pytest.raises(ValueError, match="the scale changes nothing in the rated rows"):
        KMEnhancer().fit(X, Y).calibrate(alone, D[alone])


@pytest.mark.parametrize(
    ("rows", "distributions", "message"),
    [
        ([], np.empty((0, 3)), "rows must list at least one training row"),
        ([[0, 1]], [[1.0, 0, 0]], r"rows must list at least one training row, got shape \(1, 2\)"),
        ([0.0, 1.0], [[1.0, 0, 0]] * 2, "rows must hold whole row numbers, got dtype float64"),
        ([True, False], [[1.0, 0, 0]] * 2, "turn a mask into numbers with numpy.flatnonzero"),
        ([0, 200], [[1.0, 0, 0]] * 2, "rows must lie between 0 and 199, got 200"),
        ([-1], [[1.0, 0, 0]], "rows must lie between 0 and 199, got -1"),
        ([3, 3], [[1.0, 0, 0]] * 2, "rows names a row twice"),
        ([0], [[1.0, 0]], r"one column for each of 3 labels, got shape \(1, 2\)"),
        ([0, 1], [[1.0, 0, 0]], "one row for each of 2 rated rows"),
        ([0], [[0.5, 0.2, 0.2]], "every row of distributions must sum to 1, got 0.9"),
        ([0], [[1.5, -0.5, 0]], "distributions must not be negative"),
    ],
)
def test_errors(data, rows, distributions, message):
    X, _, Y = data
    with pytest.raises(ValueError, match=message):
        KMEnhancer().fit(X, Y).calibrate(rows, distributions)


def test_more_errors(data):
    X, D, Y = data
    with pytest.raises(NotFittedError):
        LEMLLEnhancer().calibrate([0], D[:1])
    with pytest.raises(ValueError, match="n_bootstrap must be a whole number >= 1"):
        LEMLLEnhancer().fit(X, Y).calibrate([0], D[:1], n_bootstrap=0)


@pytest.mark.parametrize("make", [BlendEnhancer, LEMLLEnhancer, LabelGraphEnhancer])
def test_columns_of_rated_frames_are_found_by_name(make):
    data = make_artificial(60, random_state=0)
    Y = pd.DataFrame(binarize_distribution(data.D, 0.5), columns=list("abc"))
    ratings = pd.DataFrame(data.D[:10], columns=list("abc"))
    expected = make().fit(data.X, Y).calibrate(range(10), ratings, random_state=0)
    turned = make().fit(data.X, Y).calibrate(range(10), ratings[list("cab")], random_state=0)
    np.testing.assert_array_equal(turned.label_distribution_, expected.label_distribution_)
    with pytest.raises(ValueError, match="absent: b; not a label: B. Rename the columns"):
        expected.calibrate(range(10), ratings.rename(columns={"b": "B"}))
    # The labels of an array have no names, so the position counts.
    unnamed = make().fit(data.X, Y.to_numpy()).calibrate(range(10), ratings, random_state=0)
    np.testing.assert_array_equal(unnamed.label_distribution_, expected.label_distribution_)


def test_a_rated_frame_in_another_order_than_the_rows_is_refused(data):
    X, D, Y = data
    enhancer = LabelGraphEnhancer().fit(X, Y)
    rows = [9, 4, 30]
    rated = pd.DataFrame(D[rows], index=rows)
    expected = enhancer.calibrate(rows, D[rows]).label_distribution_
    moved = rated.sort_index()
    with pytest.raises(ValueError, match="has 4 at the place of row 9, which is 9; pass rows=X"):
        enhancer.calibrate(rows, moved)
    # The order of the index, other indices and the default one are accepted.
    for given_rows, frame in (
        (rows, rated),
        (moved.index, moved),
        (rows, rated.set_axis(["a", "b", "c"])),
        (rows, rated.reset_index(drop=True)),
        (rows, rated.set_axis([100, 200, 300])),
    ):
        found = enhancer.calibrate(given_rows, frame).label_distribution_
        np.testing.assert_allclose(found, expected)
    few = [2, 0, 1]
    found = enhancer.calibrate(few, pd.DataFrame(D[few])).label_distribution_
    np.testing.assert_allclose(found[few], D[few])


@pytest.mark.parametrize("of", ["X", "y"])
def test_rated_rows_may_be_named_by_the_index(data, of):
    X, D, Y = data
    names = [f"photo {i}" for i in range(len(X))]
    given = {"X": X, "y": Y} | {of: pd.DataFrame({"X": X, "y": Y}[of], index=names)}
    given[of].columns = given[of].columns.astype(str)
    rows = [9, 4, 30]
    expected = LabelGraphEnhancer().fit(X, Y).calibrate(rows, D[rows]).label_distribution_
    enhancer = LabelGraphEnhancer().fit(**given)
    rated = pd.DataFrame(D[rows], index=[names[row] for row in rows])
    for given_rows, frame in ((rated.index, rated), (rows, rated), (list(rated.index), D[rows])):
        found = enhancer.calibrate(given_rows, frame).label_distribution_
        np.testing.assert_allclose(found, expected)
    with pytest.raises(ValueError, match="'photo 30' at the place of row 9, which is 'photo 9'"):
        enhancer.calibrate(rows, rated.sort_index())
    with pytest.raises(ValueError, match="the index of the training rows has no row 'photo 999'"):
        enhancer.calibrate(["photo 999"], D[:1])
    with pytest.raises(ValueError, match="got dtype .*; turn a mask .* X.index.get_indexer"):
        enhancer.fit(X, Y).calibrate(["photo 9"], D[:1])


def test_whole_numbers_are_numbers_of_rows_whatever_the_index_is(data):
    X, D, Y = data
    order = np.random.RandomState(0).permutation(len(X))
    frame = pd.DataFrame(X[order], index=order).rename(columns=str)
    enhancer = LabelGraphEnhancer().fit(frame, Y[order])
    rated = pd.DataFrame(D[order], index=order).iloc[[3, 8, 50]]
    # The index is taken for numbers of rows, so the frame names other rows.
    with pytest.raises(ValueError, match="pass rows=X.index.get_indexer"):
        enhancer.calibrate(rated.index, rated)
    found = enhancer.calibrate(frame.index.get_indexer(rated.index), rated).label_distribution_
    np.testing.assert_allclose(found[[3, 8, 50]], rated)
    twice = frame.set_axis(["a", "a", *map(str, order[2:])])
    enhancer.fit(twice, Y[order])
    with pytest.raises(ValueError, match="training rows has more than one row 'a'"):
        enhancer.calibrate(["a"], rated.iloc[:1].to_numpy())
