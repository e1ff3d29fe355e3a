"""Probabilities for classifiers whose scores are no log-odds, by cross-fitted calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from lemll._labels import LabelCoding
from lemll._types import FloatArray, LabelArray, MatrixLike
from lemll.predictors._base import LabelScorer
from lemll.predictors.blend.calibration import Calibration, constant_labels, fit_calibration
from lemll.predictors.logistic.probability import SURE, class_probabilities

__all__ = ["CalibratedProbabilities", "calibrate"]


def _wants_probability(estimator: Any) -> bool:
    if estimator.probability:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} gives scores; for probabilities, fit it with probability=True"
    )


class CalibratedProbabilities(LabelScorer):
    """Part of classifiers with the parameter `probability`."""

    probability: bool
    _calibration: Calibration | None = None

    def _store(self, coding: LabelCoding, thresholds: FloatArray) -> None:
        if not self.probability:
            # The lines of an earlier fit must not answer for this one.
            self._calibration = None
        super()._store(coding, thresholds)

    @available_if(_wants_probability)
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Estimate the probability that each label is relevant; needs ``probability=True``.

        The scores become log-odds by one line per label. The lines are fitted to scores of the
        training rows by models that were not fitted to these rows, in five folds. A label can have
        a probability below one half and still be predicted, because `predict` uses the scores.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            One probability per label, independent of the other labels. For a 1-D target, the
            probabilities of its classes, which sum to 1.
        """
        scores = self._validated_scores(X)
        if self._calibration is None:
            raise NotFittedError(
                f"this {type(self).__name__} was fitted with probability=False; fit it again with "
                "probability=True."
            )
        return class_probabilities(self._calibration.log_odds(scores), self._coding)


def calibrate(scores: FloatArray, Y: LabelArray, weight: FloatArray | None) -> Calibration:
    """Fit the lines that turn scores of unseen rows into log-odds.

    A label with only one value in the observed cells has this value with certainty.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_labels)
        Scores of rows by models that were not fitted to these rows.
    Y : ndarray of shape (n_samples, n_labels)
        Their labels, 0/1; -1 in unknown cells.
    weight : ndarray of shape (n_samples, n_labels) or None
        The weights of the cells; None means 1.

    Returns
    -------
    Calibration
        One line per label.
    """
    constant = constant_labels(Y, weight)
    lines = fit_calibration(scores, Y, weight)
    return Calibration(
        np.where(constant == 0, lines.slope, 0.0),
        np.where(constant == 0, lines.intercept, constant * SURE),
    )
