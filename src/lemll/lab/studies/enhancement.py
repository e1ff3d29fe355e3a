"""All enhancers in three regimes: no truth, a few rated rows, and the truth in view.

A folder holds one protocol (``*.toml``, a reconstruction), which names data sets, thresholds and
methods, and ``cells.csv`` with one row per data set, threshold, method and regime. Rows of methods
that lemll does not have may be in ``others.csv``, which has the same columns.
"""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, TypeVar

import joblib
import numpy as np
from sklearn.model_selection import ParameterGrid
from threadpoolctl import threadpool_limits

from lemll._files import csv_text, write_texts
from lemll._types import Array, Estimator, Features, FloatArray, Grid, Settings, SettingsView
from lemll.datasets.describe import binarize_distribution
from lemll.enhancers.blend import BlendEnhancer
from lemll.exceptions import ProtocolError, StoreError
from lemll.lab.cells import Cell, load_source
from lemll.lab.protocol import Protocol
from lemll.lab.studies.prediction import CELLS_FILE, read_protocols
from lemll.metrics.distribution import chebyshev
from lemll.metrics.table import METRICS

# The settings that the oracle tries, by the registered name of a method. Their sources:
# LEMLL: the ends of the grid of its paper, 4^-3 ... 4^3, with a looser tolerance than elsewhere;
#     its own parameters are the middle of this grid. All 343 settings take too long.
# GLLE: lambda from 0.01, which its authors' code has, to 100.
# LESC: six of the 64 settings of its authors' code, which has 0.0001 ... 1000 for both. From
#     beta = 1.1 on, the representation is the same on all data sets that we checked. The smaller
#     values of beta are left out because they take too long.
# RELIAB: the paper states 0.5; its tables need 0.7, and 0.3 on Natural_Scene.
# KM, FCM, RELIAB: published runs differ in how memberships become degrees, in the kernel, and in
#     the number of clusters.
# ML2 and MLFE have one published setting, LabelGraph and the baselines have none.
GRIDS: Mapping[str, Grid] = {
    "LEMLL": {**dict.fromkeys(("alpha", "beta", "gamma"), (1 / 64, 64.0)), "tol": (1e-4,)},
    "GLLE": {"smoothness": (0.01, 0.1, 1.0, 10.0, 100.0)},
    "LESC": {"noise": ("rows",), "beta": (0.01, 0.1, 1.0), "smoothness": (1.0, 10.0)},
    "RELIAB": {"alpha": (0.3, 0.5, 0.7), "normalization": ("sum", "softmax")},
    "KM": {"kernel": ("linear", "rbf"), "normalization": ("sum", "sigmoid", "softmax")},
    "FCM": {"n_clusters": (3, 50), "normalization": ("sum", "softmax")},
}
# With more products of n_samples, n_features and the smaller of both than this, as on Movie
# (2.7e10), only the largest beta of these methods is tried, because the search needs each setting
# at each threshold:
# LESC: a fit with beta=0.01 takes five CPU minutes. The largest beta has a closed form there.
# LEMLL: the settings with beta=1/64 took eleven CPU minutes at one threshold. On none of the other
#     data sets was such a setting the best.
_LARGEST_SEARCH = 1e10
_SLOW_BETA = ("LESC", "LEMLL")
# While settings are compared, at least this many rows, evenly spaced, fit the scale. The winner
# uses all rows.
_SCALE_ROWS = 500


class GridChoice(NamedTuple):
    """The best setting of a grid.

    Attributes
    ----------
    distribution : ndarray of shape (n_samples, n_labels)
        What the setting recovers, with the best scale.
    setting : dict
        The parameters that differ from those of the protocol; empty if these are the best.
    """

    distribution: FloatArray
    setting: Settings


def published_grid(method: str, X: Features) -> Grid | None:
    """Return the settings that the oracle tries on given rows.

    Parameters
    ----------
    method : str
        The registered name of a method.
    X : ndarray or csr_array of shape (n_samples, n_features)
        The features.

    Returns
    -------
    mapping of str to tuple, or None
        The values of each parameter. None if the method has one published setting or none. For
        LESC and LEMLL with many rows and features, only the largest `beta`; a fit with a smaller
        one would take too long.
    """
    n_samples, n_features = X.shape
    if method in _SLOW_BETA and n_samples * n_features * min(X.shape) > _LARGEST_SEARCH:
        return {**GRIDS[method], "beta": (max(GRIDS[method]["beta"]),)}
    return GRIDS.get(method)


