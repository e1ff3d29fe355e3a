"""How LEMLLCV and MSVRCV search, and what they are as estimators."""

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import normalize

from lemll import LEMLL, LEMLLCV, MSVRCV
from lemll.datasets import load_digit_tags
from lemll.predictors import folds as trials
from lemll.predictors import search as path_cv
from lemll.predictors.folds import Space, coarse_to_fine, one_standard_error
from lemll.solvers import GridPoint

AXIS = (1 / 16, 1.0, 16.0)
SMALL = {"alphas": AXIS, "betas": AXIS, "gammas": (0.0, 4.0), "cv": 3}
UNSCALED = LEMLL(tol=1e-6)
LOOSE = LEMLL(tol=1e-3)
SEVEN = tuple(range(7))


@pytest.mark.parametrize("top", list(itertools.product((0, 2, 5, 6), repeat=3)))
def test_coarse_to_fine_finds_the_top_of_a_hill(top):
    asked = []

    def evaluate(points):
        asked.extend(points)
        return np.array([[_height(p, top)] for p in points])

    coarse_to_fine([SEVEN] * 3, evaluate)
    assert len(asked) == len(set(asked)) <= 27 + 26 + 2 * 19
    assert GridPoint(*top) in asked


def test_coarse_to_fine_finds_the_top_of_each_measure():
    tops = ((0, 1, 5), (5, 5, 1))
    asked = []

    def evaluate(points):
        asked.extend(points)
        return np.array([[_height(p, top) for top in tops] for p in points])

    coarse_to_fine([SEVEN] * 3, evaluate)
    assert len(asked) == len(set(asked))
    assert {GridPoint(*top) for top in tops} <= set(asked)


def _height(point, top):
    return -float(sum((a - b) ** 2 for a, b in zip(point, top, strict=True)))


@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_coarse_to_fine_ends_on_a_plain(value):
    asked = []

    def evaluate(points):
        asked.extend(points)
        return np.full((len(points), 1), value)

    coarse_to_fine([SEVEN, [1.0], [1.0, 2.0]], evaluate)
    assert len(asked) == len(set(asked)) <= 14


@pytest.mark.slow
def test_the_coarse_search_tries_no_point_twice(labelled):
    X, Y = labelled
    coarse = LEMLLCV(search="coarse", cv=3).fit(X, Y)
    table = pd.DataFrame(coarse.cv_results_)
    names = [f"param_{name}" for name in ("alpha", "beta", "gamma")]
    assert not table.duplicated(names).any()
    assert 27 <= len(table) < 200
    grid = LEMLLCV(cv=3).fit(X, Y)
    both = table.merge(pd.DataFrame(grid.cv_results_), on=names)
    assert len(both) == len(table)
    # Other neighbours on the path, other iterates: within what a gap of 1e-3 leaves open.
    np.testing.assert_allclose(
        both["mean_test_average_precision_x"], both["mean_test_average_precision_y"], atol=0.02
    )


@pytest.mark.slow
def test_a_fold_is_prepared_once_a_kernel(labelled, monkeypatch):
    X, Y = labelled
    prepared = []
    prepare = trials.FoldPath._prepare
    monkeypatch.setattr(
        trials.FoldPath, "_prepare", lambda self: prepared.append(self) or prepare(self)
    )
    settings = {"search": "coarse", "kernel": "auto", "estimator": LOOSE, "cv": 2}
    LEMLLCV(**settings).fit(X, Y)
    assert len(prepared) == 4 * 2
    # Without memory to keep it in, it is prepared again, to the same result.
    kept = LEMLLCV(**settings).fit(X, Y)
    monkeypatch.setattr(trials, "available_bytes", lambda: 0)
    del prepared[:]
    again = LEMLLCV(**settings).fit(X, Y)
    assert len(prepared) > 4 * 2
    assert again.best_params_ == kept.best_params_
    np.testing.assert_array_equal(again.cv_results_["optimality"], kept.cv_results_["optimality"])


