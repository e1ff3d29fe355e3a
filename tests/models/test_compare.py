"""Learners on one table: the same splits, honest figures, and what may be chance."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from lemll.cli.app import app
from lemll.exceptions import LemllError
from lemll.models import LearnerScores, assess, compare_learners
from lemll.models.assess import THRESHOLDS
from lemll.models.compare import FREQUENCY
from lemll.models.pairwise import best_of_splits, holm
from lemll.report.learners import judge_learners, write_learners
from lemll.tables import LabelSpec, Table

pytestmark = pytest.mark.slow

QUICK = ("LEMLL", "BinaryRelevance")


def noise(n=120, seed=0):
    rng = np.random.RandomState(seed)
    frame = pd.DataFrame(rng.randn(n, 4), columns=list("abcd"))
    for name in ("x", "y", "z"):
        frame[name] = rng.randint(0, 2, n)
    return Table(frame, "noise"), LabelSpec(labels=("x", "y", "z"))


@pytest.fixture(name="found", scope="module")
def _found(table, spec):
    return compare_learners(table, spec, QUICK, n_splits=4, ids="file")


def test_every_learner_is_measured_in_every_split(found):
    assert found.learners == (*QUICK, FREQUENCY)
    assert found.values.shape == (4, 3, len(found.measures))
    assert np.isfinite(found.values).all()
    assert found.n_test == 30
    better = found.values[:, 0] - found.values[:, 2]
    assert (better[:, found.measures.index("average_precision")] > 0).all()
    again = json.loads(json.dumps(found.to_json()))
    assert again["learners"]["LEMLL"]["values"]["macro_f1"] == pytest.approx(
        found.values[:, 0, found.measures.index("macro_f1")].tolist()
    )


def test_noise_gives_no_evidence():
    table, spec = noise()
    verdict = judge_learners(compare_learners(table, spec, QUICK), "average_precision")
    assert verdict.sentence.startswith("No evidence of learning")


def test_the_verdict_names_who_is_beaten(found):
    verdict = judge_learners(found, "average_precision")
    assert verdict.best in QUICK
    assert verdict.sentence.startswith(f"{verdict.best} is the best learner here (Average prec")
    other = next(name for name in QUICK if name != verdict.best)
    assert other in verdict.sentence


def test_two_splits_are_too_few_to_judge(found):
    two = found._replace(values=found.values[:2])
    verdict = judge_learners(two, "average_precision")
    assert "2 splits are too few to judge; use at least 3" in verdict.sentence
    assert "No evidence" not in verdict.sentence


def test_the_corrected_test_is_the_formula():
    values = np.random.RandomState(0).rand(5, 3) + np.array([0.5, 0.1, 0.0])
    found = best_of_splits(values, greater_is_better=True, test_train_ratio=0.25)
    by_hand = []
    for pair in found:
        d = values[:, 0] - values[:, pair.other]
        t = d.mean() / np.sqrt((1 / 5 + 0.25) * d.var(ddof=1))
        by_hand.append(2 * stats.t.sf(abs(t), 4))
        assert pair.best == 0
        assert pair.difference == pytest.approx(d.mean())
        assert (pair.interval[0] > 0 or pair.interval[1] < 0) == (by_hand[-1] < 0.05)
    np.testing.assert_allclose([pair.pvalue for pair in found], by_hand)
    np.testing.assert_allclose([pair.adjusted for pair in found], holm(by_hand))
    lowest = best_of_splits(-values, greater_is_better=False, test_train_ratio=0.25)
    assert [pair.pvalue for pair in lowest] == pytest.approx(by_hand)


def test_ctrl_c_keeps_the_splits_that_are_done(table, spec):
    def stop_at(line):
        if line == "split 3 of 4":
            raise KeyboardInterrupt

    kept = compare_learners(table, spec, ("BinaryRelevance",), n_splits=4, progress=stop_at)
    assert kept.stopped
    assert len(kept.values) == 2


def test_the_time_budget_ends_the_comparison_after_three_splits(table, spec):
    lines = []
    found = compare_learners(
        table, spec, ("BinaryRelevance",), n_splits=5, seconds=1e-6, progress=lines.append
    )
    assert found.stopped
    assert len(found.values) == 3
    assert lines[-1] == "no more splits: the next would exceed the limit of 1e-06 s"
    whole = compare_learners(table, spec, ("BinaryRelevance",), n_splits=5, seconds=600)
    assert not whole.stopped
    assert len(whole.values) == 5


def test_faults(table, spec):
    with pytest.raises(LemllError, match="`learner` must be one of TagPredictor, LEMLL"):
        compare_learners(table, spec, ("Perceptron",))
    with pytest.raises(LemllError, match="names LEMLL twice"):
        compare_learners(table, spec, ("LEMLL", "lemll"))
    with pytest.raises(LemllError, match="`n_splits` must be at least 2"):
        compare_learners(table, spec, QUICK, n_splits=1)


def test_a_measure_that_is_not_defined_is_refused(found):
    values = np.full(found.values.shape, np.nan)
    broken = LearnerScores(**{**found._asdict(), "values": values})
    with pytest.raises(ValueError, match="Macro F1 is not defined in every split"):
        judge_learners(broken, "macro_f1")


def test_the_command_writes_a_page(photos, tmp_path):
    photos(60).to_csv(tmp_path / "p.csv", index=False)
    page = tmp_path / "page.html"
    options = ["compare", str(tmp_path / "p.csv"), "--tags", "tags", "--untagged", "none"]
    options += ["--id", "file", "--learners", "LEMLL,BinaryRelevance", "--splits", "3"]
    options += ["-o", str(page)]
    ended = CliRunner().invoke(app, options)
    assert ended.exit_code == 0, ended.output
    assert "split 3 of 3" in ended.output
    assert f"open {page}" in ended.output
    text = page.read_text(encoding="utf-8")
    assert "Learners on p.csv" in text
    assert "is the best learner here" in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    plain = CliRunner().invoke(app, [*options, "--json"])
    content = json.loads(plain.stdout)
    assert content["splits"] == 3
    assert content["best"] in ("LEMLL", "BinaryRelevance")


# --- Figures of each label, curves and intervals -----------------------------------------------


@pytest.fixture(name="cells", scope="module")
def _cells():
    rng = np.random.RandomState(0)
    Y = rng.randint(0, 2, (50, 3)).astype(float)
    p = np.clip(0.25 + 0.5 * Y + 0.2 * rng.randn(50, 3), 0.01, 0.99).round(2)
    Y[rng.rand(50, 3) < 0.1] = np.nan
    return Y, p


def test_curves_count_cells(cells):
    Y, p = cells
    found = assess(Y, p, p > 0.5, np.full(3, 0.5), probabilities=p).labels
    for j in range(3):
        known = ~np.isnan(Y[:, j])
        for k, cut in enumerate(THRESHOLDS):
            chosen = known & (p[:, j] > cut)
            assert found.curves[j]["predicted"][k] == chosen.sum()
            assert found.curves[j]["hits"][k] == (chosen & (Y[:, j] == 1)).sum()
        middle = THRESHOLDS.index(0.5)
        assert found.figures[j]["predicted"] == found.curves[j]["predicted"][middle]
    assert sum(b["cells"] for b in found.calibration) == (~np.isnan(Y)).sum()
    error = sum(b["cells"] * abs(b["share"] - b["probability"]) for b in found.calibration)
    assert found.calibration_error == pytest.approx(error / (~np.isnan(Y)).sum())


def test_rows_without_a_predicted_label_are_noticed(cells):
    Y, p = cells
    found = assess(Y, p, np.zeros(p.shape, dtype=bool), np.full(3, 0.5))
    assert found.mostly_untagged
    assert found.n_tagged == (Y == 1).any(axis=1).sum()
    assert not assess(Y, p, p > 0.5, np.full(3, 0.5)).mostly_untagged


def test_a_learner_that_was_cut_short_is_named(table, spec, tmp_path):
    options = {"ids": "file", "n_splits": 3}
    names = ["TagPredictor", "BinaryRelevance"]
    found = compare_learners(table, spec, names, seconds=0.1, **options)
    assert found.cut_short == ("TagPredictor",)
    verdict = judge_learners(found, "average_precision")
    assert "TagPredictor had less time than needed" in verdict.sentence
    write_learners(tmp_path / "page.html", found, verdict)
    assert "had less time than needed" in (tmp_path / "page.html").read_text()
    assert compare_learners(table, spec, names[1:], **options).caution == ""
