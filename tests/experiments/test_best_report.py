"""The report that compares TagPredictor with other learners: ranks, tests, what is missing."""

from __future__ import annotations

import csv

import pytest
from committed import SETS, change, keep, measured, reproduce, write_plan
from engine_methods import ran

from lemll.exceptions import StoreError
from lemll.lab import Store, published_field
from lemll.lab.studies.best import make_best_report
from lemll.lab.studies.prediction import CellKey, read_cells, read_protocols, write_cells
from lemll.lab.studies.prediction_runs import collect, repeat
from lemll.metrics import METRICS

PLAN = """
experiment = "prediction"
datasets = [{datasets}]
control = "TagPredictor"
metrics = ["average_precision", "ranking_loss", "macro_f1", "micro_f1", "log_loss"]
[splits]
n_splits = 2
[methods.TagPredictor]
n_estimators = 5
cv = 2
[methods."TagPredictor (F1)"]
method = "TagPredictor"
optimize = "f1"
n_estimators = 5
cv = 2
[methods.BR]
C = 0.1
[methods.LEMLL]
alpha = 16.0
[methods.ML-kNN]
"""
# How much better than BR the control is on each data set.
GAINS = (0.03, 0.04, 0.05, 0.06, 0.07, 0.08, -0.01, -0.02)
# ML-kNN was run on five of eight data sets, fewer than three quarters.
FEW = SETS[:5]


def score(key: CellKey) -> float:
    """Let LEMLL always be the last, and let the halves and the data sets differ."""
    place = SETS.index(key.dataset)
    gain = {"BR": 0.0, "LEMLL": -0.1, "ML-kNN": -0.05}.get(key.method, GAINS[place])
    return 0.5 + 0.01 * place + 0.001 * key.split + gain


def metrics_of(key: CellKey) -> dict[str, float | None]:
    found = score(key)
    # Thresholds for F1 are worth .3, and without them the control would be the last.
    f1 = {"TagPredictor": 0.0, "TagPredictor (F1)": 0.3}.get(key.method, found - 0.3)
    return {
        "average_precision": found,
        "ranking_loss": 1 - found,
        "macro_f1": f1,
        "micro_f1": found,
        # LEMLL has no probabilities.
        "log_loss": None if key.method == "LEMLL" else 1 - found,
    }


def fill(folder, plan, *, few=FEW):
    keys = write_plan(folder, plan, *SETS)
    kept = (key for key in keys if key.method != "ML-kNN" or key.dataset in few)
    write_cells(folder, [measured(key, metrics_of(key)) for key in kept])


@pytest.fixture(name="folder")
def _folder(tmp_path):
    fill(tmp_path, PLAN)
    return tmp_path


def rank_rows(summary: str, title: str = "## Average ranks\n") -> dict[str, dict[str, str]]:
    """Read the table of average ranks, by measure and column."""
    part = summary.partition(title)[2].partition("##")[0]
    lines = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    header, _, *rows = [[cell.strip() for cell in line] for line in lines]
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def test_ranks_are_those_computed_by_hand(folder):
    rows = rank_rows(make_best_report(folder).summary())
    # The control is first on six data sets and second on two, BR the other way round.
    for measure in ("Average precision ↑", "Ranking loss ↓"):
        assert rows[measure] == {
            "measure": measure,
            "data sets": "8",
            "TagPredictor": f"{(6 * 1 + 2 * 2) / 8:.2f}",
            "BR": f"{(6 * 2 + 2 * 1) / 8:.2f}",
            "LEMLL": "3.00",
            # 2.343 sqrt(k (k + 1) / (6 n)) for k = 3 learners and n = 8 data sets.
            "critical difference": f"{2.343 * (3 * 4 / (6 * 8)) ** 0.5:.2f}",
        }


def test_learners_without_probabilities_are_left_out_of_their_measures(folder):
    report = make_best_report(folder)
    row = rank_rows(report.summary())["Log loss ↓"]
    assert row["LEMLL"] == ""
    assert (row["TagPredictor"], row["BR"]) == ("1.25", "1.75")
    assert row["critical difference"] == f"{1.960 * (2 * 3 / (6 * 8)) ** 0.5:.2f}"
    panel = next(panel for panel in report.table.panels if panel.metric.name == "log_loss")
    assert all(not panel.entries[name, "LEMLL"].values for name in SETS)
    assert all(panel.entries[name, "BR"].values for name in SETS)


def test_f1_is_that_of_the_variant_with_thresholds(folder):
    report = make_best_report(folder)
    row = rank_rows(report.summary())["Macro F1 ↑"]
    # The variant has .3 everywhere. BR has .2 + .01 place + .001 split, LEMLL .1 less.
    assert (row["TagPredictor"], row["BR"], row["LEMLL"]) == ("1.00", "2.00", "3.00")
    assert "TagPredictor (F1)" not in row
    assert "has thresholds for this measure (the methods TagPredictor (F1) and" in report.settings


