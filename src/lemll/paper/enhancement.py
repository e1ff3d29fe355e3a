"""All enhancers in three regimes: no truth, a few rated rows, and the truth in view.

A folder holds one protocol (``*.toml``, a reconstruction), which names data sets, thresholds and
methods, and ``cells.csv`` with one row per data set, threshold, method and regime. Rows of methods
that lemll does not have may be in ``others.csv``, which has the same columns.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from lemll._types import Array, Features, FloatArray
from lemll.datasets import binarize_distribution
from lemll.exceptions import ProtocolError
from lemll.experiments import Cell, Protocol, load_source
from lemll.metrics import METRICS
from lemll.paper.enhancement_cells import (
    N_DRAWS,
    N_RATED,
    NO_TRUTH,
    ORACLE_GRID,
    ORACLE_SCALE,
    RATED_MEAN,
    EnhancementKey,
    MeasuredRegime,
    rated_regime,
    read_enhancement,
    regimes,
    write_enhancement,
)
from lemll.paper.enhancement_oracle import (
    best_of_grid,
    calibrated,
    published_grid,
    with_truth,
)
from lemll.paper.prediction_cells import CELLS_FILE, read_protocols

__all__ = ["enhancement_protocol", "measure_fitted", "run_enhancement"]


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


def run_enhancement(
    folder: Path,
    *,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    n_jobs: int = 1,
) -> Iterator[Cell]:
    """Run the cells that the table of a folder lacks; write the table after each method.

    Parameters
    ----------
    folder : Path
        The folder.
    datasets : sequence of str, default=()
        Names of data sets of the protocol. By default all.
    methods : sequence of str, default=()
        Labels of methods of the protocol. By default all.
    n_jobs : int, default=1
        Number of methods to run at the same time.

    Yields
    ------
    Cell
        A cell that has ended.
    """
    protocol = enhancement_protocol(folder)
    _refuse_unknown("data sets", datasets, [source.name for source in protocol.datasets])
    _refuse_unknown("methods", methods, [spec.label for spec in protocol.methods])
    part = (protocol.on_datasets(datasets) if datasets else None) or protocol
    rows = {row.key: row for row in read_enhancement(folder)}
    todo: dict[tuple[str, str], list[tuple[Cell, list[str]]]] = {}
    for cell in part.cells():
        label = cell.method.label
        place = cell.source.name, float(cell.setting.threshold or 0.0), label
        missing = [name for name in regimes() if EnhancementKey(*place, name) not in rows]
        # The first method also gives the mean of the rated rows.
        baseline = [EnhancementKey(*place[:2], RATED_MEAN, rated_regime(n)) for n in N_RATED]
        lacks_mean = label == protocol.methods[0].label and not rows.keys() >= set(baseline)
        if (missing or lacks_mean) and (not methods or label in methods):
            todo.setdefault((cell.source.name, label), []).append((cell, missing))
    parallel = joblib.Parallel(n_jobs, return_as="generator_unordered", pre_dispatch=n_jobs)
    tasks = (joblib.delayed(_measured)(protocol, cells) for cells in todo.values())
    for cells, found in parallel(tasks):
        rows |= {row.key: row for row in found}
        write_enhancement(folder, CELLS_FILE, rows.values(), protocol.metrics)
        yield from cells


def _refuse_unknown(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ProtocolError(
            f"the protocol has no {what} {', '.join(unknown)}; choose from {'; '.join(known)}."
        )


def _measured(
    protocol: Protocol, cells: Sequence[tuple[Cell, Collection[str]]]
) -> tuple[list[Cell], list[MeasuredRegime]]:
    """Measure a method on a data set at several thresholds, which share the graph of the rows."""
    rows: list[MeasuredRegime] = []
    with threadpool_limits(1), warnings.catch_warnings():
        # Labels without relevant rows, scales at the end of the range: both are results here.
        warnings.simplefilter("ignore", UserWarning)
        first = cells[0][0]
        dataset = load_source(first.source)[0]
        D = np.asarray(dataset.D)
        enhancer = protocol.estimator(first.method)
        start = time.process_time()
        if "graph" in enhancer.get_params():
            enhancer.set_params(graph=enhancer.make_graph(dataset.X, D.shape[1]))
        shared = time.process_time() - start
        for cell, missing in cells:
            rows += _measure_cell(protocol, cell, enhancer, shared, missing)
    return [cell for cell, _ in cells], rows


def _measure_cell(
    protocol: Protocol, cell: Cell, enhancer: Any, shared: float, missing: Collection[str]
) -> Iterator[MeasuredRegime]:
    """Fit an enhancer and measure it; the first method also yields the mean of the rated rows."""
    dataset = load_source(cell.source)[0]
    D, threshold = np.asarray(dataset.D), float(cell.setting.threshold or 0.0)
    Y = binarize_distribution(D, threshold)
    start = time.process_time()
    enhancer.fit(dataset.X, Y)
    seconds = shared + time.process_time() - start

    def row(method: str, regime: str, metrics: dict[str, float]) -> MeasuredRegime:
        key = EnhancementKey(cell.source.name, threshold, method, regime)
        return MeasuredRegime(key, metrics, seconds)

    for regime, metrics in measure_fitted(enhancer, D, protocol.metrics, missing):
        yield row(cell.method.label, regime, metrics)
    if cell.method.label == protocol.methods[0].label:
        for number in N_RATED:
            regime = rated_regime(number)
            yield row(RATED_MEAN, regime, _over_draws(_mean_of_rated, number, D, protocol.metrics))
    if ORACLE_GRID in missing:
        yield _measure_grid(protocol, cell, enhancer, (dataset.X, Y, D), seconds)


def _measure_grid(
    protocol: Protocol,
    cell: Cell,
    enhancer: Any,
    data: tuple[Features, Array, FloatArray],
    seconds: float,
) -> MeasuredRegime:
    """Measure the best setting of a method's grid; without a grid, the method with the best scale.

    `seconds` are those of the fit.
    """
    X, Y, D = data
    grid = published_grid(cell.method.method, X)
    start = time.process_time()
    if grid is None:
        recovered, setting = with_truth(enhancer, D), ""
    else:
        choice = best_of_grid(enhancer, grid, X, Y, D)
        recovered, setting = choice.distribution, _shown(choice.setting)
        seconds = time.process_time() - start
    key = EnhancementKey(
        cell.source.name, float(cell.setting.threshold or 0.0), cell.method.label, ORACLE_GRID
    )
    metrics = _measure(D, recovered, np.arange(len(D)), protocol.metrics)
    return MeasuredRegime(key, metrics, seconds, setting)


def _shown(setting: Mapping[str, Any]) -> str:
    values = {
        name: f"{value:.6g}" if isinstance(value, float) else str(value)
        for name, value in setting.items()
    }
    return " ".join(f"{name}={value}" for name, value in values.items())


def measure_fitted(
    enhancer: Any, D: FloatArray, metrics: Sequence[str], wanted: Collection[str] | None = None
) -> Iterator[tuple[str, dict[str, float]]]:
    """Measure a fitted enhancer in the regimes that need no other fit.

    Parameters
    ----------
    enhancer : BaseEnhancer
        A fitted enhancer that is not calibrated yet. This function calibrates it.
    D : ndarray of shape (n_samples, n_labels)
        The true distributions.
    metrics : sequence of str
        Names of measures.
    wanted : collection of str, optional
        Names of regimes. By default all except `ORACLE_GRID`.

    Yields
    ------
    regime : str
        Its name.
    values : dict of str to float
        The measures; with rated rows, the means over the draws.
    """
    names = regimes()[:-1] if wanted is None else wanted
    everything = np.arange(len(D))
    if NO_TRUTH in names:
        yield NO_TRUTH, _measure(D, enhancer.label_distribution_, everything, metrics)
    for number in N_RATED:
        if rated_regime(number) in names:
            found = _over_draws(partial(calibrated, enhancer), number, D, metrics)
            yield rated_regime(number), found
    if ORACLE_SCALE in names:
        yield ORACLE_SCALE, _measure(D, with_truth(enhancer, D), everything, metrics)


def _over_draws(
    recover: Callable[[Array, FloatArray], FloatArray],
    number: int,
    D: FloatArray,
    metrics: Sequence[str],
) -> dict[str, float]:
    """Return the mean measures on the rows that are not rated, over the draws of rated rows."""
    found = []
    for seed in range(N_DRAWS):
        rated = np.random.RandomState(seed).choice(len(D), number, replace=False)
        others = np.setdiff1d(np.arange(len(D)), rated)
        found.append(_measure(D, recover(rated, D), others, metrics))
    return {name: fmean(values[name] for values in found) for name in metrics}


def _mean_of_rated(rated: Array, D: FloatArray) -> FloatArray:
    return np.broadcast_to(D[rated].mean(axis=0), D.shape)


def _measure(
    D: FloatArray, recovered: FloatArray, rows: Array, metrics: Sequence[str]
) -> dict[str, float]:
    return {name: float(METRICS[name](D[rows], recovered[rows])) for name in metrics}
