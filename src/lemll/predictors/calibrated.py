"""Base of the classifiers that also learn from degrees between 0 and 1."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, validate_data

from lemll._labels import LabelCoding, check_same_rows, code_degrees
from lemll._types import Estimator, Features, FloatArray, LabelArray, MatrixLike, Settings
from lemll._validation import UNOBSERVED, all_or_nothing
from lemll.predictors.base import LabelScorer, MultilabelClassifier, plain_method_names

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


# Strength of the pull to the shared line. A label needs about this many informative rows before it
# decides half of its own slope and intercept.
_CALIBRATION_SHRINKAGE = 10.0
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
        value = (
            loss.sum()
            + (_CALIBRATION_SHRINKAGE * (away**2).sum() + _FINITE * (shared**2).sum()) / 2
        )
        own = (
            np.stack([(gradient * s).sum(axis=0), gradient.sum(axis=0)])
            + _CALIBRATION_SHRINKAGE * away
        )
        common = _FINITE * shared - _CALIBRATION_SHRINKAGE * away.sum(axis=1)
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


def _wants_probability(estimator: Estimator) -> bool:
    if estimator.probability:
        return True
    raise AttributeError(
        f"{type(estimator).__name__} gives scores; for probabilities, fit it with "
        f"{estimator._to_set('probability=True')}"
    )


class CalibratedProbabilities(LabelScorer):
    """Part of classifiers with the parameter `probability`."""

    _calibration: Calibration | None = None

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
                f"{self._to_set('probability=True')}."
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


@dataclass(eq=False, repr=False, kw_only=True)
class DegreeClassifier(CalibratedProbabilities, MultilabelClassifier):
    """Base of multi-label classifiers whose loss is a square of the labels.

    A subclass implements `_fit_degrees` in addition.
    """

    probability: bool = False

    @abstractmethod
    def _fit_degrees(self, X: Features, D: FloatArray, weight: FloatArray | None) -> None:
        """Learn from validated X and degrees in [0, 1]; `weight` is 0 in unknown cells."""

    def _learn_from_unseen(
        self, scores: FloatArray, Y: LabelArray, weight: FloatArray | None
    ) -> None:
        if self.probability:
            self._calibration = calibrate(scores, Y, weight)

    def _why_folds(self) -> str:
        return super()._why_folds() if self.thresholds != "zero" else "probability=True"

    def _fold_parameters(self) -> Settings:
        return {"thresholds": "zero", "probability": False}

    @all_or_nothing
    def fit_degrees(
        self, X: MatrixLike, degrees: MatrixLike, *, label_weight: MatrixLike = None
    ) -> Self:
        """Learn from labels that are relevant in part, for example the share of votes for a label.

        A degree d becomes the target ``2 d - 1`` of Eq. (9) or (10), where a label 0/1 becomes
        -1/+1. A label is predicted if its degree is probably above 1/2. This is a method of its
        own because `fit` refuses such a matrix, which is often a mistake.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.
        degrees : array-like, sparse matrix or frame of shape (n_samples, n_labels)
            Degrees from 0 (not relevant) to 1 (relevant). NaN, None, ``pandas.NA`` and masked
            cells mean that nobody observed the cell.
        label_weight : array-like or sparse matrix of shape (n_samples, n_labels), optional
            How sure each degree is, from 0 (not observed) to 1 (certain, the default).

        Returns
        -------
        self
            The fitted classifier.
        """
        if self.thresholds != "zero" or self.probability:
            raise ValueError(
                f"{self._why_folds()} is learned from labels 0/1, but degrees were given; leave it "
                "out, or fit labels 0/1."
            )
        check_same_rows(X, degrees)
        check_same_rows(X, label_weight, "label_weight")
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        D, weight, coding = code_degrees(degrees, label_weight)
        check_consistent_length(X, D)
        self._fit_degrees(X, D, weight)
        self._store(coding, np.zeros(D.shape[1]))
        # The advice of `predict`, other thresholds, needs labels 0/1.
        self._mostly_tagged = False
        if weight is not None:
            self._warn_unused(np.where(weight > 0, 0, UNOBSERVED))
        return self