def test_the_sentence_counts_the_measures_with_the_best_rank(folder):
    begin, _, measures = make_best_report(folder).best().partition(": ")
    assert begin == "TagPredictor has the best average rank by 5 of 5 measures"
    expected = {"Average precision", "Ranking loss", "Macro F1", "Micro F1", "Log loss"}
    assert set(measures.rstrip(".").split(", ")) == expected
    change(folder, lambda key: key.method == "TagPredictor", metrics={"average_precision": 0.1})
    sentence = make_best_report(folder).best()
    assert sentence.startswith("TagPredictor has the best average rank by 4 of 5 measures: ")
    assert "Average precision" not in sentence


def test_micro_f1_is_that_of_its_own_variant(tmp_path):
    variant = (
        '[methods."TagPredictor (micro F1)"]\nmethod = "TagPredictor"\noptimize = "micro_f1"\n'
    )
    fill(tmp_path, PLAN + variant, few=SETS)
    # Without its own thresholds the control would be the last.
    change(tmp_path, lambda key: True, metrics={"micro_f1": 0.5})
    for name, value in (("", 0.1), (" (F1)", 0.2), (" (micro F1)", 0.9)):
        method = f"TagPredictor{name}"
        change(tmp_path, lambda key, m=method: key.method == m, metrics={"micro_f1": value})
    assert "Micro F1" in make_best_report(tmp_path).best()


def test_a_control_that_is_never_the_best_says_none(folder):
    bad = {"average_precision": 0.0, "ranking_loss": 1.0, "macro_f1": 0.0, "log_loss": 9.0}
    bad["micro_f1"] = None
    change(folder, lambda key: key.method.startswith("Tag"), metrics=bad)
    sentence = "TagPredictor has the best average rank by 0 of 4 measures: none."
    assert make_best_report(folder).best() == sentence


def test_tests_have_the_data_set_as_unit(folder):
    summary = make_best_report(folder).summary()
    part = summary.partition("Average precision ↑: TagPredictor against each learner")[2]
    # The ranks of the two losses sum to 3: p = 2 * 5 / 2^8. LEMLL loses all: p = 2 / 2^8, twice.
    gain = sum(GAINS) / 8
    assert f"| BR | 6 / 2 | {gain:+.4f} | {2 * 5 / 2**8:.3g} * |" in part
    assert f"| LEMLL | 8 / 0 | {gain + 0.1:+.4f} | {2 * 2 / 2**8:.3g} * |" in part
    losses = summary.partition("Ranking loss ↓: TagPredictor against each learner")[2]
    assert f"| BR | 6 / 2 | {-gain:+.4f} |" in losses
    assert "Macro F1 ↑: TagPredictor against" not in summary


def test_a_learner_with_few_data_sets_takes_no_part_in_the_ranks(folder):
    report = make_best_report(folder)
    assert "ML-kNN" not in rank_rows(report.summary())["Average precision ↑"]
    assert "ML-kNN" in report.table.to_markdown()
    assert "74 of 80 planned cells are done, 0 failed or took too long" in report.settings
    # With a sixth data set it has three quarters. Then all ranks are those of these six.
    more = [CellKey("medical", "ML-kNN", split, "") for split in (0, 1)]
    write_cells(folder, [*read_cells(folder), *(measured(key, metrics_of(key)) for key in more)])
    row = rank_rows(make_best_report(folder).summary())["Average precision ↑"]
    assert row["data sets"] == "6"
    ranks = [row[name] for name in ("TagPredictor", "BR", "ML-kNN", "LEMLL")]
    assert ranks == ["1.00", "2.00", "3.00", "4.00"]


def test_a_learner_with_half_of_the_data_sets_is_ranked_apart(folder):
    title = "## Average ranks with learners on fewer data sets"
    summary = make_best_report(folder).summary()
    row = rank_rows(summary, title)["Average precision ↑"]
    assert row["data sets"] == str(len(FEW))
    ranks = [row[name] for name in ("TagPredictor", "BR", "ML-kNN", "LEMLL")]
    assert ranks == ["1.00", "2.00", "3.00", "4.00"]
    part = summary.partition("against each learner, on fewer data sets")[2]
    gain = sum(GAINS[: len(FEW)]) / len(FEW)
    assert f"| ML-kNN | {len(FEW)} / 0 | {gain + 0.05:+.4f} |" in part
    # Half of the data sets is enough, less is not.
    for lost in (FEW[:1], FEW[:2]):
        keep(folder, lambda key, lost=lost: key.method != "ML-kNN" or key.dataset not in lost)
        assert (title in make_best_report(folder).summary()) == (len(lost) == 1)


def test_learners_with_different_data_sets_are_not_ranked_on_few(folder):
    # LEMLL and ML-kNN have half of the data sets each, and only one in common.
    has = {"LEMLL": SETS[4:], "ML-kNN": FEW}
    keep(folder, lambda key: key.dataset in has.get(key.method, SETS))
    rows = rank_rows(
        make_best_report(folder).summary(), "## Average ranks with learners on fewer data sets"
    )
    # LEMLL has no log loss, so there ML-kNN is compared on all of its data sets.
    assert set(rows) == {"Log loss ↓"}
    assert rows["Log loss ↓"]["data sets"] == str(len(FEW))