@pytest.mark.slow
def test_auto_tries_kernels_and_scaled_rows(labelled):
    X, Y = labelled
    model = LEMLLCV(
        **SMALL, estimator=UNSCALED, kernel="auto", normalize_rows="auto", search="grid"
    ).fit(X, Y)
    table = pd.DataFrame(model.cv_results_)
    tried = table.groupby(["param_kernel", "param_kernel_gamma", "param_normalize_rows"]).size()
    assert (tried == 18).all()
    assert len(tried) == 8
    widths = table.loc[~table["param_normalize_rows"].astype(bool), "param_kernel_gamma"].unique()
    middle = 1 / X.var(axis=0).sum()
    np.testing.assert_allclose(sorted(widths[1:]), [middle / 4, middle, 4 * middle])
    best = model.best_params_
    alone = LEMLL(
        **{name: best[name] for name in ("alpha", "beta", "gamma", "kernel")},
        kernel_params={"gamma": best["kernel_gamma"]},
        tol=1e-6,
    )
    rows = normalize(X) if best["normalize_rows"] else X
    np.testing.assert_array_equal(
        model.decision_function(X), alone.fit(rows, Y).decision_function(rows)
    )


def test_scaled_rows_are_scaled_when_predicting(labelled):
    X, Y = labelled
    scaled = LEMLLCV(**SMALL, normalize_rows=True).fit(X, Y)
    plain = LEMLLCV(**SMALL).fit(normalize(X), Y)
    assert scaled.best_params_ == plain.best_params_ | {"normalize_rows": True}
    np.testing.assert_allclose(
        scaled.decision_function(7 * X), plain.decision_function(normalize(X))
    )


def test_one_standard_error_takes_the_plainest():
    space, other = Space("linear", "variance", False), Space("rbf", 1.0, False)
    tried = [
        (space, GridPoint(1.0, 1.0, 1.0)),  # the best: mean 0.8, standard error 0.1
        (space, GridPoint(4.0, 1.0, 1.0)),
        (space, GridPoint(4.0, 4.0, 1.0)),
        (space, GridPoint(4.0, 4.0, 0.25)),
        (space, GridPoint(16.0, 1.0, 1.0)),  # too far below
        (other, GridPoint(64.0, 1.0, 1.0)),  # another kernel
    ]
    values = [[0.7, 0.9], [0.7, 0.75], [0.7, 0.75], [0.7, 0.75], [0.6, 0.7], [0.75, 0.75]]
    assert one_standard_error(tried, [np.array(v) for v in values]) == 3


def test_the_one_standard_error_rule_is_applied(labelled):
    X, Y = labelled
    best = LEMLLCV(**SMALL, estimator=LOOSE).fit(X, Y)
    plain = LEMLLCV(**SMALL, estimator=LOOSE, one_standard_error=True).fit(X, Y)
    assert plain.best_params_["alpha"] >= best.best_params_["alpha"]
    assert plain.best_index_ != best.best_index_
    splits = [best.cv_results_[f"split{i}_test_average_precision"] for i in range(3)]
    error = np.std([split[best.best_index_] for split in splits], ddof=1) / np.sqrt(3)
    assert best.best_score_ - error <= plain.best_score_ <= best.best_score_


def test_attributes_of_the_final_model_are_its_own(labelled):
    X, Y = labelled
    model = LEMLLCV(**SMALL)
    for name in ("coef_", "label_distribution_", "best_estimator_", "__deepcopy__", "nonsense"):
        assert not hasattr(model, name)
    with pytest.raises(AttributeError, match="'LEMLLCV' object has no attribute 'coef_'"):
        model.coef_  # noqa: B018
    model.fit(X, Y)
    assert model.coef_ is model.best_estimator_.coef_
    assert model.label_distribution_.shape == Y.shape
    assert model.optimality_ <= 1e-4
    with pytest.raises(AttributeError, match="has no attribute 'nonsense_'"):
        model.nonsense_  # noqa: B018
    with pytest.raises(AttributeError, match="'LEMLLCV' object has no attribute 'nonsense'"):
        model.nonsense  # noqa: B018


def pickled(model):
    return pickle.loads(pickle.dumps(model))  # noqa: S301


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, clone, pickled])
@pytest.mark.parametrize("fitted", [False, True])
def test_copies(labelled, duplicate, fitted):
    X, Y = labelled
    model = LEMLLCV(**SMALL)
    if fitted:
        model.fit(X, Y)
    other = duplicate(model)
    assert other.get_params() == model.get_params()
    if not fitted or duplicate is clone:
        with pytest.raises(NotFittedError):
            other.predict(X)
    else:
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))


