"""The graph of the labels: closed form, limits, unknown cells, and published figures."""

import numpy as np
import pytest
from scipy import sparse

from lemll.datasets import binarize_distribution, load_dataset, make_artificial
from lemll.enhancers import LabelGraphEnhancer, LEMLLEnhancer, LogicalEnhancer, UniformEnhancer
from lemll.enhancers.base import absent_labels
from lemll.metrics import chebyshev


@pytest.fixture(name="data")
def _data():
    rng = np.random.RandomState(0)
    Y = (rng.uniform(size=(60, 5)) < [0.6, 0.5, 0.4, 0.3, 0.2]).astype(int)
    return rng.randn(60, 3), Y


def slow(Y, alpha, measure):
    """Count pairs and iterate p <- alpha L p + (1 - alpha) y until nothing changes."""
    n_labels = Y.shape[1]
    A = np.eye(n_labels)
    for j in range(n_labels):
        for k in range(n_labels):
            both = np.sum((Y[:, j] == 1) & (Y[:, k] == 1))
            either = np.sum((Y[:, j] == 1) | (Y[:, k] == 1))
            root = np.sqrt(Y[:, j].sum() * Y[:, k].sum())
            if j != k:
                A[j, k] = both / either if measure == "jaccard" else both / root
    degrees = A.sum(axis=1)
    L = np.array([[A[j, k] / np.sqrt(degrees[j] * degrees[k]) for k in range(n_labels)]
                  for j in range(n_labels)])  # fmt: skip
    p = Y.astype(float)
    for _ in range(2000):
        p = alpha * p @ L + (1 - alpha) * Y
    return p


@pytest.mark.parametrize("measure", ["jaccard", "cosine"])
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.95])
def test_it_is_the_limit_of_the_propagation(data, alpha, measure):
    X, Y = data
    found = LabelGraphEnhancer(alpha, measure=measure).fit(X, Y)
    expected = np.maximum(slow(Y, alpha, measure), 1e-4)
    np.testing.assert_allclose(found.numerical_labels_, expected, atol=1e-12)
    assert found.residual_ < 1e-12


def test_limits(data):
    X, Y = data
    Y = Y[Y.any(axis=1)]
    X = X[: len(Y)]
    none = LabelGraphEnhancer(0.0).fit_enhance(X, Y)
    np.testing.assert_allclose(none, LogicalEnhancer().fit_enhance(X, Y), atol=1e-3)
    empty = np.vstack([Y, np.zeros((1, 5), int), np.ones((1, 5), int)])
    found = LabelGraphEnhancer().fit_enhance(np.zeros((len(empty), 1)), empty)
    np.testing.assert_allclose(found[-2], 0.2)
    assert (found[-1] > 0.1).all()


def test_features_and_the_order_of_rows_do_not_matter(data):
    X, Y = data
    found = LabelGraphEnhancer().fit_enhance(X, Y)
    order = np.random.RandomState(1).permutation(len(Y))
    again = LabelGraphEnhancer().fit_enhance(-X, sparse.csr_array(Y[order]))
    np.testing.assert_allclose(again, found[order], atol=1e-12)


def test_with_two_labels_or_one_label_per_row_it_calibrates_to_the_logical_baseline(data):
    X, _ = data
    rng = np.random.RandomState(2)
    Y = np.eye(4, dtype=int)[rng.randint(4, size=60)]
    D = rng.dirichlet(np.ones(4), size=60)
    rows = np.arange(10)
    graph = LabelGraphEnhancer().fit(X, Y).calibrate(rows, D[rows], random_state=0)
    logical = LogicalEnhancer(normalization="softmax").fit(X, Y)
    logical.calibrate(rows, D[rows], random_state=0)
    np.testing.assert_allclose(graph.label_distribution_, logical.label_distribution_, atol=1e-3)


