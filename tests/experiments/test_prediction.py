"""The paper's Tables II and III: the protocol, and how our figures compare with the printed."""

import pytest
from engine_methods import Logged, plan, ran

from lemll.lab import Method, Splits, Tuning, list_methods, methods, published_prediction, register
from lemll.lab.studies.prediction import (
    PAPER_METHODS,
    QUICK_PREDICTION,
    agreement,
    paper_prediction,
    significances,
)
from lemll.lab.studies.prediction_report import _all_ranks, _of_the_paper, make_prediction_report
from lemll.lab.studies.sections import block_ranks
from lemll.lab.tables import ComparisonTable

METRICS = ("hamming_loss", "ranking_loss", "one_error", "coverage", "average_precision")
COLUMNS = ("LEMLL", "MLFE", "MSVR")


def test_the_protocol_is_that_of_the_paper():
    protocol = paper_prediction()
    assert len(protocol.datasets) == 14
    assert "msra" not in [source.name for source in protocol.datasets]
    assert protocol.metrics == METRICS
    assert protocol.splits == Splits("halves", 10)
    assert protocol.tuning == Tuning("average_precision", 5)
    assert protocol.control == "LEMLL"
    assert {cell.method for cell in published_prediction()} == set(PAPER_METHODS)
    assert {"LEMLL", "MLFE", "ML2", "RELIAB", "MSVR"} <= {m.name for m in list_methods("learner")}


def test_learners_take_part_as_soon_as_they_are_registered(monkeypatch):
    monkeypatch.setattr(methods, "_METHODS", dict(methods._METHODS))
    monkeypatch.delitem(methods._METHODS, ("learner", "MLFE"))
    register(Method("One more", "learner", Logged, {}, "a line"))
    labels = [spec.label for spec in paper_prediction(["yeast"]).methods]
    in_paper = [name for name in labels if name in PAPER_METHODS]
    assert in_paper == [name for name in PAPER_METHODS if name in labels]
    assert "MLFE" not in labels
    assert labels.index("One more") >= len(in_paper)


def test_what_is_run_can_be_chosen():
    protocol = paper_prediction(QUICK_PREDICTION, methods=["ML2", "MSVR"], n_splits=2, tuned=False)
    assert [source.name for source in protocol.datasets] == list(QUICK_PREDICTION)
    assert (protocol.splits.n_splits, protocol.tuning, protocol.control) == (2, None, "ML2")


@pytest.fixture
def values():
    """Two halves a hair apart, whose means are the printed ones."""
    return {
        (cell.metric, None, cell.dataset, cell.method): [cell.mean - 1e-4, cell.mean + 1e-4]
        for cell in published_prediction()
        if cell.dataset in ("yeast", "scene") and cell.method in COLUMNS
    }


def test_agreement_counts_by_standard_deviations_of_the_paper(values):
    printed = {(c.metric, c.dataset, c.method): c.std for c in published_prediction()}
    up = ("average_precision", None, "yeast", "MLFE")
    values[up] = [value + 3 * printed[up[0], "yeast", "MLFE"] for value in values[up]]
    down = ("hamming_loss", None, "scene", "MLFE")
    values[down] = [value + 3 * printed[down[0], "scene", "MLFE"] for value in values[down]]
    near = ("coverage", None, "scene", "MLFE")
    values[near] = [value + 2 * printed[near[0], "scene", "MLFE"] for value in values[near]]
    table = ComparisonTable.from_values(values, control="LEMLL", methods=COLUMNS)
    found = {entry.method: entry for entry in agreement(table)}
    assert list(found) == list(COLUMNS)
    assert (found["LEMLL"].cells, found["LEMLL"].within) == (10, 10)
    mlfe = found["MLFE"]
    assert (mlfe.cells, mlfe.within, mlfe.better, mlfe.worse) == (10, 8, 1, 1)
    assert sorted(miss.split(":")[0] for miss in mlfe.misses) == [
        "Average precision yeast",
        "Hamming loss scene",
    ]


def test_marks_are_counted_beside_the_papers(values):
    table = ComparisonTable.from_values(values, control="LEMLL", methods=COLUMNS)
    found = {entry.method: entry for entry in significances(table)}
    assert list(found) == ["MLFE", "MSVR"]
    printed = [
        cell.mark
        for cell in published_prediction()
        if cell.dataset in ("yeast", "scene") and cell.method == "MLFE"
    ]
    assert found["MLFE"].cells == 10
    assert found["MLFE"].published_better == printed.count("•")
    # The same difference in both halves: whatever is not equal is significant.
    assert found["MLFE"].better + found["MLFE"].worse == 10


def test_a_report_has_tables_ranks_and_settings(tmp_path):
    protocol = plan("LEMLL", "MSVR", splits=2)
    store = ran(protocol, tmp_path / "store")
    report = make_prediction_report(protocol, store)
    # No set of the paper's: nothing to agree with, and no ranks of the printed figures.
    assert (report.agreement, report.ranks, report.significances) == ([], [], [])
    assert "2 halves, default parameters" in report.summary()
    files = report.write(tmp_path / "tables")
    assert [file.name for file in files] == ["summary.md", "tables.md", "tables.tex", "tables.csv"]
    assert "| digit-tags |" in files[1].read_text(encoding="utf-8")


def test_without_lemll_or_the_papers_methods_there_still_is_a_report(tmp_path, monkeypatch, log):
    monkeypatch.setattr(methods, "_METHODS", dict(methods._METHODS))
    register(Method("One more", "learner", Logged, {}, "a line"))
    protocol = plan("One more", splits=2, tuning=Tuning(folds=2))
    store = ran(protocol, tmp_path / "store")
    report = make_prediction_report(protocol, store)
    assert report.ranks == []
    assert "parameters tuned by average_precision in 2 folds" in report.summary()


def test_a_method_with_few_data_sets_does_not_hide_the_ranks_of_the_others():
    done = {"LEMLL": ("cal500", "medical", "scene", "yeast"), "CLR": ("yeast",)}
    done |= {"MSVR": done["LEMLL"], "Mine": ("scene", "yeast")}
    values = {
        ("one_error", None, dataset, method): [0.1 + place / 10, 0.12 + place / 10]
        if dataset in done[method]
        else []
        for dataset in done["LEMLL"]
        for place, method in enumerate(done)
    }
    table = ComparisonTable.from_values(values, control="LEMLL")
    (ranks,) = block_ranks(_of_the_paper(table))
    assert ranks.methods == ("LEMLL", "MSVR")
    headings = [line for line in _all_ranks(table) if line.startswith("| measure")]
    assert headings == [
        "| measure | LEMLL | CLR | MSVR | Mine | critical difference |",
        "| measure | LEMLL | MSVR | Mine | critical difference |",
        "| measure | LEMLL | MSVR | critical difference |",
    ]
