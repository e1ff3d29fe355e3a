"""Tuning in the engine: paths where there are any, and first stages computed once a fold."""

import copy
from dataclasses import replace
from threading import Thread

import numpy as np
import pytest
from engine_methods import plan, ran
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

from lemll import LEMLL, LEMLLCV, MSVRCV, MSVRClassifier
from lemll.datasets import load_digit_tags
from lemll.exceptions import ProtocolError, StoreError
from lemll.lab import (
    ComparisonTable,
    MethodSpec,
    Protocol,
    Splits,
    Store,
    Tuning,
    run,
    run_cell,
    verify,
)
from lemll.lab import searches as _searches
from lemll.lab.report import write_comparison
from lemll.lab.searches import FirstStages, best_by_metric, make_search
from lemll.lab.tables import sound_outputs
from lemll.metrics import get_scorer
from lemll.rivals import ML2, RELIAB, ML2Enhancer

pytestmark = pytest.mark.slow


def test_lemll_and_msvr_are_tuned_on_their_paths_with_the_same_result():
    digits = load_digit_tags()
    X, Y = digits.X[:200], digits.Y[:200]
    folds = KFold(3, shuffle=True, random_state=0)
    for estimator, grid, path in (
        (LEMLL(epsilon=0.2, tol=1e-5), {"alpha": (0.25, 64.0), "gamma": (0.25, 4.0)}, LEMLLCV),
        (MSVRClassifier(kernel="rbf"), {"alpha": (1 / 64, 1.0)}, MSVRCV),
    ):
        search = make_search(estimator, grid, Tuning(), folds)
        assert isinstance(search, path)
        lists = {name: list(values) for name, values in grid.items()}
        plain = GridSearchCV(estimator, lists, scoring=get_scorer("average_precision"), cv=folds)
        search.fit(X, Y)
        plain.fit(X, Y)
        assert {name: search.best_params_[name] for name in grid} == plain.best_params_
        best, other = search.best_estimator_.get_params(), plain.best_estimator_.get_params()
        assert best == other
        np.testing.assert_allclose(
            search.decision_function(X), plain.decision_function(X), atol=1e-3
        )


def test_other_parameters_and_learners_go_by_the_grid():
    folds, tuning = KFold(4), Tuning("one_error")
    assert isinstance(make_search(LEMLL(), {"epsilon": (0.1, 0.2)}, tuning, folds), GridSearchCV)
    with_graph = LEMLL(graph=np.eye(3))
    assert isinstance(make_search(with_graph, {"alpha": (1.0,)}, tuning, folds), GridSearchCV)
    assert isinstance(make_search(ML2(), {"C1": (1.0, 2.0)}, tuning, folds), GridSearchCV)


def test_a_coarse_search_tries_fewer_points():
    digits = load_digit_tags()
    grid = {"alpha": tuple(4.0**power for power in range(-3, 4))}
    tried = {
        kind: make_search(LEMLL(), grid, Tuning(search=kind), KFold(2))
        .fit(digits.X[:100], digits.Y[:100])
        .cv_results_["param_alpha"]
        for kind in ("grid", "coarse")
    }
    assert len(tried["coarse"]) < len(tried["grid"]) == 7
    with pytest.raises(ValueError, match="search of tuning 'fine'"):
        Tuning(search="fine")


@pytest.fixture
def made(monkeypatch):
    """Count the first stages of ML2."""
    made = []
    monkeypatch.setattr(_searches, "_FIRST_STAGES", FirstStages(2))
    original = ML2Enhancer._numerical_labels
    monkeypatch.setattr(
        ML2Enhancer, "_numerical_labels", lambda self, X, Y: made.append(1) or original(self, X, Y)
    )
    return made


def test_first_stages_are_computed_once_a_fold(tmp_path, made):
    grid = {"C1": (1.0, 5.0), "C2": (1.0, 5.0)}
    protocol = plan(
        MethodSpec("ML2", parameters={"tol": 0.001}),
        splits=1,
        tuning=Tuning(folds=2, grids={"ML2": grid}),
    )
    store = ran(protocol, tmp_path / "store", done=1)
    # Two folds and all training rows, for four points of the grid.
    assert len(made) == 3
    (record,) = store.records()
    assert set(record.chosen) == {"C1", "C2"}


def test_variants_of_a_method_share_a_first_stage(tmp_path, made):
    protocol = plan(
        MethodSpec("ML2", parameters={"tol": 0.001}),
        MethodSpec("ML2", "ML2, signs", {"tol": 0.001, "C2": 5.0}),
        MethodSpec("ML2", "ML2, other labels", {"tol": 0.001, "lower": 2.0}),
        splits=2,
    )
    assert run(protocol, Store(tmp_path / "store"), backend="sequential").done == 6
    assert len(made) == 4


