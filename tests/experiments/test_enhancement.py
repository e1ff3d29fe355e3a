"""The comparison of enhancers in three regimes: what is measured, resumed, ranked and refused."""

import importlib
import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from committed import reproduce

from lemll.datasets import binarize_distribution, make_artificial
from lemll.enhancers import BlendEnhancer, LEMLLEnhancer, LogicalEnhancer
from lemll.exceptions import ProtocolError, StoreError
from lemll.lab import get_method, load_source
from lemll.lab.methods import PAPER_GRID
from lemll.lab.studies.enhancement import (
    FAILED_FILE,
    GRIDS,
    N_DRAWS,
    ORACLE_GRID,
    ORACLE_SCALE,
    OTHERS_FILE,
    EnhancementKey,
    FailedFit,
    MeasuredRegime,
    best_of_grid,
    calibrated,
    enhancement_protocol,
    measure_fitted,
    published_grid,
    rated_regime,
    read_enhancement,
    read_failed,
    regimes,
    run_enhancement,
    write_enhancement,
    write_failed,
)
from lemll.lab.studies.enhancement_report import make_enhancement_report, regret_lines
from lemll.metrics import chebyshev, clark
from lemll.rivals import KMEnhancer

pytestmark = pytest.mark.slow

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


def drop(folder, start):
    """Remove the rows of the table that begin with a text; return the whole table."""
    path = folder / "cells.csv"
    whole = path.read_text(encoding="utf-8")
    kept = (line for line in whole.splitlines(keepends=True) if not line.startswith(start))
    path.write_text("".join(kept), encoding="utf-8")
    return whole


def timeless(folder):
    return [replace(row, seconds=0.0) for row in read_enhancement(folder)]


def test_every_regime_is_measured_on_the_rows_that_nobody_rated(folder):
    rows = {row.key: row.metrics for row in read_enhancement(folder)}
    # Three methods in six regimes, and the mean of the rated rows in three, at two thresholds.
    assert len(rows) == 2 * (3 * 6 + 3)
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
            for regime in (ORACLE_SCALE, "20 rated rows")
        )
        assert 0.001 < oracle < 1.02 * rated


def test_the_best_published_setting_is_never_worse_than_the_own_one(folder):
    rows = {row.key: row for row in read_enhancement(folder)}
    for threshold in (0.3, 0.5):
        for method in ("Uniform", "KM", "Blend"):
            scale, grid = (
                rows[EnhancementKey("artificial", threshold, method, regime)]
                for regime in (ORACLE_SCALE, ORACLE_GRID)
            )
            assert grid.metrics["chebyshev"] <= scale.metrics["chebyshev"]
            # Uniform and Blend have no grid; KM cannot give degrees to irrelevant labels.
            assert (grid.metrics == scale.metrics) == (method != "KM")
            assert bool(grid.setting) == (method == "KM")
    summary = make_enhancement_report(folder).summary()
    assert "| KM | 0 / 2 |" in summary
    assert "use the true distributions of all rows" in summary
    assert "### oracle grid (truth)" in summary


@pytest.mark.parametrize("name", ["GLLE", "KM"])
def test_the_search_over_settings_equals_trying_all_of_them(name):
    data = make_artificial(150, random_state=0)
    Y = binarize_distribution(data.D, 0.4)
    everything = np.arange(len(data.D))
    enhancer = get_method("enhancer", name).make().fit(data.X, Y)
    choice = best_of_grid(enhancer, GRIDS[name], data.X, Y, data.D)
    found = {}
    for values in itertools.product(*GRIDS[name].values()):
        setting = dict(zip(GRIDS[name], values, strict=True))
        other = get_method("enhancer", name).make().set_params(**setting).fit(data.X, Y)
        calibrated(other, everything, data.D)
        recovered = other.distribution(other.numerical_labels_)
        found[chebyshev(data.D, recovered)] = setting
    assert chebyshev(data.D, choice.distribution) == pytest.approx(min(found), abs=1e-12)
    assert choice.setting.items() <= found[min(found)].items()
    # The enhancer that was passed is as before.
    assert enhancer.get_params() == get_method("enhancer", name).make().get_params()


def test_settings_that_take_hours_on_many_rows_are_left_out():
    small, movie = (np.broadcast_to(0.0, shape) for shape in ((2500, 243), (7755, 1869)))
    for name in ("LESC", "GLLE", "ML2"):
        assert published_grid(name, small) == GRIDS.get(name)
    expected = {"noise": ("rows",), "beta": (1.0,), "smoothness": (1.0, 10.0)}
    assert published_grid("LESC", movie) == expected
    assert published_grid("LEMLL", movie) == {**GRIDS["LEMLL"], "beta": (64.0,)}
    assert published_grid("GLLE", movie) == GRIDS["GLLE"]


