"""The one interface of all label enhancers."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from lemll._labels import check_same_rows, code_labels
from lemll._types import Estimator, Features, FloatArray, LabelArray, MatrixLike, RandomState
from lemll._validation import all_or_nothing, check_magnitude, check_number
from lemll.enhancers._calibrate import check_rated_rows, choose_scale
from lemll.fitting import Normalization, check_normalization, normalize

__all__ = ["BaseEnhancer"]


def _has_model(enhancer: Estimator) -> bool:
    """Tell whether an enhancer has a model of the features, or say that it has none."""
    if hasattr(enhancer, "_model_outputs"):
        return True
    raise AttributeError(
        f"{type(enhancer).__name__} has no model of the features: it enhances the rows it is "
        "fitted on (label_distribution_) and no others; fit it on all rows, or use "
        "LEMLLEnhancer or GLLEEnhancer, which enhance new rows."
    )


class BaseEnhancer(BaseEstimator, metaclass=ABCMeta):
    """Base of label enhancers: logical labels in, numerical labels and a distribution out.

    A subclass implements `_numerical_labels` and has the parameters `normalization` and `scale`;
    one with a model of the features implements `_model_outputs`, too.
    """

    normalization: Normalization
    # Of validated new rows, where a subclass has a model of the features.
    _model_outputs: Callable[[Features], FloatArray]
    scale: Any

    @abstractmethod
    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        """Compute U of shape (n_samples, n_labels) from validated X and 0/1 labels."""

    def make_graph(self, X: Features, n_labels: int) -> Features:
        """Compute what the method needs to know of the features alone, to be used many times.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_samples, n_features)
            Features.
        n_labels : int
            How many labels there will be.

        Returns
        -------
        array or None
            For the parameter `graph`, with which fits to other labels of the same rows are the
            same but faster; None where the method has no such parameter.
        """
        return None

    @all_or_nothing
    def fit(self, X: MatrixLike, y: MatrixLike) -> Self:
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
            With `numerical_labels_`, `label_distribution_`, `scale_` and `label_names_`.
        """
        scale = check_number("scale", self.scale, above=0)
        check_normalization(self.normalization)
        check_same_rows(X, y)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        Y, coding = code_labels(y, one_per_class=True)
        check_consistent_length(X, Y)
        check_magnitude(X)
        if Y.shape[1] < 2:
            raise ValueError(
                f"a distribution over {Y.shape[1]} class or label says nothing; "
                "give at least 2 labels."
            )
        self.numerical_labels_ = self._checked_labels(X, Y)
        self.scale_ = scale
        # Of an earlier calibration nothing stays.
        self.scale_interval_: tuple[float, float] | None = None
        self.label_distribution_ = self._distribution(self.numerical_labels_)
        self.classes_ = coding.classes
        self.label_names_ = np.array(coding.names, dtype=object)
        return self

    def _checked_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        """Compute U, or say that numbers have left the range in which that can be done."""
        try:
            # What overflows shows itself in the result.
            with np.errstate(over="ignore", invalid="ignore"):
                found = self._numerical_labels(X, Y)
        except np.linalg.LinAlgError as error:
            reason = str(error)
        else:
            if np.isfinite(found).all():
                return found
            reason = "the numerical labels are not finite"
        raise ValueError(
            f"{type(self).__name__} cannot be computed for these data and parameters: {reason}; "
            "centre and rescale the features, or bring the parameters closer to their defaults."
        )

    def fit_enhance(self, X: MatrixLike, y: MatrixLike) -> FloatArray:
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

    @available_if(_has_model)
    def enhance(self, X: MatrixLike) -> FloatArray:
        """Estimate the label distribution of new rows, where the method has a model of features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Non-negative, rows summing to one.

        Notes
        -----
        Only enhancers with such a model have this method: `hasattr(enhancer, "enhance")` tells.
        """
        check_is_fitted(self)
        rows = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        outputs: FloatArray = self._model_outputs(rows)
        return self._distribution(outputs)

    def calibrate(
        self,
        rows: Features,
        distributions: Any,
        *,
        n_bootstrap: int = 200,
        random_state: RandomState = None,
    ) -> Self:
        r"""Fix the scale from a few training rows whose label distribution is known.

        The scale cannot be learned from features and logical labels: where every row has one
        label, a distribution D and its power :math:`D^t` (renormalised) give the same logical
        labels for every t > 0, hence the same numerical labels, though one is flat and the other
        steep. A handful of rated rows tells which. Over the rated rows R, with their distributions
        :math:`d_i`, the scale minimises the mean squared error

        .. math:: \frac1{|R|} \sum_{i \in R} \| d_i - \hat d_i(s) \|_2^2 , \qquad
            2^{-6} \le s \le 2^{6},

        where :math:`\hat d_i(s)` is the normalised row of U at scale s. It is smooth, so that few
        rows suffice, and stays finite where a recovered degree is 0, which divergences do not.

        Parameters
        ----------
        rows : array-like of shape (n_rated,), int
            Which of the training rows are rated; none twice.
        distributions : array-like of shape (n_rated, n_labels)
            Their true label distributions: non-negative, rows summing to one.
        n_bootstrap : int, default=200
            Samples of the rated rows, with replacement, behind `scale_interval_`.
        random_state : int, RandomState or None, default=None
            Of these samples.

        Returns
        -------
        self
            With `scale_` as found, `label_distribution_` (and what `enhance` returns) at that
            scale, and `scale_interval_`, the 2.5 and 97.5 percentiles of the scale over the
            samples. The parameter `scale` stays what it was.
        """
        check_is_fitted(self)
        index, known = check_rated_rows(rows, distributions, self.numerical_labels_.shape)
        chosen = choose_scale(
            self.numerical_labels_[index],
            known,
            self.normalization,
            n_bootstrap=n_bootstrap,
            random_state=random_state,
        )
        self.scale_, self.scale_interval_ = chosen.scale, chosen.interval
        self.label_distribution_ = self._distribution(self.numerical_labels_)
        return self

    def _distribution(self, numerical_labels: FloatArray) -> FloatArray:
        return normalize(numerical_labels, self.normalization, scale=self.scale_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
