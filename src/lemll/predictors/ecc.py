"""Classifier chains, and ensembles of them."""

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
from lemll.predictors.logistic.chains import ChainClassifier, by_content, mean_probabilities
from lemll.predictors.logistic.probability import log_odds

__all__ = ["ECC", "LabelChain"]

SHARE = 0.67


class LabelChain(ChainClassifier):
    r"""A classifier chain: each label's model has the labels before it as features.

    The model of the label at place s of the chain is a logistic regression on
    :math:`[x,y_{\pi(1)},\dots,y_{\pi(s-1)}]`, trained with the true labels; predictions feed the
    predicted ones forward [1]_. All models of a chain are trained at once.

    Parameters
    ----------
    estimator : None, "weka" or classifier, default=None
        What learns a label: a logistic regression with penalty :math:`\|\theta\|^2/(2C)`; the
        same without a penalty to speak of, as Weka has it (features divided by their standard
        deviations, ``C = 5e7``); or any binary classifier of scikit-learn.
    order : "random" or array-like of int, default="random"
        The labels' numbers in the order of the chain, or a random one. That depends on the labels
        themselves and not on how they are numbered.
    C : float, default=1.0
        Inverse strength of the penalty, > 0.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        At which log-odds a label is predicted in the end; the chain feeds forward at 0. Either 0
        for all labels, or for each label those that are best, by its F1 or by the number of
        correct decisions, on training rows of models that have not seen them (5 folds).
    tol : float, default=1e-4
        Relative length of the gradient at which to stop.
    max_iter : int, default=100
        Cap on Newton steps.
    n_jobs : int, optional
        Threads, as joblib counts them.
    random_state : int, RandomState or None, default=None
        For the order.

    Attributes
    ----------
    chain_ : Chain
        The order and the models.
    order_ : ndarray of shape (n_labels,)
        The label of each place.
    n_iter_ : int
        Newton steps of the slowest model; 1 with an estimator of the user's.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.
    label_names_ : ndarray of str
        The labels' names: columns of a frame, else ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        A label is predicted where its log-odds exceed this: just below 0, as ties are relevant.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

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
        n_labels = Y.shape[1]
        if isinstance(self.order, str) and self.order == "random":
            random = check_random_state(self.random_state)
            self.order_ = by_content(Y)[random.permutation(n_labels)]
        else:
            self.order_ = _checked_order(self.order, n_labels)
        self.chain_ = self._fit_chains(X, Y, [self.order_], None)[0]

    def _score(self, X: Features) -> FloatArray:
        return self.chain_.log_odds(X)


def _checked_order(order: Any, n_labels: int) -> IndexArray:
    message = (
        f"order={order!r} must be 'random' or hold each label's number, 0 to {n_labels - 1}, once."
    )
    try:
        places = np.asarray(order)
    except ValueError as ragged:
        raise ValueError(message) from ragged
    # Kind first: what holds no whole numbers may not even be sortable.
    if places.dtype.kind not in "iu" or places.ndim != 1:
        raise ValueError(message)
    if not np.array_equal(np.sort(places), np.arange(n_labels)):
        raise ValueError(message)
    return places.astype(np.intp)


class ECC(ChainClassifier):
    r"""Ensemble of classifier chains, each with its own order and sample of the rows.

    Each member is a chain as in `LabelChain`, of a random order, trained on a random sample of the
    rows; the members' probabilities, or their decisions, are averaged, and a label is predicted
    where the average is at least 1/2 [1]_. All models of all chains are trained at once.

    Parameters
    ----------
    estimator : None, "weka" or classifier, default=None
        What learns a label: a logistic regression with penalty :math:`\|\theta\|^2/(2C)`; the
        same without a penalty to speak of, as Weka has it and with it the paper (features divided
        by their standard deviations, ``C = 5e7``); or any binary classifier of scikit-learn.
    n_estimators : int, default=30
        Number of chains.
    sampling : {"bootstrap", "subset"}, default="bootstrap"
        As many rows as there are, drawn with replacement, as Mulan does it; or 67 % of them,
        without.
    combine : {"confidences", "votes"}, default="confidences"
        What to average: probabilities or decisions.
    C : float, default=1.0
        Inverse strength of the penalty, > 0.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        At which log-odds of the average a label is predicted: 0 for all labels, as in the paper;
        or for each label those that are best, by its F1 or by the number of correct decisions, on
        the training rows, scored by models that have not seen them (5 folds).
    tol : float, default=1e-4
        Relative length of the gradient at which to stop.
    max_iter : int, default=100
        Cap on Newton steps.
    n_jobs : int, optional
        Threads, or processes for an estimator of the user's, as joblib counts them.
    random_state : int, RandomState or None, default=None
        For orders and samples.

    Attributes
    ----------
    chains_ : list of Chain
        The members.
    n_iter_ : int
        Newton steps of the slowest model; 1 with an estimator of the user's.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.
    label_names_ : ndarray of str
        The labels' names: columns of a frame, else ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        A label is predicted where its log-odds exceed this: just below 0, as ties are relevant.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    LabelChain : A single chain.
    BinaryRelevance : Each label on its own.

    Notes
    -----
    The random orders depend on the labels themselves and not on how they are numbered, so
    permuted labels give permuted predictions.

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
        self.chains_ = self._fit_chains(X, Y, orders, counts)

    def _sample(self, random: Any, n_samples: int) -> IndexArray:
        """Return how often each row is drawn."""
        if self.sampling == "bootstrap":
            drawn = random.randint(n_samples, size=n_samples)
        else:
            drawn = random.permutation(n_samples)[: max(1, round(SHARE * n_samples))]
        return np.bincount(drawn, minlength=n_samples)

    def _score(self, X: Features) -> FloatArray:
        return log_odds(mean_probabilities(self.chains_, X, self.combine == "votes"))
