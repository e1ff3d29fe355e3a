"""Bootstrap over rows: the values of a measure in many samples of the rows, at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lemll._types import Array, BoolArray, FloatArray
from lemll.metrics import METRICS

__all__ = ["bootstrap_draws", "interval", "resampled"]

_MOST_SAMPLES, _FEWEST_SAMPLES = 2000, 200
# Largest number of cells of all samples, and of one block of them.
_CELLS, _BLOCK = 2**24, 2**22


def bootstrap_draws(n_rows: int, seed: int) -> list[FloatArray]:
    """Return blocks of bootstrap samples: how often each row is drawn, one sample per line."""
    return list(_draws(n_rows, seed))


def _draws(n_rows: int, seed: int) -> Iterator[FloatArray]:
    rng = np.random.default_rng(seed)
    samples = min(_MOST_SAMPLES, max(_FEWEST_SAMPLES, _CELLS // n_rows))
    block = max(1, min(samples, _BLOCK // n_rows))
    chances = np.full(n_rows, 1 / n_rows)
    for start in range(0, samples, block):
        size = min(block, samples - start)
        yield rng.multinomial(n_rows, chances, size=size).astype(np.float32)


def interval(values: FloatArray) -> tuple[float, float]:
    """Return the 95 % interval of the values of samples."""
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def resampled(name: str, Y: FloatArray, prediction: Array, draws: list[FloatArray]) -> FloatArray:
    """Return a measure in all bootstrap samples.

    Parameters
    ----------
    name : str
        A measure of ``lemll.metrics.METRICS``.
    Y : ndarray of shape (n_rows, n_labels)
        True labels, NaN in unknown cells.
    prediction : ndarray of shape (n_rows, n_labels)
        What the measure compares with them.
    draws : list of ndarray
        The samples, of `bootstrap_draws`.

    Returns
    -------
    ndarray of shape (n_samples,)
        The values.
    """
    measure = _SPECIAL.get(name, _mean_over_rows)
    return measure(name, Y, prediction, draws)


def _mean_over_rows(name: str, Y: FloatArray, prediction: Array, draws: list[FloatArray]) -> Array:
    """Return a measure that is a mean over rows."""
    values = METRICS[name](Y, prediction, average=False)
    return _ratios(values, np.isfinite(values), draws)


def _ratios(values: FloatArray, counts: Array, draws: list[FloatArray]) -> FloatArray:
    """Return weighted sums of rows, divided by the weighted counts."""
    values = np.where(counts > 0, values, 0.0)
    with np.errstate(invalid="ignore"):  # 0 / 0 if a sample has no row that can be measured
        return np.concatenate([(draw @ values) / (draw @ counts) for draw in draws])


def _f1_of_labels(name: str, Y: FloatArray, prediction: Array, draws: list[FloatArray]) -> Array:
    relevant, chosen = _chosen(Y, prediction)
    hits = (relevant & chosen).astype(np.float32)
    sums = relevant.astype(np.float32) + chosen
    if name == "micro_f1":
        hits, sums = hits.sum(axis=1, keepdims=True), sums.sum(axis=1, keepdims=True)
    return np.concatenate([_f1(draw @ hits, draw @ sums) for draw in draws])


def _f1(hits: FloatArray, sums: FloatArray) -> FloatArray:
    """Return the mean F1 of the columns that occur; 1 if none does."""
    occurs = sums > 0
    values = np.where(occurs, 2 * hits / np.where(occurs, sums, 1), 0.0)
    counts = occurs.sum(axis=1)
    return np.where(counts > 0, values.sum(axis=1) / np.maximum(counts, 1), 1.0)


def _decisions_of_rows(
    name: str, Y: FloatArray, prediction: Array, draws: list[FloatArray]
) -> FloatArray:
    relevant, chosen = _chosen(Y, prediction)
    known = ~np.isnan(Y)
    if name == "example_f1":
        total = relevant.sum(axis=1) + chosen.sum(axis=1)
        hits = (relevant & chosen).sum(axis=1)
        values = np.where(total > 0, 2 * hits / np.maximum(total, 1), 1.0)
    else:
        values = 1.0 - ((relevant != chosen) & known).any(axis=1)
    return _ratios(values, np.asarray(known.any(axis=1)), draws)


def _log_loss(name: str, Y: FloatArray, prediction: Array, draws: list[FloatArray]) -> FloatArray:
    del name
    known = ~np.isnan(Y)
    unit = np.finfo(np.float64).eps
    p = np.clip(prediction, unit, 1 - unit)
    losses = -np.where(Y == 1, np.log(p), np.log1p(-p))
    return _ratios(np.where(known, losses, 0.0).sum(axis=1), known.sum(axis=1), draws)


def _auc(name: str, Y: FloatArray, prediction: Array, draws: list[FloatArray]) -> FloatArray:
    if name == "micro_auc":
        rows, labels = np.nonzero(~np.isnan(Y))
        columns = [(rows, Y[rows, labels] == 1, prediction[rows, labels])]
    else:
        columns = [
            (rows, Y[rows, j] == 1, prediction[rows, j])
            for j in range(Y.shape[1])
            if len(rows := np.flatnonzero(~np.isnan(Y[:, j])))
        ]
    found = []
    for draw in draws:
        areas = np.stack([_weighted_auc(draw, *column) for column in columns])
        counted = np.isfinite(areas)
        total = np.where(counted, areas, 0.0).sum(axis=0)
        with np.errstate(invalid="ignore"):
            found.append(total / counted.sum(axis=0))
    return np.concatenate(found)


def _weighted_auc(draw: FloatArray, rows: Array, relevant: BoolArray, scores: Array) -> FloatArray:
    """Return the area under the ROC curve of cells, each as often as its row is drawn."""
    order = np.argsort(scores, kind="stable")
    ranked = scores[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] > ranked[:-1]]))
    weight = draw[:, rows[order]].astype(np.float64)
    sums = [
        np.add.reduceat(weight * chosen, starts, axis=1)
        for chosen in (relevant[order], ~relevant[order])
    ]
    below = np.cumsum(sums[1], axis=1) - sums[1] / 2
    pairs = sums[0].sum(axis=1) * sums[1].sum(axis=1)
    with np.errstate(invalid="ignore"):  # a sample may hold one class only
        return np.asarray((sums[0] * below).sum(axis=1) / pairs)


def _chosen(Y: FloatArray, prediction: Array) -> tuple[BoolArray, BoolArray]:
    """Return the relevant cells, and the predicted ones among the known cells."""
    return Y == 1, (prediction > 0) & ~np.isnan(Y)


_SPECIAL: dict[str, Callable[[str, FloatArray, Array, list[FloatArray]], FloatArray]] = {
    "micro_f1": _f1_of_labels,
    "macro_f1": _f1_of_labels,
    "example_f1": _decisions_of_rows,
    "subset_accuracy": _decisions_of_rows,
    "log_loss": _log_loss,
    "macro_auc": _auc,
    "micro_auc": _auc,
}
