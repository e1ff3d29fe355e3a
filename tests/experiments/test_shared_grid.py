"""A grid whose points share their work: the same choice as a loop over single fits."""

import numpy as np
import pytest
from engine_methods import plan, ran
from sklearn.model_selection import KFold, ParameterGrid

from lemll.datasets import load_digit_tags
from lemll.lab import Tuning, get_method
from lemll.lab.searches import SharedGridSearch, make_search
from lemll.metrics import get_scorer
from lemll.rivals import RELIAB

GRID = {"beta": (0.01, 1.0), "ridge": (0.1, 1.0), "tau": (0.1, 0.3, 0.5)}
FOLDS = KFold(3, shuffle=True, random_state=0)


@pytest.fixture(name="rows", scope="module")
def _rows():
    digits = load_digit_tags()
    return digits.X[:90], digits.Y[:90]


def loop_best(X, Y, points, metric):
    """Fit and measure every point by itself."""
    scorer = get_scorer(metric)
    means = [
        np.mean(
            [
                scorer(RELIAB(**point, tol=1e-5).fit(X[train], Y[train]), X[test], Y[test])
                for train, test in FOLDS.split(X)
            ]
        )
        for point in points
    ]
    return points[int(np.argmax(means))], np.array(means)


@pytest.mark.slow
def test_two_steps_choose_what_two_loops_choose(rows):
    X, Y = rows
    search = SharedGridSearch(RELIAB(tol=1e-5), GRID, ("average_precision",), FOLDS, ("tau",))
    search.fit(X, Y)
    first = list(ParameterGrid({name: GRID[name] for name in ("beta", "ridge")}))
    best, means = loop_best(X, Y, first, "average_precision")
    np.testing.assert_allclose(
        search.scores_[0]["average_precision"].mean(axis=0), means, atol=1e-3
    )
    second = [{**best, "tau": tau} for tau in GRID["tau"]]
    best, means = loop_best(X, Y, second, "hamming_loss")
    np.testing.assert_allclose(search.scores_[1]["hamming_loss"].mean(axis=0), means, atol=1e-3)
    assert search.best_params_ == best
    alone = RELIAB(**best, tol=1e-5).fit(X, Y)
    np.testing.assert_array_equal(search.predict(X), alone.predict(X))
    np.testing.assert_array_equal(search.decision_function(X), alone.decision_function(X))


def test_a_learner_with_fit_grid_is_searched_by_it():
    method = get_method("learner", "RELIAB")
    search = make_search(method.make(), GRID, Tuning(), FOLDS, method.decisions)
    assert isinstance(search, SharedGridSearch)
    assert search.decisions == ("tau",)


def test_a_protocol_tunes_the_decision_and_stores_all_choices(tmp_path):
    protocol = plan(
        "RELIAB",
        splits=1,
        tuning=Tuning(folds=2, grids={"RELIAB": {"beta": (0.1,), "tau": (0.1, 0.5)}}),
    )
    store = ran(protocol, tmp_path / "store", done=1)
    (record,) = store.records()
    assert record.chosen is not None
    assert set(record.chosen) == {"beta", "tau"}
    (cell,) = protocol.cells()
    assert cell.decisions == ("tau",)
