"""Training and prediction of classifier chains, for a single chain and for an ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse
from scipy.special import expit

from lemll._types import (
    Array,
    Estimator,
    Features,
    FloatArray,
    IndexArray,
    LabelArray,
    MatrixLike,
)
from lemll._validation import is_sparse
from lemll.predictors.logistic.members import built_in, fit_member, member_log_odds
from lemll.predictors.logistic.probability import SURE, ProbabilityClassifier, TiesAreRelevant
from lemll.solvers import solve_logistic

__all__ = ["Chain", "ChainClassifier", "by_content", "mean_probabilities"]

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
    members: list[Any] | None = None

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


class ChainClassifier(TiesAreRelevant, ProbabilityClassifier):
    """Base of classifiers made of chains. Subclasses have the parameters that `built_in` reads."""

    estimator: Estimator
    n_jobs: int | None

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
    total: Any = 0.0
    for chain in chains:
        scores = chain.log_odds(X)
        total = total + ((scores >= 0) if votes else expit(scores))
    return np.asarray(total / len(chains))
