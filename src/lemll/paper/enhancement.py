"""All enhancers in three regimes: no truth, a few rated rows, and the truth in view.

A folder holds one protocol (``*.toml``, a reconstruction), which names data sets, thresholds and
methods, and ``cells.csv`` with one row per data set, threshold, method and regime.
"""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from lemll._types import Array, FloatArray
from lemll.datasets import binarize_distribution
from lemll.enhancers import BlendEnhancer
from lemll.exceptions import ProtocolError, StoreError
from lemll.experiments import Cell, Protocol, csv_text, load_source, write_texts
from lemll.metrics import METRICS
from lemll.paper.prediction_cells import CELLS_FILE, read_protocols

__all__ = [
    "N_DRAWS",
    "N_RATED",
    "RATED_MEAN",
    "EnhancementKey",
    "MeasuredRegime",
    "enhancement_protocol",
    "measure_enhancement",
    "read_enhancement",
    "regimes",
    "run_enhancement",
]

N_RATED = (5, 10, 20)
# Each draw rates other rows. All methods see the same draws.
N_DRAWS = 10
NO_TRUTH, ORACLE = "no truth", "oracle"
# The trivial baseline of rated rows: their mean is the distribution of every other row.
RATED_MEAN = "Rated mean"
_FIXED = ("dataset", "threshold", "method", "regime")


def regimes() -> tuple[str, ...]:
    """Return the names of the regimes: no truth, rated rows, the truth in view."""
    return (NO_TRUTH, *(f"{number} rated rows" for number in N_RATED), ORACLE)


class EnhancementKey(NamedTuple):
    """What identifies a row of the table."""

    dataset: str
    threshold: float
    method: str
    regime: str


@dataclass(frozen=True, slots=True)
class MeasuredRegime:
    """One row of the table.

    Attributes
    ----------
    key : EnhancementKey
        Data set, threshold, label of the method, regime.
    metrics : dict of str to float
        The measures on the rows that are not rated; means over the draws.
    seconds : float
        CPU time of the fit, on one thread.
    """

    key: EnhancementKey
    metrics: dict[str, float]
    seconds: float


def enhancement_protocol(folder: Path) -> Protocol:
    """Read the protocol of a folder.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    Protocol
        A reconstruction.
    """
    (protocol, *more) = read_protocols(folder)
    if more or protocol.experiment != "reconstruction":
        raise ProtocolError(f"{folder} must hold one protocol, and it must be a reconstruction.")
    return protocol


def run_enhancement(folder: Path, *, n_jobs: int = 1) -> Iterator[Cell]:
    """Run the cells that the table of a folder lacks; write the table after each.

    Parameters
    ----------
    folder : Path
        The folder.
    n_jobs : int, default=1
        Number of cells to run at the same time.

    Yields
    ------
    Cell
        The cell that has just ended.
    """
    protocol = enhancement_protocol(folder)
    rows = {row.key: row for row in read_enhancement(folder)}
    done = {key[:3] for key in rows}
    todo = [
        cell
        for cell in protocol.cells()
        if (cell.source.name, cell.setting.threshold, cell.method.label) not in done
    ]
    parallel = joblib.Parallel(n_jobs, return_as="generator_unordered", pre_dispatch=n_jobs)
    for cell, found in parallel(joblib.delayed(_measured)(protocol, cell) for cell in todo):
        rows |= {row.key: row for row in found}
        _write(folder, rows.values(), protocol.metrics)
        yield cell


def _measured(protocol: Protocol, cell: Cell) -> tuple[Cell, list[MeasuredRegime]]:
    with threadpool_limits(1), warnings.catch_warnings():
        # Labels without relevant rows, scales at the end of the range: both are results here.
        warnings.simplefilter("ignore", UserWarning)
        return cell, list(measure_enhancement(protocol, cell))


