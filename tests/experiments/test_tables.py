"""Tables: figures, marks, ranks, published values; Markdown, LaTeX and CSV; verification."""

import csv
import io
import re
import shutil
import subprocess

import numpy as np
import pytest
from engine_methods import make_protocol, ran

from lemll.lab import code, published_prediction
from lemll.lab.tables import ComparisonTable, escape
from lemll.lab.verification import verify

NASTY = r"a_b & 50% {x} #1 ~ ^ \ $ | [z]"


def values(rng, datasets, methods, metric="ranking_loss", n_splits=10):
    return {
        (metric, None, dataset, method): rng.uniform(0.1, 0.2, n_splits) + 0.2 * number
        for dataset in datasets
        for number, method in enumerate(methods)
    }


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    found = values(rng, ("yeast", NASTY), ("LEMLL", "MSVR"))
    found |= values(rng, ("yeast", NASTY), ("LEMLL", "MSVR"), "average_precision")
    return ComparisonTable.from_values(found, control="LEMLL", notes=["2 cells failed."])


def test_entries_are_mean_and_sample_deviation_with_marks_and_published_values(table):
    losses, precisions = table.panels
    entry = losses.entries["yeast", "MSVR"]
    assert entry.figures == (
        pytest.approx(np.mean(entry.values)),
        pytest.approx(np.std(entry.values, ddof=1)),
    )
    published = {
        (cell.dataset, cell.method): (cell.mean, cell.std)
        for cell in published_prediction()
        if cell.metric == "ranking_loss"
    }
    assert entry.published == published["yeast", "MSVR"]
    assert (entry.mark, losses.entries["yeast", "LEMLL"].mark) == ("•", "")
    assert precisions.entries["yeast", "MSVR"].mark == "∘"
    assert losses.entries[NASTY, "MSVR"].published == ()
    assert losses.ranks() == (1.0, 2.0)
    assert precisions.ranks() == (2.0, 1.0)


def test_markdown_shows_it_all(table):
    text = table.to_markdown()
    assert text.startswith("### Ranking loss ↓\n\n| data set | LEMLL | MSVR |\n|---|---|---|\n")
    assert re.search(r"\| yeast \| 0\.\d{3} ± 0\.\d{3} \[0\.\d{3} ± 0\.\d{3}\] \| .* • \[", text)
    assert r"\ $ \| [z]" in text
    assert "| average rank | 1.000 | 2.000 |" in text
    assert text.endswith("2 cells failed.\n")


def test_csv_can_be_read_back(table):
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert len(rows) == 2 * (4 + 2)
    first = rows[0]
    entry = table.panels[0].entries["yeast", "LEMLL"]
    assert float(first["mean"]) == pytest.approx(entry.figures[0], abs=1e-6)
    assert first["published_mean"] == f"{entry.published[0]:.6f}"
    assert {row["dataset"] for row in rows} == {"yeast", NASTY, "average rank"}


