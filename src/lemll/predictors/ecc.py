"""Classifier chains and ensembles of classifier chains."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lemll._types import (
    Estimator,
    Features,
    FloatArray,
    IndexArray,
    LabelArray,
    RandomState,
    Thresholds,
)
from lemll._validation import check_whole
from lemll.predictors.binary_relevance import BinaryRelevance
from lemll.predictors.logistic.chains import ChainClassifier, by_content, mean_probabilities
from lemll.predictors.logistic.probability import log_odds

__all__ = ["ECC", "LabelChain"]

SHARE = 0.67


class LabelChain(ChainClassifier):
    r"""A classifier chain: the model of each label uses the earlier labels as features.

    The model of the label at position s of the chain is a logistic regression on
    :math:`[x,y_{\pi(1)},\dots,y_{\pi(s-1)}]`. It is trained with the true labels. In prediction it
    receives the predicted labels of the earlier models [1]_. Each model minimises the logistic
    loss plus :math:`\|\theta\|^2/(2C)`. All models of a chain are trained together.

    If labels have unknown cells, the model of a label is trained on the rows in which the label was
    observed. If an earlier label is unknown in such a row, the decision of a model of that label
    alone (`BinaryRelevance`) takes its place. Confidences are weights of the loss.

    Parameters
    ----------
    estimator : None, "weka" or classifier, default=None
        The model of one label. None: a logistic regression with the penalty
        :math:`\|\theta\|^2/(2C)`. "weka": the same as in Weka, with almost no penalty (features
        divided by their standard deviations, ``C = 5e7``). Or any binary classifier of
        scikit-learn.
    order : "random" or array-like of int, default="random"
        The numbers of the labels in the order of the chain, or a random order. The random order
        depends on the values of the labels, and not on how the labels are numbered.
    C : float, default=1.0
        Inverse strength of the penalty, > 0.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        A label is predicted if its log-odds reach its threshold. "zero" uses 0 for all labels.
        "f1" and "hamming" choose one threshold per label: the one with the best F1, or with the
        most correct decisions. To choose it, 5-fold cross-validation scores every training row
        with a model that was not fitted on that row. These thresholds apply to the final
        predictions; the labels that the chain passes to later models always use 0.
    tol : float, default=1e-4
        The solver stops when the relative length of the gradient is at most this.
    max_iter : int, default=100
        Largest number of Newton steps.
    n_jobs : int, optional
        Number of threads, as in joblib.
    random_state : int, RandomState or None, default=None
        Seed of the random order.

    Attributes
    ----------
    chain_ : Chain
        The order and the models.
    order_ : ndarray of shape (n_labels,)
        The label at each position of the chain.
    n_iter_ : int
        Newton steps of the slowest model. With an estimator of the user, 1.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels: the columns of a frame, or ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        One threshold per label. A label is predicted if its log-odds are above it. A threshold of
        0 is stored as a number slightly below 0, because a tie counts as relevant.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if X has names.

    See Also
    --------
    ECC : An ensemble of chains.

    References
    ----------
    .. [1] J. Read, B. Pfahringer, G. Holmes and E. Frank, "Classifier chains for multi-label
       classification", Machine Learning 85(3), 2011.

    Examples
    --------
    >>> from lemll import LabelChain
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = LabelChain(order=range(8), C=0.1).fit(digits.X[:900], digits.Y[:900])
    >>> model.predict(digits.X[900:]).shape
    (897, 8)
    """

    def __init__(
        self,
        estimator: Estimator = None,
        *,
        order: Any = "random",
        C: float = 1.0,
        thresholds: Thresholds = "zero",
        tol: float = 1e-4,
        max_iter: int = 100,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.order = order
        self.C = C
        self.thresholds = thresholds
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Features, Y: LabelArray) -> None:
        self._learn(X, Y, None)

    def _fit_partial(self, X: Features, Y: LabelArray, weight: FloatArray) -> None:
        self._learn(X, Y, weight)

    def _learn(self, X: Features, Y: LabelArray, weight: FloatArray | None) -> None:
        n_labels = Y.shape[1]
        if isinstance(self.order, str) and self.order == "random":
            random = check_random_state(self.random_state)
            self.order_ = by_content(Y)[random.permutation(n_labels)]
        else:
            self.order_ = _checked_order(self.order, n_labels)
        given = _given_labels(self, X, Y, weight)
        self.chain_ = self._fit_chains(X, given, [self.order_], None, weight)[0]

    def _score(self, X: Features) -> FloatArray:
        return self.chain_.log_odds(X)


def _given_labels(
    chain: LabelChain | ECC, X: Features, Y: LabelArray, weight: FloatArray | None
) -> LabelArray:
    """Return the labels that later models get: those observed, and guesses of the others."""
    if weight is None:
        return Y
    # The models of a chain get decisions in prediction, so they are trained with decisions also.
    alone = BinaryRelevance(
        chain.estimator, C=chain.C, tol=chain.tol, max_iter=chain.max_iter, n_jobs=chain.n_jobs
    )
    alone._fit_partial(X, Y, weight)
    return np.where(Y < 0, alone._score(X) >= 0, Y).astype(np.int8)


def _checked_order(order: Any, n_labels: int) -> IndexArray:
    message = (
        f"order={order!r} must be 'random' or hold each label's number, 0 to {n_labels - 1}, once."
    )
    try:
        places = np.asarray(order)
    except ValueError as ragged:
        raise ValueError(message) from ragged
    # Check the type first, because an array of other objects may not be sortable.
    if places.dtype.kind not in "iu" or places.ndim != 1:
        raise ValueError(message)
    if not np.array_equal(np.sort(places), np.arange(n_labels)):
        raise ValueError(message)
    return places.astype(np.intp)


class ECC(ChainClassifier):
    r"""Ensemble of classifier chains, each with its own order and sample of the rows.

    Each member is a `LabelChain` with a random order, trained on a random sample of the rows. The
    probabilities, or the decisions, of the members are averaged. A label is predicted if the
    average is at least 1/2 [1]_. Each model minimises the logistic loss plus
    :math:`\|\theta\|^2/(2C)`. All models of all chains are trained together. Unknown cells are
    used as in `LabelChain`.

    Parameters
    ----------
    estimator : None, "weka" or classifier, default=None
        The model of one label. None: a logistic regression with the penalty
        :math:`\|\theta\|^2/(2C)`. "weka": the same as in Weka, which the paper uses, with almost
        no penalty (features divided by their standard deviations, ``C = 5e7``). Or any binary
        classifier of scikit-learn.
    n_estimators : int, default=30
        Number of chains.
    sampling : {"bootstrap", "subset"}, default="bootstrap"
        "bootstrap" draws n_samples rows with replacement, as Mulan does. "subset" draws 67 % of
        the rows without replacement.
    combine : {"confidences", "votes"}, default="confidences"
        Average the probabilities ("confidences") or the 0/1 decisions ("votes").
    C : float, default=1.0
        Inverse strength of the penalty, > 0.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        A label is predicted if the log-odds of its average reach its threshold. "zero" uses 0 for
        all labels, as in the paper. "f1" and "hamming" choose one threshold per label: the one
        with the best F1, or with the most correct decisions. To choose it, 5-fold cross-validation
        scores every training row with a model that was not fitted on that row.
    tol : float, default=1e-4
        The solver stops when the relative length of the gradient is at most this.
    max_iter : int, default=100
        Largest number of Newton steps.
    n_jobs : int, optional
        Number of threads, as in joblib. With an estimator of the user: number of processes.
    random_state : int, RandomState or None, default=None
        Seed of the random orders and samples.

    Attributes
    ----------
    chains_ : list of Chain
        The members.
    n_iter_ : int
        Newton steps of the slowest model. With an estimator of the user, 1.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels: the columns of a frame, or ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        One threshold per label. A label is predicted if its log-odds are above it. A threshold of
        0 is stored as a number slightly below 0, because a tie counts as relevant.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if X has names.

    See Also
    --------
    LabelChain : A single chain.
    BinaryRelevance : One independent model per label.

    Notes
    -----
    The random orders depend on the values of the labels, and not on how the labels are numbered.
    Therefore permuted labels give permuted predictions.

    References
    ----------
    .. [1] J. Read, B. Pfahringer, G. Holmes and E. Frank, "Classifier chains for multi-label
       classification", Machine Learning 85(3), 2011.

    Examples
    --------
    >>> from lemll import ECC
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = ECC(n_estimators=5, C=0.1, random_state=0).fit(digits.X[:900], digits.Y[:900])
    >>> model.predict_proba(digits.X[900:]).shape
    (897, 8)
    """

    def __init__(
        self,
        estimator: Estimator = None,
        n_estimators: int = 30,
        *,
        sampling: Any = "bootstrap",
        combine: Any = "confidences",
        C: float = 1.0,
        thresholds: Thresholds = "zero",
        tol: float = 1e-4,
        max_iter: int = 100,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.sampling = sampling
        self.combine = combine
        self.C = C
        self.thresholds = thresholds
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Features, Y: LabelArray) -> None:
        self._learn(X, Y, None)

    def _fit_partial(self, X: Features, Y: LabelArray, weight: FloatArray) -> None:
        self._learn(X, Y, weight)

    def _learn(self, X: Features, Y: LabelArray, weight: FloatArray | None) -> None:
        n_estimators = check_whole("n_estimators", self.n_estimators, least=1)
        if self.sampling not in ("bootstrap", "subset"):
            raise ValueError(f"sampling={self.sampling!r} must be 'bootstrap' or 'subset'.")
        if self.combine not in ("confidences", "votes"):
            raise ValueError(f"combine={self.combine!r} must be 'confidences' or 'votes'.")
        random = check_random_state(self.random_state)
        content = by_content(Y)
        orders, counts = [], []
        for _ in range(n_estimators):
            orders.append(content[random.permutation(len(content))])
            counts.append(self._sample(random, len(Y)))
        given = _given_labels(self, X, Y, weight)
        self.chains_ = self._fit_chains(X, given, orders, counts, weight)

    def _sample(self, random: Any, n_samples: int) -> IndexArray:
        """Return how often each row is drawn."""
        if self.sampling == "bootstrap":
            drawn = random.randint(n_samples, size=n_samples)
        else:
            drawn = random.permutation(n_samples)[: max(1, round(SHARE * n_samples))]
        return np.bincount(drawn, minlength=n_samples)

    def _score(self, X: Features) -> FloatArray:
        return log_odds(mean_probabilities(self.chains_, X, self.combine == "votes"))