def test_the_settings_are_those_of_the_papers():
    for name, grid in GRIDS.items():
        assert set(grid) <= set(get_method("enhancer", name).make().get_params())
    assert all(
        set(values) <= set(PAPER_GRID) for key, values in GRIDS["LEMLL"].items() if key != "tol"
    )
    tens = [10.0**power for power in range(-4, 4)]
    assert {*GRIDS["LESC"]["beta"], *GRIDS["LESC"]["smoothness"]} <= set(tens)


def test_the_scale_of_one_draw_does_not_stay_for_the_next():
    data = make_artificial(150, random_state=0)
    Y = binarize_distribution(data.D, 0.5)
    single = np.flatnonzero(Y.sum(axis=1) == 1)[:5]
    several = np.flatnonzero(Y.sum(axis=1) > 1)[:5]
    enhancer = KMEnhancer().fit(data.X, Y)
    plain = enhancer.label_distribution_
    calibrated(enhancer, several, data.D)
    assert enhancer.scale_ != 1
    # Rows with one label have no scale, so KM stays as it was fitted.
    np.testing.assert_array_equal(calibrated(enhancer, single, data.D), plain)


def test_thresholds_share_a_graph_and_nothing_else(tmp_path):
    plan = PLAN.replace("[methods.KM]", "[methods.LEMLL]").replace("[methods.Blend]", "")
    plan = plan.replace('"Blend"', '"LEMLL"')
    (tmp_path / "plan.toml").write_text(plan, encoding="utf-8")
    cells = list(run_enhancement(tmp_path, methods=["LEMLL"], datasets=["artificial"]))
    assert [cell.setting.threshold for cell in cells] == [0.3, 0.5]
    rows = {row.key: row.metrics for row in read_enhancement(tmp_path)}
    data = load_source(enhancement_protocol(tmp_path).datasets[0])[0]
    for threshold in (0.3, 0.5):
        enhancer = get_method("enhancer", "LEMLL").make()
        assert isinstance(enhancer, LEMLLEnhancer)
        enhancer.fit(data.X, binarize_distribution(data.D, threshold))
        key = EnhancementKey("artificial", threshold, "LEMLL", "no truth")
        plain = chebyshev(data.D, enhancer.label_distribution_)
        assert rows[key]["chebyshev"] == pytest.approx(plain, abs=1e-6)


def test_settings_count_only_where_every_method_was_searched(folder):
    drop(folder, f"artificial,0.3,KM,{ORACLE_GRID},")
    report = make_enhancement_report(folder)
    assert "5 of 6 planned fits are done in all 6 regimes" in report.summary()
    thresholds = {row.key.threshold for row in report.rows if row.key.regime == ORACLE_GRID}
    assert thresholds == {0.5}
    assert "| KM | 0 / 1 |" in report.summary()


def test_only_missing_regimes_are_run(folder):
    before = (folder / "cells.csv").read_text(encoding="utf-8")
    # A wrong figure shows that this row is not run again.
    wrong = re.sub(r"(?m)^(artificial,0.3,KM,no truth),[^,]*,[^,]*,", r"\1,9,9,", before)
    (folder / "cells.csv").write_text(wrong, encoding="utf-8")
    drop(folder, f"artificial,0.3,KM,{ORACLE_GRID},")
    assert list(run_enhancement(folder, methods=["Blend"])) == []
    (cell,) = run_enhancement(folder, methods=["KM"])
    assert (cell.method.label, cell.setting.threshold) == ("KM", 0.3)
    rows = {row.key: row for row in read_enhancement(folder)}
    assert rows[EnhancementKey("artificial", 0.3, "KM", "no truth")].metrics["chebyshev"] == 9
    key = EnhancementKey("artificial", 0.3, "KM", ORACLE_GRID)
    (line,) = [line for line in before.splitlines() if line.startswith(",".join(map(str, key)))]
    assert f",{rows[key].metrics['chebyshev']:.6f}," in line
    assert line.endswith(rows[key].setting)


def test_a_run_continues_where_it_stopped(folder):
    whole = timeless(folder)
    before = (folder / "cells.csv").read_bytes()
    assert list(run_enhancement(folder)) == []
    assert (folder / "cells.csv").read_bytes() == before
    drop(folder, "artificial,0.3,KM,")
    (cell,) = run_enhancement(folder)
    assert (cell.method.label, cell.setting.threshold) == ("KM", 0.3)
    assert timeless(folder) == whole


