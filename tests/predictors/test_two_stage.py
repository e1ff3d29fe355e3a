"""ML2, MLFE, RELIAB and TwoStage: what they promise beyond the conformance suite."""

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import LinearSVR

from lemll import MSVR
from lemll.datasets import load_digit_tags
from lemll.enhancers import ENHANCERS, LEMLLEnhancer, LogicalEnhancer, UniformEnhancer
from lemll.rivals import (
    ML2,
    MLFE,
    RELIAB,
    RIVAL_ENHANCERS,
    KMEnhancer,
    LabelPropagationEnhancer,
    ML2Enhancer,
    MLFEEnhancer,
    TwoStage,
)
from lemll.rivals.sign_msvr import solve_sign_msvr


def random_labels(seed=0, n=60, d=5, n_labels=4):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, d)
    Y = (X @ rng.randn(d, n_labels) + 0.5 * rng.randn(n, n_labels) > 0.3).astype(int)
    Y[0], Y[1] = 0, 1
    return X, Y


def test_ml2_is_its_first_stage_and_the_regression_that_keeps_signs():
    X, Y = random_labels()
    model = ML2(2.0, 3.0, tol=1e-10).fit(X, Y)
    U = ML2Enhancer(ridge=1e-3).fit(X, Y).numerical_labels_
    np.testing.assert_array_equal(model.numerical_labels_, U)
    solution = solve_sign_msvr(X, U, C1=2.0, C2=3.0)
    np.testing.assert_array_equal(model.coef_, solution.coef)
    assert model.objective_ == solution.objective
    assert model.optimality_ <= 1e-10
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)


def test_mlfe_adds_the_margin_of_relevant_over_irrelevant_labels():
    X, Y = random_labels()
    model = MLFE(2.0, 3.0, 4.0, kernel="linear", tol=1e-10).fit(X, Y)
    U = MLFEEnhancer().fit(X, Y).numerical_labels_
    n_relevant = Y.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        shares = np.where(Y == 1, 1 / n_relevant, -1 / (4 - n_relevant))
    solution = solve_sign_msvr(X, U, C1=2.0, C2=3.0, gain=4 * shares)
    np.testing.assert_allclose(model.coef_, solution.coef, atol=1e-8)
    wider = MLFE(2.0, 3.0, 40.0, kernel="linear").fit(X, Y)
    margins = [(shares * one.decision_function(X)).sum() for one in (model, wider)]
    assert margins[1] > margins[0]


def test_the_width_of_the_kernel_is_the_mean_distance():
    X, Y = random_labels()
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    width = distances.sum() / (60 * 59)
    assert MLFE().fit(X, Y).kernel_.gamma == pytest.approx(1 / (2 * width**2))
    assert ML2(kernel="rbf", kernel_params={"gamma": 0.5}).fit(X, Y).kernel_.gamma == 0.5
    assert MLFE().fit(np.ones((9, 2)), Y[:9]).kernel_.gamma == 1.0


def test_reliab_propagates_the_virtual_label_with_the_others():
    X, Y = random_labels()
    model = RELIAB(tau=0.4).fit(X, Y)
    propagation = LabelPropagationEnhancer().fit(X, Y)
    # The fixed point of labels that are all tau, by the equation itself.
    ones = LabelPropagationEnhancer().fit(X, np.ones((60, 2), dtype=int)).numerical_labels_[:, :1]
    expected = np.column_stack([0.4 * ones, propagation.numerical_labels_])
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.importance_, expected, atol=1e-10)


def test_reliab_predicts_labels_above_the_virtual_one():
    X, Y = random_labels()
    model = RELIAB().fit(X, Y)
    degrees = np.exp(X @ model.coef_.T + model.intercept_)
    degrees /= degrees.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(model.predict(X), degrees[:, 1:] > degrees[:, :1])
    np.testing.assert_allclose(
        model.decision_function(X), np.log(degrees[:, 1:] / degrees[:, :1]), atol=1e-10
    )
    shares = degrees[:, 1:] / degrees[:, 1:].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_distribution(X), shares, atol=1e-10)
    counts = [RELIAB(tau=tau).fit(X, Y).predict(X).sum() for tau in (0.1, 0.3, 0.5)]
    assert counts[0] > counts[1] > counts[2]


