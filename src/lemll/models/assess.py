"""How good predictions of unseen rows are, and how sure that is.

An interval comes from the influence of each row. If row i counted 1 + t times instead of once, a
measure would change by about t times the influence of the row. The rows are a sample, so the
variance of the measure is about the sum of the squared influences [1]_. For the area under a ROC
curve this is the estimate of DeLong [2]_, here with all cells of a row as one draw. Unlike in
bootstrap samples, no rare label is lost, so an interval contains its measure. Memory and time grow
with the number of cells.

References
----------
.. [1] B. Efron, "Nonparametric estimates of standard error: the jackknife, the bootstrap and other
   methods", Biometrika 68(3), 1981.
.. [2] E. DeLong, D. DeLong and D. Clarke-Pearson, "Comparing the areas under two or more correlated
   receiver operating characteristic curves", Biometrics 44(3), 1988.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import rankdata, t

from lemll._types import Array, BoolArray, FloatArray, IndexArray, Settings
from lemll.metrics import METRICS, calibration_error, label_auc, label_figures

_CONFIDENCE = 0.95
# Measures without an upper bound. All others are between 0 and 1.
_UNBOUNDED = ("log_loss",)


def interval(name: str, value: float, influences: FloatArray) -> tuple[float, float]:
    """Return the 95 % interval of a measure.

    Parameters
    ----------
    name : str
        A measure of ``lemll.metrics.METRICS``.
    value : float
        Its value.
    influences : ndarray of shape (n_rows,)
        The influences of the rows on it.

    Returns
    -------
    low, high : float
        The bounds, within the range of the measure. They are symmetric in its log-odds; for a
        measure without an upper bound, in its logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.models.assess import interval
    >>> low, high = interval("one_error", 0.5, np.array([0.05, -0.05] * 5))
    >>> round(low, 2), round(high, 2)
    (0.18, 0.82)
    """
    spread = _spread(influences)
    if name in _UNBOUNDED:
        factor = math.exp(spread / value) if spread else 1.0
        return value / factor, value * factor
    # Rounding errors of a sum over rows are below this.
    near = 1e-12
    if not near < value < 1 - near:
        # Every row has the same extreme value. As many rows of a share that is further away than
        # this would have shown another value.
        away = 1 - ((1 - _CONFIDENCE) / 2) ** (1 / len(influences))
        return (0.0, away) if value <= near else (1 - away, 1.0)
    spread /= value * (1 - value)
    return float(expit(logit(value) - spread)), float(expit(logit(value) + spread))


def difference_interval(difference: float, influences: FloatArray) -> tuple[float, float]:
    """Return the 95 % interval of the difference of two measures on the same rows.

    Parameters
    ----------
    difference : float
        The difference.
    influences : ndarray of shape (n_rows,)
        The differences of the influences of the rows.

    Returns
    -------
    low, high : float
        The bounds, symmetric about the difference.
    """
    spread = _spread(influences)
    return difference - spread, difference + spread


def _spread(influences: FloatArray) -> float:
    """Return half of the length of an interval."""
    n_rows = len(influences)
    if n_rows < 2:
        return 0.0
    variance = n_rows / (n_rows - 1) * float(influences @ influences)
    return float(t.ppf((1 + _CONFIDENCE) / 2, n_rows - 1)) * math.sqrt(variance)


def row_influences(name: str, Y: FloatArray, prediction: Array) -> FloatArray:
    """Return how much the weight of each row changes a measure.

    Parameters
    ----------
    name : str
        A measure of ``lemll.metrics.METRICS``.
    Y : ndarray of shape (n_rows, n_labels)
        True labels, NaN in unknown cells.
    prediction : ndarray of shape (n_rows, n_labels)
        What the measure compares with them.

    Returns
    -------
    ndarray of shape (n_rows,)
        The derivatives of the measure by the weights of the rows, at equal weights 1.
    """
    if name in ("macro_auc", "micro_auc"):
        return _influences_of_auc(Y, prediction, pooled=name == "micro_auc")
    return _influences_of_ratios(*_sums(name, Y, prediction))


def _influences_of_ratios(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return influences on the mean over columns of the ratios of two sums over rows."""
    total = below.sum(axis=0)
    used = total > 0
    above, below, total = above[:, used], below[:, used], total[used]
    ratio = above.sum(axis=0) / total
    return np.asarray((above @ (1 / total) - below @ (ratio / total)) / max(1, len(total)))


