"""The report of the experiment on incomplete labels: gains, ranks, and what is missing."""

from __future__ import annotations

from statistics import fmean

import pytest
from committed import SETS, change, keep, measured, write_plan

from lemll.exceptions import StoreError
from lemll.lab.studies.prediction import CellKey, write_cells
from lemll.lab.studies.unobserved import make_unobserved_report

PLAN = """
experiment = "prediction"
datasets = [{datasets}]
control = "BR"
[splits]
n_splits = 2
[[hide]]
kind = "cells"
share = [0.6, 0.9]
[[hide]]
kind = "rows"
share = 0.95
[methods.BR]
C = 0.1
[methods."BR (hidden as 0)"]
method = "BR"
C = 0.1
unobserved = "zero"
[methods.ML-kNN]
[methods."ML-kNN (hidden as 0)"]
method = "ML-kNN"
unobserved = "zero"
"""


MEASURES = ("hamming_loss", "ranking_loss", "one_error", "coverage", "average_precision")


def value(key: CellKey) -> float:
    """Give every data set, method, half and rule a different figure; skipping gains .05 or .01."""
    gain = 0.0 if "as 0" in key.method else 0.05 if key.method == "BR" else 0.01
    return 0.5 + 0.01 * SETS.index(key.dataset) + 0.001 * key.split + gain


@pytest.fixture(name="folder")
def _folder(tmp_path):
    keys = write_plan(tmp_path, PLAN, *SETS)
    cells = [measured(key, dict.fromkeys(MEASURES, value(key))) for key in keys]
    write_cells(tmp_path, cells)
    return tmp_path


def test_gains_are_differences_of_the_same_halves_with_the_data_set_as_unit(folder):
    report = make_unobserved_report(folder)
    assert [table.panels[0].condition for table in report.tables] == [
        "60 % of the cells hidden",
        "90 % of the cells hidden",
        "95 % of the rows hidden",
    ]
    for gains in report.gains["average_precision"]:
        assert [gain.learner for gain in gains] == ["BR", "ML-kNN"]
        assert gains[0].means == pytest.approx([0.05] * 8)
        assert gains[1].means == pytest.approx([0.01] * 8)
        assert [gain.halves for gain in gains] == [16, 16]
        # Eight differences of one sign: p = 2 / 2^8, twice for two learners.
        assert gains[0].adjusted == pytest.approx(2 * 2 / 2**8)
        # Sixteen halves of one sign: p = 2 / 2^16.
        assert gains[0].adjusted_halves < gains[0].adjusted / 20
    # The same figures are a loss here, so the known labels are worse.
    assert report.gains["hamming_loss"][0][0].means == pytest.approx([-0.05] * 8)


def test_a_learner_in_several_protocols_counts_once(folder):
    expected = make_unobserved_report(folder).gains["average_precision"]
    plan = (folder / "plan.toml").read_text("utf-8")
    *most, last = SETS
    small, other = (
        plan.replace(", ".join(f'"{name}"' for name in SETS), ", ".join(f'"{n}"' for n in names))
        for names in (most, [last])
    )
    (folder / "plan.toml").write_text(small, "utf-8")
    tuning = '[tuning]\nsplits = "first"\n'
    (folder / "other.toml").write_text(other + tuning, "utf-8")
    report = make_unobserved_report(folder)
    assert {gain.learner for gain in report.gains["average_precision"][0]} == {"BR", "ML-kNN"}
    for found, before in zip(report.gains["average_precision"], expected, strict=True):
        for mine, theirs in zip(found, before, strict=True):
            assert mine.adjusted == theirs.adjusted
            assert sorted(mine.means) == sorted(theirs.means)
    assert f"On {last} the first half selected the parameters of all halves." in report.settings


def test_the_summary_names_the_best_and_its_unit(folder):
    summary = make_unobserved_report(folder).summary()
    assert "192 of 192 planned cells are done, 0 failed or took too long" in summary
    assert (
        "- 60 % of the cells hidden: BR has the best average rank (1.00), before ML-kNN (2.00), "
        "on 8 data sets." in summary
    )
    assert "- In the mean of these 3 conditions: BR has the best average rank (1.00)" in summary
    assert "The unit of the test is the data set" in summary
    assert "### Hamming loss ↓: 90 % of the cells hidden" in summary
    assert "| BR | 8 | 8 / 0 | +0.050 | +0.050 | +0.050 | 0.0156 * | 16 |" in summary


def test_contestants_with_equal_ranks_share_the_first_place(folder):
    change(folder, lambda key: True, metrics=dict.fromkeys(MEASURES, 0.5))
    names = "BR and BR (hidden as 0) and ML-kNN and ML-kNN (hidden as 0)"
    text = f"- 60 % of the cells hidden: {names} have the best average rank (2.50), on 8 data sets."
    report = make_unobserved_report(folder)
    assert text in report.best()
    assert "| BR | 8 | 0 / 0 | +0.000 | +0.000 | +0.000 | 1 | 16 | 1 |" in report.summary()


def test_missing_halves_are_left_out_of_both_variants(folder):
    gone = CellKey("yeast", "BR (hidden as 0)", 1, "cells 0.6")
    wrong = CellKey("yeast", "BR", 1, "cells 0.6")
    keep(folder, lambda key: key != gone)
    change(folder, lambda key: key == wrong, metrics=dict.fromkeys(MEASURES, 0.99))
    report = make_unobserved_report(folder)
    assert report.gains["average_precision"][0][0].halves == 15
    assert report.gains["average_precision"][0][0].means == pytest.approx([0.05] * 8)
    assert fmean(report.gains["average_precision"][1][0].means) == pytest.approx(0.05)


def test_contestants_that_were_not_run_are_named_and_do_not_spoil_the_ranks(folder):
    keep(folder, lambda key: not key.method.startswith("ML-kNN"))
    report = make_unobserved_report(folder)
    assert "Not run yet: ML-kNN, ML-kNN (hidden as 0)." in report.settings
    assert "BR has the best average rank (1.00)" in report.best()
    assert [gain.learner for gain in report.gains["average_precision"][0]] == ["BR"]


def test_without_a_complete_data_set_nobody_is_named(folder):
    def is_kept(key):
        return (key.dataset == "yeast") == key.method.startswith("BR") and "as 0" not in key.method

    keep(folder, is_kept)
    report = make_unobserved_report(folder)
    assert report.best() == "No data set is complete for all contestants."
    assert "No learner has both variants on any data set." in report.summary()


def test_folders_without_hidden_or_finished_cells_are_refused(folder):
    plan = folder / "plan.toml"
    (folder / "cells.csv").unlink()
    with pytest.raises(StoreError, match=r"cells\.csv has no finished cell of the protocols besid"):
        make_unobserved_report(folder)
    plan.write_text(
        'experiment = "prediction"\ndatasets = ["yeast"]\nmethods = ["BR"]', encoding="utf-8"
    )
    with pytest.raises(StoreError, match=r"no protocol in .* hides labels; add \[hide\] to one of"):
        make_unobserved_report(folder)
