"""The one interface of all label enhancers."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, validate_data

from lemll._labels import code_labels
from lemll._parameters import check_number
from lemll._validation import LabelArray
from lemll.enhancers._normalize import normalize

__all__ = ["BaseEnhancer"]

FloatArray = npt.NDArray[np.float64]


class BaseEnhancer(BaseEstimator, metaclass=ABCMeta):
    """Base of label enhancers: logical labels in, numerical labels and a distribution out.

    A subclass implements `_numerical_labels` and has the parameters `normalization` and `scale`.
    """

    normalization: Any
    scale: Any

    @abstractmethod
    def _numerical_labels(self, X: Any, Y: LabelArray) -> FloatArray:
        """Compute U of shape (n_samples, n_labels) from validated X and 0/1 labels."""

    def fit(self, X: Any, y: Any) -> Self:
        """Recover how much each label matters in each training row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like or sparse matrix of shape (n_samples, n_labels)
            Logical labels, 0/1; or a 1-D target, one label a class.

        Returns
        -------
        self
            With `numerical_labels_`, `label_distribution_` and `label_names_`.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        Y, coding = code_labels(y, one_per_class=True)
        check_consistent_length(X, Y)
        if Y.shape[1] < 2:
            raise ValueError(
                f"a distribution over {Y.shape[1]} class or label says nothing; "
                "give at least 2 labels."
            )
        self.numerical_labels_ = self._numerical_labels(X, Y)
        self.label_distribution_ = self._distribution(self.numerical_labels_)
        self.classes_ = coding.classes
        self.label_names_ = np.array(coding.names, dtype=object)
        return self

    def fit_enhance(self, X: Any, y: Any) -> FloatArray:
        """Fit and return the label distribution of the training rows.

        Parameters
        ----------
        X, y : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Non-negative, rows summing to one.
        """
        return self.fit(X, y).label_distribution_

    def _distribution(self, numerical_labels: FloatArray) -> FloatArray:
        scale = check_number("scale", self.scale, above=0)
        return normalize(numerical_labels, self.normalization, scale=scale)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