def best_of_grid(
    enhancer: Estimator, grid: Grid, X: Features, Y: Array, D: FloatArray
) -> GridChoice:
    """Return the setting of a grid with the smallest Chebyshev distance from the truth.

    Every setting has the scale that fits the truth. This is what a table shows if parameters were
    chosen with the true distributions in view. It is not a method.

    Parameters
    ----------
    enhancer : BaseEnhancer
        A fitted enhancer, which is calibrated here. Copies of it get the settings. Its own
        parameters also take part.
    grid : mapping of str to tuple
        The values of each parameter.
    X : ndarray or csr_array of shape (n_samples, n_features)
        The features of the fit.
    Y : ndarray of shape (n_samples, n_labels)
        The logical labels of the fit.
    D : ndarray of shape (n_samples, n_labels)
        The true distributions.

    Returns
    -------
    GridChoice
        Never worse than the enhancer's own parameters with the best scale.
    """
    given = enhancer.get_params(deep=False)
    some = np.arange(len(D))[:: max(1, len(D) // _SCALE_ROWS)]

    def fitted(setting: SettingsView) -> Estimator:
        return type(enhancer)(**{**given, **setting}).fit(X, Y)

    best: Settings = {}
    least = np.inf
    for setting in ParameterGrid({name: list(values) for name, values in grid.items()}):
        found = chebyshev(D, _scaled(fitted(setting), some, D))
        if found < least:
            best, least = setting, found
    own, other = with_truth(enhancer, D), with_truth(fitted(best), D)
    if chebyshev(D, own) <= chebyshev(D, other):
        return GridChoice(own, {})
    return GridChoice(other, {key: value for key, value in best.items() if given[key] != value})


def with_truth(enhancer: Estimator, D: FloatArray) -> FloatArray:
    """Return the distributions with the scale, or the weights, that fit all rows best.

    Parameters
    ----------
    enhancer : BaseEnhancer
        A fitted enhancer.
    D : ndarray of shape (n_samples, n_labels)
        The true distributions.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        What it recovers.
    """
    everything = np.arange(len(D))
    if isinstance(enhancer, BlendEnhancer):
        enhancer.calibrate(everything, D)
        assert enhancer.blend_ is not None
        return enhancer.blend_.distribution(enhancer.sources_)
    return _scaled(enhancer, everything, D)


def _scaled(enhancer: Estimator, rated: Array, D: FloatArray) -> FloatArray:
    calibrated(enhancer, rated, D)
    # The rated rows hold the truth now, so compute the distributions again.
    return np.asarray(enhancer.distribution(enhancer.numerical_labels_))


def calibrated(enhancer: Estimator, rated: Array, D: FloatArray) -> FloatArray:
    """Calibrate by rated rows; a method whose distributions have no scale stays as it is.

    Parameters
    ----------
    enhancer : BaseEnhancer
        A fitted enhancer.
    rated : ndarray of int
        The rated rows.
    D : ndarray of shape (n_samples, n_labels)
        The true distributions, of which only the rated rows are used.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        What it recovers.
    """
    # An earlier calibration must not show where this one has nothing to choose.
    enhancer.scale_ = float(enhancer.scale)
    try:
        enhancer.calibrate(rated, D[rated], n_bootstrap=1, random_state=0)
    except ValueError as error:
        if "scale changes nothing" not in str(error):
            raise
        return np.asarray(enhancer.distribution(enhancer.numerical_labels_))
    return np.asarray(enhancer.label_distribution_)


N_RATED = (5, 10, 20)
# Each draw rates other rows. All methods see the same draws.
N_DRAWS = 10
NO_TRUTH = "no truth"
# Both use the true distributions of all rows, which their names say wherever they are shown.
ORACLE_SCALE, ORACLE_GRID = "oracle scale (truth)", "oracle grid (truth)"
# The trivial baseline of rated rows: their mean is the distribution of every other row.
RATED_MEAN = "Rated mean"
# Rows of methods of other libraries, and the fits of them that gave no result.
OTHERS_FILE, FAILED_FILE = "others.csv", "others_failed.csv"
_FIXED = ("dataset", "threshold", "method", "regime")
_MEASURES = "MEASURES"
R = TypeVar("R")


def regimes() -> tuple[str, ...]:
    """Return the names of the regimes: no truth, rated rows, the truth in view."""
    return (NO_TRUTH, *map(rated_regime, N_RATED), ORACLE_SCALE, ORACLE_GRID)


def rated_regime(number: int) -> str:
    """Return the name of the regime with a number of rated rows."""
    return f"{number} rated rows"


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
        CPU time of the fit, on one thread. In the regime `ORACLE_GRID`, of the whole search.
    setting : str
        The parameters that the search changed, as "name=value" with spaces between them.
    """

    key: EnhancementKey
    metrics: dict[str, float]
    seconds: float
    setting: str = ""


class FailedFit(NamedTuple):
    """A fit of another library that gave no result.

    Attributes
    ----------
    dataset : str
        The data set.
    threshold : float
        The threshold of its labels.
    method : str
        Label of the method.
    reason : str
        What happened, to be read after the name of the method.
    """

    dataset: str
    threshold: float
    method: str
    reason: str


def read_enhancement(folder: Path, name: str = CELLS_FILE) -> list[MeasuredRegime]:
    """Read the table of a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    name : str, default="cells.csv"
        The file in it.

    Returns
    -------
    list of MeasuredRegime
        Empty if there is no table yet.
    """

    def parsed(row: Mapping[str, str]) -> MeasuredRegime:
        return MeasuredRegime(
            EnhancementKey(row["dataset"], float(row["threshold"]), row["method"], row["regime"]),
            {metric: float(row[metric]) for metric in METRICS if metric in row},
            float(row["seconds"]),
            row.get("setting", ""),
        )

    return _read(folder / name, (*_FIXED, _MEASURES, "seconds"), parsed)


def _read(path: Path, header: Sequence[str], parsed: Callable[[Mapping[str, str]], R]) -> list[R]:
    """Read the rows of a table; `MEASURES` in its header stands for one metric or several."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        names = list(reader.fieldnames or ())
        found = {*names, *(_MEASURES for name in names if name in METRICS)}
        if not found.issuperset(header):
            raise StoreError(
                f"{path}: the first line must be {','.join(header)}, got {','.join(names)[:80]}."
            )
        try:
            return [parsed(row) for row in reader]
        except (TypeError, ValueError) as error:
            raise StoreError(f"{path}, line {reader.line_num}: {error}.") from error


def write_enhancement(
    folder: Path, name: str, rows: Iterable[MeasuredRegime], metrics: Sequence[str]
) -> None:
    """Write a table.

    Parameters
    ----------
    folder : Path
        The folder.
    name : str
        The file in it.
    rows : iterable of MeasuredRegime
        The rows.
    metrics : sequence of str
        The measures, in the order of their columns.
    """
    lines: list[Sequence[object]] = [[*_FIXED, *metrics, "seconds", "setting"]]
    for row in sorted(rows, key=lambda row: row.key):
        shown = [f"{row.metrics[metric]:.6f}" for metric in metrics]
        lines.append([*row.key, *shown, f"{row.seconds:.3f}", row.setting])
    write_texts(folder, {name: csv_text(lines)})


def read_failed(folder: Path) -> list[FailedFit]:
    """Read the fits of other libraries that gave no result.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    list of FailedFit
        Empty if there is no such file.
    """

    def parsed(row: Mapping[str, str]) -> FailedFit:
        return FailedFit(row["dataset"], float(row["threshold"]), row["method"], row["reason"])

    return _read(folder / FAILED_FILE, FailedFit._fields, parsed)


def write_failed(folder: Path, fits: Iterable[FailedFit]) -> None:
    """Write the fits of other libraries that gave no result.

    Parameters
    ----------
    folder : Path
        The folder.
    fits : iterable of FailedFit
        The fits.
    """
    write_texts(folder, {FAILED_FILE: csv_text([list(FailedFit._fields), *sorted(fits)])})


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
    folder: Path, *, datasets: Sequence[str] = (), methods: Sequence[str] = (), n_jobs: int = 1
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
    protocol: Protocol, cell: Cell, enhancer: Estimator, shared: float, missing: Collection[str]
) -> Iterator[MeasuredRegime]:
    dataset = load_source(cell.source)[0]
    D, threshold = np.asarray(dataset.D), float(cell.setting.threshold or 0.0)
    Y = binarize_distribution(D, threshold)
    label, metrics = cell.method.label, protocol.metrics
    start = time.process_time()
    enhancer.fit(dataset.X, Y)
    seconds = shared + time.process_time() - start

    def key(method: str, regime: str) -> EnhancementKey:
        return EnhancementKey(cell.source.name, threshold, method, regime)

    for regime, found in measure_fitted(enhancer, D, metrics, missing):
        yield MeasuredRegime(key(label, regime), found, seconds)
    if label == protocol.methods[0].label:
        for number in N_RATED:
            found = _over_draws(_mean_of_rated, number, D, metrics)
            yield MeasuredRegime(key(RATED_MEAN, rated_regime(number)), found, seconds)
    if ORACLE_GRID in missing:
        grid, setting = published_grid(cell.method.method, dataset.X), ""
        if grid is None:
            recovered = with_truth(enhancer, D)
        else:
            start = time.process_time()
            choice = best_of_grid(enhancer, grid, dataset.X, Y, D)
            recovered, setting = choice.distribution, _shown(choice.setting)
            seconds = time.process_time() - start
        found = _measure(D, recovered, np.arange(len(D)), metrics)
        yield MeasuredRegime(key(label, ORACLE_GRID), found, seconds, setting)


def _shown(setting: SettingsView) -> str:
    return " ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in setting.items()
    )


def measure_fitted(
    enhancer: Estimator,
    D: FloatArray,
    metrics: Sequence[str],
    wanted: Collection[str] | None = None,
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
