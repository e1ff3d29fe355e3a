"""Calibrated label ranking: all pairs of labels vote, and each label against a virtual one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from lemll._types import Estimator, Features, FloatArray, LabelArray, Thresholds
from lemll._validation import check_flag
from lemll.predictors.binary_relevance import BinaryRelevance
from lemll.predictors.logistic.members import built_in
from lemll.predictors.logistic.pairs import LinearPairs, MemberPairs
from lemll.predictors.logistic.probability import TiesAreRelevant

__all__ = ["CLR"]


class CLR(TiesAreRelevant):
    r"""Calibrated label ranking.

    For every pair of labels a model tells, from the rows that have exactly one of them, which of
    the two is more relevant; for every label another tells whether it is relevant at all, which is
    a vote between it and a virtual label 0 [1]_. With :math:`v_p` the votes for label p and
    :math:`v_0` those for the virtual one, the scores of the l labels are

    .. math:: f_p=(v_p-v_0)/l,

    which rank labels by their votes; those with at least as many as the virtual one are predicted.

    Parameters
    ----------
    estimator : None, "weka" or classifier, default=None
        What learns a pair: a logistic regression with penalty :math:`\|\theta\|^2/(2C)`; the same
        without a penalty to speak of, as Weka has it and with it the paper (features divided by
        their standard deviations in all training rows, ``C = 5e7``); or any binary classifier of
        scikit-learn.
    voting : {"hard", "soft"}, default="hard"
        A model gives its vote to one label, of equally probable ones to the first; or to both
        labels their probabilities.
    mulan_compat : bool, default=False
        Ignore all pairs after the first one that no training row distinguishes, in the order
        (0, 1), (0, 2), ..., (1, 2), ...; as the Java library Mulan does by mistake, and with it
        the published figures. Only for their reproduction.
    C : float, default=1.0
        Inverse strength of the penalty, > 0.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        At which score a label is predicted: 0 for all labels, as in the paper; or for each label
        the one that is best, by its F1 or by the number of correct decisions, on the training
        rows, scored by models that have not seen them (5 folds).
    tol : float, default=1e-4
        Relative length of the gradient at which to stop.
    max_iter : int, default=100
        Cap on Newton steps.
    n_jobs : int, optional
        Threads, or processes for an estimator of the user's, as joblib counts them.

    Attributes
    ----------
    pairs_ : LinearPairs or MemberPairs
        The models of pairs.
    virtual_ : BinaryRelevance
        The models of labels against the virtual one.
    n_iter_ : int
        Newton steps of the slowest model; 1 with an estimator of the user's.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.
    label_names_ : ndarray of str
        The labels' names: columns of a frame, else ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        A label is predicted where its score exceeds this: just below 0, as ties are relevant.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    See Also
    --------
    BinaryRelevance : Only the votes against the virtual label.

    Notes
    -----
    A pair whose training rows all have the same label always votes for it; a pair without such
    rows has no vote. The built-in models need 4 bytes for each pair and feature, which is 140 MB
    for the 69,751 pairs of 374 labels and 499 features.

    References
    ----------
    .. [1] J. Fuernkranz, E. Huellermeier, E. Loza Mencia and K. Brinker, "Multilabel
       classification via calibrated label ranking", Machine Learning 73(2), 2008.

    Examples
    --------
    >>> from lemll import CLR
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = CLR(C=0.1).fit(digits.X[:900], digits.Y[:900])
    >>> model.predict(digits.X[900:]).shape
    (897, 8)
    """

    def __init__(
        self,
        estimator: Estimator = None,
        *,
        voting: Any = "hard",
        mulan_compat: bool = False,
        C: float = 1.0,
        thresholds: Thresholds = "zero",
        tol: float = 1e-4,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.voting = voting
        self.mulan_compat = mulan_compat
        self.C = C
        self.thresholds = thresholds
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def _fit(self, X: Features, Y: LabelArray) -> None:
        if self.voting not in ("hard", "soft"):
            raise ValueError(f"voting={self.voting!r} must be 'hard' or 'soft'.")
        check_flag("mulan_compat", self.mulan_compat)
        own = built_in(self, X)
        self.virtual_ = BinaryRelevance(
            self.estimator, C=self.C, tol=self.tol, max_iter=self.max_iter, n_jobs=self.n_jobs
        )
        self.virtual_._fit(X, Y)
        self.pairs_: LinearPairs | MemberPairs
        if own is None:
            self.pairs_ = MemberPairs.fit(X, Y, self.estimator, self.n_jobs)
        else:
            self.pairs_ = LinearPairs.fit(X, Y, own)
        self.n_iter_ = max(self.virtual_.n_iter_, self.pairs_.n_iter)

    def _score(self, X: Features) -> FloatArray:
        relevant = _votes(self.virtual_._score(X), self.voting)
        votes = relevant.copy()
        n_labels = votes.shape[1]
        for p in range(n_labels - 1):
            scores, known = self.pairs_.log_odds(X, p, self.mulan_compat)
            first = _votes(scores, self.voting)
            votes[:, p] += first @ known
            votes[:, p + 1 :] += (1 - first) * known
        virtual = (1 - relevant).sum(axis=1, keepdims=True)
        return np.asarray((votes - virtual) / n_labels)


def _votes(scores: FloatArray, voting: str) -> FloatArray:
    """Return the votes, or probabilities, of the first label of each pair."""
    return np.asarray(expit(scores) if voting == "soft" else (scores >= 0).astype(np.float64))
