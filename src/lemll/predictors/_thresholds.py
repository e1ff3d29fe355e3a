"""Per-label thresholds, chosen on scores that the model gave to rows it had not seen."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lemll._types import FloatArray, LabelArray

__all__ = ["CRITERIA", "Criterion", "best_thresholds"]

Criterion = Literal["f1", "hamming"]

CRITERIA = ("f1", "hamming")


def best_thresholds(scores: FloatArray, Y: LabelArray, criterion: Criterion) -> FloatArray:
    """Choose for every label the threshold that would have been best.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_labels)
        Scores of rows that had no part in the model.
    Y : ndarray of shape (n_samples, n_labels)
        Their labels, 0/1.
    criterion : {"f1", "hamming"}
        What to make best: F1 of each label, or the number of correct decisions.

    Returns
    -------
    ndarray of shape (n_labels,)
        Half-way between two scores; 0 for a label that never occurs. Of equally good thresholds
        the one nearest to 0, which is what the objective aims at.

    Examples
    --------
    >>> best_thresholds(np.array([[0.1], [0.3], [0.5]]), np.array([[0], [1], [1]]), "f1")
    array([0.2])
    """
    return np.array(
        [_best_threshold(scores[:, j], Y[:, j], criterion) for j in range(scores.shape[1])]
    )


def _best_threshold(scores: FloatArray, y: Any, criterion: Criterion) -> float:
    positives = int(y.sum())
    if positives == 0:
        return 0.0
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    # With the k highest scores predicted: k = 0 .. n.
    hits = np.concatenate(([0], np.cumsum(y[order], dtype=np.int64)))
    predicted = np.arange(len(y) + 1)
    value = (
        2 * hits / (predicted + positives)
        if criterion == "f1"
        else 2 * hits - predicted - positives  # minus the wrong decisions
    )
    margin = max(1.0, float(np.ptp(ranked)))
    cuts = np.concatenate(
        ([ranked[0] + margin], (ranked[:-1] + ranked[1:]) / 2, [ranked[-1] - margin])
    )
    # Rows with equal scores cannot be told apart by any threshold.
    possible = np.concatenate(([True], ranked[:-1] > ranked[1:], [True]))
    good = possible & (value >= value[possible].max() - 1e-12)
    return float(cuts[good][np.argmin(np.abs(cuts[good]))])
