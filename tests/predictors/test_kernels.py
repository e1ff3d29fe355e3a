"""Estimators with kernels: what each kernel is, what is kept, what is refused."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV, cross_val_predict
from support import Peak

from lemll import LEMLL, MSVR, MSVRClassifier, _validation
from lemll.enhancers import LEMLLEnhancer
from lemll.exceptions import NotEnoughMemoryError
from lemll.fitting import kernels
from lemll.topology import reconstruction_weights

ESTIMATORS = [LEMLL(tol=1e-10), LEMLLEnhancer(tol=1e-10), MSVR(), MSVRClassifier()]


def random_problem(seed=0, n=60, d=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Y = (np.sin(2 * X[:, :3]) + 0.3 * rng.standard_normal((n, 3)) > 0).astype(int)
    return X, Y


def outputs(model, X):
    for name in ("decision_function", "enhance", "predict"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    raise AssertionError


@pytest.mark.parametrize(
    ("parameters", "values"),
    [
        ({"kernel": "rbf", "kernel_params": {"gamma": 0.3}}, ("rbf", {"gamma": 0.3})),
        (
            {"kernel": "poly", "kernel_params": {"gamma": 0.5, "degree": 2, "coef0": 0.5}},
            ("poly", {"gamma": 0.5, "degree": 2, "coef0": 0.5}),
        ),
        ({"kernel": "cosine"}, ("cosine", {})),
        ({"kernel": lambda A, B: (A @ B.T) ** 2}, ("poly", {"gamma": 1, "degree": 2, "coef0": 0})),
        ({"kernel": lambda A, B: sparse.csr_array(A @ B.T)}, ("linear", {})),
        ({"kernel": "linear"}, ("linear", {})),
    ],
    ids=["rbf", "poly", "cosine", "callable", "sparse callable", "linear"],
)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_precomputed_kernel_equals_the_one_built_in(estimator, parameters, values):
    X, Y = random_problem()
    name, of_scikit_learn = values
    rows = np.arange(40)
    K = pairwise_kernels(X, X[rows], metric=name, **of_scikit_learn)
    # The neighbourhoods are those of X, which a precomputed kernel does not know.
    graph = {}
    if "graph" in estimator.get_params():
        graph = {"graph": reconstruction_weights(X[rows])}
    built_in = clone(estimator).set_params(**parameters, **graph).fit(X[rows], Y[rows])
    precomputed = clone(estimator).set_params(kernel="precomputed", **graph).fit(K[rows], Y[rows])
    np.testing.assert_allclose(outputs(built_in, X), outputs(precomputed, K), atol=1e-8)
    assert built_in.objective_ == pytest.approx(precomputed.objective_, rel=1e-8)


def test_a_precomputed_linear_kernel_needs_no_graph():
    X, Y = random_problem(d=12)
    linear = LEMLL(tol=1e-10).fit(X, Y)
    by_kernel = LEMLL(tol=1e-10, kernel="precomputed").fit(X @ X.T, Y)
    np.testing.assert_allclose(by_kernel.dual_coef_ @ X, linear.coef_, atol=1e-8)
    np.testing.assert_allclose(by_kernel.intercept_, linear.intercept_, atol=1e-8)
    np.testing.assert_allclose(by_kernel.numerical_labels_, linear.numerical_labels_, atol=1e-8)


def test_without_a_tube_msvr_is_kernel_ridge_on_centred_targets_and_kernel():
    X, _ = random_problem()
    targets = np.sin(X[:, :2])
    model = MSVR(alpha=0.5, epsilon=0.0, kernel="rbf", kernel_params={"gamma": 0.4}).fit(X, targets)
    K = pairwise_kernels(X, metric="rbf", gamma=0.4)
    centring = np.eye(60) - 1 / 60
    ridge = KernelRidge(alpha=0.5, kernel="precomputed")
    ridge.fit(centring @ K @ centring, targets - targets.mean(axis=0))
    expected = ridge.predict(centring @ K @ centring) + targets.mean(axis=0)
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-10)
    np.testing.assert_allclose(model.dual_coef_.T, ridge.dual_coef_, atol=1e-10)


def test_weights_of_rows_are_repeated_rows_with_a_kernel_too():
    X, _ = random_problem()
    targets, weights = np.sin(X[:, :2]), np.arange(60) % 3
    options = {"alpha": 0.5, "kernel": "rbf", "kernel_params": {"gamma": 0.4}}
    weighted = MSVR(**options).fit(X, targets, sample_weight=weights)
    repeated = MSVR(**options).fit(np.repeat(X, weights, axis=0), np.repeat(targets, weights, 0))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-8)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine"])
def test_sparse_equals_dense(estimator, kernel):
    X, Y = random_problem()
    X[np.abs(X) < 0.5] = 0
    model = clone(estimator).set_params(kernel=kernel)
    dense = clone(model).fit(X, Y)
    by_rows = clone(model).fit(sparse.csr_array(X), Y)
    assert by_rows.kernel_.gamma == pytest.approx(dense.kernel_.gamma)
    np.testing.assert_allclose(outputs(by_rows, sparse.csr_array(X)), outputs(dense, X), atol=1e-8)


def test_the_width_follows_the_variance_and_not_the_place_of_the_features():
    X, Y = random_problem()
    model = LEMLL(kernel="rbf").fit(X, Y)
    assert model.kernel_.gamma == pytest.approx(1 / X.var(axis=0).sum())
    moved = LEMLL(kernel="rbf").fit(3 * X + 100, Y)
    assert moved.kernel_.gamma == pytest.approx(model.kernel_.gamma / 9)
    np.testing.assert_allclose(
        moved.decision_function(3 * X + 100), model.decision_function(X), atol=1e-4
    )
    assert LEMLL(kernel="rbf").fit(np.ones((5, 2)), Y[:5]).kernel_.gamma == 1


def test_blocks_of_rows_change_nothing(monkeypatch):
    X, Y = random_problem()
    whole = LEMLL(kernel="rbf").fit(X, Y).decision_function(X)
    monkeypatch.setattr(kernels, "BLOCK_BYTES", 8 * 60 * 7)
    parts = LEMLL(kernel="rbf").fit(X, Y).decision_function(X)
    np.testing.assert_allclose(parts, whole, atol=1e-10)


def test_the_model_keeps_its_own_rows_and_nothing_stale():
    X, Y = random_problem()
    model = LEMLL(kernel="rbf").fit(X, Y)
    scores = model.decision_function(X.copy())
    rows = X.copy()
    X[:] = 0
    np.testing.assert_array_equal(model.decision_function(rows), scores)
    assert model.dual_coef_.shape == (3, 60)
    assert not hasattr(model, "coef_")
    model.set_params(kernel="linear").fit(rows, Y)
    assert model.coef_.shape == (3, 4)
    assert not hasattr(model, "dual_coef_")
    assert not hasattr(model, "X_fit_")
    again = pickle.loads(pickle.dumps(LEMLL(kernel="rbf").fit(rows, Y)))  # noqa: S301
    np.testing.assert_allclose(again.decision_function(rows), scores)


def test_scikit_learn_slices_a_precomputed_kernel_both_ways():
    X, Y = random_problem()
    K = pairwise_kernels(X, metric="rbf", gamma=0.3)
    scores = cross_val_predict(MSVRClassifier(kernel="precomputed"), K, Y, cv=3)
    direct = cross_val_predict(
        MSVRClassifier(kernel="rbf", kernel_params={"gamma": 0.3}), X, Y, cv=3
    )
    np.testing.assert_array_equal(scores, direct)
    search = GridSearchCV(LEMLL(kernel="precomputed"), {"alpha": [0.1, 1]}, cv=3).fit(K, Y)
    assert search.predict(K).shape == Y.shape


def test_thresholds_are_tuned_on_a_precomputed_kernel_too():
    X, Y = random_problem()
    K = pairwise_kernels(X, metric="rbf", gamma=0.3)
    given = MSVRClassifier(kernel="precomputed", thresholds="f1").fit(K, Y)
    built_in = MSVRClassifier(kernel="rbf", kernel_params={"gamma": 0.3}, thresholds="f1").fit(X, Y)
    np.testing.assert_allclose(given.thresholds_, built_in.thresholds_, atol=1e-8)


@pytest.mark.filterwarnings("ignore:LEMLL predicts no label")  # a line finds none here
def test_a_kernel_separates_what_a_line_cannot():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    Y = np.column_stack([X[:, 0] * X[:, 1] > 0, np.hypot(*X.T) < 0.7]).astype(int)
    accuracy = {
        kernel: (LEMLL(0.01, kernel=kernel).fit(X[:200], Y[:200]).predict(X[200:]) == Y[200:])
        .mean(axis=0)
        .min()
        for kernel in ("linear", "rbf", "poly")
    }
    assert accuracy["linear"] < 0.7
    assert accuracy["rbf"] > 0.9
    assert accuracy["poly"] > 0.85


def test_a_sigmoid_kernel_is_taken_where_it_is_positive_and_refused_where_not():
    X, Y = random_problem()
    LEMLL(kernel="sigmoid", kernel_params={"gamma": 1e-6, "coef0": 0.0}).fit(X, Y)
    with pytest.raises(ValueError, match=r"smallest eigenvalue \(centred\) is -\d"):
        LEMLL(kernel="sigmoid", kernel_params={"gamma": 5.0, "coef0": -1.0}).fit(X, Y)


@pytest.mark.parametrize("estimator", ESTIMATORS[::2], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "gauss"}, "kernel='gauss' must be one of 'linear', 'rbf'"),
        ({"kernel": 3}, "kernel=3 must be one of"),
        ({"kernel": "rbf", "kernel_params": {"gamma": "scale"}}, "'variance' or a number > 0"),
        ({"kernel": "rbf", "kernel_params": {"gamma": -1.0}}, "gamma in kernel_params must be"),
        ({"kernel": "poly", "kernel_params": {"degree": 1.5}}, "degree in kernel_params must be a"),
        ({"kernel": "poly", "kernel_params": {"coef0": np.inf}}, "coef0 in kernel_params must be"),
        ({"kernel": "poly", "kernel_params": {"coef0": "1"}}, "coef0 in kernel_params must be a"),
        ({"kernel": "poly", "kernel_params": {"gamma": 1e200}}, "poly kernel reaches inf, but"),
        ({"kernel": "poly", "kernel_params": {"gamma": 1e50}}, r"reaches \d.*e\+15\d.*scale the"),
        ({"kernel": "precomputed"}, r"must be square, got shape \(60, 4\)"),
        ({"kernel": lambda A, B: A}, r"must return shape \(60, 60\) for 60 and 60 rows"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "callable kernel's result"),
    ],
)
def test_bad_kernels_are_named(estimator, parameters, message):
    X, Y = random_problem()
    with pytest.raises(ValueError, match=message):
        clone(estimator).set_params(**parameters).fit(X, Y)


@pytest.mark.parametrize("estimator", ESTIMATORS[::2], ids=lambda e: type(e).__name__)
def test_sixty_thousand_rows_are_refused_before_anything_is_allocated(estimator, monkeypatch):
    monkeypatch.setattr(_validation, "available_bytes", lambda: 16 * 2**30)
    X, Y = np.zeros((60_000, 2)), np.zeros((60_000, 3), dtype=np.int8)
    X[:, 0] = np.arange(60_000)
    Y[::2] = 1
    wanted = r"about 59\.\d GiB and 16\.0 .*; fit fewer rows, use kernel=.linear., or .*Nystroem"
    with Peak() as peak, pytest.raises(NotEnoughMemoryError, match=wanted):
        clone(estimator).set_params(kernel="rbf").fit(X, Y)
    assert peak.bytes < 20e6


def test_a_linear_fit_that_would_not_fit_is_refused_by_msvr_too(monkeypatch):
    monkeypatch.setattr(_validation, "available_bytes", lambda: 1000)
    monkeypatch.setattr(_validation, "WORTH_CHECKING", 0)
    X, Y = random_problem()
    with pytest.raises(NotEnoughMemoryError, match="Fitting 60 rows with 3 labels"):
        MSVR().fit(X, Y)