def test_a_memory_forgets_the_oldest_and_is_shared_by_clones():
    calls = []

    def square(x):
        calls.append(x)
        return x * x

    memory = FirstStages(2)
    remembered = memory.cache(square)
    assert [remembered(x) for x in (1, 2, 1, 3, 1)] == [1, 4, 1, 9, 1]
    assert calls == [1, 2, 3, 1]
    assert memory.at_least(4) is memory
    assert [remembered(x) for x in (4, 5, 3, 1)] == [16, 25, 9, 1]
    assert calls == [1, 2, 3, 1, 4, 5]
    assert memory.at_least(1)._kept.most == 4
    assert copy.deepcopy(memory) is memory
    assert clone(ML2(memory=memory)).memory is memory


METRICS_OF_TUNING = ("average_precision", "hamming_loss", "ranking_loss")


def _tuned_protocol(method, grid, **tuning):
    return plan(
        MethodSpec(method),
        metrics=("hamming_loss", "ranking_loss", "one_error", "average_precision"),
        splits=2,
        tuning=Tuning(folds=3, grids={method: grid}, **tuning),
    )


@pytest.mark.nightly(when=lambda method: method == "BR")
@pytest.mark.parametrize(
    ("method", "grid"),
    [
        ("MSVR", {"alpha": (1 / 64, 1.0, 64.0)}),
        ("BR", {"C": (1 / 64, 1.0, 64.0)}),
        ("RELIAB", {"beta": (0.01, 10.0), "ridge": (0.1, 10.0), "tau": (0.1, 0.5)}),
    ],
)
def test_each_metric_selects_its_own_parameters(tmp_path, method, grid):
    several = _tuned_protocol(method, grid, metric=METRICS_OF_TUNING)
    store = ran(several, tmp_path / "several")
    by_split = {record.setting[-1]: record for record in store.records()}
    for metric in METRICS_OF_TUNING:
        alone = Store(tmp_path / metric)
        run(_tuned_protocol(method, grid, metric=metric), alone, backend="sequential")
        for record in alone.records():
            other = by_split[record.setting[-1]]
            decided = {name: value for name, value in record.chosen.items() if name != "tau"}
            assert decided.items() <= other.chosen[metric].items()
            assert other.metrics[metric] == pytest.approx(record.metrics[metric], abs=2e-3)
    # A metric that selects no parameters is measured on the model of the first one.
    first = Store(tmp_path / METRICS_OF_TUNING[0])
    for record in first.records():
        found = by_split[record.setting[-1]].metrics["one_error"]
        assert found == pytest.approx(record.metrics["one_error"], abs=2e-2)


def test_parameters_of_the_first_split_serve_all(tmp_path, monkeypatch):
    searches = []
    original = _searches._search
    monkeypatch.setattr(_searches, "_CHOICES", type(_searches._CHOICES)(64))
    monkeypatch.setattr(_searches, "_search", lambda *a: searches.append(1) or original(*a))
    grid = {"alpha": (1 / 64, 1.0, 64.0)}
    for metric in ("average_precision", METRICS_OF_TUNING):
        searches.clear()
        first = Store(tmp_path / f"first{len(metric)}")
        run(
            _tuned_protocol("MSVR", grid, metric=metric, splits="first"),
            first,
            backend="sequential",
        )
        assert len(searches) == 1
        every = Store(tmp_path / f"all{len(metric)}")
        run(_tuned_protocol("MSVR", grid, metric=metric), every, backend="sequential")
        chosen = {r.setting[-1]: r.chosen for r in every.records()}
        assert {str(r.chosen) for r in first.records()} == {str(chosen[0])}


def test_outputs_of_metrics_with_parameters_of_their_own_are_verified(tmp_path):
    # These metrics select different numbers of neighbours.
    grid = {"n_neighbors": (1, 2, 3, 4, 5, 6, 8, 12)}
    metrics = ("average_precision", "hamming_loss", "one_error", "macro_recall")
    protocol = _tuned_protocol("ML-kNN", grid, metric=metrics)
    protocol = replace(protocol, metrics=(*metrics, "log_loss"))
    store = ran(protocol, tmp_path / "store")
    own = [
        set(store.arrays(record)) - {"scores", "predictions", "test"} for record in store.records()
    ]
    assert {name.split(".")[0] for names in own for name in names} >= {"scores", "predictions"}
    assert not verify(protocol, store).problems
    table = ComparisonTable.from_store(protocol, store, metrics=("micro_f1",))
    assert all(entry.complete for entry in table.panels[0].entries.values())
    page = write_comparison(tmp_path / "report.html", protocol, store).read_text()
    assert "average_precision: n_neighbors=" in page or "average_precision, " in page
    # An array that is missing is noticed.
    record = next(iter(store.records()))
    name = next(n for n in store.arrays(record) if "." in n)
    kept = {key: array for key, array in store.arrays(record).items() if key != name}
    dataset = load_digit_tags()
    cell = next(cell for cell in protocol.cells() if cell.id == record.id)
    with pytest.raises(StoreError, match="and its cell leaves"):
        sound_outputs(cell, record, dataset, lambda _: kept)


