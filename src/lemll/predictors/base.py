"""Base classes of all multi-label classifiers: label coding, thresholds and predictions."""

from __future__ import annotations

import inspect
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Literal, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import KFold
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from lemll._labels import (
    SMALLEST_WEIGHT,
    LabelCoding,
    check_same_rows,
    code_labels,
    partial_labels_error,
    weigh_cells,
)
from lemll._types import (
    Array,
    Features,
    FloatArray,
    IndexArray,
    KernelLike,
    LabelArray,
    MatrixLike,
    Settings,
    Thresholds,
)
from lemll._validation import UNOBSERVED, all_or_nothing, check_whole, warn_caller
from lemll.fitting.scaling import fit_scaling, normalize
from lemll.model_selection import equal_row_groups

_Class = TypeVar("_Class", bound=type)

_FOLDS = 5
# Predictions are made in parts whose scores have at most this size.
_SCORE_BYTES = 1 << 26
# Few rows may be without a label by chance.
_FEWEST_ROWS_TO_WARN = 20


# Learners that accept unknown cells and confidences; a test compares this with the classes.
PARTIAL_LEARNERS = (
    "LEMLL, LEMLLCV, MSVRClassifier, MSVRCV, BinaryRelevance, CLR, ECC, LabelChain, "
    "LabelPropagation, MLkNN, MultilabelForest(per_label=True), TagPredictor, "
    "TwoStage(LEMLLEnhancer())"
).split(", ")

Criterion = Literal["f1", "hamming"]
CRITERIA = ("f1", "hamming")


@dataclass(eq=False, repr=False, kw_only=True)
class ScalesColumns:
    """Part of estimators with the parameter `scale`, the scaling of the columns of X."""

    kernel: KernelLike = "linear"
    kernel_params: Settings | None = None
    scale: str = "none"
    max_iter: int = 1000

    def _learn_scaling(self, X: Features) -> Features:
        """Learn the scaling from training rows, and return the scaled rows."""
        self._scaling: Callable[[Features], Features] | None = None
        # Also an unknown name is not "none", and is refused by `fit_scaling`.
        if not (isinstance(self.scale, str) and self.scale == "none"):
            if isinstance(self.kernel, str) and self.kernel == "precomputed":
                raise ValueError(
                    f"scale={self.scale!r} must be 'none' with a precomputed kernel, whose columns "
                    "are not features."
                )
            self._scaling = fit_scaling(self.scale, X)
        return self._scaled(X)

    def _scaled(self, X: Features) -> Features:
        return X if self._scaling is None else self._scaling(X)


def plain_method_names(base: _Class) -> _Class:
    """Let Python's errors name the public methods of a base class without the base class.

    A user who calls ``LEMLL().predict()`` has never heard of the class that defines `predict`.
    """
    for name, method in vars(base).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            method.__qualname__ = name
    return base