@pytest.mark.parametrize("emp", ["virtual", "pairwise"])
def test_reliab_learns_with_either_loss_clipped_too(emp):
    X, Y = random_labels()
    for clip in (False, True):
        model = RELIAB(1.0, emp=emp, clip=clip, tol=1e-2).fit(X, Y)
        assert (model.predict(X) != Y).mean() < 0.3


@pytest.mark.parametrize(
    "enhancer", [*ENHANCERS, *RIVAL_ENHANCERS], ids=lambda enhancer: enhancer.__name__
)
def test_any_enhancer_goes_with_any_regressor(enhancer):
    X, Y = random_labels()
    model = TwoStage(enhancer(), Ridge()).fit(X, Y)
    # Labels that are all alike cannot be told apart.
    if enhancer is not UniformEnhancer:
        assert (model.predict(X) != Y).mean() < 0.35 < min(Y.mean(), 1 - Y.mean())
    distribution = model.predict_distribution(X)
    np.testing.assert_allclose(distribution.sum(axis=1), 1)
    assert distribution.min() >= 0


@pytest.mark.parametrize(
    "regressor", [LinearRegression(), MultiOutputRegressor(LinearSVR(random_state=0))]
)
def test_regressors_are_cloned_and_fitted_to_numerical_labels(regressor):
    X, Y = random_labels()
    model = TwoStage(ML2Enhancer(), regressor).fit(X, Y)
    U = ML2Enhancer().fit(X, Y).numerical_labels_
    np.testing.assert_array_equal(model.decision_function(X), clone(regressor).fit(X, U).predict(X))
    assert not hasattr(regressor, "n_features_in_")
    assert not hasattr(model.enhancer, "numerical_labels_")


def test_of_degrees_the_middle_is_the_origin():
    X, Y = random_labels()
    Y = np.column_stack([Y, np.zeros(60, dtype=int), np.ones(60, dtype=int)])
    model = TwoStage(LogicalEnhancer(), Ridge()).fit(X, Y)
    U = model.numerical_labels_
    assert U.min() >= 0
    means = [U[Y[:, 0] == value, 0].mean() for value in (0, 1)]
    assert model.origin_[0] == pytest.approx(np.mean(means))
    np.testing.assert_array_equal(model.predict(X)[:, 4:], [[0, 1]] * 60)
    assert not TwoStage().fit(X, Y).origin_.any()


def test_parameters_nest():
    nested = TwoStage(KMEnhancer(), MSVR()).set_params(regressor__alpha=9.0, enhancer__scale=2.0)
    assert (nested.regressor.alpha, nested.enhancer.scale) == (9.0, 2.0)


def test_what_is_no_enhancer_is_refused():
    with pytest.raises(TypeError, match="enhancer must be one of lemll.enhancers, got Ridge"):
        TwoStage(Ridge()).fit(*random_labels())


@pytest.mark.parametrize("regressor", [5, LogisticRegression()], ids=str)
def test_what_is_no_regressor_is_refused(regressor):
    with pytest.raises(TypeError, match=r"regressor=.* must be a regressor"):
        TwoStage(KMEnhancer(), regressor).fit(*random_labels())


def test_a_regressor_of_one_target_is_told_how_to_have_more():
    with pytest.raises(ValueError, match="1d array") as caught:
        TwoStage(KMEnhancer(), LinearSVR()).fit(*random_labels())
    assert "gave LinearSVR one target for each of 4 labels" in caught.value.__notes__[0]


def test_features_without_a_width_are_refused():
    X, Y = random_labels()
    with pytest.raises(ValueError, match="e-160, too small to be squared; rescale"):
        MLFE().fit(1e-160 * X, Y)
    with pytest.raises(ValueError, match="rescale the features first"):
        MLFE().fit(1e200 * X, Y)


def test_a_first_stage_cut_short_warns_at_the_line_of_the_fit():
    model = TwoStage(LEMLLEnhancer(max_iter=1, tol=1e-12), Ridge())
    with pytest.warns(ConvergenceWarning, match="LEMLL stopped after 1 iter") as caught:
        model.fit(*random_labels())
    assert caught[0].filename == __file__