def test_halves_that_one_learner_lacks_are_left_out_for_all(folder):
    gone = CellKey("yeast", "BR", 1, "")
    # Only the half that BR lacks makes the control better than BR on yeast.
    wrong = CellKey("yeast", "TagPredictor", 1, "")
    keep(folder, lambda key: key != gone)
    change(folder, lambda key: key == wrong, metrics={"average_precision": 0.99})
    row = rank_rows(make_best_report(folder).summary())["Average precision ↑"]
    assert row["TagPredictor"] == "1.25"


def test_failed_cells_are_counted_and_not_used(folder):
    change(folder, lambda key: key.method == "LEMLL", status="failed", metrics={})
    report = make_best_report(folder)
    assert "58 of 80 planned cells are done, 16 failed or took too long" in report.settings
    assert "LEMLL" not in rank_rows(report.summary())["Average precision ↑"]


def test_a_folder_without_the_control_is_refused(folder):
    text = (
        r"cells\.csv has no finished cell of TagPredictor; run the protocols beside it and collect "
        r"the cells \(--collect\)\."
    )
    change(folder, lambda key: key.method == "TagPredictor", status="failed", metrics={})
    with pytest.raises(StoreError, match=text):
        make_best_report(folder)
    keep(folder, lambda key: not key.method.startswith("Tag"))
    with pytest.raises(StoreError, match=text):
        make_best_report(folder)
    (folder / "cells.csv").unlink()
    with pytest.raises(StoreError, match=text):
        make_best_report(folder)


def test_the_command_writes_what_the_report_says(folder, tmp_path):
    output = tmp_path / "out"
    printed = reproduce("best", "--from", folder, "--output", output)
    report = make_best_report(folder)
    assert report.best() in " ".join(printed.split())
    summary = (output / "summary.md").read_text(encoding="utf-8")
    assert summary == f"# The best predictor: summary\n\n{report.summary()}"
    assert "The best predictor" in (output / "report.html").read_text(encoding="utf-8")
    for name in ("tables.md", "tables.csv"):
        assert "TagPredictor" in (output / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("study", ["best", "unobserved", "prediction"])
def test_the_command_names_a_store_that_is_not_there(folder, study):
    with pytest.raises(StoreError, match="there is no store"):
        reproduce(study, "--from", folder, "--collect", "--store", folder / "none")


@pytest.mark.slow
def test_the_command_collects_writes_and_verifies(tmp_path):
    folder, store = tmp_path / "results", tmp_path / "store"
    folder.mkdir()
    write_plan(folder, PLAN.replace("n_splits = 2", "n_splits = 1"), "digit-tags")
    ran(read_protocols(folder)[0], store)
    printed = reproduce("best", "--from", folder, "--store", store, "--collect", "--verify", 2)
    assert "5 cells are new or changed" in printed
    assert "0 of 2 cells differ" in printed
    with (folder / "cells.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    # A learner without predict_proba has no log loss; all others have one.
    assert rows["LEMLL"]["log_loss"] == ""
    assert all(float(rows[name]["log_loss"]) > 0 for name in rows if name != "LEMLL")
    assert all(float(row["average_precision"]) > 0 for row in rows.values())
    before = (folder / "cells.csv").read_bytes()
    assert collect(folder, Store(store)) == 0
    assert (folder / "cells.csv").read_bytes() == before
    assert {found.key for found in repeat(folder, 5)} == {cell.key for cell in read_cells(folder)}


@pytest.mark.parametrize(
    ("title", "dataset", "metric", "ours"),
    [
        # The score of the control, from `score`, in the mean of two halves.
        ("Average precision ↑", "cal500", "average_precision", 0.5305),
        ("Average precision ↑", "emotions", "average_precision", 0.5505),
        ("Ranking loss ↓", "scene", "ranking_loss", 0.4495),
    ],
)
def test_the_control_is_beside_the_printed_figures_of_the_field(
    folder, title, dataset, metric, ours
):
    text = make_best_report(folder).summary()
    assert "## Beside the widest study of the field" in text
    start = f"| {title} | {dataset} | {ours:.3f} |"
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    sign = 1 if title.endswith("↑") else -1
    printed = {
        cell.method: cell.value
        for cell in published_field()
        if (cell.dataset, cell.metric) == (dataset, metric)
    }
    best = max(printed, key=lambda method: sign * printed[method])
    worse = sum(sign * value < sign * ours for value in printed.values())
    assert f"| {printed[best]:.3f} ({best}) |" in line
    assert line.endswith(f"| {worse} of {len(printed)} |")


def test_the_published_figures_of_the_field_are_complete():
    cells = published_field()
    assert len(cells) == 2100
    assert len({cell.method for cell in cells}) == 28
    assert len({cell.dataset for cell in cells}) == 13
    assert all(0 <= cell.value <= 1 for cell in cells)
    assert len({cell.metric for cell in cells} & set(METRICS)) == 6
    assert not [c for c in cells if c.metric == "one_error" and c.method in ("LP", "CC", "SSM")]
    # Runs that did not end are left out, not counted as zero.
    assert not [c for c in cells if c.metric == "average_precision" and c.value == 0]