@plain_method_names
class LabelScorer(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of multi-label classifiers that compute one score per label.

    A subclass implements `fit` and `_score`, and has the parameter `thresholds`.
    """

    thresholds: Thresholds | None
    # Whether probabilities are learned from scores of unseen rows: a parameter of some learners.
    probability: bool = False
    _coding: LabelCoding

    @abstractmethod
    def _score(self, X: Features) -> FloatArray:
        """Return the scores of validated rows, of shape (n_samples, n_labels)."""

    def _validated(
        self, X: Features, y: MatrixLike, label_weight: MatrixLike = None
    ) -> tuple[Features, LabelArray, LabelCoding]:
        """Check the arguments of `fit`; return features, 0/1 labels and their coding."""
        self._criterion()
        check_same_rows(X, y)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        Y, coding = code_labels(y, unobserved=True, label_weight=label_weight)
        check_consistent_length(X, Y)
        return X, Y, coding

    def _criterion(self) -> Criterion | None:
        """Return what thresholds are chosen by, None for zeros; refuse an unknown name."""
        if isinstance(self.thresholds, str):
            if self.thresholds == "zero":
                return None
            if self.thresholds in CRITERIA:
                return self.thresholds
        raise ValueError(
            f"thresholds={self.thresholds!r} must be 'zero', {', '.join(map(repr, CRITERIA))}."
        )

    def _store(self, coding: LabelCoding, thresholds: FloatArray) -> None:
        """Store what `predict` needs in addition to the scores."""
        if not self.probability:
            # The calibration of an earlier fit must not answer for this one.
            self.__dict__.pop("_calibration", None)
        self._coding = coding
        self.classes_ = coding.classes
        self.label_names_ = np.array(coding.names, dtype=object)
        self.thresholds_ = thresholds

    # Why `fit` has no weights of rows, unless the learner has them.
    _NO_ROW_WEIGHTS = "the method is not defined for weights of rows"

    def _refuse(self, third: tuple[object, ...], arguments: Mapping[str, object]) -> None:
        """Refuse unknown arguments of `fit`, with the name of the class that the user called.

        A third argument without a name is `sample_weight`, as in the classifiers of scikit-learn.
        """
        for name in (*(["sample_weight"] if third else []), *arguments):
            why = "leave it out"
            if name == "sample_weight":
                why = (
                    f"{self._NO_ROW_WEIGHTS}; leave it out, or use TagPredictor, BinaryRelevance, "
                    "MSVRClassifier or MultilabelForest"
                )
            raise TypeError(f"{type(self).__name__}.fit() does not take {name}: {why}.")

    @property
    def _pairwise(self) -> bool:
        """Whether X holds kernel values, with one column per training row."""
        return bool(getattr(self, "kernel", None) == "precomputed")

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Score every label. A higher score means more relevant.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            The scores. With ``thresholds="zero"`` a label is predicted if its score is positive.
            The shape is (n_samples,) for a binary 1-D target.
        """
        scores = self._validated_scores(X)
        return self._coding.scores(scores)

    def predict(self, X: MatrixLike) -> MatrixLike:
        """Predict the relevant labels.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray, csr_array or frame of shape (n_samples, n_labels)
            0/1 in the type of the training labels, or classes for a 1-D target. A pandas frame has
            the index of X. If X has no index, for example after a transformer in a pipeline, an
            array is returned, because a frame with another index would be joined to wrong rows.
        """
        rows = self._validated_rows(X)
        empty = 0

        def watched() -> Iterator[FloatArray]:
            nonlocal empty
            for scores in self._score_parts(rows):
                empty += int((scores <= self.thresholds_).all(axis=1).sum())
                yield scores

        labels = self._coding.labels_of_parts(watched(), X, self.thresholds_)
        self._warn_untagged(empty, rows.shape[0])
        return labels

    def _note_tags(self, Y: LabelArray) -> None:
        """Remember whether most training rows have a relevant label."""
        self._mostly_tagged = bool((Y == 1).any(axis=1).mean() > 0.5)

    def _uses_untagged_rows(self) -> bool:
        """Tell whether rows in which no label was observed have changed the fitted model."""
        return False

    def _to_set(self, setting: str) -> str:
        """Return how a user sets a parameter of the model, for messages."""
        return setting

    def _warn_unused(self, Y: LabelArray) -> None:
        """Warn if there are rows without an observed label and the learner cannot use them."""
        untagged = int((Y < 0).all(axis=1).sum())
        if untagged and not self._uses_untagged_rows():
            warn_caller(
                f"{type(self).__name__} does not learn from {untagged} of {len(Y)} rows, in which "
                "no label was observed; leave them out, or use a learner that learns from their "
                "features (LEMLL, LEMLLCV, LabelPropagation, TwoStage(LEMLLEnhancer())).",
                UserWarning,
            )

    def _warn_untagged(self, empty: int, n_rows: int) -> None:
        """Warn if most rows get no label although most training rows have one."""
        # Learners with thresholds of their own have no parameter of this name.
        expected = getattr(self, "_mostly_tagged", False) and hasattr(self, "thresholds")
        # A single label is simply not predicted; that is an answer.
        several = self._coding.multilabel and len(self.thresholds_) > 1
        if not (expected and several and self.thresholds == "zero"):
            return
        if n_rows >= _FEWEST_ROWS_TO_WARN and empty > n_rows / 2:
            advice = self._to_set("thresholds='f1'")
            warn_caller(
                f"{type(self).__name__} predicts no label in {empty} of {n_rows} rows: no "
                f"score is above 0; fit it with {advice} to choose one threshold per "
                "label, or rank the labels by decision_function.",
                UserWarning,
            )

    def score(self, X: MatrixLike, y: MatrixLike, sample_weight: MatrixLike = None) -> float:
        """Return the share of rows whose labels are all predicted correctly.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.
        y : array-like, sparse matrix or frame of shape (n_samples, n_labels)
            The true labels; unknown cells count as correct. Or a 1-D target.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            The subset accuracy; the accuracy for a 1-D target.
        """
        coded, coding = code_labels(y, unobserved=True)
        if coding.multilabel and (coded < 0).any():
            predicted, _ = code_labels(self.predict(X))
            right = ((predicted == coded) | (coded < 0)).all(axis=1)
            return float(np.average(right, weights=sample_weight))
        return float(super().score(X, y, sample_weight))

    def predict_top_k(self, X: MatrixLike, k: int) -> Array:
        """Return the names of the k labels with the highest scores in each row, best first.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.
        k : int
            Number of labels to return, at most n_labels.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Names as in `label_names_`. If scores are equal, the earlier label comes first.
        """
        rows = self._validated_rows(X)
        k = check_whole("k", k, least=1)
        n_labels = len(self.label_names_)
        if k > n_labels:
            raise ValueError(f"k={k} must not exceed the number of labels, {n_labels}.")
        parts = [
            self.label_names_[np.argsort(-scores, axis=1, kind="stable")[:, :k]]
            for scores in self._score_parts(rows)
        ]
        return np.concatenate(parts)

    def predict_distribution(self, X: MatrixLike) -> FloatArray:
        """Estimate how much each label matters in new rows.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            The logistic function of the scores, divided by the sum of each row.
        """
        return normalize(self._validated_scores(X))

    def to_frame(self, values: Array, X: MatrixLike = None) -> MatrixLike:
        """Convert an array with one column per label to a frame with the label names.

        Use it for the arrays from `decision_function`, `predict_distribution` and the attributes.

        Parameters
        ----------
        values : ndarray of shape (n_samples, n_labels)
            For example ``label_distribution_``.
        X : frame, optional
            The rows of `values`. If it is a pandas frame, the result has its index.

        Returns
        -------
        frame
            A frame of the same library as the training labels.
        """
        check_is_fitted(self)
        if self._coding.frame is None:
            raise ValueError(
                "the training labels were not a frame, so the frame library is unknown; "
                "label_names_ holds the names."
            )
        return self._coding.frame.make(np.asarray(values), X)

    def _validated_rows(self, X: Features) -> Features:
        check_is_fitted(self)
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )

    def _validated_scores(self, X: Features) -> FloatArray:
        return self._score(self._validated_rows(X))

    def _score_parts(self, rows: Features) -> Iterator[FloatArray]:
        """Yield the scores of validated rows in parts of limited size."""
        step = max(1, _SCORE_BYTES // (8 * len(self.label_names_)))
        for start in range(0, rows.shape[0], step):
            yield self._score(rows[start : start + step])

    def _findings(self) -> Mapping[str, str]:
        """Return what the fit chose and found, for a reader; a notebook shows it."""
        return {}

    def _html_repr(self) -> str:
        shown = str(estimator_html_repr(self))
        if not hasattr(self, "n_features_in_"):
            return shown
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in self._findings().items()
        )
        return f"{shown}<table><caption>What the fit chose and found</caption>{rows}</table>"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._pairwise
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


