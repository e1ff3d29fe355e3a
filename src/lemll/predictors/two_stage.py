"""Any enhancer with any regressor."""

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
    r"""Enhance the labels, then regress on them: any enhancer with any regressor.

    The enhancer turns the logical labels of the training rows into numerical ones, U. The regressor
    learns to predict U from the features, and a label is predicted where its output is positive.

    Parameters
    ----------
    enhancer : BaseEnhancer, optional
        By default `LEMLLEnhancer`.
    regressor : regressor, optional
        With several outputs, as scikit-learn's have them, or in a
        `sklearn.multioutput.MultiOutputRegressor`; by default `MSVR`.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        Above which score a label is predicted: 0 for all labels; or for each label the one that is
        best, by its F1 or by the number of correct decisions, on the training rows, scored by
        models that have not seen them (5 folds).
    memory : None, str or object with the interface of joblib.Memory, default=None
        Where to keep first stages: a grid search over the regressor's parameters then computes one
        for each part of the rows.

    Attributes
    ----------
    enhancer_, regressor_ : estimator
        Fitted clones.
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U of the training rows.
    origin_ : ndarray of shape (n_labels,)
        What is subtracted from the regressor's outputs. Zero where U has a sign; see the notes.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.
    label_names_ : ndarray of str
        The labels' names: columns of a frame, else ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        A label is predicted where its score exceeds this.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    Notes
    -----
    The sign of memberships and degrees (`FCMEnhancer`, `KMEnhancer`, `LabelPropagationEnhancer`,
    `GLLEEnhancer`) says nothing. Where the irrelevant entries of U are not negative, in the mean of
    them all, the origin of a label is the middle between its mean in the rows that have it and in
    those that do not; of a label that does not vary, it is on the side on which that label is
    predicted so.

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
        self.enhancer_, U = fit_enhancer(enhancer, X, Y, self.memory)
        self.numerical_labels_ = U
        self.origin_ = _origin(U, Y)
        self.regressor_ = _fitted(clone(regressor), X, U)

    def _outputs(self, X: Features) -> FloatArray:
        outputs = np.asarray(self.regressor_.predict(X), dtype=np.float64)
        return outputs.reshape(X.shape[0], -1)

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
            The regressor's outputs, normalised as the enhancer does with its numerical labels.
        """
        outputs = self._validated_scores(X) + self.origin_
        distribution: FloatArray = self.enhancer_._distribution(outputs)
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


def _origin(U: FloatArray, Y: LabelArray) -> FloatArray:
    """Where on the scale of its numerical labels a label begins to be relevant."""
    having = Y.sum(axis=0)
    lacking = len(Y) - having
    sums = np.array([(U * part).sum(axis=0) for part in (Y == 1, Y == 0)])
    if sums[1].sum() < 0:
        return np.zeros(U.shape[1])
    relevant, irrelevant = sums / np.maximum(np.array([having, lacking]), 1)
    # A label that does not vary has one mean: stay away from it.
    away = max(float(np.abs(U).max()), np.finfo(np.float64).tiny) / 2
    return np.select(
        [having == 0, lacking == 0],
        [irrelevant + away, relevant - away],
        (relevant + irrelevant) / 2,
    )