def test_a_pair_is_counted_where_both_labels_are_known(data):
    X, Y = data
    hidden = np.random.RandomState(3).uniform(size=Y.shape) < 0.3
    partial = np.where(hidden, np.nan, Y)
    found = LabelGraphEnhancer().fit(X, partial)
    known = ~hidden[:, 0] & ~hidden[:, 1]
    both = np.sum(Y[known, 0] & Y[known, 1])
    assert found.label_graph_[0, 1] == pytest.approx(both / np.sum(Y[known, 0] | Y[known, 1]))
    frequency = Y[~hidden[:, 2], 2].mean()
    filled = np.where(hidden, [Y[~hidden[:, j], j].mean() for j in range(5)], Y)
    assert filled[hidden[:, 2]][0, 2] == pytest.approx(frequency)
    A = found.label_graph_
    root = 1 / np.sqrt(A.sum(axis=1))
    p = 0.5 * np.linalg.solve(np.eye(5) - 0.5 * root[:, None] * A * root, filled.T).T
    np.testing.assert_allclose(found.numerical_labels_, np.maximum(p, 1e-4), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.0}, "alpha=1.0 must be below 1; the default is 0.5"),
        ({"alpha": -0.1}, "alpha"),
        ({"measure": "dice"}, "measure='dice' must be one of jaccard, cosine"),
    ],
)
def test_refusals(data, options, message):
    with pytest.raises(ValueError, match=message):
        LabelGraphEnhancer(**options).fit(*data)


def test_a_label_without_relevant_rows_is_named():
    data = make_artificial(100, random_state=0)
    Y = np.column_stack([binarize_distribution(data.D, 0.5), np.zeros(100, int)])
    enhancer = LabelGraphEnhancer(scale=0.1)
    with pytest.warns(UserWarning, match=r"no row has the labels y3 \(0\..*leave these labels"):
        enhancer.fit(data.X, Y)


def test_absent_labels_are_those_with_a_share_and_without_a_row():
    unknown = np.nan
    Y = np.array([[1, 0, 0, unknown, 0], [1, unknown, 0, unknown, 0]])
    np.testing.assert_array_equal(absent_labels(Y, np.array([0.5, 0.2, 0.1, 0.195, 0.005])), [1, 2])
    assert len(absent_labels(Y, np.full(5, 0.2))) == 0
    assert len(absent_labels(np.zeros((2, 3), int), np.array([0.2, 0.3, 0.5]))) == 0


@pytest.mark.parametrize(
    ("name", "error"), [("SJAFFE", 0.0698), ("Yeast_spo5", 0.0613), ("Yeast_cold", 0.0375)]
)
def test_calibrated_by_ten_rows_it_has_the_errors_that_we_measured_before(data_dir, name, error):
    data = load_dataset(name)
    enhancer = LabelGraphEnhancer().fit(data.X, binarize_distribution(data.D, 0.5))
    found = []
    for seed in range(20):
        rows = np.random.RandomState(seed).choice(len(data.D), 10, replace=False)
        others = np.setdiff1d(np.arange(len(data.D)), rows)
        enhancer.calibrate(rows, data.D[rows], n_bootstrap=1)
        found.append(chebyshev(data.D[others], enhancer.label_distribution_[others]))
    assert np.mean(found) == pytest.approx(error, abs=1e-3)


@pytest.mark.parametrize("make", [LabelGraphEnhancer, LogicalEnhancer, UniformEnhancer])
def test_features_may_be_none(make):
    data = make_artificial(40, random_state=0)
    Y = binarize_distribution(data.D, 0.5)
    expected = make().fit_enhance(data.X, Y)
    np.testing.assert_array_equal(make().fit_enhance(None, Y), expected)
    np.testing.assert_array_equal(make().fit_enhance(None, Y.tolist()), expected)
    with pytest.raises(ValueError, match="LEMLLEnhancer needs features, got X=None; LabelGraph"):
        LEMLLEnhancer().fit(None, Y)