@plain_method_names
@dataclass(eq=False, repr=False, kw_only=True)
class MultilabelClassifier(LabelScorer):
    """Base of multi-label classifiers whose scores are above 0 for relevant labels.

    A subclass implements `_fit` and `_score`.
    """

    thresholds: Thresholds | None = "zero"

    @abstractmethod
    def _fit(self, X: Features, Y: LabelArray) -> None:
        """Learn from validated X and 0/1 labels of shape (n_samples, n_labels)."""

    def _fit_partial(self, X: Features, Y: LabelArray, weight: FloatArray) -> None:
        """Learn from labels of which only some cells are known.

        Y is -1 in unknown cells, and `weight` is 0 there. Learners that can do it override this.
        """
        raise partial_refusal(self, weight)

    def fit(
        self,
        X: MatrixLike,
        y: MatrixLike,
        *third: object,
        label_weight: MatrixLike = None,
        **others: object,
    ) -> Self:
        """Learn to predict labels.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features. Sparse features are never converted to dense.
        y : array-like, sparse matrix or frame of shape (n_samples, n_labels)
            Logical labels, 0/1. Or a 1-D target, as in the classifiers of scikit-learn. NaN, None,
            ``pandas.NA`` and masked cells of a label matrix mean that nobody observed the cell.
            Learners that cannot use such labels refuse them.
        label_weight : array-like or sparse matrix of shape (n_samples, n_labels), optional
            How sure each cell of y is, from 0 (not observed) to 1 (certain, the default). Where it
            is 0, y may hold any value.
        *third, **others : object
            Refused. `sample_weight` is an argument of learners that can use it.

        Returns
        -------
        self
            The fitted classifier.
        """
        self._refuse(third, others)
        return self._fit_labels(X, y, label_weight, None)

    @all_or_nothing
    def _fit_labels(
        self, X: MatrixLike, y: MatrixLike, label_weight: MatrixLike, sample_weight: MatrixLike
    ) -> Self:
        """Check all arguments of `fit`, and learn."""
        check_same_rows(X, label_weight, "label_weight")
        X, Y, coding = self._validated(X, y, label_weight)
        Y, weight = weigh_cells(Y, label_weight, coding)
        of_rows = _check_row_weight(sample_weight, X)
        thresholds = np.zeros(Y.shape[1])
        # A 1-D target takes the class with the best score, so thresholds have no effect.
        criterion = self._criterion() if coding.multilabel else None
        if criterion is not None or self.probability:
            scores = self._unseen_scores(X, Y, weight, of_rows)
            self._learn_from_unseen(scores, *_weigh_rows(Y, weight, of_rows))
            if criterion is not None:
                thresholds = best_thresholds(scores, Y, criterion)
        self._fit_weighted(X, Y, weight, of_rows)
        self._store(coding, thresholds)
        self._note_tags(Y)
        self._warn_unused(Y)
        return self

    def _fit_weighted(
        self, X: Features, Y: LabelArray, weight: FloatArray | None, of_rows: FloatArray | None
    ) -> None:
        """Learn from labels with weights of cells and of rows; None means that all are 1."""
        Y, weight = _weigh_rows(Y, weight, of_rows)
        if weight is None:
            self._fit(X, Y)
        else:
            self._fit_partial(X, Y, weight)

    def _learn_from_unseen(
        self, scores: FloatArray, Y: LabelArray, weight: FloatArray | None
    ) -> None:
        """Learn from the scores of rows by models that were not fitted to them."""

    def _unseen_scores(
        self, X: Features, Y: LabelArray, weight: FloatArray | None, of_rows: FloatArray | None
    ) -> FloatArray:
        """Return scores of all rows, each by a model that was not fitted to this row."""
        if len(Y) < 2 * _FOLDS:
            raise ValueError(
                f"{self._why_folds()} needs at least {2 * _FOLDS} rows, got {len(Y)}; leave it out."
            )
        scores = np.empty(Y.shape)
        groups = None if self._pairwise else equal_row_groups(X, _FOLDS)
        for seen, unseen in _random_folds(np.arange(len(Y)) if groups is None else groups):
            member = clone(self).set_params(**self._fold_parameters())
            known, new = (
                X[rows][:, seen] if self._pairwise else X[rows] for rows in (seen, unseen)
            )
            # A part of the rows may lack an observed cell of a label. The user cannot change that.
            weights = (None if array is None else array[seen] for array in (weight, of_rows))
            member._fit_weighted(known, Y[seen], *weights)
            scores[unseen] = member._score(new)
        return scores

    def _why_folds(self) -> str:
        """Return the parameter that needs scores of unseen rows."""
        return f"thresholds={self.thresholds!r}"

    def _fold_parameters(self) -> Settings:
        """Return the parameters that must change if only a part of the rows is fitted."""
        return {"thresholds": "zero"}