def test_thresholds_are_those_of_the_final_model(labelled):
    X, Y = labelled
    model = LEMLLCV(**SMALL, estimator=LEMLL(thresholds="f1", tol=1e-6)).fit(X, Y)
    names = ("alpha", "beta", "gamma")
    best = {name: model.best_params_[name] for name in names}
    alone = LEMLL(**best, thresholds="f1", tol=1e-6).fit(X, Y)
    assert (model.thresholds_ != 0).any()
    np.testing.assert_array_equal(model.thresholds_, alone.thresholds_)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))


def test_without_refit_there_is_a_choice_but_no_model(labelled):
    X, Y = labelled
    model = LEMLLCV(**SMALL).fit(X, Y)
    best = model.best_params_
    model.set_params(refit=False).fit(X, Y)
    assert model.best_params_ == best
    assert not hasattr(model, "best_estimator_")
    assert not hasattr(model, "coef_")
    with pytest.raises(NotFittedError, match="fitted with refit=False, so there is no model"):
        model.predict(X)


@pytest.mark.parametrize(("search", "n_points"), [("grid", 18), ("coarse", None)])
def test_progress_is_reported(labelled, search, n_points):
    X, Y = labelled
    reports = []
    model = LEMLLCV(
        **SMALL,
        search=search,
        kernel="auto",
        estimator=LOOSE,
        callback=reports.append,
    ).fit(X, Y)
    done = [report.done for report in reports]
    assert done == sorted(set(done))
    assert done[-1] == 3 * len(model.cv_results_["optimality"])
    assert all(report.done <= report.expected for report in reports)
    if n_points:
        assert {report.expected for report in reports} == {4 * 3 * n_points}
    assert np.isnan(reports[0].best_score)
    assert reports[-1].elapsed >= reports[0].elapsed > 0
    assert max(r.best_score for r in reports[3:]) <= model.best_score_


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_search_leaves_the_earlier_model(labelled, make_labelled, stop):
    X, Y = labelled
    model = LEMLLCV(**SMALL).fit(X, Y)
    before = model.decision_function(X)
    attributes = set(vars(model))

    def interrupt(progress):
        if progress.done > 18:
            raise stop

    model.set_params(callback=interrupt)
    with pytest.raises(stop):
        model.fit(*make_labelled(1, d=6, n_labels=5))
    assert set(vars(model)) == attributes
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.decision_function(X), before)
    untouched = LEMLLCV(**SMALL, callback=interrupt)
    with pytest.raises(stop):
        untouched.fit(X, Y)
    with pytest.raises(NotFittedError):
        untouched.predict(X)


@pytest.mark.parametrize("search", ["grid", "coarse"])
def test_the_best_is_chosen_among_points_solved_exactly(labelled, search, monkeypatch):
    X, Y = labelled
    monkeypatch.setattr(path_cv, "_FINALISTS", 3)
    reports = []
    settings = SMALL | {"search": search, "refit": False}
    model = LEMLLCV(**settings, tol_search=0.1, callback=reports.append).fit(X, Y)
    table = pd.DataFrame(model.cv_results_)
    best = table.iloc[model.best_index_]
    assert best["rank_test_average_precision"] == 1
    assert best["optimality"] <= 1e-6
    exact = table[table["optimality"] <= 1e-6]
    assert 3 <= len(exact) < len(table)
    # What was solved again is counted as work done.
    again = reports[-1].done - 3 * len(table)
    assert again % 9 == 0
    assert again >= 9
    assert reports[-1].expected == reports[-1].done
    # Their scores are those of a search that is exact throughout.
    thorough = LEMLLCV(**settings, tol_search=1e-6).fit(X, Y)
    if search == "grid":
        column = "mean_test_average_precision"
        np.testing.assert_allclose(
            exact[column], thorough.cv_results_[column][exact.index], atol=1e-12
        )


