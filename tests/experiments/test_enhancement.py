"""The comparison of enhancers in three regimes: what is measured, resumed, ranked and refused."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from lemll.cli.app import app
from lemll.datasets import binarize_distribution
from lemll.enhancers import BlendEnhancer, KMEnhancer
from lemll.exceptions import ProtocolError, StoreError
from lemll.experiments import load_source
from lemll.metrics import chebyshev
from lemll.paper import make_enhancement_report, run_enhancement
from lemll.paper.enhancement import (
    N_DRAWS,
    EnhancementKey,
    enhancement_protocol,
    read_enhancement,
    regimes,
)

PLAN = """
experiment = "reconstruction"
datasets = ["artificial"]
thresholds = [0.3, 0.5]
control = "Blend"
metrics = ["chebyshev", "cosine"]
[methods.Uniform]
[methods.KM]
[methods.Blend]
"""


@pytest.fixture(name="ran", scope="module")
def _ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("enhancement")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    cells = list(run_enhancement(folder))
    assert len(cells) == 6
    return folder


@pytest.fixture(name="folder")
def _folder(ran, tmp_path):
    for file in ran.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_every_regime_is_measured_on_the_rows_that_nobody_rated(folder):
    rows = {row.key: row.metrics for row in read_enhancement(folder)}
    # Three methods in five regimes, and the mean of the rated rows in three, at two thresholds.
    assert len(rows) == 2 * (3 * 5 + 3)
    protocol = enhancement_protocol(folder)
    data = load_source(protocol.datasets[0])[0]
    Y = binarize_distribution(data.D, 0.5)
    means = []
    for kind, name in ((KMEnhancer, "KM"), (BlendEnhancer, "Blend")):
        enhancer = kind().fit(data.X, Y)
        key = EnhancementKey("artificial", 0.5, name, "no truth")
        plain = chebyshev(data.D, enhancer.label_distribution_)
        assert rows[key]["chebyshev"] == pytest.approx(plain, abs=1e-6)
        found, means = [], []
        for seed in range(N_DRAWS):
            rated = np.random.RandomState(seed).choice(len(data.D), 10, replace=False)
            others = np.setdiff1d(np.arange(len(data.D)), rated)
            enhancer.calibrate(rated, data.D[rated], random_state=0)
            found.append(chebyshev(data.D[others], enhancer.label_distribution_[others]))
            mean = np.tile(data.D[rated].mean(axis=0), (len(others), 1))
            means.append(chebyshev(data.D[others], mean))
        key = EnhancementKey("artificial", 0.5, name, "10 rated rows")
        assert rows[key]["chebyshev"] == pytest.approx(np.mean(found), abs=1e-6)
    key = EnhancementKey("artificial", 0.5, "Rated mean", "10 rated rows")
    assert rows[key]["chebyshev"] == pytest.approx(np.mean(means), abs=1e-6)


def test_the_truth_in_view_is_not_the_truth_itself(folder):
    rows = {row.key: row.metrics for row in read_enhancement(folder)}
    for method in ("KM", "Blend"):
        oracle, rated = (
            rows[EnhancementKey("artificial", 0.5, method, regime)]["chebyshev"]
            for regime in ("oracle", "20 rated rows")
        )
        assert 0.001 < oracle < 1.02 * rated


def test_a_run_continues_where_it_stopped(folder):
    before = (folder / "cells.csv").read_bytes()
    assert list(run_enhancement(folder)) == []
    lines = before.decode().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("artificial,0.3,KM,")]
    (folder / "cells.csv").write_text("".join(kept), encoding="utf-8")
    (cell,) = run_enhancement(folder)
    assert (cell.method.label, cell.setting.threshold) == ("KM", 0.3)
    again = [line.rpartition(",")[0] for line in (folder / "cells.csv").read_text().splitlines()]
    assert again == [line.rpartition(",")[0] for line in before.decode().splitlines()]


def test_the_report_ranks_counts_and_names_the_sets_that_were_not_chosen_on(folder):
    report = make_enhancement_report(folder)
    summary = report.summary()
    assert "6 of 6 planned fits are done, each measured in 5 regimes" in summary
    for regime in regimes()[1:]:
        assert f"- {regime}: Blend has the best average rank" in summary
    assert "| 10 rated rows | others | 2 / 2 | 2 / 2 |" in summary
    assert "| 10 rated rows | Blend | 2 / 2 |  | 2 / 2 |" in summary
    assert "pairs of methods change their order (Kendall" in summary
    assert report.table.panels[0].entries["artificial", "Blend"].complete


@pytest.mark.slow
def test_the_command_runs_and_writes(folder, tmp_path):
    (folder / "cells.csv").unlink()
    out = tmp_path / "out"
    command = ["reproduce", "enhancement", "--from", str(folder), "--output", str(out)]
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, StoreError)
    assert "run it (--run)" in str(refused.exception)
    done = CliRunner().invoke(app, [*command, "--run"])
    assert done.exit_code == 0, done.output
    assert "done: KM on artificial, threshold 0.3" in done.output
    for name in ("summary.md", "tables.md", "ranks.csv", "report.html"):
        assert "Blend" in (out / name).read_text(encoding="utf-8")


def test_refusals(folder):
    (folder / "cells.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(StoreError, match="the first line must be dataset,threshold,method,regime"):
        read_enhancement(folder)
    header = "dataset,threshold,method,regime,chebyshev,seconds\n"
    (folder / "cells.csv").write_text(header + "a,x,KM,oracle,1,1\n", encoding="utf-8")
    with pytest.raises(StoreError, match="line 2: could not convert string to float: 'x'"):
        read_enhancement(folder)
    prediction = 'experiment = "prediction"\ndatasets = ["digit-tags"]\nmethods = ["BR"]\n'
    (folder / "plan.toml").write_text(prediction, encoding="utf-8")
    with pytest.raises(ProtocolError, match="must hold one protocol, and it must be a reconstr"):
        enhancement_protocol(folder)
