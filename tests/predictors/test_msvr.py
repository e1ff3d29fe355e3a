"""MSVR and MSVRClassifier, the estimators: what they promise beyond their solver."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from lemll import LEMLL, MSVR, MSVRClassifier
from lemll.solvers import solve_msvr


def random_problem(seed=0, n=60, d=5, m=3):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, d)
    T = X @ rng.randn(d, m) + 0.5 * rng.randn(n, m) + 2
    return X, T


def random_labels(seed=0):
    X, T = random_problem(seed)
    return X, (T > 2).astype(int)


def test_without_a_tube_it_is_ridge():
    X, T = random_problem()
    weights = np.random.RandomState(1).rand(len(X))
    model = MSVR(alpha=2.0, epsilon=0.0).fit(X, T, sample_weight=weights)
    ridge = Ridge(alpha=2.0).fit(X, T, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-10)
    np.testing.assert_allclose(model.predict(X), ridge.predict(X), rtol=1e-10)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.coo_matrix])
def test_fit_is_what_the_solver_found(convert):
    X, T = random_problem()
    model = MSVR(alpha=0.5, epsilon=0.3).fit(convert(X), T)
    solution = solve_msvr(X, T, alpha=0.5, epsilon=0.3)
    np.testing.assert_allclose(model.coef_, solution.coef, rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, solution.intercept, rtol=1e-8)
    assert model.objective_ == pytest.approx(solution.objective, rel=1e-10)
    assert model.optimality_ <= 1e-10
    assert len(model.objective_trace_) == model.n_iter_ + 1
    np.testing.assert_allclose(model.predict(convert(X)), X @ model.coef_.T + model.intercept_)


def test_a_one_dimensional_target_gives_one_dimensional_predictions():
    X, T = random_problem()
    flat, column = MSVR().fit(X, T[:, 0]), MSVR().fit(X, T[:, :1])
    assert flat.predict(X).shape == (60,)
    assert column.predict(X).shape == (60, 1)
    assert flat.coef_.shape == (1, 5)
    np.testing.assert_array_equal(flat.predict(X), column.predict(X)[:, 0])


def test_outputs_share_one_tube():
    X, T = random_problem()
    together = MSVR(epsilon=1.0).fit(X, T)
    apart = MSVR(epsilon=1.0).fit(X, T[:, 0])
    assert not np.allclose(together.coef_[0], apart.coef_[0], rtol=1e-3)


@pytest.mark.parametrize("estimator", [MSVR(), MSVRClassifier()])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 0}, "alpha must be finite and > 0, got 0"),
        ({"alpha": "1"}, "alpha must be a number > 0"),
        ({"epsilon": -0.1}, "epsilon must be finite and >= 0, got -0.1"),
        ({"tol": 0}, "tol must be finite and > 0"),
        ({"max_iter": 0}, "max_iter must be a whole number >= 1"),
    ],
)
def test_bad_parameters_are_named(estimator, change, message):
    X, Y = random_labels()
    with pytest.raises(ValueError, match=message):
        type(estimator)(**change).fit(X, Y)


@pytest.mark.parametrize("estimator", [MSVR(max_iter=1), MSVRClassifier(max_iter=1)])
def test_a_fit_cut_short_warns_with_its_figures(estimator):
    X, Y = random_labels()
    name = type(estimator).__name__
    with pytest.warns(
        ConvergenceWarning,
        match=rf"{name} stopped after 1 iterations .* gap of .*, wanted tol=1.00e-10; raise max_i",
    ) as caught:
        estimator.fit(X, Y)
    assert caught[0].filename == __file__


def test_what_rounding_forbids_warns_with_a_remedy():
    X, T = random_problem()
    with pytest.warns(ConvergenceWarning, match="rounding forbids more; raise tol"):
        MSVR(tol=1e-90).fit(X, T)


def test_the_classifier_is_the_regression_of_the_coded_labels():
    X, Y = random_labels()
    classifier = MSVRClassifier(alpha=0.5).fit(X, Y)
    regressor = MSVR(alpha=0.5).fit(X, 2 * Y - 1)
    np.testing.assert_array_equal(classifier.decision_function(X), regressor.predict(X))
    np.testing.assert_array_equal(classifier.predict(X), regressor.predict(X) > 0)
    assert classifier.optimality_ <= 1e-10


def test_it_is_lemll_without_label_enhancement():
    X, Y = random_labels()
    enhanced = LEMLL(beta=1e7, gamma=0.0, tol=1e-9, max_iter=20_000).fit(X, Y)
    np.testing.assert_allclose(enhanced.coef_, MSVRClassifier().fit(X, Y).coef_, atol=1e-4)


@pytest.mark.parametrize("thresholds", ["f1", "hamming"])
def test_thresholds_are_tuned_where_asked(thresholds):
    X, Y = random_labels()
    model = MSVRClassifier(thresholds=thresholds).fit(X, Y)
    assert model.thresholds_.any()
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > model.thresholds_)
