"""Calibrated scales over stored reconstructions, and the report made of them."""

import numpy as np
import pytest
from engine_methods import plan, ran

from lemll.datasets import binarize_distribution
from lemll.enhancers import LEMLLEnhancer
from lemll.lab import Store
from lemll.lab.cells import load_source
from lemll.lab.studies.reconstruction import (
    CalibratedCell,
    calibrated_cells,
    make_reconstruction_report,
    summarise_calibration,
)
from lemll.metrics import chebyshev

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    protocol = plan(
        "KM",
        "LEMLL",
        "Uniform",
        "Logical",
        experiment="reconstruction",
        datasets=("artificial",),
        thresholds=(0.3, 0.5),
        control="LEMLL",
    )
    store = ran(protocol, tmp_path_factory.mktemp("store"), done=8)
    return protocol, store


def test_a_calibrated_cell_is_what_calibrate_gives_on_the_rows_not_rated(finished):
    protocol, store = finished
    found = {
        (cell.measure, cell.threshold): cell
        for cell in calibrated_cells(protocol, store, n_rated=8, seeds=[3])
    }
    assert len(found) == 2 * 3
    cell = next(c for c in protocol.cells() if c.method.label == "LEMLL")
    data = load_source(cell.source)[0]
    enhancer = LEMLLEnhancer(graph={"reg_policy": "auto"}, tol=1e-6, max_iter=5000)
    enhancer.fit(data.X, binarize_distribution(data.D, 0.3))
    plain = enhancer.label_distribution_
    rated = np.random.RandomState(3).choice(len(data.D), 8, replace=False)
    others = np.setdiff1d(np.arange(len(data.D)), rated)
    enhancer.calibrate(rated, data.D[rated])
    ours = found["chebyshev", 0.3]
    expected = chebyshev(data.D[others], enhancer.label_distribution_[others])
    assert ours.calibrated == pytest.approx(expected)
    assert ours.plain == pytest.approx(chebyshev(data.D[others], plain[others]))
    assert ours.uniform == pytest.approx(
        chebyshev(data.D[others], np.full((len(others), 3), 1 / 3))
    )
    assert ours.best <= min(ours.calibrated, ours.plain) * 1.02


def test_the_summary_counts_in_the_direction_of_the_measure():
    cells = [
        CalibratedCell("chebyshev", 0.1, "a", 0.2, 0.3, 0.1, 0.1),
        CalibratedCell("cosine", 0.1, "a", 0.9, 0.8, 0.95, 0.9),
        CalibratedCell("cosine", 0.1, "b", 0.9, 0.95, 0.8, 0.9),
    ]
    summary = summarise_calibration(cells, 10)
    assert (summary.cells, summary.better_than_plain, summary.better_than_uniform) == (3, 2, 1)
    assert summary.chebyshev_over_best == pytest.approx(2.0)


def test_the_report_writes_tables_and_says_what_it_lacks(finished, tmp_path):
    protocol, store = finished
    report = make_reconstruction_report(protocol, store)
    assert report.agreement == []
    assert [summary.n_rated for summary in report.calibration] == [5, 10, 20]
    files = report.write(tmp_path / "out")
    assert {file.name for file in files} == {
        "summary.md", "tables.md", "tables.tex", "tables.csv", "baselines.md", "baselines.csv",
    }  # fmt: skip
    apart = (tmp_path / "out" / "baselines.md").read_text(encoding="utf-8")
    assert "| data set | LEMLL | Uniform | Logical | LEMLL, 10 rows rated |" in apart
    summary = (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    assert "| 10 | 6 |" in summary


def test_half_a_run_is_reported_as_half(finished, tmp_path):
    protocol, _ = finished
    report = make_reconstruction_report(protocol, Store(tmp_path / "empty"))
    assert report.calibration == []
    assert "8 cells have not been run yet." in report.table.to_markdown()
    assert "No block is complete." in report.summary()
