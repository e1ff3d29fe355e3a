"""Calibrated label ranking: votes of all pairs of labels, and of labels against a virtual one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_memory, has_fit_parameter

from lemll._types import Estimator, Features, FloatArray, LabelArray, Thresholds
from lemll._validation import check_flag
from lemll.predictors._base import refuse_confidences
from lemll.predictors.binary_relevance import BinaryRelevance
from lemll.predictors.logistic.members import BuiltIn, built_in
from lemll.predictors.logistic.pairs import LinearPairs, MemberPairs
from lemll.predictors.logistic.probability import TiesAreRelevant

__all__ = ["CLR"]


class CLR(TiesAreRelevant):
    r"""Calibrated label ranking.

    There is one model per pair of labels. It is trained on the rows that have exactly one of the
    two labels, and it votes for the more relevant one. There is also one model per label, which
    votes between this label and a virtual label 0 [1]_. Each model minimises the logistic loss
    plus :math:`\|\theta\|^2/(2C)`. Let :math:`v_p` be the votes for label p and :math:`v_0` the
    votes for the virtual label. The scores of the l labels are

    .. math:: f_p=(v_p-v_0)/l.

    A label is predicted if it has at least as many votes as the virtual label.

    If labels have unknown cells, the model of a pair also uses the rows in which only one of the
    two labels is known. Such a row counts with the probability that it has exactly one of them,
    which the model of the unknown label against the virtual label gives. An `estimator` that does
    not accept sample weights uses only the rows in which both labels are known.

    Parameters
    ----------
    estimator : None, "weka" or classifier, default=None
        The model of one pair. None: a logistic regression with the penalty
        :math:`\|\theta\|^2/(2C)`. "weka": the same as in Weka, which the paper uses, with almost
        no penalty (features divided by their standard deviations in all training rows,
        ``C = 5e7``). Or any binary classifier of scikit-learn.
    voting : {"hard", "soft"}, default="hard"
        "hard": a model gives one vote to the more probable label, or to the first label in a tie.
        "soft": a model gives each of its two labels its probability.
    mulan_compat : bool, default=False
        Ignore all pairs after the first pair that no training row distinguishes, in the order
        (0, 1), (0, 2), ..., (1, 2), .... The Java library Mulan does this by mistake, and the
        published figures were computed with it. Use this only to reproduce them.
    C : float, default=1.0
        Inverse strength of the penalty, > 0.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        A label is predicted if its score reaches its threshold. "zero" uses 0 for all labels, as
        in the paper. "f1" and "hamming" choose one threshold per label: the one with the best F1,
        or with the most correct decisions. To choose it, 5-fold cross-validation scores every
        training row with a model that was not fitted on that row.
    tol : float, default=1e-4
        The solver stops when the relative length of the gradient is at most this.
    max_iter : int, default=100
        Largest number of Newton steps.
    n_jobs : int, optional
        Number of threads, as in joblib. With an estimator of the user: number of processes.
    memory : None, str or object with the interface of joblib.Memory, default=None
        Cache of the models of the pairs, which do not depend on `voting` and `mulan_compat`.

    Attributes
    ----------
    pairs_ : LinearPairs or MemberPairs
        The models of the pairs.
    virtual_ : BinaryRelevance
        The models of the labels against the virtual label.
    n_iter_ : int
        Newton steps of the slowest model. With an estimator of the user, 1.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels: the columns of a frame, or ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        One threshold per label. A label is predicted if its score is above it. A threshold of 0 is
        stored as a number slightly below 0, because a tie counts as relevant.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if X has names.

    See Also
    --------
    BinaryRelevance : Uses only the votes against the virtual label.

    Notes
    -----
    If all training rows of a pair have the same one of its labels, the pair always votes for that
    label. A pair without training rows has no vote. The built-in models need 4 bytes per pair and
    feature. For example, 374 labels (69,751 pairs) and 499 features need 140 MB.

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
        memory: Estimator = None,
    ) -> None:
        self.estimator = estimator
        self.voting = voting
        self.mulan_compat = mulan_compat
        self.C = C
        self.thresholds = thresholds
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.memory = memory

    def _fit(self, X: Features, Y: LabelArray) -> None:
        self._learn(X, Y, None)

    def _fit_partial(self, X: Features, Y: LabelArray, weight: FloatArray) -> None:
        refuse_confidences(self, weight)
        self._learn(X, Y, weight)

    def _learn(self, X: Features, Y: LabelArray, weight: FloatArray | None) -> None:
        if self.voting not in ("hard", "soft"):
            raise ValueError(f"voting={self.voting!r} must be 'hard' or 'soft'.")
        check_flag("mulan_compat", self.mulan_compat)
        own = built_in(self, X)
        self.virtual_ = BinaryRelevance(
            self.estimator, C=self.C, tol=self.tol, max_iter=self.max_iter, n_jobs=self.n_jobs
        )
        self.virtual_._learn(X, Y, weight)
        chance = None
        # An estimator without weights can only use the rows in which both labels are known.
        if weight is not None and (own or has_fit_parameter(self.estimator, "sample_weight")):
            chance = expit(self.virtual_._score(X))
        # Without a cache, do not go through joblib: then warnings point at the line of the user.
        fit = _fit_pairs if self.memory is None else check_memory(self.memory).cache(_fit_pairs)
        self.pairs_: LinearPairs | MemberPairs = fit(
            X, Y, self.estimator if own is None else own, self.n_jobs, chance
        )
        self.n_iter_ = max(self.virtual_.n_iter_, self.pairs_.n_iter)

    def _score(self, X: Features) -> FloatArray:
        relevant = _votes(self.virtual_._score(X), self.voting)
        votes = relevant.copy()
        n_labels = votes.shape[1]
        # One label against all later labels at a time: all pairs at once may not fit in memory.
        for p in range(n_labels - 1):
            scores, known = self.pairs_.log_odds(X, p, self.mulan_compat)
            first = _votes(scores, self.voting)
            votes[:, p] += first @ known
            votes[:, p + 1 :] += (1 - first) * known
        virtual = (1 - relevant).sum(axis=1, keepdims=True)
        return np.asarray((votes - virtual) / n_labels)


def _fit_pairs(
    X: Features,
    Y: LabelArray,
    model: Estimator | BuiltIn,
    n_jobs: int | None,
    chance: FloatArray | None,
) -> LinearPairs | MemberPairs:
    """Fit the models of all pairs. The arguments are the key of a cache."""
    if isinstance(model, BuiltIn):
        return LinearPairs.fit(X, Y, model, chance)
    return MemberPairs.fit(X, Y, model, n_jobs, chance)


def _votes(scores: FloatArray, voting: str) -> FloatArray:
    """Return the votes for the first label of each pair, or its probabilities."""
    return np.asarray(expit(scores) if voting == "soft" else (scores >= 0).astype(np.float64))