def test_a_learner_that_searches_by_itself_has_one_choice_for_all_metrics(tmp_path):
    spec = MethodSpec("MSVR-auto", parameters={"kernel": "linear", "alphas": (0.1, 1.0), "cv": 2})
    protocol = replace(_tuned_protocol("MSVR-auto", {}, metric=METRICS_OF_TUNING), methods=(spec,))
    store = Store(tmp_path / "store")
    assert run(protocol, store, backend="sequential").failed == 0
    for record in store.records():
        assert record.chosen["alpha"] in (0.1, 1.0)
        assert set(store.arrays(record)) == {"scores", "predictions", "test"}
    assert not verify(protocol, store).problems
    assert "alpha" in write_comparison(tmp_path / "report.html", protocol, store).read_text()


def test_the_split_that_selects_parameters_is_part_of_the_id():
    grid = {"C": (0.1, 1.0)}
    ids = {}
    for splits in ("all", "first"):
        protocol = _tuned_protocol("BR", grid, splits=splits)
        later = replace(protocol, splits=Splits(n_splits=1, random_state=1))
        ids[splits] = [list(p.cells())[-1].work for p in (protocol, later)]
    assert ids["all"][0] == ids["all"][1]
    assert len({ids["all"][0], *ids["first"]}) == 3


def test_a_metric_that_no_fold_can_judge_selects_nothing():
    digits = load_digit_tags()
    Y = np.zeros((60, 3), dtype=int)
    Y[::2] = 1  # the order of the labels of a row cannot be wrong
    tuning = Tuning(metric=("hamming_loss", "ranking_loss"), folds=3)
    search = make_search(MSVRClassifier(), {"alpha": (1.0, 4.0)}, tuning, KFold(3))
    search.fit(digits.X[:60], Y)
    with pytest.raises(ValueError, match="no fold has a row that ranking_loss can judge"):
        best_by_metric(search, {"alpha": (1.0, 4.0)}, tuning.metrics)


def test_decisions_are_made_without_a_metric_of_labels():
    digits = load_digit_tags()
    metrics = ("average_precision", "ranking_loss")
    grid = {"beta": (0.01, 1.0), "tau": (0.1, 0.5)}
    search = make_search(RELIAB(), grid, Tuning(metric=metrics), KFold(2), ("tau",))
    search.fit(digits.X[:80], digits.Y[:80])
    assert set(search.best_by_metric_["average_precision"]) == {"beta", "tau"}
    assert set(search.best_by_metric_["ranking_loss"]) == {"beta"}


def test_threads_select_once(monkeypatch):
    searches = []
    original = _searches._search
    monkeypatch.setattr(_searches, "_CHOICES", type(_searches._CHOICES)(64))
    monkeypatch.setattr(_searches, "_search", lambda *a: searches.append(1) or original(*a))
    protocol = _tuned_protocol("BR", {"C": (0.1, 1.0)}, splits="first")
    threads = [Thread(target=run_cell, args=(protocol, cell)) for cell in protocol.cells()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(searches) == 1


@pytest.mark.parametrize(
    "metric",
    ['[]', '3', 'true', '["one_error"]', '["one_error", "one_error"]', '[1, 2]', '[["a"], ["b"]]',
     '{one_error = 1, coverage = 2}'],
)  # fmt: skip
def test_wrong_metrics_of_tunings_are_refused(tmp_path, metric):
    path = tmp_path / "p.toml"
    path.write_text(
        'experiment = "prediction"\ndatasets = ["digit-tags"]\nmethods = ["BR"]\n'
        f"[splits]\nn_splits = 1\n[tuning]\nmetric = {metric}\n"
    )
    with pytest.raises(ProtocolError, match="must be one name, or a list of two or more different"):
        Protocol.from_toml(path)


@pytest.mark.parametrize("metric", ["average_precision", METRICS_OF_TUNING])
def test_the_record_of_the_first_split_spares_the_search(tmp_path, monkeypatch, metric):
    grid = {"alpha": (1 / 64, 1.0, 64.0)}
    protocol = _tuned_protocol("MSVR", grid, metric=metric, splits="first")
    store, other = Store(tmp_path / "store"), Store(tmp_path / "other")
    run(protocol, store, backend="sequential", only=lambda cell: cell.setting.number == 0)
    run(protocol, other, backend="sequential")
    monkeypatch.setattr(_searches, "_CHOICES", type(_searches._CHOICES)(64))
    monkeypatch.setattr(_searches, "_search", lambda *_: pytest.fail("a second search"))
    assert run(protocol, store, backend="sequential").done == 2
    found = {record.id: (record.chosen, record.metrics) for record in store.records()}
    assert found == {record.id: (record.chosen, record.metrics) for record in other.records()}


def test_wrong_tunings_are_refused():
    with pytest.raises(ValueError, match="unknown metric of tuning 'coverag'; did you mean"):
        Tuning(metric=["one_error", "coverag"])
    with pytest.raises(ValueError, match="unknown splits of tuning 'some'"):
        Tuning(splits="some")


def test_figures_of_the_paper_belong_to_the_tf_idf_features():
    values = {("hamming_loss", None, "rcv1-s1-tfidf944", "LEMLL"): [0.03, 0.02]}
    table = ComparisonTable.from_values(values, control="LEMLL")
    assert table.panels[0].entries["rcv1-s1-tfidf944", "LEMLL"].published == (0.027, 0.0)
