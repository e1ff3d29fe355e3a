"""Say how good predictions of unseen rows are, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lemll._types import Array, BoolArray, FloatArray, IndexArray, Settings
from lemll.metrics import METRICS, calibration_error, label_auc, label_figures
from lemll.models.intervals import difference_interval, interval, row_influences

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
