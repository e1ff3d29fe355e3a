"""Turn the scores of a learner into log-odds, label by label, with few positives pooled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from lemll._types import FloatArray, LabelArray

__all__ = ["Calibration", "constant_labels", "fit_calibration"]

# Strength of the pull to the shared line. A label needs about this many informative rows before it
# decides half of its own slope and intercept.
_SHRINKAGE = 10.0
# Keeps the shared line finite if the scores separate the labels perfectly.
_FINITE = 1e-2


class Calibration(NamedTuple):
    """One line per label: log-odds as a function of the score.

    Attributes
    ----------
    slope, intercept : ndarray of shape (n_labels,)
        The lines. No slope is negative.
    """

    slope: FloatArray
    intercept: FloatArray

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds of scores."""
        return scores * self.slope + self.intercept


def fit_calibration(scores: FloatArray, Y: LabelArray, weight: FloatArray | None) -> Calibration:
    r"""Fit one line per label, pulled towards a line that all labels share.

    With s the scores divided by their standard deviation, the weights c of the cells, and y in
    -1/+1, the slopes a and intercepts b, and the shared line (:math:`a_0, b_0`), minimise

    .. math:: \sum_{ij}c_{ij}\log(1+e^{-y_{ij}(a_js_{ij}+b_j)})
        +\tfrac{\rho}{2}\sum_j\bigl[(a_j-a_0)^2+(b_j-b_0)^2\bigr]
        +\tfrac{\delta}{2}(a_0^2+b_0^2),\qquad a_j\ge 0 .

    This is Platt's calibration for labels with many relevant rows. A label with few relevant rows
    has nearly the shared line.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_labels)
        Scores of rows that were not used to fit the learner.
    Y : ndarray of shape (n_samples, n_labels)
        Their labels, 0/1; unknown cells (-1) have the weight 0.
    weight : ndarray of shape (n_samples, n_labels) or None
        The weights of the cells; None means 1.

    Returns
    -------
    Calibration
        The lines, for the scores as given.
    """
    deviation = float(scores.std()) or 1.0
    s = scores / deviation
    sign = np.where(Y > 0, 1.0, -1.0)
    n_labels = Y.shape[1]

    def objective(at: FloatArray) -> tuple[float, FloatArray]:
        slope, intercept, shared = at[:n_labels], at[n_labels:-2], at[-2:]
        margin = sign * (s * slope + intercept)
        loss = np.logaddexp(0, -margin)
        gradient = -sign * expit(-margin)
        if weight is not None:
            loss, gradient = weight * loss, weight * gradient
        away = np.stack([slope - shared[0], intercept - shared[1]])
        value = loss.sum() + (_SHRINKAGE * (away**2).sum() + _FINITE * (shared**2).sum()) / 2
        own = np.stack([(gradient * s).sum(axis=0), gradient.sum(axis=0)]) + _SHRINKAGE * away
        common = _FINITE * shared - _SHRINKAGE * away.sum(axis=1)
        return float(value), np.concatenate([own.ravel(), common])

    start = np.concatenate([np.ones(n_labels), np.zeros(n_labels), [1.0, 0.0]])
    bounds = [(0.0, None)] * n_labels + [(None, None)] * (n_labels + 2)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Calibration(found[:n_labels] / deviation, found[n_labels:-2])


def constant_labels(Y: LabelArray, weight: FloatArray | None) -> FloatArray:
    """Return +1 or -1 for labels with only this value in the observed cells, else 0."""
    observed = Y >= 0 if weight is None else weight > 0
    relevant = ((Y == 1) & observed).any(axis=0)
    other = ((Y == 0) & observed).any(axis=0)
    # A label that nobody observed is not predicted.
    return np.where(relevant & other, 0.0, np.where(relevant, 1.0, -1.0))
