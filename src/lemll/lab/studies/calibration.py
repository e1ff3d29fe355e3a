"""How much a few rated rows improve the scale of LEMLL's distributions.

0/1 labels do not determine the scale of a recovered distribution. Here some rows are drawn at
random and treated as rated. They fix the scale, and the error is measured on all other rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lemll._types import FloatArray, MatrixLike
from lemll.enhancers.calibrate import choose_scale
from lemll.fitting.scaling import Normalization, normalize
from lemll.lab.cells import load_source
from lemll.lab.protocol import Protocol
from lemll.lab.store import Store
from lemll.metrics.table import METRICS

# The best of these scales for all rows is the reference for the calibrated scale.
SCALES = 2.0 ** np.linspace(-6, 6, 97)


@dataclass(frozen=True, slots=True)
class CalibratedCell:
    """One measure of one recovered distribution, on the rows that were not rated.

    Attributes
    ----------
    measure, dataset : str
        Names of the measure and of the data set.
    threshold : float
        Threshold at which the distribution was binarised.
    calibrated, plain, uniform : float
        The measure with the calibrated scale, with scale 1, and for the uniform distribution;
        means over the seeds.
    best : float
        The measure with the scale that minimises the mean Chebyshev distance over all rows.
    """

    measure: str
    threshold: float
    dataset: str
    calibrated: float
    plain: float
    uniform: float
    best: float


@dataclass(frozen=True, slots=True)
class CalibrationSummary:
    """The effect of calibration by `n_rated` rows over all cells.

    Attributes
    ----------
    n_rated, cells : int
        Number of rated rows, and number of compared cells.
    better_than_plain, better_than_uniform : int
        Number of cells in which the calibrated scale is better than scale 1, and better than the
        uniform distribution.
    chebyshev_over_best : float
        Mean Chebyshev distance, divided by that of the best scale per data set and threshold.
    """

    n_rated: int
    cells: int
    better_than_plain: int
    better_than_uniform: int
    chebyshev_over_best: float


def calibrated_cells(
    protocol: Protocol, store: Store, *, n_rated: int = 10, seeds: Sequence[int] = range(5)
) -> Iterator[CalibratedCell]:
    """Calibrate the distributions of LEMLL, from its stored numerical labels.

    Parameters
    ----------
    protocol : Protocol
        A reconstruction with LEMLL among its methods.
    store : Store
        The store with its results.
    n_rated : int, default=10
        Number of rows whose distribution is treated as known.
    seeds : sequence of int, default=range(5)
        Each seed draws other rows.

    Yields
    ------
    CalibratedCell
        One per finished cell of LEMLL and metric of the protocol.
    """
    for cell in protocol.cells():
        record = store.finished(cell) if cell.method.method == "LEMLL" else None
        if record is None or record.status != "done":
            continue
        D = load_source(cell.source)[0].D
        U = store.arrays(record)["numerical_labels"]
        normalization = cell.parameters["normalization"]
        chebyshev = [
            METRICS["chebyshev"](D, normalize(U, normalization, scale=scale)) for scale in SCALES
        ]
        best = float(SCALES[int(np.argmin(chebyshev))])
        trials = [
            _measure(_Trial(D, U, normalization, best), n_rated, seed, protocol.metrics)
            for seed in seeds
        ]
        found = np.array(trials).mean(axis=0)
        for measure, values in zip(protocol.metrics, found, strict=True):
            threshold = float(cell.setting.threshold or 0.0)
            yield CalibratedCell(measure, threshold, cell.source.name, *map(float, values))


class _Trial(NamedTuple):
    """The true distribution, the numerical labels, their normalization and best scale."""

    D: MatrixLike
    U: FloatArray
    normalization: Normalization
    best: float


def _measure(trial: _Trial, n_rated: int, seed: int, metrics: Sequence[str]) -> FloatArray:
    """Measure the rows that are not rated: calibrated, plain, uniform and at the best scale."""
    D, U, normalization, best = trial
    rated = np.random.RandomState(seed).choice(len(D), n_rated, replace=False)
    others = np.setdiff1d(np.arange(len(D)), rated)
    # The number of bootstrap samples affects only the interval, not the scale itself.
    chosen = choose_scale(U[rated], D[rated], normalization, n_bootstrap=1, random_state=seed)
    candidates = [
        normalize(U[others], normalization, scale=scale) for scale in (chosen.scale, 1.0, best)
    ]
    candidates.insert(2, np.full_like(candidates[0], 1 / U.shape[1]))
    return np.array(
        [[METRICS[name](D[others], candidate) for candidate in candidates] for name in metrics]
    )


def summarise_calibration(cells: Sequence[CalibratedCell], n_rated: int) -> CalibrationSummary:
    """Count the cells in which the calibrated scale is better.

    Parameters
    ----------
    cells : sequence of CalibratedCell
        The results of `calibrated_cells`.
    n_rated : int
        Number of rated rows.

    Returns
    -------
    CalibrationSummary
        The summary over all cells.
    """

    def better(cell: CalibratedCell, other: float) -> bool:
        if METRICS[cell.measure].greater_is_better:
            return cell.calibrated > other
        return cell.calibrated < other

    chebyshev = [cell for cell in cells if cell.measure == "chebyshev"]
    return CalibrationSummary(
        n_rated=n_rated,
        cells=len(cells),
        better_than_plain=sum(better(cell, cell.plain) for cell in cells),
        better_than_uniform=sum(better(cell, cell.uniform) for cell in cells),
        chebyshev_over_best=float(
            np.mean([c.calibrated for c in chebyshev]) / np.mean([c.best for c in chebyshev])
        ),
    )