def _sums(name: str, Y: FloatArray, prediction: Array) -> tuple[FloatArray, FloatArray]:
    """Return what rows add to the two sums of each ratio of a measure, one column per ratio."""
    known = ~np.isnan(Y)
    if name == "log_loss":
        unit = np.finfo(np.float64).eps
        p = np.clip(prediction, unit, 1 - unit)
        losses = np.where(known, -np.where(Y == 1, np.log(p), np.log1p(-p)), 0.0)
        return losses.sum(axis=1)[:, None], known.sum(axis=1, dtype=np.float64)[:, None]
    if name in ("micro_f1", "macro_f1", "example_f1", "subset_accuracy"):
        return _sums_of_decisions(name, Y == 1, (prediction > 0) & known, known)
    values = np.asarray(METRICS[name](Y, prediction, average=False))
    measured = np.isfinite(values)
    return np.where(measured, values, 0.0)[:, None], measured.astype(np.float64)[:, None]


def _sums_of_decisions(
    name: str, relevant: BoolArray, chosen: BoolArray, known: BoolArray
) -> tuple[FloatArray, FloatArray]:
    hits = np.where(relevant & chosen, 2.0, 0.0)
    either = relevant.astype(np.float64) + chosen
    if name == "macro_f1":
        return hits, either
    hits, either = hits.sum(axis=1, keepdims=True), either.sum(axis=1, keepdims=True)
    if name == "micro_f1":
        return hits, either
    measured = known.max(axis=1, keepdims=True).astype(np.float64)
    if name == "example_f1":
        values = np.where(either > 0, hits / np.maximum(either, 1), 1.0)
    else:
        values = (relevant == chosen).min(axis=1, keepdims=True).astype(np.float64)
    return values * measured, measured


def _influences_of_auc(Y: FloatArray, scores: FloatArray, *, pooled: bool) -> FloatArray:
    """Return influences on the area under the ROC curve of all cells, or the mean of the labels."""
    total, n_curves = np.zeros(len(Y)), 0
    columns = [slice(None)] if pooled else [[j] for j in range(Y.shape[1])]
    for column in columns:
        known = ~np.isnan(Y[:, column])
        relevant, values = Y[:, column][known] == 1, scores[:, column][known]
        n_relevant = int(relevant.sum())
        n_other = len(relevant) - n_relevant
        if not n_relevant or not n_other:
            continue
        share = _share_on_the_right_side(relevant, values)
        area = float(share[relevant].mean())
        changes = (share - area) / np.where(relevant, n_relevant, n_other)
        total += np.bincount(np.nonzero(known)[0], changes, minlength=len(Y))
        n_curves += 1
    return total / max(1, n_curves)


def _share_on_the_right_side(relevant: BoolArray, scores: FloatArray) -> FloatArray:
    """Return the share of the other class that is below a relevant cell, or above another one."""
    n_relevant = int(relevant.sum())
    n_other = len(relevant) - n_relevant
    rank = rankdata(scores)
    share = np.empty(len(scores))
    share[relevant] = (rank[relevant] - rankdata(scores[relevant])) / n_other
    share[~relevant] = 1 - (rank[~relevant] - rankdata(scores[~relevant])) / n_relevant
    return share


# Probabilities above which a label could be predicted.
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))
_BINS = 10


class LabelReport(NamedTuple):
    """Figures of each label on rows that no choice has seen.

    Attributes
    ----------
    figures : list of dict
        Per label: numbers of observed, relevant and predicted cells, precision, recall, F1 and AUC;
        None where they are not defined.
    curves : list of dict
        Per label: predicted cells and hits for each of `THRESHOLDS`. Empty without probabilities.
    calibration : list of dict
        Per bin of probabilities: number of cells, mean probability and share of relevant cells.
        Empty without probabilities.
    calibration_error : float or None
        Mean difference between probabilities and shares.
    """

    figures: list[Settings]
    curves: list[Settings]
    calibration: list[Settings]
    calibration_error: float | None

    def to_json(self) -> Settings:
        """Return plain data."""
        return {
            "labels": self.figures,
            "curves": self.curves,
            "calibration": self.calibration,
            "calibration_error": self.calibration_error,
        }


