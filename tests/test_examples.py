"""The examples run, and show what they promise."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path

import pytest

from lemll.lab import methods

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
    assert len(names) == 11
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


def test_find_wrong_tags(run, capsys):
    pytest.importorskip("pandas")
    names = run("find_wrong_tags")
    assert names["found"][:50].mean() > 0.9
    assert names["after"] < names["before"]
    (figure,) = names["shown"]
    assert len(figure.axes) == 12
    assert "cells changed" in capsys.readouterr().out


def test_articles_to_audit(run, capsys):
    names = run("01_articles_to_audit")
    assert names["held_out"].learned
    assert names["found"][: names["planted"]].mean() > 0.8
    assert "semicolon between the cells" in capsys.readouterr().out
    assert len(names["shown"]) == 1


def test_tags_from_embeddings(run):
    names = run("02_tags_from_embeddings")
    assert names["as_array"] > 0.9
    assert names["figures"]["images.csv"] == pytest.approx(names["figures"]["lists.parquet"])
    assert len(names["shown"]) == 1


def test_molecules_with_unknown_assays(run, capsys):
    names = run("03_molecules_with_unknown_assays")
    assert names["unknown"][0] == names["as_zero"][0]
    pairs = zip(names["unknown"][1:], names["as_zero"][1:], strict=True)
    assert all(honest > zero + 0.01 for honest, zero in pairs)
    assert names["hits"] > 2 * names["active"][names["train"]][names["hidden"]].mean()
    assert len(names["shown"]) == 1


def test_degrees_from_ten_ratings(run):
    names = run("04_degrees_from_ten_ratings")
    assert names["after"] < 0.6 * names["before"]
    widths = [high / low for _, low, high in names["found"]]
    assert widths[-1] < widths[0]
    assert len(names["shown"]) == 1


def test_compare_a_new_method(run, capsys, monkeypatch):
    monkeypatch.setattr(methods, "_METHODS", dict(methods._METHODS))
    names = run("05_compare_a_new_method")
    assert (names["end"].done, names["end"].failed) == (100, 0)
    assert names["conclusions"].n_datasets == 5
    assert "| average rank |" in capsys.readouterr().out


def test_a_million_rows(run):
    names = run("06_a_million_rows")
    assert names["model"].neighbor_search_ is not None
    assert names["model"].optimality_ <= 1e-4
    assert names["precision"] > 0.9


def test_rows_on_several_machines(run):
    pytest.importorskip("dask.distributed")
    names = run("07_rows_on_several_machines")
    assert (names["model"].n_blocks_, names["model"].n_losses_) == (3, 0)
    assert abs(names["found"]["three blocks"] - names["found"]["one machine"]) < 0.02
    assert names["agreement"] > 0.9