def measure_enhancement(protocol: Protocol, cell: Cell) -> Iterator[MeasuredRegime]:
    """Fit one enhancer to one data set at one threshold, and measure it in all regimes.

    Parameters
    ----------
    protocol : Protocol
        A reconstruction.
    cell : Cell
        One of its cells.

    Yields
    ------
    MeasuredRegime
        One per regime. The first method of the protocol also yields the baseline `RATED_MEAN`.
    """
    dataset = load_source(cell.source)[0]
    D, threshold = np.asarray(dataset.D), float(cell.setting.threshold or 0.0)
    enhancer = protocol.estimator(cell.method)
    start = time.process_time()
    enhancer.fit(dataset.X, binarize_distribution(D, threshold))
    seconds = time.process_time() - start
    baseline = cell.method.label == protocol.methods[0].label

    def row(method: str, regime: str, values: FloatArray) -> MeasuredRegime:
        key = EnhancementKey(cell.source.name, threshold, method, regime)
        metrics = dict(zip(protocol.metrics, map(float, values), strict=True))
        return MeasuredRegime(key, metrics, seconds)

    everything = np.arange(len(D))
    label = cell.method.label
    yield row(label, NO_TRUTH, _measure(D, enhancer.label_distribution_, everything, protocol))
    for number in N_RATED:
        regime = f"{number} rated rows"
        found, means = [], []
        for seed in range(N_DRAWS):
            rated = np.random.RandomState(seed).choice(len(D), number, replace=False)
            others = np.setdiff1d(everything, rated)
            recovered = _calibrated(enhancer, rated, D)
            found.append(_measure(D, recovered, others, protocol))
            mean = np.broadcast_to(D[rated].mean(axis=0), D.shape)
            means.append(_measure(D, mean, others, protocol))
        yield row(label, regime, np.mean(found, axis=0))
        if baseline:
            yield row(RATED_MEAN, regime, np.mean(means, axis=0))
    yield row(label, ORACLE, _measure(D, _with_truth(enhancer, D), everything, protocol))


def _measure(D: FloatArray, recovered: FloatArray, rows: Array, protocol: Protocol) -> FloatArray:
    return np.array([METRICS[name](D[rows], recovered[rows]) for name in protocol.metrics])


def _calibrated(enhancer: Any, rated: Array, D: FloatArray) -> FloatArray:
    """Calibrate by rated rows; a method whose distributions have no scale stays as it is."""
    try:
        enhancer.calibrate(rated, D[rated], n_bootstrap=1, random_state=0)
    except ValueError as error:
        if "scale changes nothing" not in str(error):
            raise
        return np.asarray(enhancer.distribution(enhancer.numerical_labels_))
    return np.asarray(enhancer.label_distribution_)


def _with_truth(enhancer: Any, D: FloatArray) -> FloatArray:
    """Return the distributions with the scale, or the weights, that fit all rows best."""
    everything = np.arange(len(D))
    if isinstance(enhancer, BlendEnhancer):
        enhancer.calibrate(everything, D)
        assert enhancer.blend_ is not None
        return enhancer.blend_.distribution(enhancer.sources_)
    _calibrated(enhancer, everything, D)
    # The rated rows hold the truth now, so compute the distributions again.
    return np.asarray(enhancer.distribution(enhancer.numerical_labels_))


def read_enhancement(folder: Path) -> list[MeasuredRegime]:
    """Read the table of a folder.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    list of MeasuredRegime
        Empty if there is no table yet.
    """
    path = folder / CELLS_FILE
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        names = [name for name in reader.fieldnames or () if name in METRICS]
        if not names or not {*_FIXED, "seconds"} <= set(reader.fieldnames or ()):
            raise StoreError(
                f"{path}: the first line must be {','.join(_FIXED)},MEASURES,seconds, "
                f"got {','.join(reader.fieldnames or ())[:80]}."
            )
        try:
            return [
                MeasuredRegime(
                    EnhancementKey(
                        row["dataset"], float(row["threshold"]), row["method"], row["regime"]
                    ),
                    {name: float(row[name]) for name in names},
                    float(row["seconds"]),
                )
                for row in reader
            ]
        except (TypeError, ValueError) as error:
            raise StoreError(f"{path}, line {reader.line_num}: {error}.") from error


def _write(folder: Path, rows: Iterable[MeasuredRegime], metrics: Sequence[str]) -> None:
    lines: list[Sequence[object]] = [[*_FIXED, *metrics, "seconds"]]
    for row in sorted(rows, key=lambda row: row.key):
        shown = [f"{row.metrics[name]:.6f}" for name in metrics]
        lines.append([*row.key, *shown, f"{row.seconds:.3f}"])
    write_texts(folder, {CELLS_FILE: csv_text(lines)})
