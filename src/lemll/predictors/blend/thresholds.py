"""Thresholds with the highest F1 to be expected from probabilities."""

from __future__ import annotations

import numpy as np

from lemll._types import FloatArray

__all__ = ["expected_f1_threshold"]


def expected_f1_threshold(probabilities: FloatArray) -> float:
    """Choose the log-odds above which predictions have the highest F1, in expectation.

    If the k highest of the probabilities p are predicted, F1 is about twice their sum, divided by
    k plus the sum of all p. The true labels are not used: with few relevant rows, the best
    threshold for them would be an accident.

    Parameters
    ----------
    probabilities : ndarray of shape (n,)
        Calibrated probabilities.

    Returns
    -------
    float
        The threshold, in log-odds.

    Examples
    --------
    >>> bool(expected_f1_threshold(np.array([0.05, 0.1, 0.4, 0.45])) < 0)
    True
    """
    ranked = np.sort(probabilities)[::-1]
    expected = 2 * np.cumsum(ranked) / (np.arange(1, len(ranked) + 1) + ranked.sum())
    last = int(expected.argmax())
    following = ranked[last + 1] if last + 1 < len(ranked) else ranked[last] / 2
    cut = np.clip((ranked[last] + following) / 2, 1e-12, 1 - 1e-12)
    return float(np.log(cut / (1 - cut)))