def _random_folds(groups: IndexArray) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Yield the rows to fit and the rows to score. Rows of a group stay together."""
    # Use a fixed seed: the same data give the same model, and the global state is not changed.
    for _, unseen in KFold(_FOLDS, shuffle=True, random_state=0).split(np.unique(groups)):
        out = np.isin(groups, unseen)
        yield np.flatnonzero(~out), np.flatnonzero(out)


@plain_method_names
class WeighsRows(MultilabelClassifier):
    """Base of classifiers that accept weights of rows."""

    # The base takes further arguments only to refuse them with its own words.
    def fit(  # type: ignore[override]
        self,
        X: MatrixLike,
        y: MatrixLike,
        sample_weight: MatrixLike = None,
        *,
        label_weight: MatrixLike = None,
        **others: object,
    ) -> Self:
        """Learn to predict labels.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Features. Sparse features are never converted to dense.
        y : array-like, sparse matrix or frame of shape (n_samples, n_labels)
            Logical labels, 0/1. Or a 1-D target, as in the classifiers of scikit-learn. NaN, None,
            ``pandas.NA`` and masked cells of a label matrix mean that nobody observed the cell.
            Learners that cannot use such labels refuse them.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, >= 0. Each cell has the weight of its row, times its
            `label_weight`.
        label_weight : array-like or sparse matrix of shape (n_samples, n_labels), optional
            How sure each cell of y is, from 0 (not observed) to 1 (certain, the default). Where it
            is 0, y may hold any value.
        **others : object
            Refused.

        Returns
        -------
        self
            The fitted classifier.
        """
        self._refuse((), others)
        return self._fit_labels(X, y, label_weight, sample_weight)


def _check_row_weight(sample_weight: MatrixLike, X: Features) -> FloatArray | None:
    """Return the weights of the rows; None if all of them are 1."""
    if sample_weight is None:
        return None
    of_rows = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not of_rows.any():
        raise ValueError("sample_weight must be above 0 in at least one row, got only zeros.")
    # The squares of other weights leave the range of floating-point numbers, or lose their digits.
    odd = (of_rows > 0) & ((of_rows < SMALLEST_WEIGHT) | (of_rows > 1 / SMALLEST_WEIGHT))
    if odd.any():
        raise ValueError(
            f"sample_weight must be 0, or from {SMALLEST_WEIGHT:g} to {1 / SMALLEST_WEIGHT:g}, got "
            f"{of_rows[odd][0]:g}; divide the weights by their mean."
        )
    return None if (of_rows == 1).all() else of_rows


def _weigh_rows(
    Y: LabelArray, weight: FloatArray | None, of_rows: FloatArray | None
) -> tuple[LabelArray, FloatArray | None]:
    """Multiply the weights of the cells by those of their rows."""
    if of_rows is None:
        return Y, weight
    weight = of_rows[:, None] * (np.ones(Y.shape) if weight is None else weight)
    return np.where(weight > 0, Y, np.int8(UNOBSERVED)), weight


def partial_refusal(estimator: LabelScorer, weight: FloatArray) -> ValueError:
    """Return the error of a learner that cannot use labels with unknown cells."""
    return partial_labels_error(type(estimator).__name__, weight, "a learner", PARTIAL_LEARNERS)


def refuse_confidences(estimator: LabelScorer, weight: FloatArray) -> None:
    """Refuse weights between 0 and 1, for learners that count rows."""
    if ((weight > 0) & (weight < 1)).any():
        able = ", ".join(name for name in PARTIAL_LEARNERS if name not in ("CLR", "MLkNN"))
        raise ValueError(
            f"{type(estimator).__name__} cannot use confidences between 0 and 1; give "
            f"label_weight 0 (not observed) or 1, or use a learner that can ({able})."
        )


def best_thresholds(scores: FloatArray, Y: LabelArray, criterion: Criterion) -> FloatArray:
    """Choose the best threshold of each label for the given scores.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_labels)
        Scores of rows that were not used to fit the model.
    Y : ndarray of shape (n_samples, n_labels)
        Their labels, 0/1; unknown cells (-1) do not count.
    criterion : {"f1", "hamming"}
        Maximise the F1 of each label, or the number of correct decisions.

    Returns
    -------
    ndarray of shape (n_labels,)
        One threshold per label, in the middle between two scores. It is 0 for a label that never
        occurs. Among equally good thresholds, the nearest to 0 is chosen, because the objective of
        the classifiers is designed for 0.

    Examples
    --------
    >>> best_thresholds(np.array([[0.1], [0.3], [0.5]]), np.array([[0], [1], [1]]), "f1")
    array([0.2])
    """
    return np.array(
        [_best_threshold(scores[:, j], Y[:, j], criterion) for j in range(scores.shape[1])]
    )


def _best_threshold(scores: FloatArray, y: MatrixLike, criterion: Criterion) -> float:
    if (y < 0).any():
        scores, y = scores[y >= 0], y[y >= 0]
    positives = int(y.sum())
    if positives == 0:
        return 0.0
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    # Entry k is the number of correct predictions if the k highest scores are predicted, k = 0..n.
    hits = np.concatenate(([0], np.cumsum(y[order], dtype=np.int64)))
    predicted = np.arange(len(y) + 1)
    value = (
        2 * hits / (predicted + positives)
        if criterion == "f1"
        else 2 * hits - predicted - positives  # minus the number of wrong decisions
    )
    margin = max(1.0, float(np.ptp(ranked)))
    cuts = np.concatenate(
        ([ranked[0] + margin], (ranked[:-1] + ranked[1:]) / 2, [ranked[-1] - margin])
    )
    # No threshold can separate rows with equal scores.
    possible = np.concatenate(([True], ranked[:-1] > ranked[1:], [True]))
    good = possible & (value >= value[possible].max() - 1e-12)
    return float(cuts[good][np.argmin(np.abs(cuts[good]))])
