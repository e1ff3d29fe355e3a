"""Figures of each label, what other thresholds would give, and how calibrated probabilities are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lemll._types import BoolArray, FloatArray, Settings
from lemll.metrics import calibration_error, label_auc, label_figures

__all__ = ["THRESHOLDS", "LabelReport", "report_labels"]

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
