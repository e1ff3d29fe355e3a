"""The report that compares TagPredictor with other learners: ranks, tests, what is missing."""

from __future__ import annotations

import csv
import dataclasses

import pytest
from typer.testing import CliRunner

from lemll.cli.app import app
from lemll.exceptions import StoreError
from lemll.lab import Store, published_field, run
from lemll.lab.studies.best import make_best_report
from lemll.lab.studies.prediction import (
    CellKey,
    MeasuredCell,
    planned_cells,
    read_cells,
    read_protocols,
    write_cells,
)
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
SETS = ("cal500", "emotions", "enron", "bibtex", "slashdot", "medical", "scene", "yeast")
# How much better than BR the control is on each data set.
GAINS = (0.03, 0.04, 0.05, 0.06, 0.07, 0.08, -0.01, -0.02)
# ML-kNN was run on five of eight data sets, fewer than three quarters.
FEW = SETS[:5]


def score(key: CellKey) -> float:
    """Let LEMLL always be the last, and let the halves and the data sets differ."""
    place = SETS.index(key.dataset)
    gain = {"BR": 0.0, "LEMLL": -0.1, "ML-kNN": -0.05}.get(key.method, GAINS[place])
    return 0.5 + 0.01 * place + 0.001 * key.split + gain


def measured(key: CellKey) -> MeasuredCell:
    found = score(key)
    # Thresholds for F1 are worth .3, and without them the control would be the last.
    f1 = {"TagPredictor": 0.0, "TagPredictor (F1)": 0.3}.get(key.method, found - 0.3)
    metrics = {
        "average_precision": found,
        "ranking_loss": 1 - found,
        "macro_f1": f1,
        "micro_f1": found,
        # LEMLL has no probabilities.
        "log_loss": None if key.method == "LEMLL" else 1 - found,
    }
    return MeasuredCell(
        key=key,
        status="done",
        chosen="",
        metrics=metrics,
        seconds=1.0,
        code="c",
        finished="2026-01-01",
    )


@pytest.fixture(name="folder")
def _folder(tmp_path):
    plan = PLAN.replace("{datasets}", ", ".join(f'"{name}"' for name in SETS))
    (tmp_path / "plan.toml").write_text(plan, encoding="utf-8")
    cells = [
        measured(key)
        for key in planned_cells(read_protocols(tmp_path))
        if key.method != "ML-kNN" or key.dataset in FEW
    ]
    write_cells(tmp_path, cells)
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
    worse = [
        dataclasses.replace(cell, metrics={**cell.metrics, "average_precision": 0.1})
        if cell.key.method == "TagPredictor"
        else cell
        for cell in read_cells(folder)
    ]
    write_cells(folder, worse)
    sentence = make_best_report(folder).best()
    assert sentence.startswith("TagPredictor has the best average rank by 4 of 5 measures: ")
    assert "Average precision" not in sentence


def test_micro_f1_is_that_of_its_own_variant(tmp_path):
    variant = (
        '[methods."TagPredictor (micro F1)"]\nmethod = "TagPredictor"\noptimize = "micro_f1"\n'
    )
    plan = PLAN.replace("{datasets}", ", ".join(f'"{name}"' for name in SETS))
    (tmp_path / "plan.toml").write_text(plan + variant, encoding="utf-8")
    # Without its own thresholds the control would be the last.
    micro = {"TagPredictor": 0.1, "TagPredictor (F1)": 0.2, "TagPredictor (micro F1)": 0.9}
    cells = [measured(key) for key in planned_cells(read_protocols(tmp_path))]
    cells = [
        dataclasses.replace(
            cell, metrics={**cell.metrics, "micro_f1": micro.get(cell.key.method, 0.5)}
        )
        for cell in cells
    ]
    write_cells(tmp_path, cells)
    assert "Micro F1" in make_best_report(tmp_path).best()


def test_a_control_that_is_never_the_best_says_none(folder):
    bad = {"average_precision": 0.0, "ranking_loss": 1.0, "macro_f1": 0.0, "log_loss": 9.0}
    cells = [
        dataclasses.replace(cell, metrics=bad) if cell.key.method.startswith("Tag") else cell
        for cell in read_cells(folder)
    ]
    write_cells(folder, cells)
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
    more = [measured(CellKey("medical", "ML-kNN", split, "")) for split in (0, 1)]
    write_cells(folder, [*read_cells(folder), *more])
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
        cells = read_cells(folder)
        write_cells(
            folder, [c for c in cells if c.key.method != "ML-kNN" or c.key.dataset not in lost]
        )
        assert (title in make_best_report(folder).summary()) == (len(lost) == 1)


