"""The audit experiment: its noise is what it says, its measures are right, its report runs."""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(name="parts")
def _parts(monkeypatch):
    """Return the modules of the experiment, which are not part of the package."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    from benchmarks import audit_noise, audit_report, audit_run

    return audit_noise, audit_run, audit_report


@pytest.mark.parametrize("kind", ["flip", "drop", "add", "feature"])
def test_noise_has_its_amount(parts, kind):
    noise, _, _ = parts
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    Y = (X[:, :3] > 0.5).astype(np.int8)
    before = Y.copy()
    Z = noise.add_noise(X, Y, noise.Noise(kind, 0.10), 7)
    np.testing.assert_array_equal(Y, before)
    np.testing.assert_array_equal(Z, noise.add_noise(X, Y, noise.Noise(kind, 0.10), 7))
    expected = np.round(0.10 * Y.sum(axis=0))
    removed = ((Y == 1) & (Z == 0)).sum(axis=0)
    added = ((Y == 0) & (Z == 1)).sum(axis=0)
    np.testing.assert_array_equal(removed, 0 if kind == "add" else expected)
    np.testing.assert_array_equal(added, 0 if kind == "drop" else expected)


def test_measures_by_hand(parts):
    _, run, _ = parts
    Y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]])
    Z = np.array([[1, 1], [0, 1], [0, 1], [0, 0]])  # one tag wrong, one missing
    quality = np.array([[0.9, 0.2], [0.8, 0.7], [0.4, 0.6], [0.3, 0.95]])
    found = run.judge(Y, Z, quality, quality.min(axis=1))
    assert found["wrong"]["auprc"] == 1
    assert found["wrong"]["auroc"] == 1
    assert found["missing"]["auprc"] == 0.5  # the second most doubtful of four
    assert found["missing"]["precision"] == 0
    assert found["missing"]["lift"] == 1  # a hundred are all of them
    assert found["row"]["auprc"] == pytest.approx((1 + 2 / 3) / 2)


def test_the_report_is_made_from_cells(parts, tmp_path, monkeypatch):
    _, _, report = parts
    figures = dict.fromkeys(report.MEASURES, 0.5)
    contestants = [*report.OURS, *(f"cleanlab|{of}|self-confidence" for of in report.THEIRS)]
    measures = {name: {"wrong": figures, "missing": figures} for name in contestants}
    measures["lemll"]["wrong"] = figures | {"auprc": 0.4}
    for name in ("lemll", "lemll fast"):
        measures[name]["row"] = figures
    for of in report.THEIRS:
        for rows in ("ema", "softmin"):
            measures[f"cleanlab|{of}|self-confidence|{rows}"] = {"row": figures}
    kind = {"labels": 4, "covered": 3, "told": 2, "covered_told": 1, "width": 0.2, "error": 0.1}
    cell = {"set": "made-up", "noise": "flip", "amount": 0.1, "seed": 0,
            "theirs": {key: measures[key] for key in measures if "cleanlab" in key},
            "ours": {key: measures[key] for key in measures if "cleanlab" not in key},
            "coverage": {"wrong": kind, "missing": kind}}  # fmt: skip
    monkeypatch.setattr(report, "CELLS", tmp_path / "cells")
    monkeypatch.setattr(report, "FOLDER", tmp_path / "out")
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "a.json").write_text(json.dumps(cell), encoding="utf-8")
    half = {key: value for key, value in cell.items() if key not in ("ours", "coverage")}
    (tmp_path / "cells" / "b.json").write_text(json.dumps(half | {"seed": 1}), encoding="utf-8")
    report.main()
    text = (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    assert "1 cells are done: made-up 1 (seeds 0 to 0)" in text
    assert "made-up flip 10% wrong: -0.100" in text
    assert "cover the truth in 75.0% of 8 cells" in text
    first = (tmp_path / "out" / "cells.csv").read_bytes()
    for name in ("a.json", "b.json"):
        (tmp_path / "cells" / name).unlink()
    report.main()  # from the tables alone
    assert (tmp_path / "out" / "cells.csv").read_bytes() == first


def test_our_part_is_run_again_without_theirs(parts, tmp_path, monkeypatch):
    noise, run, _ = parts
    calls = []
    monkeypatch.setattr(run, "CELLS", tmp_path)
    monkeypatch.setattr(run, "their_part", lambda *_: calls.append("theirs") or {"theirs": {}})
    values = iter(range(9))
    monkeypatch.setattr(run, "our_part", lambda _: calls.append("ours") or {"ours": next(values)})
    cell = run.Cell("emotions", noise.NOISES[0], 0)

    def go(part, again=False):
        calls.clear()
        run.run(cell, argparse.Namespace(part=part, again=again), None, tmp_path)
        return calls.copy()

    assert go("ours") == []  # their probabilities are not there yet
    assert go("theirs") == ["theirs"]
    assert go("all") == ["ours"]
    assert go("all") == []
    assert go("ours", again=True) == ["ours"]
    assert cell.read() == {"theirs": {}, "ours": 1}


def test_a_new_clone_runs_only_what_the_table_lacks(parts, tmp_path, monkeypatch):
    _, run, _ = parts
    table = tmp_path / "cells.csv"
    monkeypatch.setattr(run, "TABLE", table)
    assert run.committed() == set()
    table.write_text("set,noise,amount,seed,level\nyeast,flip,0.02,3,wrong\n", encoding="utf-8")
    options = argparse.Namespace(sets="yeast", seeds="2-3", noises="flip 2%,flip 5%")
    left = [cell for cell in run.planned(options) if cell.key not in run.committed()]
    assert [(cell.seed, str(cell.noise)) for cell in left] == [
        (2, "flip 2%"),
        (2, "flip 5%"),
        (3, "flip 5%"),
    ]