def test_missing_means_of_the_rated_rows_are_run(folder):
    whole = timeless(folder)
    drop(folder, "artificial,0.5,Rated mean,20 rated rows,")
    assert len(read_enhancement(folder)) == len(whole) - 1
    (cell,) = run_enhancement(folder)
    assert cell.setting.threshold == 0.5
    assert timeless(folder) == whole


def test_the_report_ranks_counts_and_names_the_sets_that_were_not_chosen_on(folder):
    report = make_enhancement_report(folder)
    summary = report.summary()
    assert "6 of 6 planned fits are done in all 6 regimes" in summary
    for regime in regimes()[1:]:
        assert f"- {regime}: Blend has the best average rank" in summary
    assert "| 10 rated rows | others | 2 / 2 | 2 / 2 |" in summary
    assert "| 10 rated rows | Blend | 2 / 2 |  | 2 / 2 |" in summary
    assert "pairs of methods change their order (Kendall" in summary
    assert report.table.panels[0].entries["artificial", "Blend"].complete


def test_the_regret_of_each_method_is_by_the_best_of_all(folder):
    rows = read_enhancement(folder)
    regime = rated_regime(10)
    values = {(r.key.threshold, r.key.method): r.metrics["chebyshev"] for r in rows
              if r.key.regime == regime}  # fmt: skip
    ratios = [
        value / min(v for (t, _), v in values.items() if t == threshold)
        for (threshold, method), value in values.items()
        if method == "KM"
    ]
    close = sum(ratio <= 1.01 for ratio in ratios)
    lines = regret_lines(rows)
    column = lines[0].split(" | ").index(regime)
    line = next(line for line in lines if line.startswith("| KM |"))
    assert line.split(" | ")[column] == f"{close} / {len(ratios)} ({max(ratios):.2f})"
    assert "oracle" not in lines[0]


def _others(folder, method="PyLDL GLLE"):
    """Write rows of another library that are twice as far from the truth as KM's."""
    rows = [
        MeasuredRegime(
            row.key._replace(method=method),
            {"chebyshev": 2 * row.metrics["chebyshev"], "cosine": row.metrics["cosine"] / 2},
            40.0,
        )
        for row in read_enhancement(folder)
        if row.key.method == "KM" and row.key.regime != ORACLE_GRID
    ]
    write_enhancement(folder, OTHERS_FILE, rows, ("chebyshev", "cosine"))


def test_other_libraries_are_in_the_report_and_do_not_change_ours(folder):
    without = make_enhancement_report(folder)
    assert "Beside other libraries" not in without.summary()
    _others(folder, "PyLDL KM")
    report = make_enhancement_report(folder)
    summary = report.summary()
    values = {row.key: row for row in (*report.rows, *report.others)}
    theirs, ours = (
        np.mean(
            [
                values[EnhancementKey("artificial", threshold, name, "10 rated rows")].metrics[
                    "chebyshev"
                ]
                for threshold in (0.3, 0.5)
            ]
        )
        for name in ("PyLDL KM", "KM")
    )
    assert theirs == pytest.approx(2 * ours)
    assert "| PyLDL KM | KM | 1 | 2 | 80.00 |" in summary
    assert f"| {theirs:.4f} / {ours:.4f} |" in summary
    assert "- 10 rated rows: Blend 1.00, " in summary
    # Theirs are twice as far from the truth as ours, so they are behind.
    shared = next(line for line in summary.splitlines() if line.startswith("- 10 rated rows: "))
    ranked = summary.split("## Beside other libraries")[1].split("- 10 rated rows: ")[1]
    assert ranked.index("PyLDL KM") > ranked.index(", KM ")
    assert "PyLDL" not in shared
    before, after = without.summary(), summary
    assert before.split("## CPU")[0] == after.split("## Beside other libraries")[0]
    assert before.split("## CPU")[1] == after.split("## CPU")[1]
    _others(folder, "KM")
    with pytest.raises(StoreError, match="rows of KM, which the protocol also has"):
        make_enhancement_report(folder)


def test_methods_of_other_libraries_can_be_the_best(folder):
    _others(folder)
    lines = make_enhancement_report(folder).summary().splitlines()
    (found,) = [line for line in lines if line.startswith("If the methods of other libraries")]
    rows = [*read_enhancement(folder), *read_enhancement(folder, OTHERS_FILE)]
    values = {row.key: row.metrics["chebyshev"] for row in rows}
    close, ratios = 0, []
    for threshold in (0.3, 0.5):
        regime = rated_regime(10)
        of_place = {key: v for key, v in values.items() if key[1] == threshold and key[3] == regime}
        (blend,) = [v for key, v in of_place.items() if key.method == "Blend"]
        ratios.append(blend / min(v for key, v in of_place.items() if key.method != "Blend"))
        close += ratios[-1] <= 1.01
    assert f"{close} of 2 places with 10 rated rows (worst ratio {max(ratios):.3f})" in found


