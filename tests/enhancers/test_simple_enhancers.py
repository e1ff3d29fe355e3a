"""KM, label propagation, FCM and the uniform baseline, against their formulas written as loops."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from lemll.datasets import binarize_distribution, make_artificial
from lemll.enhancers import UniformEnhancer
from lemll.rivals import FCMEnhancer, KMEnhancer, LabelPropagationEnhancer


@pytest.fixture(scope="module")
def data():
    artificial = make_artificial(60, random_state=0)
    return artificial.X, binarize_distribution(artificial.D, 0.5)


def km_by_loops(X, Y, kernel, delta, over_all):
    K = np.array([[kernel(x, z) for z in X] for x in X])
    U = np.zeros(Y.shape)
    for j in range(Y.shape[1]):
        have = np.flatnonzero(Y[:, j])
        within = K[np.ix_(have, have)].mean()
        squared = np.array([K[i, i] - 2 * K[i, have].mean() + within for i in range(len(X))])
        radius = squared.max() if over_all else squared[have].max()
        U[have, j] = 1 - np.sqrt(np.maximum(squared[have], 0) / (radius + delta))
    return U


@pytest.mark.parametrize("over_all", [False, True])
@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_km_is_its_formula(data, name, over_all):
    X, Y = data
    kernels = {"linear": lambda x, z: x @ z, "rbf": lambda x, z: np.exp(-((x - z) ** 2).sum() / 8)}
    enhancer = KMEnhancer(
        kernel=name, kernel_gamma=0.125, delta=0.03, radius="all" if over_all else "positives"
    ).fit(X, Y)
    expected = km_by_loops(X, Y, kernels[name], 0.03, over_all)
    np.testing.assert_allclose(enhancer.numerical_labels_, expected, atol=1e-10)
    assert (enhancer.label_distribution_[Y == 0] == 0).all()


def test_km_takes_the_mean_distance_for_the_width(data):
    X, Y = data
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    mean = distances[np.triu_indices(len(X), 1)].mean()
    automatic = KMEnhancer(kernel="rbf").fit(X, Y).numerical_labels_
    given = KMEnhancer(kernel="rbf", kernel_gamma=0.5 / mean**2).fit(X, Y).numerical_labels_
    np.testing.assert_allclose(automatic, given, atol=1e-12)


@pytest.mark.parametrize("transition", ["column", "row", "symmetric"])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.99])
def test_propagation_is_the_fixed_point(data, transition, alpha):
    X, Y = data
    enhancer = LabelPropagationEnhancer(alpha, transition=transition, kernel_gamma=2.0).fit(X, Y)
    A = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 0.5)
    np.fill_diagonal(A, 0)
    sums = A.sum(axis=0)
    P = {
        "column": A / sums,
        "row": A / sums[:, None],
        "symmetric": A / np.sqrt(np.outer(sums, sums)),
    }[transition]
    F = enhancer.numerical_labels_
    assert np.abs(alpha * P @ F + (1 - alpha) * Y - F).max() <= 1e-10
    direct = (1 - alpha) * np.linalg.solve(np.eye(len(X)) - alpha * P, Y)
    np.testing.assert_allclose(F, direct, atol=1e-9)
    assert enhancer.residual_ <= 1e-12


def test_propagation_with_the_rows_own_similarity(data):
    X, Y = data
    without = LabelPropagationEnhancer().fit_enhance(X, Y)
    kept = LabelPropagationEnhancer(self_similarity=True).fit_enhance(X, Y)
    assert np.abs(kept - without).max() > 1e-4


def test_rows_far_from_all_others_keep_their_labels():
    X = 1e3 * np.eye(4)
    Y = np.array([[1, 0], [1, 1], [0, 0], [0, 1]])
    D = LabelPropagationEnhancer().fit_enhance(X, Y)
    np.testing.assert_allclose(D, [[1, 0], [0.5, 0.5], [0.5, 0.5], [0, 1]])


def test_propagation_says_when_it_is_not_there(data):
    with pytest.warns(ConvergenceWarning, match="Label propagation stopped after 2 iterations"):
        LabelPropagationEnhancer(max_iter=2).fit(*data)


def test_fcm_is_a_fixed_point_of_its_own_steps(data):
    X, Y = data
    enhancer = FCMEnhancer(4, fuzzifier=1.7, random_state=3).fit(X, Y)
    m = enhancer.memberships_
    np.testing.assert_allclose(m.sum(axis=1), 1)
    centres = (m**1.7).T @ X / (m**1.7).sum(axis=0)[:, None]
    distance = np.linalg.norm(X[:, None] - centres, axis=2)
    again = 1 / ((distance[:, :, None] / distance[:, None]) ** (2 / 0.7)).sum(axis=2)
    np.testing.assert_allclose(m, again, atol=1e-6)


@pytest.mark.parametrize("connection", ["minmax", "label", "none"])
@pytest.mark.parametrize("composition", ["product", "minimum"])
def test_fcm_composes_as_it_says(data, connection, composition):
    X, Y = data
    enhancer = FCMEnhancer(connection=connection, composition=composition, random_state=0).fit(X, Y)
    m, A = enhancer.memberships_, Y.T @ enhancer.memberships_
    if connection == "minmax":
        A = (A - A.min()) / (A.max() - A.min())
    elif connection == "label":
        A = A / A.sum(axis=1, keepdims=True)
    join = min if composition == "minimum" else lambda a, b: a * b
    expected = [
        [max(join(A[j, k], m[i, k]) for k in range(3)) for j in range(Y.shape[1])]
        for i in range(len(X))
    ]
    np.testing.assert_allclose(enhancer.numerical_labels_, expected, atol=1e-12)


def test_fcm_seeds_and_stops(data):
    X, Y = data
    one, same, other = (
        FCMEnhancer(random_state=seed, max_iter=3, stop="objective").fit_enhance(X, Y)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-6
    early = FCMEnhancer(stop="objective", tol=1e-2, random_state=0).fit(X, Y)
    late = FCMEnhancer(random_state=0).fit(X, Y)
    assert early.n_iter_ < late.n_iter_
    with pytest.warns(ConvergenceWarning, match="Fuzzy c-means stopped after 2 iterations"):
        FCMEnhancer(max_iter=2, random_state=0).fit(X, Y)


def test_uniform_is_uniform(data):
    X, Y = data
    for features in (X, sparse.csr_array(X)):
        assert (UniformEnhancer(normalization="sigmoid").fit_enhance(features, Y) == 1 / 3).all()


@pytest.mark.parametrize(
    ("enhancer", "message"),
    [
        (KMEnhancer(kernel="cubic"), "kernel='cubic' must be one of linear, rbf"),
        (KMEnhancer(radius="none"), "radius='none' must be one of positives, all"),
        (KMEnhancer(delta=0.0), "delta must be finite and > 0"),
        (KMEnhancer(kernel="rbf", kernel_gamma=-1.0), "kernel_gamma must be finite and > 0"),
        (LabelPropagationEnhancer(alpha=1.0), "alpha must be smaller than 1, or the labels"),
        (LabelPropagationEnhancer(transition="all"), "transition='all' must be one of column,"),
        (LabelPropagationEnhancer(kernel_gamma=0), "kernel_gamma must be finite and > 0"),
        (FCMEnhancer(0), "n_clusters must be a whole number >= 1, got 0"),
        (FCMEnhancer(fuzzifier=1.0), "fuzzifier must be finite and > 1"),
        (FCMEnhancer(connection="max"), "connection='max' must be one of minmax, label, none"),
        (FCMEnhancer(composition="sum"), "composition='sum' must be one of product, minimum"),
        (FCMEnhancer(stop="never"), "stop='never' must be one of memberships, objective"),
    ],
)
def test_errors(data, enhancer, message):
    with pytest.raises(ValueError, match=message):
        enhancer.fit(*data)


def test_those_without_a_model_say_so(data):
    X, Y = data
    fitted = KMEnhancer().fit(X, Y)
    assert not hasattr(fitted, "enhance")
    with pytest.raises(AttributeError, match="has no attribute 'enhance'") as caught:
        fitted.enhance(X)
    assert "KMEnhancer has no model of the features" in str(caught.value.__cause__)
