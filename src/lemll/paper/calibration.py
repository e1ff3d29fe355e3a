"""What a few rated rows bring: the scale of LEMLL's distributions, calibrated and not.

The scale of a recovered distribution cannot be known from 0/1 labels. Here some rows, drawn at
random, are taken as rated; the scale is fixed by them, and the error is measured on all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lemll._types import FloatArray, MatrixLike
from lemll.enhancers import choose_scale, normalize
from lemll.experiments import Protocol, Store, load_source
from lemll.fitting import Normalization
from lemll.metrics import METRICS

__all__ = ["CalibratedCell", "CalibrationSummary", "calibrated_cells", "summarise_calibration"]

# Scales among which the best for all rows is looked for, as a yardstick.
SCALES = 2.0 ** np.linspace(-6, 6, 97)


@dataclass(frozen=True, slots=True)
class CalibratedCell:
    """One measure of one recovered distribution, on the rows that were not rated.

    Attributes
    ----------
    measure, dataset : str
        Of what.
    threshold : float
        At which the distribution was binarised.
    calibrated, plain, uniform : float
        With the calibrated scale, with scale 1, and for the uniform distribution; means over the
        seeds.
    best : float
        With the one scale that makes the mean Chebyshev distance over all rows least.
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
    """What calibration by so many rows brings over all cells.

    Attributes
    ----------
    n_rated, cells : int
        Rated rows, and cells compared.
    better_than_plain, better_than_uniform : int
        In how many the calibrated scale is better than scale 1, and than no enhancement at all.
    chebyshev_over_best : float
        Mean Chebyshev distance relative to that of the best scale for each set and threshold.
    """

    n_rated: int
    cells: int
    better_than_plain: int
    better_than_uniform: int
    chebyshev_over_best: float


def calibrated_cells(
    protocol: Protocol, store: Store, *, n_rated: int = 10, seeds: Sequence[int] = range(5)
) -> Iterator[CalibratedCell]:
    """Calibrate what LEMLL has recovered, from its stored numerical labels.

    Parameters
    ----------
    protocol : Protocol
        A reconstruction with LEMLL among its methods.
    store : Store
        Where its results are.
    n_rated : int, default=10
        Rows whose distribution is taken as known.
    seeds : sequence of int, default=range(5)
        For each seed other rows are drawn.

    Yields
    ------
    CalibratedCell
        For each of LEMLL's cells that is done, and each of the protocol's metrics.
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
    """The truth, the numerical labels, how they are normalised, and their best scale."""

    D: MatrixLike
    U: FloatArray
    normalization: Normalization
    best: float


def _measure(trial: _Trial, n_rated: int, seed: int, metrics: Sequence[str]) -> FloatArray:
    """Measures of the other rows: calibrated, plain, uniform and at the best scale."""
    D, U, normalization, best = trial
    rated = np.random.RandomState(seed).choice(len(D), n_rated, replace=False)
    others = np.setdiff1d(np.arange(len(D)), rated)
    # The samples only tell how sure the scale is; the scale itself is the same for any number.
    chosen = choose_scale(U[rated], D[rated], normalization, n_bootstrap=1, random_state=seed)
    candidates = [
        normalize(U[others], normalization, scale=scale) for scale in (chosen.scale, 1.0, best)
    ]
    candidates.insert(2, np.full_like(candidates[0], 1 / U.shape[1]))
    return np.array(
        [[METRICS[name](D[others], candidate) for candidate in candidates] for name in metrics]
    )


def summarise_calibration(cells: Sequence[CalibratedCell], n_rated: int) -> CalibrationSummary:
    """Count where the calibrated scale is better.

    Parameters
    ----------
    cells : sequence of CalibratedCell
        Of `calibrated_cells`.
    n_rated : int
        How many rows were rated.

    Returns
    -------
    CalibrationSummary
        Over all cells.
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
