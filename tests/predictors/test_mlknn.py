"""ML-kNN: by hand, by definition, and against the published implementation's figures."""

import numpy as np
import pytest
from scipy import sparse

from lemll.datasets import load_dataset
from lemll.metrics import average_precision, coverage, hamming_loss, one_error, ranking_loss
from lemll.rivals import MLkNN


def test_six_points_by_hand():
    # Two clusters on a line. With k = 2 every row's neighbours are the two others of its cluster.
    X = np.array([[0.0], [1.0], [2.1], [10.0], [11.0], [12.1]])
    Y = np.array([[1], [1], [0], [0], [0], [0]])
    model = MLkNN(n_neighbors=2).fit(X, Y)
    # P(H1) = (1 + 2) / (2 + 6) = 3/8. Of the two rows with the label both have one neighbour with
    # it: P(1|H1) = (1 + 2) / (3 + 2). Of the four without, three have none, one has two:
    # P(0|H0) = (1 + 3) / (3 + 4), P(1|H0) = 1/7, P(2|H0) = 2/7.
    prior, rest = 3 / 8, 5 / 8
    likely, unlikely = np.array([1, 3, 1]) / 5, np.array([4, 1, 2]) / 7
    expected = prior * likely / (prior * likely + rest * unlikely)
    np.testing.assert_allclose(1 / (1 + np.exp(-model.log_odds_[0])), expected)
    p = model.predict_proba([[0.4], [1.9], [11.0], [6.4]])
    # Their neighbours are the rows 0 and 1, then 2 and 1, then 4 and 3, then 3 and 2.
    np.testing.assert_allclose(p[:, 0], expected[[2, 1, 0, 0]])
    np.testing.assert_array_equal(model.predict([[1.9], [11.0]]), [[1], [0]])


def by_definition(X, Y, rows, k, s):
    """Follow the formulas one row, label and neighbour at a time."""
    n = len(X)
    near = [
        sorted((np.sum((X[i] - X[j]) ** 2), j) for j in range(n) if j != i)[:k] for i in range(n)
    ]
    f = np.empty((len(rows), Y.shape[1]))
    for label in range(Y.shape[1]):
        seen = np.zeros((2, k + 1))
        for i in range(n):
            seen[Y[i, label], sum(Y[j, label] for _, j in near[i])] += 1
        prior = (s + Y[:, label].sum()) / (2 * s + n)
        for i, row in enumerate(rows):
            nearest = sorted((np.sum((row - X[j]) ** 2), j) for j in range(n))[:k]
            c = sum(Y[j, label] for _, j in nearest)
            one, none = (
                weight * (s + seen[b, c]) / (s * (k + 1) + seen[b].sum())
                for b, weight in ((1, prior), (0, 1 - prior))
            )
            f[i, label] = one / (one + none)
    return f


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_equals_the_definition_with_twins_and_ties(whole, form):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(50, 3)).astype(float)  # only 27 different rows
    rows = rng.integers(0, 3, size=(20, 3)).astype(float)
    if not whole:
        X, rows = X * 0.37, rows * 0.37
    Y = rng.integers(0, 2, size=(50, 4))
    model = MLkNN(n_neighbors=5, smoothing=0.5).fit(form(X), Y)
    expected = by_definition(X, Y, rows, 5, 0.5)
    np.testing.assert_allclose(model.predict_proba(form(rows)), expected, rtol=1e-12)


def test_equal_odds_are_relevant():
    # Rows alternate and every neighbour says nothing: the label is as likely as not.
    X = np.zeros((4, 1))
    Y = np.array([[1, 1], [0, 0], [1, 0], [0, 1]])
    model = MLkNN(n_neighbors=3).fit(X, Y)
    assert model.log_odds_.shape == (2, 4)
    tied = model.log_odds_ == 0
    assert tied.any()
    chosen = MLkNN(n_neighbors=3).fit(X, Y)
    chosen.log_odds_ = np.zeros((2, 4))
    np.testing.assert_array_equal(chosen.predict(X), 1)
    np.testing.assert_array_equal(chosen.predict_proba(X), 0.5)


def test_minmax_divides_by_the_range():
    rng = np.random.default_rng(1)
    X, Y = rng.uniform(size=(60, 3)), rng.integers(0, 2, size=(60, 2))
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = MLkNN().fit((X - low) / (high - low), Y).predict_proba((X - low) / (high - low))
    stretched = X * [1.0, 100.0, 1e-3] + [5.0, 0.0, -1.0]
    found = MLkNN(scale="minmax").fit(stretched, Y).predict_proba(stretched)
    np.testing.assert_allclose(found, scaled)
    assert not np.allclose(MLkNN().fit(stretched, Y).predict_proba(stretched), scaled)


def test_a_constant_feature_does_not_count():
    X = np.array([[1.0, 7.0], [2.0, 7.0], [4.0, 7.0]])
    model = MLkNN(n_neighbors=1, scale="minmax").fit(X, np.array([[0], [1], [1]]))
    np.testing.assert_array_equal(model.predict(X + np.array([0.0, 3.0])), model.predict(X))


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("yeast", (0.1987, 0.1706, 0.2366, 0.4549, 0.7590)),
        ("scene", (0.0876, 0.0832, 0.2326, 0.0828, 0.8601)),
    ],
)
def test_equals_mulan(name, figures, data_dir):
    data = load_dataset(name)
    order = np.random.RandomState(0).permutation(len(data.Y))
    seen, unseen = np.split(order, [len(order) // 2])
    model = MLkNN(scale="minmax").fit(data.X[seen], data.Y[seen])
    X, Y = data.X[unseen], data.Y[unseen]
    scores = model.decision_function(X)
    found = [hamming_loss(Y, model.predict(X))]
    found += [measure(Y, scores) for measure in (ranking_loss, one_error, coverage)]
    np.testing.assert_allclose([*found, average_precision(Y, scores)], figures, atol=6e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number >= 1, got 0"),
        ({"smoothing": 0}, "smoothing must be finite and > 0, got 0"),
        ({"smoothing": 1e300}, r"smoothing must lie between 1e-100 and 1e\+100, got 1e\+300"),
        ({"scale": "max"}, "scale='max' must be 'minmax' or one of 'auto', 'standard'"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        MLkNN(**options).fit(np.eye(3), np.eye(3))


@pytest.mark.parametrize("s", [1e-100, 1e100])
def test_any_smoothing_that_is_allowed_gives_numbers(s):
    Y = np.array([[0, 1, 0], [0, 1, 1], [0, 1, 0]])
    assert np.isfinite(MLkNN(smoothing=s).fit(np.eye(3), Y).log_odds_).all()


@pytest.mark.parametrize("scale", ["none", "minmax"])
def test_features_that_cannot_be_squared_are_refused(scale):
    model, X = MLkNN(scale=scale), np.eye(3)
    with pytest.raises(ValueError, match=r"up to 1.0e\+200.* rescale the features first"):
        model.fit(1e200 * X, np.eye(3))
    model.fit(X, np.eye(3))
    with pytest.raises(ValueError, match=r"up to 1.0e\+200.* rescale the features first"):
        model.predict(1e200 * X)


def test_a_range_without_an_inverse_is_none():
    X = np.array([[0.0, 1e-310], [1.0, 0.0], [3.0, 2e-310]])
    model = MLkNN(n_neighbors=1, scale="minmax").fit(X, np.eye(3))
    np.testing.assert_array_equal(model.X_fit_, X * [1 / 3, 0])


def test_one_row_has_no_neighbour():
    with pytest.raises(ValueError, match="got n_samples=1; add rows"):
        MLkNN().fit([[1.0]], [[1, 0]])