def test_points_that_miss_the_tolerance_are_counted(labelled):
    X, Y = labelled
    with pytest.warns(ConvergenceWarning, match=r"18 of 18 combinations tried by LEMLLCV did not"):
        LEMLLCV(**SMALL, estimator=LEMLL(max_iter=1), tol_search=1e-9, refit=False).fit(X, Y)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"alphas": []}, "alphas must hold at least one value, got none"),
        ({"betas": [1.0, 0.0]}, "betas must be finite and > 0, got 0.0"),
        ({"gammas": ["many"]}, "gammas must be a number >= 0, got 'many'"),
        ({"scoring": "accuracy"}, "scoring='accuracy' must be one of hamming_loss, .*or a"),
        ({"scoring": []}, "scoring must name at least one measure, got none"),
        ({"scoring": None}, "scoring=None must be one of"),
        ({"search": "random"}, "search='random' must be one of auto, grid, coarse, halving"),
        ({"cv": 1}, "cv must be a whole number >= 2, got 1"),
        ({"cv": []}, r"cv=\[\] must give at least one split, got none"),
        ({"cv": "many"}, "Expected .*cv.* as an integer"),
        ({"cv": 61}, "cv=61 folds need at least as many rows, got n_samples=60"),
        ({"normalize_rows": "yes"}, "normalize_rows='yes' must be a bool or 'auto'"),
        ({"kernel": "cubic"}, "kernel='cubic' must be one of"),
        ({"tol_search": 0}, "tol_search must be finite and > 0, got 0"),
        ({"estimator": LEMLL(tol=0)}, "tol of estimator must be finite and > 0, got 0"),
        ({"estimator": LEMLL(epsilon=-1)}, "epsilon must be finite and >= 0, got -1"),
        ({"estimator": LEMLL(max_iter=0)}, "max_iter must be a whole number >= 1, got 0"),
        ({"estimator": LEMLL(n_neighbors=0)}, "n_neighbors must be a whole number >= 1, got 0"),
        ({"estimator": LEMLL(solver_params={"precision": "half"})}, "precision must be"),
        ({"estimator": LEMLL(thresholds="best")}, "thresholds='best' must be"),
    ],
)
def test_bad_settings_are_named(labelled, wrong, message):
    with pytest.raises(ValueError, match=message):
        LEMLLCV(**SMALL | wrong).fit(*labelled)


def test_rows_of_a_precomputed_kernel_are_not_scaled(labelled):
    X, Y = labelled
    with pytest.raises(ValueError, match="normalize_rows must be False and scale .none. with a"):
        MSVRCV(cv=2, kernel="precomputed", normalize_rows="auto").fit(X @ X.T, Y)


def test_folds_that_a_measure_cannot_judge_are_left_out(labelled):
    X, Y = labelled
    partial = Y.astype(float)
    rows = np.arange(len(Y))
    half = len(Y) // 2
    # Nothing is known of the rows of the first fold.
    partial[:half] = np.nan
    folds = [(rows[half:], rows[:half]), (rows[:-10], rows[-10:])]
    model = LEMLLCV(**{**SMALL, "cv": folds}).fit(X, partial)
    table = model.cv_results_
    assert np.isnan(table["split0_test_average_precision"]).all()
    np.testing.assert_array_equal(
        table["mean_test_average_precision"], table["split1_test_average_precision"]
    )
    with pytest.raises(ValueError, match="no fold has a test row that average_precision can judge"):
        LEMLLCV(**{**SMALL, "cv": folds[:1]}).fit(X, partial)


@pytest.mark.slow
def test_a_callback_can_end_the_search():
    data = load_digit_tags()
    seen = []

    def stop(progress):
        seen.append(progress)
        return True

    model = LEMLLCV(kernel="auto", search="coarse", cv=2, callback=stop)
    model.fit(data.X[:120], data.Y[:120])
    everything = LEMLLCV(kernel="auto", search="coarse", cv=2).fit(data.X[:120], data.Y[:120])
    assert 0 < len(model.cv_results_["optimality"]) < len(everything.cv_results_["optimality"])
    assert model.predict(data.X[120:130]).shape == (10, 8)


def test_the_coarse_search_ends_when_the_time_is_over():
    calls = []

    def evaluate(points):
        calls.append(len(points))
        return np.arange(len(points), dtype=float)[:, None]

    coarse_to_fine([[1.0, 2.0, 3.0, 4.0, 5.0]] * 3, evaluate, is_over=lambda: True)
    assert len(calls) == 1
