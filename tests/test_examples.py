"""The examples run, and show what they promise."""

from __future__ import annotations

import json
import runpy
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(name="run")
def _run(monkeypatch, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.gcf()))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield lambda name: runpy.run_path(str(EXAMPLES / f"{name}.py")) | {"shown": shown}
    pyplot.close("all")


def test_every_example_is_tested():
    here = Path(__file__).read_text(encoding="utf-8")
    names = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    assert len(names) == 7
    assert all(f'run("{name}")' in here for name in names)


def test_tags_in_a_frame(run, capsys):
    pytest.importorskip("pandas")
    names = run("tags_in_a_frame")
    output = capsys.readouterr().out
    assert names["search"].best_score_ > 0.9
    assert list(names["predicted"].columns) == list(names["tags"].columns)
    assert list(names["predicted"].index) == names["new"]
    assert len(names["doubtful"]) == 5
    assert output.count("by a margin of") == 5


def test_recover_a_distribution(run):
    names = run("recover_a_distribution")
    distances = names["distances"]
    assert max(distances["LEMLL"], distances["GLLE"]) < distances["Uniform"] < distances["Logical"]
    (figure,) = names["shown"]
    assert [axes.get_title() for axes in figure.axes] == list(names["paints"])


def test_tune_and_look(run):
    names = run("tune_and_look")
    assert names["precision"] > 0.9
    assert names["scores"].shape == (7, 7)
    assert names["scores"].max() == names["model"].best_score_
    assert len(names["shown"]) == 1


def test_compare_learners(run, capsys):
    names = run("compare_learners")
    output = capsys.readouterr().out
    assert (names["end"].done, names["end"].failed) == (75, 0)
    assert names["conclusions"].n_datasets == 5
    assert output.count("Wilcoxon-Holm") == 2
    assert "| average rank |" in output


def test_calibrate_the_scale(run):
    names = run("calibrate_the_scale")
    for truth in ("flat", "steep"):
        assert names["calibrated"][truth] < names["plain"][truth]
        widths = [high / low for _, low, high in names["scales"][truth]]
        assert widths[-1] < widths[0]
    assert names["scales"]["flat"][-1][0] < 1 < names["scales"]["steep"][-1][0]
    assert len(names["shown"]) == 1


def test_incomplete_tags(run, capsys):
    names = run("incomplete_tags")
    assert names["unknown"][0] == names["as_zero"][0]
    gains = [honest - zero for honest, zero in zip(names["unknown"], names["as_zero"], strict=True)]
    assert gains[1:] == sorted(gains[1:])
    assert gains[1] > 0.01
    assert names["right"] > names["always_zero"] + 0.2
    assert "60% hidden" in capsys.readouterr().out
    assert len(names["shown"]) == 1


def test_the_notebook_runs_and_shows_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = EXAMPLES.parent / "notebooks" / "from_a_table.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    namespace: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), path.name, "exec"), namespace)
            assert cell["outputs"], "a cell without output; run the notebook again"
    assert "The model predicts new rows better" in capsys.readouterr().out
    assert namespace["held_out"].learned


def test_find_wrong_tags(run, capsys):
    pytest.importorskip("pandas")
    names = run("find_wrong_tags")
    assert names["found"][:50].mean() > 0.9
    assert names["after"] < names["before"]
    (figure,) = names["shown"]
    assert len(figure.axes) == 12
    assert "cells changed" in capsys.readouterr().out
