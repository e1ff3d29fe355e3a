"""Bases of classifiers that count a tie as relevant, and of those that give probabilities."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.utils import Tags, get_tags

from lemll._labels import LabelCoding
from lemll._types import FloatArray, MatrixLike
from lemll.predictors._base import MultilabelClassifier, plain_method_names

__all__ = ["SURE", "ProbabilityClassifier", "TiesAreRelevant", "class_probabilities", "log_odds"]

# Log-odds of the largest probability below 1 in float64. Constant models use it, not infinity.
SURE = float(np.log(2.0**53))


def log_odds(p: FloatArray) -> FloatArray:
    """Return log(p / (1 - p)), finite also for the probabilities 0 and 1.

    Examples
    --------
    >>> log_odds(np.array([0.0, 0.5, 1.0])).round(1)
    array([-36.7,   0. ,  36.7])
    """
    unit = 2.0**-53
    p = np.clip(p, unit, 1 - unit)
    return np.asarray(np.log(p / (1 - p)))


class TiesAreRelevant(MultilabelClassifier):
    """Base of classifiers that predict a label if its score is at least the threshold."""

    def _store(self, coding: LabelCoding, thresholds: FloatArray) -> None:
        # `predict` requires a score above the threshold. Subtract the smallest normal number, so
        # that a score of exactly 0 is above a threshold of 0.
        super()._store(coding, thresholds - np.finfo(np.float64).tiny)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        own = getattr(self, "estimator", None)
        if hasattr(own, "fit"):
            tags.input_tags.sparse = get_tags(own).input_tags.sparse
        return tags


@plain_method_names
class ProbabilityClassifier(MultilabelClassifier):
    """Base of classifiers whose scores are log-odds. `_score` must return finite numbers."""

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Estimate the probability that each label is relevant.

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
        return class_probabilities(self._validated_scores(X), self._coding)


def class_probabilities(log_odds: FloatArray, coding: LabelCoding) -> FloatArray:
    """Return the probabilities of labels, or those of the classes of a 1-D target."""
    if coding.multilabel:
        return np.asarray(expit(log_odds))
    if len(coding.classes) == 1:
        return np.ones((len(log_odds), 1))
    if len(coding.classes) == 2:
        return np.column_stack([expit(-log_odds[:, 0]), expit(log_odds[:, 0])])
    # One model per class: normalise their probabilities. Logarithms avoid 0 / 0 if all of the
    # probabilities underflow.
    logarithm = -np.logaddexp(0, -log_odds)
    p = np.exp(logarithm - logarithm.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))
