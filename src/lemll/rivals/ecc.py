"""Classifier chains and ensembles of classifier chains."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse
from scipy.special import expit
from sklearn.utils import check_random_state

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
from lemll._validation import check_choice, check_whole, is_sparse
from lemll.predictors.binary_relevance import FitsMembers, built_in, fit_member, member_log_odds
from lemll.predictors.calibrated import SURE, ProbabilityClassifier, log_odds
from lemll.solvers.logistic import solve_logistic

# After this many labels, one matrix product adds their contribution to all later scores. This is
# faster than one product per label.
BLOCK = 32


def by_content(Y: LabelArray) -> IndexArray:
    """Return an order of the labels that does not depend on how they are numbered."""
    return np.asarray(np.lexsort(Y))


@dataclass(frozen=True, slots=True)
class Chain:
    """One chain, with one model per position.

    Attributes
    ----------
    order : ndarray of shape (n_labels,)
        The label at each position.
    coef : ndarray of shape (n_labels, n_features) or None
        Coefficients of the features, for the built-in models.
    label_coef : ndarray of shape (n_labels, n_labels) or None
        Coefficients of the labels at earlier positions.
    intercept : ndarray of shape (n_labels,) or None
        Intercepts.
    members : list or None
        Fitted classifiers of the user.
    """

    order: IndexArray
    coef: FloatArray | None = None
    label_coef: FloatArray | None = None
    intercept: FloatArray | None = None
    members: list[Estimator] | None = None

    def log_odds(self, X: Features) -> FloatArray:
        """Score each label, given the predictions of the earlier ones; columns in label order."""
        scores = np.empty((X.shape[0], len(self.order)))
        scores[:, self.order] = self._by_member(X) if self.members is not None else self._linear(X)
        return scores

    def _linear(self, X: Features) -> FloatArray:
        assert self.coef is not None
        assert self.label_coef is not None
        assert self.intercept is not None
        scores = np.asarray(X @ self.coef.T + self.intercept)
        weights = self.label_coef
        n_labels = len(self.order)
        decided = np.zeros(scores.shape)
        for start in range(0, n_labels, BLOCK):
            stop = min(start + BLOCK, n_labels)
            for place in range(start, stop):
                # The models were trained with labels 0/1, so they get decisions, not probabilities.
                scores[:, place] += decided[:, start:place] @ weights[place, start:place]
                decided[:, place] = scores[:, place] >= 0
            scores[:, stop:] += decided[:, start:stop] @ weights[stop:, start:stop].T
        return scores

    def _by_member(self, X: Features) -> FloatArray:
        assert self.members is not None
        scores = np.empty((X.shape[0], len(self.order)))
        for place, member in enumerate(self.members):
            extended = with_labels(X, (scores[:, :place] >= 0).astype(X.dtype))
            scores[:, place] = member_log_odds(member, extended)
        return scores


def with_labels(X: Features, labels: MatrixLike) -> Features:
    """Append labels to the features."""
    if is_sparse(X):
        return sparse.hstack([X, sparse.csr_array(labels)], format="csr")
    return np.column_stack([X, labels])


@dataclass(eq=False, repr=False, kw_only=True)
class ChainClassifier(FitsMembers, ProbabilityClassifier):
    """Base of classifiers made of chains."""

    random_state: RandomState = None

    def _fit_chains(
        self,
        X: Features,
        Y: LabelArray,
        orders: list[IndexArray],
        counts: list[IndexArray] | None,
        weight: FloatArray | None = None,
    ) -> list[Chain]:
        """Train the chains.

        `counts` says how often each chain uses each row. `weight` has the weights of the cells. A
        cell without a weight does not train the model of its label, but later models get its
        value.
        """
        own = built_in(self, X)
        self.n_iter_ = 1
        if own is None:
            samples = [None] * len(orders) if counts is None else counts
            chains: list[Chain] = Parallel(n_jobs=self.n_jobs)(
                delayed(_fit_by_member)(self.estimator, X, Y, order, count=count, weight=weight)
                for order, count in zip(orders, samples, strict=True)
            )
            return chains
        n_labels = Y.shape[1]
        labels = np.concatenate(orders)
        weights: Array | None = None if weight is None else weight[:, labels]
        if counts is not None:
            # One weight per row and model is a large array, so use the smallest integer type.
            drawn = np.array(counts).T
            drawn = np.repeat(drawn.astype(np.min_scalar_type(drawn.max())), n_labels, axis=1)
            weights = drawn if weights is None else _sampled(weights, drawn)
        solution = solve_logistic(
            own.scaled(X),
            Y[:, labels],
            sample_weight=weights,
            extra=Y,
            allowed=np.vstack([_earlier(order) for order in orders]),
            **own.options,
        )
        own.warn(type(self).__name__, solution.gradient_norm)
        self.n_iter_ = max(1, int(solution.n_iter.max()))
        # A constant label has an infinite intercept, but scores must be finite.
        intercept = np.nan_to_num(solution.intercept, posinf=SURE, neginf=-SURE)
        if weights is not None:
            # A label without an observed row is never predicted; its model would say one half.
            intercept[~weights.any(axis=0)] = -SURE
        coef = own.unscaled(solution.coef)
        # The extra coefficients have the labels in their original order. In the order of the chain
        # they form a lower triangle, which the prediction uses in blocks.
        cuts = [slice(i * n_labels, (i + 1) * n_labels) for i in range(len(orders))]
        return [
            Chain(order, coef[cut], solution.extra_coef[cut][:, order], intercept[cut])
            for order, cut in zip(orders, cuts, strict=True)
        ]

    def _given_labels(self, X: Features, Y: LabelArray, weight: FloatArray | None) -> LabelArray:
        """Return the labels that later models get: those observed, and guesses of the others."""
        if weight is None:
            return Y
        # The models of a chain get decisions in prediction, so they are trained with them also.
        alone = self._of_single_labels()
        alone._fit(X, Y, weight)
        return np.where(Y < 0, alone._score(X) >= 0, Y).astype(np.int8)


def _earlier(order: IndexArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the labels that come before the one at each position."""
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return np.asarray(place < np.arange(len(order))[:, None])


