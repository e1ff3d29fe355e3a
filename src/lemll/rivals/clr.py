"""Calibrated label ranking: votes of all pairs of labels, and of labels against a virtual one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy.special import expit
from sklearn.utils.validation import check_memory as joblib_memory
from sklearn.utils.validation import has_fit_parameter

from lemll._types import Estimator, Features, FloatArray, LabelArray, MatrixLike
from lemll._validation import check_choice, check_flag, check_memory
from lemll.predictors.base import refuse_confidences
from lemll.predictors.binary_relevance import (
    BuiltIn,
    FitsMembers,
    built_in,
    fit_member,
    member_log_odds,
)
from lemll.predictors.calibrated import SURE
from lemll.rivals.logistic_subsets import solve_logistic_subsets

# Pairs are trained in groups with about this many rows in total, which need 4 bytes per row.
CHUNK_ROWS = 1 << 24
# A row with a smaller weight in a pair is left out.
LEAST_WEIGHT = 1e-6


class PairRows(NamedTuple):
    """The training rows of a pair of labels.

    Attributes
    ----------
    rows : ndarray of int32
        Indices of the rows.
    labels : ndarray of int8
        Whether the row has the first label of the pair (1) or the second (0).
    weights : ndarray or None
        The weights of the rows; None means 1.
    """

    rows: npt.NDArray[np.int32]
    labels: LabelArray
    weights: FloatArray | None


def rows_of_pairs(Y: LabelArray, chance: FloatArray | None = None) -> Iterator[PairRows]:
    """Yield, per pair, the rows with exactly one of its labels.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1; -1 in unknown cells.
    chance : ndarray of shape (n_samples, n_labels), optional
        Probabilities of the labels. With them, a row in which only one label of the pair is known
        counts with the probability that it has exactly one of the two. Without them, such a row
        does not count.

    Yields
    ------
    PairRows
        In the order (0, 1), (0, 2), ..., (1, 2), ....
    """
    expected = None if chance is None else np.where(Y < 0, chance, Y)
    for p in range(Y.shape[1] - 1):
        for q in range(p + 1, Y.shape[1]):
            # A row with both labels or with neither does not say which of the two is better.
            if expected is None:
                # One 0 and one 1 sum to 1; no sum with the -1 of an unknown cell does.
                rows = np.flatnonzero(Y[:, p] + Y[:, q] == 1)
                yield PairRows(rows.astype(np.int32), Y[rows, p], None)
                continue
            # One of the labels is known, so one of the two products is 0.
            first = expected[:, p] * (1 - expected[:, q])
            weights = first + expected[:, q] * (1 - expected[:, p])
            weights[(Y[:, p] < 0) & (Y[:, q] < 0)] = 0
            rows = np.flatnonzero(weights > LEAST_WEIGHT)
            labels = (first[rows] > 0).astype(np.int8)
            yield PairRows(rows.astype(np.int32), labels, weights[rows])


@dataclass(frozen=True, slots=True)
class LinearPairs:
    """Logistic regressions of all pairs.

    Attributes
    ----------
    n_labels : int
        Number of labels.
    coef : ndarray of shape (n_pairs, n_features), float32
        Coefficients of the scaled features, in the order (0, 1), (0, 2), ..., (1, 2), ...
    intercept : ndarray of shape (n_pairs,)
        Intercepts. NaN for a pair that no training row distinguishes.
    n_iter : int
        Newton steps of the slowest model.
    own : BuiltIn
        How the features were scaled. The coefficients are stored for scaled features, because
        conversion to the original features would round them again, and then they would not match
        their intercepts.
    """

    n_labels: int
    coef: npt.NDArray[np.float32]
    intercept: FloatArray
    n_iter: int
    own: BuiltIn

    @classmethod
    def fit(
        cls, X: MatrixLike, Y: LabelArray, own: BuiltIn, chance: FloatArray | None = None
    ) -> Self:
        """Train all pairs, in groups; `chance` as in `rows_of_pairs`."""
        n_labels = Y.shape[1]
        n_pairs = n_labels * (n_labels - 1) // 2
        check_memory(
            4 * n_pairs * X.shape[1],
            f"The models of {n_pairs} pairs of labels",
            "keep fewer labels or features, or use BinaryRelevance",
        )
        coef = np.empty((n_pairs, X.shape[1]), dtype=np.float32)
        intercept, gradient_norm, n_iter = np.empty(n_pairs), np.empty(n_pairs), 0
        scaled = own.scaled(X)
        start = 0
        for pairs in _chunks(Y, chance):
            rows, labels = [pair.rows for pair in pairs], [pair.labels for pair in pairs]
            weights = [pair.weights for pair in pairs if pair.weights is not None] or None
            solution = solve_logistic_subsets(scaled, rows, labels, weights=weights, **own.options)
            part = slice(start, start + len(rows))
            coef[part] = solution.coef
            # Only a constant model has an infinite intercept; keep the scores finite.
            intercept[part] = np.nan_to_num(
                solution.intercept, nan=np.nan, posinf=SURE, neginf=-SURE
            )
            gradient_norm[part] = solution.gradient_norm
            n_iter = max(n_iter, int(solution.n_iter.max()))
            start += len(rows)
        own.warn("CLR", gradient_norm)
        return cls(n_labels, coef, intercept, n_iter, own)

    def log_odds(self, X: Features, p: int, until_empty: bool) -> tuple[FloatArray, FloatArray]:
        """Score label p against each later label; also return which of the pairs have a vote."""
        part = _pairs_of(self.n_labels, p)
        empty = np.isnan(self.intercept)
        known = _known(empty, part, until_empty)
        coef = np.ascontiguousarray(self.own.unscaled(self.coef[part].astype(np.float64)).T)
        return np.asarray(X @ coef + np.nan_to_num(self.intercept[part])), known


@dataclass(frozen=True, slots=True)
class MemberPairs:
    """Classifiers of the user for all pairs.

    Attributes
    ----------
    n_labels : int
        Number of labels.
    members : list
        One classifier per pair, in the order (0, 1), (0, 2), ..., (1, 2), .... None for a pair
        that no training row distinguishes.
    """

    n_labels: int
    members: list[Estimator]
    n_iter: int = 1

    @classmethod
    def fit(
        cls,
        X: MatrixLike,
        Y: LabelArray,
        estimator: Estimator,
        n_jobs: int | None,
        chance: FloatArray | None = None,
    ) -> Self:
        """Train all pairs; `chance` as in `rows_of_pairs`."""
        members = Parallel(n_jobs=n_jobs)(
            delayed(_fit_pair)(estimator, X, pair) for pair in rows_of_pairs(Y, chance)
        )
        return cls(Y.shape[1], members)

    def log_odds(self, X: Features, p: int, until_empty: bool) -> tuple[FloatArray, FloatArray]:
        """Score label p against each later label; also return which of the pairs have a vote."""
        part = _pairs_of(self.n_labels, p)
        empty = np.array([member is None for member in self.members])
        scores = [
            member_log_odds(0.0 if member is None else member, X) for member in self.members[part]
        ]
        return np.column_stack(scores), _known(empty, part, until_empty)


def _chunks(Y: LabelArray, chance: FloatArray | None) -> Iterator[list[PairRows]]:
    pairs: list[PairRows] = []
    listed = 0
    for pair in rows_of_pairs(Y, chance):
        pairs.append(pair)
        listed += len(pair.rows)
        if listed > CHUNK_ROWS:
            yield pairs
            pairs, listed = [], 0
    if pairs:
        yield pairs


def _pairs_of(n_labels: int, p: int) -> slice:
    """Return the positions of the pairs (p, p + 1), (p, p + 2), ...."""
    # Label k begins n - 1 - k pairs. The start is their sum over all k < p.
    start = p * n_labels - p * (p + 1) // 2
    return slice(start, start + n_labels - 1 - p)


def _known(empty: npt.NDArray[np.bool_], part: slice, until_empty: bool) -> FloatArray:
    # Mulan stops at the first empty pair by mistake; see `mulan_compat` of CLR.
    if until_empty:
        empty = np.logical_or.accumulate(empty)
    return (~empty[part]).astype(np.float64)


def _fit_pair(estimator: Estimator, X: Features, pair: PairRows) -> Features:
    if not len(pair.rows):
        return None
    return fit_member(estimator, X[pair.rows], pair.labels, pair.weights)


@dataclass(eq=False, repr=False)
class CLR(FitsMembers):
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
    classes_, label_names_, thresholds_, n_features_in_, feature_names_in_
        As in :class:`lemll.BinaryRelevance`.

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
    >>> from lemll.rivals import CLR
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = CLR(C=0.1).fit(digits.X[:900], digits.Y[:900])
    >>> model.predict(digits.X[900:]).shape
    (897, 8)
    """

    _: KW_ONLY
    voting: Literal["hard", "soft"] = "hard"
    mulan_compat: bool = False
    memory: Estimator = None

    def _fit(self, X: Features, Y: LabelArray, weight: FloatArray | None = None) -> None:
        if weight is not None:
            refuse_confidences(self, weight)
        check_choice("voting", self.voting, ("hard", "soft"))
        check_flag("mulan_compat", self.mulan_compat)
        own = built_in(self, X)
        self.virtual_ = self._of_single_labels()
        self.virtual_._fit(X, Y, weight)
        chance = None
        # An estimator without weights can only use the rows in which both labels are known.
        if weight is not None and (own or has_fit_parameter(self.estimator, "sample_weight")):
            chance = expit(self.virtual_._score(X))
        # Without a cache, do not go through joblib: then warnings point at the line of the user.
        fit = _fit_pairs if self.memory is None else joblib_memory(self.memory).cache(_fit_pairs)
        self.pairs_: LinearPairs | MemberPairs = fit(
            X, Y, self.estimator if own is None else own, self.n_jobs, chance
        )
        self.n_iter_ = max(self.virtual_.n_iter_, self.pairs_.n_iter)

    _fit_partial = _fit

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