# On a busy machine joblib complains that writing is slow.
@pytest.mark.filterwarnings("ignore:Persisting input arguments:UserWarning")
@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (ML2(), {"C1": [1.0, 5.0], "C2": [1.0, 5.0]}),
        (RELIAB(), {"beta": [0.1, 1.0], "tau": [0.2, 0.4]}),
        (TwoStage(KMEnhancer(), Ridge()), {"regressor__alpha": [0.1, 1.0, 10.0, 100.0]}),
    ],
)
def test_a_memory_computes_first_stages_once_a_fold(estimator, grid, tmp_path, monkeypatch):
    X, Y = random_labels()
    without = GridSearchCV(estimator, grid, cv=3, scoring="accuracy").fit(X, Y)
    made = []
    kind = type(clone(estimator).fit(X, Y).enhancer_)
    original = kind._numerical_labels
    monkeypatch.setattr(
        kind, "_numerical_labels", lambda self, *given: made.append(1) or original(self, *given)
    )
    memory = joblib.Memory(tmp_path, verbose=0)
    search = GridSearchCV(
        clone(estimator).set_params(memory=memory), grid, cv=3, scoring="accuracy"
    )
    search.fit(X, Y)
    # Three folds, and all rows for the best.
    assert len(made) == 4
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], without.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (ML2(C1=0), "C1 must be finite and > 0, got 0"),
        (ML2(C2=-1), "C2 must be finite and >= 0, got -1"),
        (ML2(epsilon=-1), "epsilon must be finite and >= 0"),
        (ML2(kernel="precomputed"), "ML2 cannot use kernel='precomputed': its first stage needs"),
        (MLFE(kernel_params={"gamma": "wide"}), "gamma='wide' in kernel_params must be 'distance'"),
        (ML2(C1=1e300), r"C1 must lie between 1e-40 and 1e\+40, got 1e\+300"),
        (MLFE(beta3=1e300), r"beta3 must lie between 1e-40 and 1e\+40 or be 0, got 1e\+300"),
        (MLFE(beta1=0), "beta1 must be finite and > 0, got 0"),
        (MLFE(beta2=-1), "beta2 must be finite and >= 0, got -1"),
        (MLFE(beta3=-1), "beta3 must be finite and >= 0, got -1"),
        (MLFE(upper=0.5), "upper"),
        (RELIAB(beta=-1), "beta must be finite and >= 0, got -1"),
        (RELIAB(tau=0), "tau must be finite and > 0, got 0"),
        (RELIAB(alpha=1), "alpha must be smaller than 1"),
        (RELIAB(emp="all"), "emp='all' must be one of virtual, pairwise"),
    ],
)
def test_bad_parameters_are_named(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(*random_labels())


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (ML2(max_iter=1, C2=9), "ML2 stopped after 1 iterations .* wanted tol=1.00e-06; raise max"),
        (ML2(tol=1e-60), "rounding forbids more; raise tol"),
        (RELIAB(max_iter=1), "RELIAB stopped after 1 iterations .* wanted tol=1.00e-05; raise max"),
        (RELIAB(tol=1e-60), "wanted tol=1.00e-60; raise tol or ridge"),
    ],
)
def test_a_fit_cut_short_warns_with_its_figures(estimator, message):
    with pytest.warns(ConvergenceWarning, match=message):
        estimator.fit(*random_labels())


@pytest.mark.slow
def test_a_grid_of_reliab_finds_the_minima_of_single_fits():
    digits = load_digit_tags()
    X, Y = digits.X[:120], digits.Y[:120]
    points = [{"beta": beta, "tau": tau} for beta in (0.0, 0.1) for tau in (0.1, 0.5)]
    for point, model in zip(points, RELIAB(tol=1e-7).fit_grid(X, Y, points), strict=True):
        alone = RELIAB(**point, tol=1e-7).fit(X, Y)
        assert (model.beta, model.tau) == (point["beta"], point["tau"])
        assert model.objective_ == pytest.approx(alone.objective_, rel=1e-6)
        np.testing.assert_allclose(
            model.decision_function(X), alone.decision_function(X), atol=1e-2
        )


@pytest.mark.slow
def test_a_model_of_a_grid_keeps_nothing_of_the_others():
    digits = load_digit_tags()
    X, Y = digits.X[:60], digits.Y[:60]
    models = list(RELIAB().fit_grid(X, Y, [{"tau": 0.2}, {"tau": 0.3}]))
    assert all(vars(model).keys() == vars(RELIAB().fit(X, Y)).keys() for model in models)