def test_fits_of_other_libraries_without_a_result_are_listed(folder):
    _others(folder)
    assert "gave no result" not in make_enhancement_report(folder).summary()
    late = FailedFit("artificial", 0.5, "PyLDL ML", "was stopped after 9 CPU seconds")
    early = late._replace(threshold=0.3)
    other = FailedFit("artificial", 0.3, "PyLDL GLLE", "returned degrees that are not numbers")
    elsewhere = late._replace(dataset="Movie")
    write_failed(folder, [late, elsewhere, early, other])
    assert set(read_failed(folder)) == {late, elsewhere, early, other}
    lines = make_enhancement_report(folder).summary().splitlines()
    first = lines.index("- PyLDL GLLE returned degrees that are not numbers: artificial at 0.3")
    # The protocol does not have the data set Movie.
    assert lines[first + 1] == (
        "- PyLDL ML was stopped after 9 CPU seconds: artificial at 0.3, 0.5"
    )
    (folder / FAILED_FILE).write_text("dataset,method\n", encoding="utf-8")
    with pytest.raises(StoreError, match="first line must be dataset,threshold,method,reason, got"):
        read_failed(folder)
    (folder / FAILED_FILE).write_text(
        "dataset,threshold,method,reason\nMovie,low,KM,stopped\n", encoding="utf-8"
    )
    with pytest.raises(StoreError, match="line 2: could not convert string to float: 'low'"):
        read_failed(folder)


def test_degrees_of_a_softmax_calibrate_as_the_numbers_before_it(monkeypatch):
    # The script is not part of the package.
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    benchmark = importlib.import_module("benchmarks.enhancement_pyldl")
    data = make_artificial(150, random_state=0)
    Y = binarize_distribution(data.D, 0.4)
    ours = LogicalEnhancer(normalization="softmax").fit(data.X, Y)
    theirs = benchmark.Degrees(ours.label_distribution_).fit(data.X, Y)
    names = ("chebyshev", "clark", "kl_divergence")
    found = [dict(measure_fitted(enhancer, data.D, names)) for enhancer in (ours, theirs)]
    assert list(found[0]) == list(regimes()[:-1])
    for regime, values in found[0].items():
        assert found[1][regime] == pytest.approx(values, rel=1e-6)
    plain = clark(data.D, ours.fit(data.X, Y).label_distribution_)
    assert found[1]["no truth"]["clark"] == pytest.approx(plain)


def test_the_command_runs_and_writes(folder, tmp_path):
    drop(folder, "artificial,0.3,KM,")
    cells = (folder / "cells.csv").rename(folder / "kept")
    out = tmp_path / "out"
    words = ["enhancement", "--from", folder, "--output", out]
    with pytest.raises(StoreError, match=r"run it \(--run\)"):
        reproduce(*words)
    cells.rename(folder / "cells.csv")
    assert "done: KM on artificial, threshold 0.3" in reproduce(*words, "--run")
    wrong = reproduce(*words, "artificial", code=2)
    assert "select what runs; add --run" in " ".join(wrong.split())
    for name in ("summary.md", "tables.md", "ranks.csv", "report.html"):
        assert "Blend" in (out / name).read_text(encoding="utf-8")


def test_refusals(folder):
    (folder / "cells.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(StoreError, match="the first line must be dataset,threshold,method,regime"):
        read_enhancement(folder)
    header = "dataset,threshold,method,regime,chebyshev,seconds\n"
    (folder / "cells.csv").write_text(header + "a,x,KM,no truth,1,1\n", encoding="utf-8")
    with pytest.raises(StoreError, match="line 2: could not convert string to float: 'x'"):
        read_enhancement(folder)
    with pytest.raises(ProtocolError, match="no data sets Nothing; choose from artificial"):
        next(run_enhancement(folder, datasets=["Nothing"]))
    with pytest.raises(ProtocolError, match="no methods GLLE; choose from Uniform; KM; Blend"):
        next(run_enhancement(folder, methods=["GLLE"]))
    prediction = 'experiment = "prediction"\ndatasets = ["digit-tags"]\nmethods = ["BR"]\n'
    (folder / "plan.toml").write_text(prediction, encoding="utf-8")
    with pytest.raises(ProtocolError, match="must hold one protocol, and it must be a reconstr"):
        enhancement_protocol(folder)
