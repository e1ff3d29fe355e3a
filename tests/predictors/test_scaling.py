"""The scaling of columns, in the learners and in the searches."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from lemll import LEMLL, LEMLLCV, MSVR, MSVRCV, MSVRClassifier
from lemll.metrics import average_precision
from lemll.predictors.folds import Fold, FoldPath, Space, measures_of
from lemll.predictors.search import LIMITS, halve_and_walk, rounds_of_few_rows
from lemll.rivals import MLkNN
from lemll.solvers import GridPoint

LEARNERS = [LEMLL(), LEMLL(kernel="rbf"), MSVRClassifier(), MSVRClassifier(kernel="rbf"), MLkNN()]

AUTO = LEMLL(scale="auto", tol=1e-6)


@pytest.fixture(name="data")
def _data():
    rng = np.random.RandomState(0)
    X = rng.randn(90, 5) * 10.0 ** np.array([-3, 0, 3, -2, 2]) + [0, 5, 0, 1, 0]
    scores = StandardScaler().fit_transform(X) @ rng.randn(5, 4)
    return X[:60], (scores[:60] > 0).astype(int), X[60:], (scores[60:] > 0).astype(int)


@pytest.mark.parametrize("model", LEARNERS, ids=str)
@pytest.mark.parametrize("scale", ["standard", "maxabs", "auto"])
def test_scaled_is_the_same_as_a_pipeline(model, scale, data):
    X, Y, X_new, _ = data
    scaler = (MaxAbsScaler() if scale == "maxabs" else StandardScaler()).fit(X)
    expected = model.fit(scaler.transform(X), Y).decision_function(scaler.transform(X_new))
    before = X.copy()
    found = model.set_params(scale=scale).fit(X, Y).decision_function(X_new)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_array_equal(X, before)
    model.set_params(scale="none")


@pytest.mark.parametrize("model", LEARNERS, ids=str)
def test_sparse_columns_stay_sparse(model, data):
    X, Y, X_new, _ = data
    X, X_new = np.where(X > 0, X, 0), np.where(X_new > 0, X_new, 0)
    scaler = MaxAbsScaler().fit(X)
    expected = model.fit(scaler.transform(X), Y).decision_function(scaler.transform(X_new))
    sparse_X = sparse.csr_array(X)
    found = model.set_params(scale="auto").fit(sparse_X, Y).decision_function(X_new)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert sparse.issparse(getattr(model, "X_fit_", sparse_X))
    model.set_params(scale="none")


def test_regressions_scale_too(data):
    X, Y, X_new, _ = data
    scaler = StandardScaler().fit(X)
    expected = MSVR().fit(scaler.transform(X), Y).predict(scaler.transform(X_new))
    np.testing.assert_allclose(MSVR(scale="standard").fit(X, Y).predict(X_new), expected, atol=1e-9)


@pytest.mark.parametrize("search", [LEMLLCV, MSVRCV])
def test_a_search_learns_the_scaling_in_each_fold(search, data):
    X, Y, X_new, Y_new = data
    halves = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    template = search._kind(scale="standard", tol=search._tol)
    model = search((0.25, 4.0), estimator=template, cv=halves).fit(X, Y)
    point = GridPoint(*(model.cv_results_[f"param_{name}"][0] for name in GridPoint._fields))
    options = model._path_options()
    for number, (train, test) in enumerate(halves):
        scaler = StandardScaler().fit(X[train])
        fold = Fold(scaler.transform(X), Y, train, test)
        plain = FoldPath(fold, Space("linear", "variance", False), options)
        expected = plain.score([point], measures_of("average_precision")).values[0, 0]
        found = model.cv_results_[f"split{number}_test_average_precision"][0]
        assert found == pytest.approx(expected, abs=1e-6)
    assert average_precision(Y_new, model.decision_function(X_new)) > 0.9


@pytest.mark.slow
def test_auto_finds_that_units_matter(data):
    X, Y, X_new, Y_new = data
    model = LEMLLCV(estimator=AUTO, kernel="rbf", search="coarse", cv=2).fit(X, Y)
    assert model.best_params_["scale"] == "standard"
    raw = LEMLLCV(kernel="rbf", search="coarse", cv=2).fit(X, Y)
    assert raw.best_params_["scale"] == "none"
    scores = [average_precision(Y_new, m.decision_function(X_new)) for m in (model, raw)]
    assert scores[0] > scores[1]


def test_the_walk_leaves_the_grid_until_the_score_turns(data):
    X, Y, *_ = data
    template = LEMLL(scale="standard", kernel_params={"gamma": 0.1}, tol=1e-6)
    model = LEMLLCV((64.0, 256.0, 1024.0), estimator=template, kernel="rbf", cv=2)
    model.set_params(search="halving").fit(X, Y)
    best = model.best_params_["alpha"]
    assert best < 64.0
    tried = model.cv_results_
    means = tried["mean_test_average_precision"]
    assert tried["param_alpha"].min() <= max(best / 4, LIMITS["alpha"][0])
    # No neighbour of the best combination is better.
    assert model.best_score_ == means.max()


class ScoredSpaces:
    """Trials in which the width of the kernel is the score; no neighbour is better."""

    def __init__(self):
        self.tried, self.seen = [], []

    def out_of_time(self):
        return False

    def evaluate(self, space, points, *, keep=False):
        self.tried += [(space, point) for point in points]
        if not keep:
            self.seen.append(space.kernel_gamma)
        return np.full((len(points), 1), space.kernel_gamma)

    def best(self):
        return max(self.tried, key=lambda tried: tried[0].kernel_gamma)

    def forget(self):
        pass


def test_a_budget_stops_the_walk_but_not_the_model(data):
    X, Y, X_new, _ = data
    model = LEMLLCV(kernel="auto", cv=2, max_seconds=1e-9).fit(X, Y)
    assert len(model.cv_results_["optimality"]) == 3
    assert model.decision_function(X_new).shape == (30, 4)


@pytest.mark.parametrize(
    ("n_rows", "sizes"),
    [(500, [500]), (2400, [600]), (2405, [600, 1800]), (20_000, [600, 1800, 5400])],
)
def test_the_rounds_have_three_times_the_rows_of_the_one_before(n_rows, sizes):
    X, Y = np.zeros((n_rows, 2)), np.zeros((n_rows, 3), dtype=np.int8)
    rows = np.arange(n_rows)
    folds = [Fold(X, Y, rows[n_rows // 5 :], rows[: n_rows // 5])] * 5
    rounds = rounds_of_few_rows(folds)
    assert [len(few) for few in rounds] == [2] * len(sizes)
    for few, size in zip(rounds, sizes, strict=True):
        for fold in few:
            assert abs(len(fold.train) + len(fold.test) - size) <= 1
            assert not set(fold.train) & set(fold.test)


def test_each_round_keeps_the_best_third_of_the_spaces():
    spaces = [Space("linear", float(score), False) for score in range(10)]
    rounds, final = [ScoredSpaces(), ScoredSpaces()], ScoredSpaces()
    halve_and_walk(spaces, [[1.0], [1.0], [1.0]], rounds, final)
    assert rounds[0].seen == list(range(10))
    assert rounds[1].seen == [9, 8, 7, 6]
    assert final.seen == [9, 8]


def test_a_round_that_cannot_judge_keeps_all_spaces():
    spaces = [Space("linear", -np.inf, False), Space("linear", 1.0, False)]
    first, final = ScoredSpaces(), ScoredSpaces()
    halve_and_walk(spaces[:1] * 3 + spaces[1:], [[1.0], [1.0], [1.0]], [first], final)
    assert final.seen == [1.0, -np.inf]
    first, final = ScoredSpaces(), ScoredSpaces()
    halve_and_walk(spaces[:1] * 3, [[1.0], [1.0], [1.0]], [first], final)
    assert final.seen == [-np.inf] * 3


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (LEMLL(scale="minmax"), "scale='minmax' must be one of 'auto', 'standard', 'maxabs', 'non"),
        (MSVRClassifier(scale=None), "scale=None must be one of 'auto', 'standard'"),
        (LEMLLCV(estimator=LEMLL(scale="max")), "scale='max' must be one of 'auto', 'standard'"),
        (LEMLLCV(max_seconds=-1), "max_seconds must be finite and > 0, got -1"),
        (LEMLL(kernel="precomputed", scale="standard"), "scale='standard' must be 'none' with a"),
    ],
)
def test_refusals(model, text, data):
    X, Y, *_ = data
    X = X @ X.T if getattr(model, "kernel", "") == "precomputed" else X
    with pytest.raises(ValueError, match=text):
        model.fit(X, Y)
