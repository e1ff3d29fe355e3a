"""The common interface of all label enhancers."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from lemll._labels import (
    LabelCoding,
    check_same_rows,
    code_labels,
    partial_labels_error,
    row_index,
    weigh_cells,
)
from lemll._types import (
    Array,
    Estimator,
    Features,
    FloatArray,
    IndexArray,
    LabelArray,
    MatrixLike,
    RandomState,
)
from lemll._validation import (
    all_or_nothing,
    check_choice,
    check_magnitude,
    check_number,
    warn_caller,
)
from lemll.enhancers.calibrate import (
    PRIOR_SCALE,
    RatedBlend,
    blend_sources,
    check_rated_rows,
    choose_scale,
)
from lemll.enhancers.sources import label_sources, own_source
from lemll.fitting.scaling import Normalization, check_normalization, fit_scaling, normalize

CalibrationMethod = Literal["scale", "sources"]

# Enhancers that accept unknown cells and confidences; a test compares this with the classes.
PARTIAL_ENHANCERS = ("LEMLLEnhancer", "LabelGraphEnhancer", "BlendEnhancer")
# What happens to a label without an observed cell, for the warning.
UNSEEN_EFFECT = "have degrees that no data support"
# A mean degree up to this is not worth a warning.
_NEGLIGIBLE = 0.01
_MOST_NAMED = 5


def absent_labels(Y: MatrixLike, mean_degrees: FloatArray) -> IndexArray:
    """Return the labels that no row has, but that have a share of the degrees.

    Parameters
    ----------
    Y : array-like of shape (n_samples, n_labels)
        Labels: above 0 where relevant, NaN where unknown.
    mean_degrees : ndarray of shape (n_labels,)
        The mean of the label distribution over the rows.

    Returns
    -------
    ndarray of int
        The numbers of the labels with a mean degree above 0.01. Empty if no label has a relevant
        row, or if all have equal degrees, because then the degrees say nothing about single labels.
        A label that is unknown in all rows is not among them.
    """
    Y = np.asarray(Y, dtype=np.float64)
    relevant = (Y > 0).any(axis=0)
    if not relevant.any() or np.ptp(mean_degrees) == 0:
        return np.empty(0, dtype=np.intp)
    observed = ~np.isnan(Y).all(axis=0)
    return np.flatnonzero(~relevant & observed & (mean_degrees > _NEGLIGIBLE))


def _has_model(enhancer: Estimator) -> bool:
    """Tell whether an enhancer has a model of the features, or say that it has none."""
    if hasattr(enhancer, "_model_outputs"):
        return True
    raise AttributeError(
        f"{type(enhancer).__name__} has no model of the features: it enhances the rows it is "
        "fitted on (label_distribution_) and no others; fit it on all rows, or use "
        "LEMLLEnhancer or GLLEEnhancer, which enhance new rows."
    )


@dataclass(eq=False, repr=False, kw_only=True)
class _Normalizes:
    """The parameters of every enhancer."""

    normalization: Normalization = "sum"
    scale: float = 1.0


class BaseEnhancer(_Normalizes, BaseEstimator, metaclass=ABCMeta):
    """Base of label enhancers, which turn logical labels into numerical labels and a distribution.

    A subclass implements `_numerical_labels`. A subclass with a model of the features also
    implements `_model_outputs`.

    A subclass that measures distances has the parameter `feature_scale`: the scaling of the columns
    of X, which learners call `scale`. Enhancers cannot use this name, because their `scale` is the
    scale of the degrees, which `calibrate` finds.
    """

    # Of validated new rows, where a subclass has a model of the features.
    _model_outputs: Callable[[Features], FloatArray]
    # Enhancers that do not look at the features do not have this parameter.
    feature_scale: str = "none"
    _scaling: Callable[[Features], Features] | None = None
    # Whether the sign of a numerical label tells if the label is relevant. None: look at U.
    signed_labels: bool | None = None
    # Whether the method looks at the features. If not, `fit` accepts None in their place.
    needs_features: bool = True
    # The index of the training rows, if they were a frame.
    _row_names: Array | None = None
    # What `calibrate` does by default.
    _calibration: CalibrationMethod = "scale"

    @abstractmethod
    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        """Compute U of shape (n_samples, n_labels) from validated X and 0/1 labels."""

    def _partial_labels(self, X: Features, Y: LabelArray, weight: FloatArray) -> FloatArray:
        """Compute U from labels of which only some cells are known.

        Y is -1 in unknown cells, and `weight` is 0 there. Enhancers that can do it override this.
        """
        raise partial_labels_error(type(self).__name__, weight, "an enhancer", PARTIAL_ENHANCERS)

    def make_graph(self, X: Features, n_labels: int) -> Features:
        """Compute the graph, which depends only on the features and can be used many times.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_samples, n_features)
            Features.
        n_labels : int
            Number of labels.

        Returns
        -------
        array or None
            The value for the parameter `graph`. With it, fits to other labels of the same rows
            give the same result in less time. None if the method does not have this parameter.
        """
        scaling = self._column_scaling(X)
        return self._make_graph(X if scaling is None else scaling(X), n_labels)

    def _make_graph(self, X: Features, n_labels: int) -> Features:
        """Compute the graph of rows whose columns are already scaled."""
        return None

    def _column_scaling(self, X: Features) -> Callable[[Features], Features] | None:
        """Return the function that scales columns, learned from X; None if there is nothing to do.

        Raises a ValueError for an unknown scaling, and for a scaling of kernel values.
        """
        # Also an unknown name is not "none", and is refused by `fit_scaling`.
        if isinstance(self.feature_scale, str) and self.feature_scale == "none":
            return None
        kernel = getattr(self, "kernel", None)
        if isinstance(kernel, str) and kernel == "precomputed":
            raise ValueError(
                f"feature_scale={self.feature_scale!r} must be 'none' with a precomputed kernel, "
                "whose columns are not features; scale the features before you compute the kernel."
            )
        return fit_scaling(self.feature_scale, X, name="feature_scale")

    @all_or_nothing
    def fit(self, X: MatrixLike, y: MatrixLike, *, label_weight: MatrixLike = None) -> Self:
        """Recover how much each label matters in each training row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features. Enhancers that do not look at them (`needs_features` is False) accept None.
        y : array-like or sparse matrix of shape (n_samples, n_labels)
            Logical labels, 0/1. Or a 1-D target, which becomes one label per class. NaN, None,
            ``pandas.NA`` and masked cells of a label matrix mean that nobody observed the cell.
            Enhancers that cannot use such labels refuse them.
        label_weight : array-like or sparse matrix of shape (n_samples, n_labels), optional
            How sure each cell of y is, from 0 (not observed) to 1 (certain, the default). Where it
            is 0, y may hold any value.

        Returns
        -------
        self
            The fitted enhancer, with `numerical_labels_`, `label_distribution_`, `scale_` and
            `label_names_`.
        """
        index = row_index(X) if row_index(X) is not None else row_index(y)
        X = self._validated_rows(X, y, label_weight)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        Y, coding = code_labels(y, one_per_class=True, unobserved=True, label_weight=label_weight)
        check_consistent_length(X, Y)
        Y, weight = weigh_cells(Y, label_weight, coding, effect=UNSEEN_EFFECT)
        self._row_names = None if index is None else np.asarray(index)
        return self._enhance(X, Y, weight, coding)

    def _validated_rows(self, X: MatrixLike, y: MatrixLike, label_weight: MatrixLike) -> Features:
        """Check the parameters and the features; return the features."""
        check_number("scale", self.scale, above=0)
        check_normalization(self.normalization)
        check_same_rows(X, y)
        check_same_rows(X, label_weight, "label_weight")
        if X is None and y is not None:
            if self.needs_features:
                raise ValueError(
                    f"{type(self).__name__} needs features, got X=None; LabelGraphEnhancer uses "
                    "only the labels."
                )
            # The same in all rows, so it says nothing.
            X = np.zeros((y.shape[0] if hasattr(y, "shape") else len(y), 1))
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])

    def _enhance(
        self, X: Features, Y: Array, weight: FloatArray | None, coding: LabelCoding
    ) -> Self:
        """Compute and store the numerical labels and the distribution."""
        check_magnitude(X)
        if Y.shape[1] < 2:
            raise ValueError(
                f"a distribution over {Y.shape[1]} class or label says nothing; "
                "give at least 2 labels."
            )
        self._scaling = self._column_scaling(X)
        if self._scaling is not None:
            X = self._scaling(X)
        self.numerical_labels_ = self._checked_labels(X, Y, weight)
        self.scale_ = float(self.scale)
        # An earlier calibration does not apply to the new data.
        self.scale_interval_: tuple[float, float] | None = None
        self.blend_: RatedBlend | None = None
        self._given_labels = Y, weight
        self.label_distribution_ = self.distribution(self.numerical_labels_)
        self.classes_ = coding.classes
        self.label_names_ = np.array(coding.names, dtype=object)
        self._warn_of_labels_without_relevant_rows(Y, weight)
        return self

    def _warn_of_labels_without_relevant_rows(self, Y: Array, weight: FloatArray | None) -> None:
        """Say which labels get a share of the rows although no row has them."""
        degrees = self.label_distribution_.mean(axis=0)
        named = absent_labels(Y if weight is None else np.where(weight > 0, Y, np.nan), degrees)
        if len(named):
            shown = ", ".join(
                f"{self.label_names_[j]} ({degrees[j]:.2f})" for j in named[:_MOST_NAMED]
            )
            more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
            warn_caller(
                f"no row has the labels {shown}{more}, but {type(self).__name__} gives them these "
                "mean degrees, because it cannot tell a degree of 0 from a small one; leave these "
                "labels out of y, or rate rows and call calibrate.",
                UserWarning,
            )

    def _checked_labels(self, X: Features, Y: Array, weight: FloatArray | None) -> FloatArray:
        """Compute U, or raise a ValueError if numbers overflow or a system is singular."""
        try:
            # An overflow makes the result infinite or NaN, which is checked below.
            with np.errstate(over="ignore", invalid="ignore"):
                found = (
                    self._numerical_labels(X, Y)
                    if weight is None
                    else self._partial_labels(X, Y, weight)
                )
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

    def fit_enhance(
        self, X: MatrixLike, y: MatrixLike, *, label_weight: MatrixLike = None
    ) -> FloatArray:
        """Fit and return the label distribution of the training rows.

        Parameters
        ----------
        X, y, label_weight : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            The label distribution: non-negative, each row sums to one.
        """
        return self.fit(X, y, label_weight=label_weight).label_distribution_

    @available_if(_has_model)
    def enhance(self, X: MatrixLike) -> FloatArray:
        """Estimate the label distribution of new rows, if the method has a model of features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            The label distribution: non-negative, each row sums to one.

        Notes
        -----
        Only enhancers with such a model have this method: `hasattr(enhancer, "enhance")` tells.
        """
        check_is_fitted(self)
        rows = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        if self._scaling is not None:
            rows = self._scaling(rows)
        outputs: FloatArray = self._model_outputs(rows)
        return self.distribution(outputs)

    def calibrate(
        self,
        rows: Features,
        distributions: Any,
        *,
        method: Literal["auto", "scale", "sources"] = "auto",
        n_bootstrap: int = 200,
        random_state: RandomState = None,
    ) -> Self:
        r"""Learn from a few training rows whose label distribution is known.

        The scale cannot be learned from features and logical labels. For example, if every row has
        one label, a distribution D and its renormalised power :math:`D^t` give the same logical
        labels for every t > 0. Therefore they also give the same numerical labels, although one
        distribution is flat and the other is steep. A few rated rows are enough to decide. Let R
        be the rated rows and :math:`d_i` their distributions. With the method "scale", the scale
        minimises the mean squared error

        .. math:: \frac1{|R|} \sum_{i \in R} \| d_i - \hat d_i(s) \|_2^2 , \qquad
            2^{-6} \le s \le 2^{6},

        where :math:`\hat d_i(s)` is the normalised row of U at scale s. This error is smooth, so
        a few rows are enough. It is finite even if a recovered degree is 0; divergences are not.

        The method "sources" also weighs the graph of the labels, the logical labels, the
        frequencies of the labels and the numerical labels of this enhancer, and learns a bias per
        label, as `BlendEnhancer` explains. It uses fewer parameters if there are few rated rows.
        Its result holds for the training rows; `enhance` uses the scale.

        Parameters
        ----------
        rows : array-like of shape (n_rated,), int
            Numbers of the rated training rows, from 0, without duplicates. Or their names in the
            index of the frame that was given to `fit`, if these are not whole numbers.
        distributions : array-like of shape (n_rated, n_labels)
            Their true label distributions: non-negative, each row sums to one. The columns of a
            frame are found by their names. If its index has names of training rows, they must have
            the order of `rows`; an index 0, 1, 2, ... is not compared, because it is the default.
        method : {"auto", "scale", "sources"}, default="auto"
            "auto" is "sources" for `BlendEnhancer` and "scale" for the others.
        n_bootstrap : int, default=200
            Number of bootstrap samples of the rated rows, used to compute `scale_interval_`.
        random_state : int, RandomState or None, default=None
            Seed of the bootstrap samples.

        Returns
        -------
        self
            The enhancer with the new `label_distribution_`, in which the rated rows have their
            known distributions. With "scale", `scale_` is new, and `scale_interval_` holds its 2.5
            and 97.5 percentiles over the samples. With "sources", `blend_` holds the weights, the
            biases and the errors of rated rows that were left out. The parameter `scale` does not
            change.
        """
        check_is_fitted(self)
        check_choice("method", method, ("auto", "scale", "sources"))
        chosen = self._calibration if method == "auto" else method
        index, known = check_rated_rows(
            rows,
            distributions,
            len(self.numerical_labels_),
            list(self.label_names_),
            self._row_names,
        )
        blend = None
        if chosen == "sources":
            sources = self._sources()
            blend = blend_sources(sources, index, known, prior_scale=self._prior_scale())
            self.scale_, self.scale_interval_ = float(self.scale), None
        # Without differences in the numerical labels there is no scale to choose for new rows.
        varied = bool(np.ptp(self.numerical_labels_[index], axis=1).any())
        if chosen == "scale" or (hasattr(self, "_model_outputs") and varied):
            found = choose_scale(
                self.numerical_labels_[index],
                known,
                self.normalization,
                n_bootstrap=n_bootstrap,
                random_state=random_state,
            )
            self.scale_, self.scale_interval_ = found.scale, found.interval
        self.blend_ = blend
        self.label_distribution_ = (
            self.distribution(self.numerical_labels_)
            if blend is None
            else blend.distribution(sources)
        )
        self.label_distribution_[index] = known
        return self

    def _prior_scale(self) -> float:
        """Return the weight of the first source without rated rows."""
        return PRIOR_SCALE

    def _sources(self) -> dict[str, FloatArray]:
        """Return the sources that rated rows weigh, the most reliable first."""
        own = own_source(self.numerical_labels_, self.normalization)
        return {**label_sources(*self._given_labels), "numerical labels": own}

    def distribution(self, numerical_labels: FloatArray) -> FloatArray:
        """Turn numerical labels into distributions, with the scale in use.

        Parameters
        ----------
        numerical_labels : ndarray of shape (n_samples, n_labels)
            Numerical labels, for example `numerical_labels_`.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            The label distribution: non-negative, each row sums to one.
        """
        check_is_fitted(self)
        return normalize(numerical_labels, self.normalization, scale=self.scale_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