def _fit_by_member(
    estimator: Estimator,
    X: Features,
    Y: LabelArray,
    order: IndexArray,
    *,
    count: IndexArray | None,
    weight: FloatArray | None,
) -> Chain:
    every = rows = np.arange(len(Y))
    if count is not None:
        rows = np.repeat(every, count)
    members = []
    for place, label in enumerate(order):
        # As in `_sampled`, a sample without an observed cell of the label is not used.
        mine = rows if weight is None or weight[rows, label].any() else every
        extended = with_labels(X[mine], Y[mine][:, order[:place]].astype(X.dtype))
        of_rows = None if weight is None else weight[mine, label]
        members.append(fit_member(estimator, extended, Y[mine, label], of_rows))
    return Chain(order, members=members)


def _sampled(weights: Array, drawn: Array) -> Array:
    """Multiply the weights of the cells by how often their rows were drawn."""
    sampled = weights * drawn
    # A label may be observed in so few rows that a sample contains none of them. Then use them all.
    empty = ~sampled.any(axis=0)
    sampled[:, empty] = weights[:, empty]
    return sampled


def mean_probabilities(chains: list[Chain], X: Features, votes: bool) -> FloatArray:
    """Return the mean of the probabilities, or of the decisions, of the chains."""
    total: Array | float = 0.0
    for chain in chains:
        scores = chain.log_odds(X)
        total = total + ((scores >= 0) if votes else expit(scores))
    return np.asarray(total / len(chains))


SHARE = 0.67


@dataclass(eq=False, repr=False)
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
    classes_, label_names_, thresholds_, n_features_in_, feature_names_in_
        As in :class:`lemll.BinaryRelevance`.

    See Also
    --------
    ECC : An ensemble of chains.

    References
    ----------
    .. [1] J. Read, B. Pfahringer, G. Holmes and E. Frank, "Classifier chains for multi-label
       classification", Machine Learning 85(3), 2011.

    Examples
    --------
    >>> from lemll.rivals import LabelChain
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = LabelChain(order=range(8), C=0.1).fit(digits.X[:900], digits.Y[:900])
    >>> model.predict(digits.X[900:]).shape
    (897, 8)
    """

    _: KW_ONLY
    order: Any = "random"

    def _fit(self, X: Features, Y: LabelArray, weight: FloatArray | None = None) -> None:
        n_labels = Y.shape[1]
        if isinstance(self.order, str) and self.order == "random":
            random = check_random_state(self.random_state)
            self.order_ = by_content(Y)[random.permutation(n_labels)]
        else:
            self.order_ = _checked_order(self.order, n_labels)
        given = self._given_labels(X, Y, weight)
        self.chain_ = self._fit_chains(X, given, [self.order_], None, weight)[0]

    _fit_partial = _fit

    def _score(self, X: Features) -> FloatArray:
        return self.chain_.log_odds(X)


def _checked_order(order: MatrixLike, n_labels: int) -> IndexArray:
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


@dataclass(eq=False, repr=False)
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
    classes_, label_names_, thresholds_, n_features_in_, feature_names_in_
        As in :class:`lemll.BinaryRelevance`.

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
    >>> from lemll.rivals import ECC
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = ECC(n_estimators=5, C=0.1, random_state=0).fit(digits.X[:900], digits.Y[:900])
    >>> model.predict_proba(digits.X[900:]).shape
    (897, 8)
    """

    n_estimators: int = 30
    _: KW_ONLY
    sampling: Literal["bootstrap", "subset"] = "bootstrap"
    combine: Literal["confidences", "votes"] = "confidences"

    def _fit(self, X: Features, Y: LabelArray, weight: FloatArray | None = None) -> None:
        n_estimators = check_whole("n_estimators", self.n_estimators, least=1)
        check_choice("sampling", self.sampling, ("bootstrap", "subset"))
        check_choice("combine", self.combine, ("confidences", "votes"))
        random = check_random_state(self.random_state)
        content = by_content(Y)
        orders, counts = [], []
        for _ in range(n_estimators):
            orders.append(content[random.permutation(len(content))])
            counts.append(self._sample(random, len(Y)))
        given = self._given_labels(X, Y, weight)
        self.chains_ = self._fit_chains(X, given, orders, counts, weight)

    _fit_partial = _fit

    def _sample(self, random: np.random.RandomState, n_samples: int) -> IndexArray:
        """Return how often each row is drawn."""
        if self.sampling == "bootstrap":
            drawn = random.randint(n_samples, size=n_samples)
        else:
            drawn = random.permutation(n_samples)[: max(1, round(SHARE * n_samples))]
        return np.bincount(drawn, minlength=n_samples)

    def _score(self, X: Features) -> FloatArray:
        return log_odds(mean_probabilities(self.chains_, X, self.combine == "votes"))
