"""A classifier in two stages: any enhancer, followed by any regressor."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import Tags, get_tags

from lemll._types import Estimator, Features, FloatArray, LabelArray, MatrixLike, Thresholds
from lemll.enhancers import LEMLLEnhancer
from lemll.predictors._base import MultilabelClassifier
from lemll.predictors.msvr import MSVR
from lemll.predictors.stages.first_stage import fit_enhancer

__all__ = ["TwoStage"]


class TwoStage(MultilabelClassifier):
    r"""Enhance the labels, then fit a regressor to them: any enhancer with any regressor.

    The enhancer turns the logical labels of the training rows into numerical labels U. The
    regressor learns to predict U from the features. A label is predicted if its output is
    positive. Each stage minimises the objective of its own estimator. If the enhancer can use
    labels with unknown cells, as `LEMLLEnhancer` can, it estimates U in these cells also, and the
    regressor learns from all of U.

    Parameters
    ----------
    enhancer : BaseEnhancer, optional
        The first stage. By default `LEMLLEnhancer`.
    regressor : regressor, optional
        The second stage. It must support several outputs, as many regressors of scikit-learn do;
        if not, put it into a `sklearn.multioutput.MultiOutputRegressor`. By default `MSVR`.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        A label is predicted if its score is above its threshold. "zero" uses 0 for all labels.
        "f1" and "hamming" choose one threshold per label: the one with the best F1, or with the
        most correct decisions. To choose it, 5-fold cross-validation scores every training row
        with a model that was not fitted on that row.
    memory : None, str or object with the interface of joblib.Memory, default=None
        Cache of the first stage. With it, a grid search over the parameters of the regressor
        computes the first stage only once per fold.

    Attributes
    ----------
    enhancer_, regressor_ : estimator
        The fitted clones of `enhancer` and `regressor`.
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U of the training rows.
    origin_ : ndarray of shape (n_labels,)
        Subtracted from the outputs of the regressor. Zero if the sign of U has a meaning; see the
        notes.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels: the columns of a frame, or ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        One threshold per label. A label is predicted if its score is above it.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if X has names.

    Notes
    -----
    Some enhancers (`FCMEnhancer`, `KMEnhancer`, `LabelPropagationEnhancer`, `GLLEEnhancer`) give
    memberships or degrees, whose sign has no meaning. An enhancer says so by its attribute
    `signed_labels`; if that is None, they are recognised by the mean of the irrelevant entries of
    U, which is then not negative. In this case the origin of a label is the
    middle between two means: the mean of U over the rows that have the label, and the mean over
    the rows that do not. For a label with the same value in all rows, the origin is placed so that
    the label is always predicted with that value.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from lemll import TwoStage
    >>> from lemll.datasets import load_digit_tags
    >>> from lemll.enhancers import KMEnhancer
    >>> digits = load_digit_tags()
    >>> model = TwoStage(KMEnhancer(), Ridge()).fit(digits.X[:900], digits.Y[:900])
    >>> model.predict(digits.X[900:]).shape
    (897, 8)
    >>> model.set_params(regressor__alpha=10.0).get_params()["regressor__alpha"]
    10.0
    """

    def __init__(
        self,
        enhancer: Estimator = None,
        regressor: Estimator = None,
        *,
        thresholds: Thresholds = "zero",
        memory: Estimator = None,
    ) -> None:
        self.enhancer = enhancer
        self.regressor = regressor
        self.thresholds = thresholds
        self.memory = memory

    def _fit(self, X: Features, Y: LabelArray) -> None:
        self._learn(X, Y, None)

    def _fit_partial(self, X: Features, Y: LabelArray, weight: FloatArray) -> None:
        # An enhancer that cannot use such labels refuses them.
        self._learn(X, Y, weight)

    def _learn(self, X: Features, Y: LabelArray, weight: FloatArray | None) -> None:
        enhancer = LEMLLEnhancer() if self.enhancer is None else self.enhancer
        if not hasattr(enhancer, "fit_enhance"):
            raise TypeError(
                f"enhancer must be one of lemll.enhancers, got {type(enhancer).__name__}."
            )
        regressor = MSVR() if self.regressor is None else self.regressor
        if not hasattr(regressor, "fit") or is_classifier(regressor):
            raise TypeError(
                f"regressor={regressor!r} must be a regressor, as scikit-learn has them, or None."
            )
        self.enhancer_, U = fit_enhancer(enhancer, X, Y, self.memory, weight)
        self.numerical_labels_ = U
        signed = getattr(self.enhancer_, "signed_labels", None)
        self.origin_ = _origin(U, Y, signed)
        self.regressor_ = _fitted(clone(regressor), X, U)

    def _outputs(self, X: Features) -> FloatArray:
        outputs = np.asarray(self.regressor_.predict(X), dtype=np.float64)
        return outputs.reshape(X.shape[0], -1)

    def _uses_untagged_rows(self) -> bool:
        return True

    def _score(self, X: Features) -> FloatArray:
        return self._outputs(X) - self.origin_

    def predict_distribution(self, X: MatrixLike) -> FloatArray:
        """Estimate how much each label matters in new rows.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            The outputs of the regressor, normalised in the same way as the enhancer normalises its
            numerical labels.
        """
        outputs = self._validated_scores(X) + self.origin_
        distribution: FloatArray = self.enhancer_.distribution(outputs)
        return distribution

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if hasattr(self.regressor, "fit"):
            tags.input_tags.sparse = get_tags(self.regressor).input_tags.sparse
        return tags


def _fitted(regressor: Estimator, X: Features, U: FloatArray) -> Features:
    try:
        return regressor.fit(X, U[:, 0] if U.shape[1] == 1 else U)
    except ValueError as error:
        if U.shape[1] > 1:
            error.add_note(
                f"TwoStage gave {type(regressor).__name__} one target for each of {U.shape[1]} "
                "labels; put what takes only one in a sklearn.multioutput.MultiOutputRegressor."
            )
        raise


def _origin(U: FloatArray, Y: LabelArray, signed: bool | None) -> FloatArray:
    """Return the numerical value of each label above which it counts as relevant.

    Only the known cells of Y count.
    """
    having, lacking = (Y == 1).sum(axis=0), (Y == 0).sum(axis=0)
    sums = np.array([(U * part).sum(axis=0) for part in (Y == 1, Y == 0)])
    # Enhancers with signed labels make irrelevant entries negative: then 0 is the right origin. U
    # is 0 for a label that nobody observed, and it is never predicted.
    if sums[1].sum() < 0 if signed is None else signed:
        return np.where(having + lacking == 0, 1.0, 0.0)
    relevant, irrelevant = sums / np.maximum(np.array([having, lacking]), 1)
    # A constant label has only one mean, so there is no middle. Put the origin far enough on one
    # side of it that the regressor always predicts the constant value.
    away = max(float(np.abs(U).max()), np.finfo(np.float64).tiny) / 2
    return np.select(
        [having == 0, lacking == 0],
        [irrelevant + away, relevant - away],
        (relevant + irrelevant) / 2,
    )