def test_learners_with_different_data_sets_are_not_ranked_on_few(folder):
    # LEMLL and ML-kNN have half of the data sets each, and only one in common.
    def has(key):
        return {"LEMLL": SETS[4:], "ML-kNN": FEW}.get(key.method, SETS)

    write_cells(folder, [c for c in read_cells(folder) if c.key.dataset in has(c.key)])
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
    cells = [
        dataclasses.replace(cell, metrics={**cell.metrics, "average_precision": 0.99})
        if cell.key == wrong
        else cell
        for cell in read_cells(folder)
        if cell.key != gone
    ]
    write_cells(folder, cells)
    row = rank_rows(make_best_report(folder).summary())["Average precision ↑"]
    assert row["TagPredictor"] == "1.25"


def test_failed_cells_are_counted_and_not_used(folder):
    cells = read_cells(folder)
    failed = [
        dataclasses.replace(cell, status="failed", metrics={})
        if cell.key.method == "LEMLL"
        else cell
        for cell in cells
    ]
    write_cells(folder, failed)
    report = make_best_report(folder)
    assert "58 of 80 planned cells are done, 16 failed or took too long" in report.settings
    assert "LEMLL" not in rank_rows(report.summary())["Average precision ↑"]


def test_a_folder_without_the_control_is_refused(folder):
    text = (
        r"cells\.csv has no finished cell of TagPredictor; run the protocols beside it and collect "
        r"the cells \(--collect\)\."
    )
    cells = read_cells(folder)
    write_cells(folder, [cell for cell in cells if not cell.key.method.startswith("Tag")])
    with pytest.raises(StoreError, match=text):
        make_best_report(folder)
    failed = [
        dataclasses.replace(cell, status="failed", metrics={})
        if cell.key.method == "TagPredictor"
        else cell
        for cell in cells
    ]
    write_cells(folder, failed)
    with pytest.raises(StoreError, match=text):
        make_best_report(folder)
    (folder / "cells.csv").unlink()
    with pytest.raises(StoreError, match=text):
        make_best_report(folder)


def test_the_command_writes_what_the_report_says(folder, tmp_path):
    output = tmp_path / "out"
    done = CliRunner().invoke(
        app, ["reproduce", "best", "--from", str(folder), "--output", str(output)]
    )
    assert done.exit_code == 0, done.output
    report = make_best_report(folder)
    assert report.best() in " ".join(done.output.split())
    summary = (output / "summary.md").read_text(encoding="utf-8")
    assert summary == f"# The best predictor: summary\n\n{report.summary()}"
    assert "The best predictor" in (output / "report.html").read_text(encoding="utf-8")
    for name in ("tables.md", "tables.csv"):
        assert "TagPredictor" in (output / name).read_text(encoding="utf-8")


def test_the_command_names_a_store_that_is_not_there(folder):
    command = ["reproduce", "best", "--from", str(folder), "--collect", "--store"]
    done = CliRunner().invoke(app, [*command, str(folder / "none")])
    assert isinstance(done.exception, StoreError)
    assert "there is no store" in str(done.exception)


@pytest.mark.slow
def test_the_command_collects_writes_and_verifies(tmp_path):
    folder, store = tmp_path / "results", tmp_path / "store"
    folder.mkdir()
    plan = PLAN.replace("{datasets}", '"digit-tags"').replace("n_splits = 2", "n_splits = 1")
    (folder / "plan.toml").write_text(plan, encoding="utf-8")
    (protocol,) = read_protocols(folder)
    run(protocol, Store(store), backend="sequential")
    command = ["reproduce", "best", "--from", str(folder), "--store", str(store)]
    done = CliRunner().invoke(app, [*command, "--collect", "--verify", "2"])
    assert done.exit_code == 0, done.output
    assert "5 cells are new or changed" in done.output
    assert "0 of 2 cells differ" in done.output
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
