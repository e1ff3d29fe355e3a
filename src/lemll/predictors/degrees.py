"""Base of the classifiers that also learn from degrees between 0 and 1."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
from sklearn.utils.validation import check_consistent_length, validate_data

from lemll._labels import check_same_rows, code_degrees
from lemll._types import Features, FloatArray, LabelArray, MatrixLike, Settings
from lemll._validation import UNOBSERVED, all_or_nothing
from lemll.predictors._base import MultilabelClassifier
from lemll.predictors.calibrated import CalibratedProbabilities, calibrate

__all__ = ["DegreeClassifier"]


class DegreeClassifier(CalibratedProbabilities, MultilabelClassifier):
    """Base of multi-label classifiers whose loss is a square of the labels.

    A subclass implements `_fit_degrees` in addition.
    """

    @abstractmethod
    def _fit_degrees(self, X: Features, D: FloatArray, weight: FloatArray | None) -> None:
        """Learn from validated X and degrees in [0, 1]; `weight` is 0 in unknown cells."""

    def _needs_unseen_scores(self) -> bool:
        return bool(self.probability)

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
