"""The evidence that finds the most missing tags, judged by the tags that are given."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import average_precision_score

from lemll._types import FloatArray, LabelArray
from lemll._validation import UNOBSERVED

__all__ = ["missing_log_odds"]

# The share of the given tags that count as missing in the comparison.
_HIDDEN = 0.05
# The mean must find this much more than the context alone; less may be an accident.
_GAIN = 0.05


def missing_log_odds(in_context: FloatArray, alone: FloatArray, Y: LabelArray) -> FloatArray:
    """Return the log-odds that order the tags that are not given, the most likely ones first.

    No model has seen the cell that it scores. So a missing tag gets the log-odds of a given one,
    and the given tags show how well missing ones are found: a twentieth of their weight is hidden
    among the cells without the tag, and the average precision tells how many of them come first.
    The mean of both log-odds takes the place of the context if it finds at least 5 % more. This
    looks only at the highest log-odds, which the log loss that chose the models hardly sees. A
    linear model often orders them better than kernels and forests, which cannot be surer than
    their nearest rows.

    Parameters
    ----------
    in_context : ndarray of shape (n_samples, n_labels)
        Log-odds from the features and the other tags of the row.
    alone : ndarray of shape (n_samples, n_labels)
        Log-odds from the features alone, by a model that did not see the row: the logistic
        regressions of the blend, or the probabilities that the user brings.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells are -1.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The log-odds, also in the other cells.
    """
    known = Y != UNOBSERVED
    given = Y[known] == 1
    if given.all() or not given.any():
        return in_context
    weight = np.where(given, _HIDDEN, 1.0)

    def found(log_odds: FloatArray) -> float:
        return float(average_precision_score(given, log_odds[known], sample_weight=weight))

    mean = (in_context + alone) / 2
    return mean if found(mean) > (1 + _GAIN) * found(in_context) else in_context