def report_labels(
    Y: FloatArray, scores: FloatArray, predicted: BoolArray, probabilities: FloatArray | None
) -> LabelReport:
    """Compute the figures and curves of each label.

    Parameters
    ----------
    Y : ndarray of shape (n_rows, n_labels)
        True labels, 0/1, NaN in unknown cells.
    scores, predicted : ndarray of shape (n_rows, n_labels)
        Scores and predicted labels.
    probabilities : ndarray of shape (n_rows, n_labels) or None
        Probabilities, if the learner gives them.

    Returns
    -------
    LabelReport
        The figures.
    """
    known = ~np.isnan(Y)
    if not known.any():
        return LabelReport([], [], [], None)
    found = label_figures(Y, predicted.astype(np.int8))
    areas = label_auc(Y, scores)
    figures: list[Settings] = [
        {
            "observed": int(found.observed[j]),
            "relevant": int(found.relevant[j]),
            "predicted": int(found.predicted[j]),
            "precision": _plain(found.precision[j]),
            "recall": _plain(found.recall[j]),
            "f1": _plain(found.f1[j]),
            "auc": _plain(areas[j]),
        }
        for j in range(Y.shape[1])
    ]
    if probabilities is None:
        return LabelReport(figures, [], [], None)
    return LabelReport(
        figures,
        [_curve(Y[:, j], probabilities[:, j]) for j in range(Y.shape[1])],
        _calibration(Y[known], probabilities[known]),
        calibration_error(Y, probabilities, n_bins=_BINS),
    )


def _plain(value: float) -> float | None:
    """Return a number for a file, which has no NaN."""
    return None if np.isnan(value) else float(value)


def _curve(y: FloatArray, p: FloatArray) -> Settings:
    chosen = (p[:, None] > np.array(THRESHOLDS)) & ~np.isnan(y)[:, None]
    hits = chosen & (y == 1)[:, None]
    return {"predicted": chosen.sum(axis=0).tolist(), "hits": hits.sum(axis=0).tolist()}


def _calibration(y: FloatArray, p: FloatArray) -> list[Settings]:
    place = np.minimum((p * _BINS).astype(np.intp), _BINS - 1)
    counts = np.bincount(place, minlength=_BINS)
    sums = [np.bincount(place, values, minlength=_BINS) for values in (p, y)]
    return [
        {
            "cells": int(counts[b]),
            "probability": float(sums[0][b] / counts[b]),
            "share": float(sums[1][b] / counts[b]),
        }
        for b in range(_BINS)
        if counts[b]
    ]


def plain_figures(figures: Sequence[Settings]) -> str:
    """Say in tenths how many suggested tags are right, and how many tags are found.

    Parameters
    ----------
    figures : sequence of dict
        `LabelReport.figures`.

    Returns
    -------
    str
        One sentence.

    Examples
    --------
    >>> figure = {"observed": 80, "relevant": 50, "predicted": 40, "precision": 0.9}
    >>> plain_figures([figure])
    'About 9 of 10 suggested tags are right, and 7 of 10 tags are found.'
    """
    predicted = sum(figure["predicted"] for figure in figures)
    relevant = sum(figure["relevant"] for figure in figures)
    hits = sum(figure["predicted"] * (figure["precision"] or 0) for figure in figures)
    if not predicted:
        return "No tag is suggested."
    right = f"{_tenths(hits / predicted)} suggested tags are right"
    found = f"{_tenths(hits / relevant).lower()} tags are found" if relevant else "no tag is there"
    return f"{right}, and {found.removeprefix('about ')}."


def _tenths(share: float) -> str:
    """Return a share as a reader would say it."""
    tenths = round(10 * share)
    if tenths == 10:
        return "Nearly all"
    return f"About {tenths} of 10" if tenths else "Hardly any"


# The five measures of the paper, then those that other fields use.
MEASURES = (
    "average_precision",
    "ranking_loss",
    "one_error",
    "coverage",
    "hamming_loss",
    "micro_f1",
    "macro_f1",
    "example_f1",
    "subset_accuracy",
    "macro_auc",
    "micro_auc",
    "precision_at_3",
    "log_loss",
)
# The first one that can be measured, and that frequencies do not already satisfy perfectly, decides
# whether something was learned.
_DECIDING = ("average_precision", "macro_auc", "hamming_loss")
_TOP = 3
_PERFECT = {"average_precision": 1.0, "macro_auc": 1.0, "hamming_loss": 0.0}