def test_latex_is_balanced_and_escaped(table):
    text = table.to_latex()
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2
    bare = re.sub(r"\\[\\{}&%$#_]|\\text\w+\{\}", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not set("#%~^") & set(bare)
    rows = [line for line in text.splitlines() if line.endswith(r"\\") and "multicol" not in line]
    assert rows
    assert {re.sub(r"\\&", "", row).count("&") for row in rows} == {2}
    assert escape(NASTY).isascii()


def test_latex_compiles(table, tmp_path):
    compiler = shutil.which("pdflatex") or shutil.which("tectonic")
    if compiler is None:
        pytest.skip("no LaTeX here: neither pdflatex nor tectonic was found")
    finder = shutil.which("kpsewhich")
    if finder is not None and subprocess.run([finder, "booktabs.sty"], check=False).returncode:
        pytest.skip("this LaTeX has no booktabs")
    document = (
        "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{booktabs}\n"
        f"\\begin{{document}}\n{table.to_latex()}\n\\end{{document}}\n"
    )
    (tmp_path / "t.tex").write_text(document, encoding="utf-8")
    options = ["-halt-on-error", "-interaction=nonstopmode"] if "pdflatex" in compiler else []
    ended = subprocess.run(
        [compiler, *options, "t.tex"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout
    assert (tmp_path / "t.pdf").exists()


def test_the_published_tables_rank_as_the_paper_does():
    found = {
        (cell.metric, None, cell.dataset, cell.method): [cell.mean]
        for cell in published_prediction()
    }
    table = ComparisonTable.from_values(found, control="LEMLL")
    ranks = dict(zip(table.panels[0].methods, table.panels[0].ranks(), strict=True))
    assert table.panels[0].metric.name == "hamming_loss"
    assert ranks["LEMLL"] == 1.5
    assert round(ranks["ECC"], 3) == 4.533


def test_a_reconstruction_has_a_panel_a_threshold_and_single_values():
    found = {("chebyshev", threshold, "SJAFFE", "LEMLL"): [0.0771] for threshold in (0.1, 0.5)}
    table = ComparisonTable.from_values(found, control="LEMLL")
    assert [panel.title for panel in table.panels] == [
        "Chebyshev ↓, threshold 0.1",
        "Chebyshev ↓, threshold 0.5",
    ]
    assert "| SJAFFE | 0.077 [0.077] |" in table.to_markdown()


def test_incomplete_entries_say_so_and_are_not_ranked():
    found = {
        ("one_error", None, "a", "A"): [0.1, 0.2],
        ("one_error", None, "a", "B"): [0.1],
        ("one_error", None, "b", "A"): [0.1, 0.2],
        ("one_error", None, "b", "B"): [0.3, 0.4],
        ("one_error", None, "c", "A"): [0.3, 0.4],
    }
    text = ComparisonTable.from_values(found, control="A").to_markdown()
    assert "| a | 0.150 ± 0.071 | — (1 of 2) |" in text
    assert "| c | 0.350 ± 0.071 | — |" in text
    assert "| average rank (1 of 3) | 1.000 | 2.000 |" in text
    nothing = ComparisonTable.from_values(
        {("one_error", None, "a", "A"): []}, control="A", wanted=2
    )
    assert "| average rank (0 of 1) | — |" in nothing.to_markdown()


def test_the_control_must_be_a_method():
    with pytest.raises(ValueError, match="control 'B' is none of the methods: A"):
        ComparisonTable.from_values({("one_error", None, "a", "A"): [1.0]}, control="B")


@pytest.fixture
def protocol():
    return make_protocol(3)


@pytest.fixture
def store(protocol, tmp_path):
    store = ran(protocol, tmp_path / "store")
    return store


def test_a_metric_that_was_not_asked_for_is_computed_from_the_arrays(protocol, store):
    import dataclasses

    few = dataclasses.replace(protocol, metrics=("hamming_loss",))
    fresh = ran(few, store.folder.with_name("few"))
    assert all(record.metrics.keys() == {"hamming_loss"} for record in fresh.records())
    assert (
        ComparisonTable.from_store(protocol, fresh).to_csv()
        == ComparisonTable.from_store(protocol, store).to_csv()
    )


def test_what_is_missing_or_stale_is_noted_and_left_out(protocol, store, monkeypatch):
    store.discard(next(iter(store.overview(protocol.cells()).records.values())))
    text = ComparisonTable.from_store(protocol, store).to_markdown()
    assert "(2 of 3)" in text
    assert text.endswith("1 cells have not been run yet.\n")
    monkeypatch.setattr(code, "_file_sha256", lambda _: "another version")
    text = ComparisonTable.from_store(protocol, store).to_markdown()
    assert "| digit-tags | — | — |" in text
    assert text.endswith("5 cells of another version of the code were left out.\n")


def test_verify_recomputes_every_figure(protocol, store):
    result = verify(protocol, store)
    assert (result.figures, result.problems) == (6 * 5, ())
