"""Say how good predictions of unseen rows are, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lemll._types import Array, BoolArray, FloatArray, Settings
from lemll.metrics import METRICS

__all__ = ["MEASURES", "Assessment", "Score", "assess", "label_shares"]

# The first one that can be measured decides whether something was learned.
MEASURES = ("average_precision", "ranking_loss", "hamming_loss", "micro_f1", "macro_f1")
_DECIDING = ("average_precision", "hamming_loss")
_RESAMPLES = 2000
# Largest number of cells of a block of bootstrap samples.
_BLOCK = 2**22


class Score(NamedTuple):
    """One measure of the predictions.

    Attributes
    ----------
    measure : str
        Its name in ``lemll.metrics.METRICS``.
    value : float
        Its value.
    interval : (float, float)
        95 % bootstrap interval over rows.
    baseline : float
        The value of predicting the frequencies of the labels.
    difference : (float, float)
        95 % interval of the value minus the baseline, on the same rows.
    """

    measure: str
    value: float
    interval: tuple[float, float]
    baseline: float
    difference: tuple[float, float]

    def to_json(self) -> Settings:
        """Return plain data, without tuples, as it comes back from a file."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._asdict().items()
        }


class Assessment(NamedTuple):
    """How good predictions are.

    Attributes
    ----------
    scores : list of Score
        The measures.
    n_rows : int
        Number of rows that were predicted.
    n_untagged : int
        Number of rows for which no label was predicted.
    """

    scores: list[Score]
    n_rows: int
    n_untagged: int

    @property
    def learned(self) -> bool:
        """Whether the predictions are better than frequencies, beyond chance."""
        for name in _DECIDING:
            for score in self.scores:
                if score.measure == name:
                    low, high = score.difference
                    return low > 0 if METRICS[name].greater_is_better else high < 0
        return False

    @property
    def verdict(self) -> str:
        """One sentence for a reader."""
        if self.learned:
            return "The model predicts new rows better than the frequencies of the labels."
        return (
            "No evidence of learning: on new rows the model is not clearly better than the "
            "frequencies of the labels."
        )

    def to_json(self) -> Settings:
        """Return plain data."""
        return {
            "rows": self.n_rows,
            "rows_without_a_predicted_label": self.n_untagged,
            "learned": self.learned,
            "verdict": self.verdict,
            "scores": [score.to_json() for score in self.scores],
        }


def label_shares(Y: FloatArray) -> FloatArray:
    """Return the share of each label in its observed cells; 0 if there are none."""
    observed = ~np.isnan(Y)
    return np.asarray(np.nansum(Y, axis=0) / np.maximum(observed.sum(axis=0), 1))


def assess(
    Y: FloatArray, scores: FloatArray, predicted: BoolArray, shares: FloatArray, *, seed: int = 0
) -> Assessment:
    """Measure predictions of rows that no choice has seen.

    Parameters
    ----------
    Y : ndarray of shape (n_rows, n_labels)
        True labels, 0/1, NaN in unknown cells.
    scores : ndarray of shape (n_rows, n_labels)
        Scores of the labels; higher means more relevant.
    predicted : ndarray of shape (n_rows, n_labels)
        Predicted labels.
    shares : ndarray of shape (n_labels,)
        Frequencies of the labels in the training rows: the baseline.
    seed : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    Assessment
        Values, intervals and the baseline. Measures that no row allows are left out.

    Examples
    --------
    >>> Y = np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]] * 10)
    >>> found = assess(Y, Y, Y == 1, np.array([0.5, 0.5]))
    >>> found.scores[0].value, found.learned
    (1.0, True)
    """
    chances = np.tile(shares, (len(Y), 1))
    usual = chances > 0.5
    draws = list(_draws(len(Y), seed))
    found = []
    for name in MEASURES:
        labels = METRICS[name].prediction == "labels"
        ours, theirs = (predicted, usual) if labels else (scores, chances)
        try:
            value = float(METRICS[name](Y, ours.astype(np.int8) if labels else ours))
            baseline = float(METRICS[name](Y, theirs.astype(np.int8) if labels else theirs))
        except ValueError:
            continue  # for example, no row has both a relevant and another label
        samples = np.array([_resampled(name, Y, p, draws) for p in (ours, theirs)])
        found.append(
            Score(
                name,
                value,
                _interval(samples[0]),
                baseline,
                _interval(samples[0] - samples[1]),
            )
        )
    return Assessment(found, len(Y), int((~predicted.any(axis=1)).sum()))


def _interval(values: FloatArray) -> tuple[float, float]:
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def _draws(n_rows: int, seed: int) -> Iterator[FloatArray]:
    """Yield blocks of bootstrap samples: how often each row is drawn, one sample per line."""
    rng = np.random.default_rng(seed)
    block = max(1, min(_RESAMPLES, _BLOCK // n_rows))
    for start in range(0, _RESAMPLES, block):
        size = min(block, _RESAMPLES - start)
        yield rng.multinomial(n_rows, np.full(n_rows, 1 / n_rows), size=size).astype(np.float32)


def _resampled(name: str, Y: FloatArray, prediction: Array, draws: list[FloatArray]) -> FloatArray:
    """Return a measure in all bootstrap samples."""
    if name in ("micro_f1", "macro_f1"):
        known = ~np.isnan(Y)
        relevant, chosen = (Y == 1), (prediction > 0) & known
        hits = (relevant & chosen).astype(np.float32)
        sums = relevant.astype(np.float32) + chosen
        if name == "micro_f1":
            hits, sums = hits.sum(axis=1, keepdims=True), sums.sum(axis=1, keepdims=True)
        return np.concatenate([_f1(draw @ hits, draw @ sums) for draw in draws])
    labels = METRICS[name].prediction == "labels"
    values = METRICS[name](Y, prediction.astype(np.int8) if labels else prediction, average=False)
    counted = np.isfinite(values)
    values = np.where(counted, values, 0.0)
    with np.errstate(invalid="ignore"):  # 0 / 0 if a sample has no row that can be measured
        return np.concatenate([(draw @ values) / (draw @ counted) for draw in draws])


def _f1(hits: FloatArray, sums: FloatArray) -> FloatArray:
    """Return the mean F1 of the columns that occur; 1 if none does."""
    occurs = sums > 0
    values = np.where(occurs, 2 * hits / np.where(occurs, sums, 1), 0.0)
    counts = occurs.sum(axis=1)
    return np.where(counts > 0, values.sum(axis=1) / np.maximum(counts, 1), 1.0)