class Score(NamedTuple):
    """One measure of the predictions.

    Attributes
    ----------
    measure : str
        Its name in ``lemll.metrics.METRICS``.
    value : float
        Its value.
    interval : (float, float)
        95 % interval over rows.
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
    n_tagged : int
        Number of rows that have a relevant label.
    n_ranked : int
        Number of rows in which both a relevant and another label are known. Only these have an
        average precision.
    labels : LabelReport
        Figures and curves of each label, and the calibration of the probabilities.
    """

    scores: list[Score]
    n_rows: int
    n_untagged: int
    n_tagged: int
    n_ranked: int
    labels: LabelReport

    @property
    def mostly_untagged(self) -> bool:
        """Whether most rows get no label, and less than half as many get one as have one."""
        n_predicted = self.n_rows - self.n_untagged
        return self.n_untagged > self.n_rows / 2 and n_predicted < self.n_tagged / 2

    @property
    def learned(self) -> bool:
        """Whether the predictions are better than frequencies, beyond chance."""
        unknown = any(figure["observed"] < self.n_rows for figure in self.labels.figures)
        # If labels of many tagged rows are unknown, few of these rows have an average precision.
        few = self.n_ranked < self.n_tagged / 2 and unknown
        for name in sorted(_DECIDING, key=lambda name: few and name == "average_precision"):
            for score in self.scores:
                if score.measure == name and score.baseline != _PERFECT[name]:
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
            "rows_with_an_average_precision": self.n_ranked,
            "learned": self.learned,
            "verdict": self.verdict,
            "scores": [score.to_json() for score in self.scores],
            **self.labels.to_json(),
        }


def label_shares(Y: FloatArray) -> FloatArray:
    """Return the share of each label in its observed cells; 0 if there are none."""
    observed = ~np.isnan(Y)
    return np.asarray(np.nansum(Y, axis=0) / np.maximum(observed.sum(axis=0), 1))


def assess(
    Y: FloatArray,
    scores: FloatArray,
    predicted: BoolArray,
    shares: FloatArray,
    *,
    probabilities: FloatArray | None = None,
    groups: IndexArray | None = None,
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
    probabilities : ndarray of shape (n_rows, n_labels), optional
        Probabilities of the labels, for the log loss and the calibration.
    groups : ndarray of int of shape (n_rows,), optional
        Numbers of rows that are one draw together, for the intervals: copies of a row tell nothing
        new. By default each row is a draw.

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
    # What each kind of measure compares: ours and that of the frequencies.
    compared: dict[str, tuple[Array | None, Array]] = {
        "scores": (scores, chances),
        "labels": (predicted.astype(np.int8), (chances > 0.5).astype(np.int8)),
        "probabilities": (probabilities, chances),
    }
    found = []
    for name in MEASURES:
        ours, theirs = compared[METRICS[name].prediction]
        if ours is None or (name == "precision_at_3" and Y.shape[1] <= _TOP):
            continue  # the three best of three labels are always all of them
        try:
            value, baseline = (float(METRICS[name](Y, given)) for given in (ours, theirs))
        except ValueError:
            continue  # for example, no row has both a relevant and another label
        influences = row_influences(name, Y, ours)
        beyond = influences - row_influences(name, Y, theirs)
        if groups is not None:
            influences = np.bincount(groups, influences).astype(np.float64)
            beyond = np.bincount(groups, beyond).astype(np.float64)
        found.append(
            Score(
                name,
                value,
                interval(name, value, influences),
                baseline,
                difference_interval(value - baseline, beyond),
            )
        )
    tagged = (Y == 1).any(axis=1)
    return Assessment(
        scores=found,
        n_rows=len(Y),
        n_untagged=int((~predicted.any(axis=1)).sum()),
        n_tagged=int(tagged.sum()),
        n_ranked=int((tagged & (Y == 0).any(axis=1)).sum()),
        labels=report_labels(Y, scores, predicted, probabilities),
    )
