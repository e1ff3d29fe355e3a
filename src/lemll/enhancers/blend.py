"""A blend of label graph, labels and features, which a few rated rows weigh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lemll._types import Features, FloatArray, LabelArray, RandomState
from lemll._validation import all_or_nothing, check_choice, check_number, check_whole
from lemll.enhancers.base import BaseEnhancer
from lemll.enhancers.calibrate import check_rated_rows, unit_source
from lemll.enhancers.lemll import LEMLLEnhancer
from lemll.enhancers.order import (
    EVIDENCE,
    Comparison,
    Evidence,
    RankedLabel,
    check_pairs,
    collect_evidence,
    estimate_order,
    fit_order,
    in_order,
    keep_answers,
    next_pairs,
    ranked_labels,
    rated_pairs,
    usual_order,
)
from lemll.enhancers.sources import label_sources, principal_rows, smooth_by_energy
from lemll.fitting.scaling import Normalization

# Larger decompositions of the features take minutes.
_LARGEST_DECOMPOSITION = 5e10
_SMOOTHNESS, _ENERGY = 1.0, 0.8
# How far a difference of 1 in the log-odds of the order spreads given labels without rated rows, as
# a share of `prior_scale`.
_SPREAD = 0.3


class _Made(NamedTuple):
    """The sources, and the certified gap of the one of LEMLL."""

    sources: dict[str, FloatArray]
    optimality: float


@dataclass(eq=False, repr=False)
class BlendEnhancer(BaseEnhancer):
    r"""Order the labels of each row, and learn from rated rows or comparisons how much they matter.

    **The order of the given labels** follows the model of Bradley and Terry: label j matters more
    than label k in row i with the probability
    :math:`\sigma(\sum_mw_m(e_{mij}-e_{mik})+b_j-b_k)`. The evidence :math:`e_m` is

    - "other labels": the log-odds of the label, given the other labels of the row;
    - "features": its log-odds, given the features, by a kernel ridge regression;
    - "short lists": the logarithm of its mean share in the rows that have it: a label that stands
      in short lists matters more;
    - "label graph" (for the labels that a row has not): the labels after propagation over their
      graph (`LabelGraphEnhancer`).

    Without comparisons the weights are fixed. `calibrate` changes weights and biases by comparisons
    ("which of these two labels matters more in this row?") and by rated rows.

    **The distribution** without rated rows is nearly flat, because logical labels do not determine
    how steep it is: the label graph with the small weight `prior_scale`, in which the given labels
    are spread by their order. With rated rows, sources :math:`z_m` have weights: the label graph,
    the same by the number of labels of the row, without a pseudo count, and farther or smoother
    over similar rows, the logical labels, alone or with the frequencies of the labels or smooth
    over similar rows, and LEMLL. The distribution of row i is

    .. math:: \mathrm{softmax}\Bigl(\sum_m w_mz_{m,i}+b\Bigr).

    With :math:`d_i` the rated distributions and :math:`p_i(w,b)` those of the model, `calibrate`
    minimises

    .. math:: -\sum_{ij}d_{ij}\log p_{ij}(w,b)+\tfrac{\rho}{2}\|w-w_0\|^2
        +\tfrac{\sigma}{2}\|b\|^2

    for up to 12 models, from one weight of one source to all weights and biases, each convex and
    certified, except for two that have only a scale, with the least squared error. The result is
    their mean. A model counts by how consistently it is worse than the best one on rated rows that
    were left out, by all six distances of distributions: like :math:`\exp(-t^2/4)`, with t the
    statistic of the paired t-test. Last, the degrees of the given labels of each row are exchanged
    so that they have their order.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours of `LEMLLEnhancer`.
    prior_scale : float, default=0.1
        The weight of the label graph without rated rows, > 0: the standard deviation of the
        logarithms of the degrees. `calibrate` pulls the first weight of each model to it.
    normalization : {"softmax", "sigmoid", "sum"}, default="softmax"
        How the numerical labels become a distribution, before rows are rated. The numerical labels
        are logarithms of degrees, so "softmax" is right; "sum" sets the negative ones to 0.
    scale : float, default=1.0
        The numerical labels are multiplied by this before they are normalised, > 0.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        `prior_scale` times the source "label graph", in which the given labels are spread by their
        order.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.
    evidence_ : Evidence
        The evidence for the order.
    order_ : OrderModel
        The weights of the evidence.
    order_estimate_ : OrderEstimate
        How well the order of the given labels is known.
    blend_ : RatedBlend or None
        What rated rows decided: weights, biases, the errors of rated rows that were left out, and
        the certificate. None before that.
    sources_ : dict of str to ndarray of shape (n_samples, n_labels)
        The sources. Each has the mean square 1, except "label graph by size" and sources that are
        0 everywhere. They are computed when they are first needed: by `calibrate`, or here.
    optimality_ : float
        Certified relative gap of the fit of LEMLL, computed with `sources_`.
    scale_ : float
        The scale in use.
    scale_interval_ : None
        A blend has no single scale.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels.

    See Also
    --------
    LabelGraphEnhancer : The label graph alone.
    LEMLLEnhancer : Also enhances new rows.

    Notes
    -----
    The smooth sources need dense features. They are left out if the decomposition of the features
    is too expensive (more than about 5e10 operations); then the far label graph connects only
    labels of the same rows. Unknown cells of y count as the frequency of their label, except in
    LEMLL, which leaves them open, and in the counts of the graphs, which leave them out.

    Examples
    --------
    >>> from lemll.datasets import make_artificial, binarize_distribution
    >>> from lemll.enhancers import BlendEnhancer
    >>> from lemll.metrics import chebyshev
    >>> data = make_artificial(200, random_state=0)
    >>> enhancer = BlendEnhancer().fit(data.X, binarize_distribution(data.D, 0.5))
    >>> before = chebyshev(data.D, enhancer.label_distribution_)
    >>> enhancer = enhancer.calibrate(range(10), data.D[:10])
    >>> bool(chebyshev(data.D, enhancer.label_distribution_) < before)
    True
    """

    _calibration = "sources"
    signed_labels = False

    _: KW_ONLY
    n_neighbors: int = 10
    prior_scale: float = 0.1
    normalization: Normalization = "softmax"

    def _numerical_labels(
        self, X: Features, Y: LabelArray, weight: FloatArray | None = None
    ) -> FloatArray:
        prior_scale = check_number("prior_scale", self.prior_scale, above=0)
        check_whole("n_neighbors", self.n_neighbors, least=1)
        # The sources count only with rated rows, and take minutes for many rows. The caller may
        # change his features before he rates rows.
        self._rows = X.copy()
        self._made: _Made | None = None
        self.evidence_ = collect_evidence(X, Y, weight)
        self.order_ = usual_order(Y.shape[1])
        self._compared: list[Comparison] = []
        self._answers: dict[int, list[Comparison]] = {}
        self._known: dict[int, FloatArray] = {}
        self.order_estimate_ = estimate_order(self.evidence_, self.order_)
        return prior_scale * self._unrated()

    _partial_labels = _numerical_labels

    def _unrated(self) -> FloatArray:
        """Return the label graph, with the given labels of each row spread by their order."""
        graph, given = (
            self.evidence_.values[:, :, EVIDENCE.index("label graph")],
            self.evidence_.given,
        )
        values = self.order_.values(self.evidence_)
        count = np.maximum(given.sum(axis=1, keepdims=True), 1)
        level, middle = (
            np.where(given, part, 0).sum(axis=1, keepdims=True) / count for part in (graph, values)
        )
        return np.where(given, level + _SPREAD * (values - middle), graph)

    @all_or_nothing
    def calibrate(
        self,
        rows: Features = None,
        distributions: Any = None,
        *,
        pairs: Any = None,
        method: Literal["auto", "scale", "sources"] = "auto",
        n_bootstrap: int = 200,
        random_state: RandomState = None,
    ) -> Self:
        """Learn from rated rows, from comparisons of two labels of a row, or from both.

        Parameters
        ----------
        rows, distributions : array-like, optional
            Rated rows and their distributions, as in `BaseEnhancer.calibrate`.
        pairs : iterable or frame, optional
            Comparisons: triples of a row, the label that matters more there, and the one that
            matters less. Rows are numbers from 0, or names in the index of the frame that was given
            to `fit`, if these are not whole numbers; labels are names or numbers. A frame has the
            columns "row", "more" and "less". The row must have both labels.
        method, n_bootstrap, random_state
            As in `BaseEnhancer.calibrate`. With "scale", ratings do not change the order.

        Returns
        -------
        self
            The enhancer with the new `order_`, `order_estimate_` and `label_distribution_`. Rated
            rows and comparisons of an earlier call are forgotten. Without rated rows the
            comparisons change only the order, not how steep the distribution is.
        """
        check_is_fitted(self)
        check_choice("method", method, ("auto", "scale", "sources"))
        if (rows is None) != (distributions is None):
            raise ValueError("rows and distributions belong together; give both, or neither.")
        if rows is None and pairs is None:
            raise ValueError(
                "calibrate needs rated rows (rows and distributions) or comparisons (pairs), got "
                "neither; next_pairs(10) says which comparisons tell most."
            )
        given, names = self.evidence_.given, list(self.label_names_)
        found = [] if pairs is None else check_pairs(pairs, given, names, self._row_names)
        weights = np.ones(len(found))
        if rows is not None:
            index, known = check_rated_rows(rows, distributions, len(given), names, self._row_names)
            if method != "scale":
                told, shares = rated_pairs(self.evidence_, index, known)
                found, weights = [*found, *told], np.concatenate([weights, shares])
        self._compared = found
        self._answers = {}
        for answer in found:
            self._answers.setdefault(answer.row, []).append(answer)
        self._known = {} if rows is None else dict(zip(index.tolist(), known, strict=True))
        self.order_ = fit_order(self.evidence_, found, weights)
        self.order_estimate_ = estimate_order(self.evidence_, self.order_, found, weights)
        self.numerical_labels_ = self._prior_scale() * self._unrated()
        if rows is None:
            self.blend_ = None
            self.label_distribution_ = self.distribution(self.numerical_labels_)
            return self
        super().calibrate(
            rows, distributions, method=method, n_bootstrap=n_bootstrap, random_state=random_state
        )
        degrees = in_order(self.label_distribution_, self._order_values(), given)
        degrees[index] = known
        self.label_distribution_ = degrees
        return self

    def next_pairs(self, n_pairs: int = 10) -> list[tuple[int, Any, Any]]:
        """Choose the comparisons whose answers would tell most about the order.

        Parameters
        ----------
        n_pairs : int, default=10
            How many.

        Returns
        -------
        list of tuple
            The number of a row, and the names of two labels that it has. Fewer than `n_pairs` if
            few rows have two labels. No row of an earlier comparison is asked again.
        """
        check_is_fitted(self)
        n_pairs = check_whole("n_pairs", n_pairs, least=1)
        chosen = next_pairs(self.evidence_, self.order_, n_pairs, self._compared)
        names = self.label_names_
        return [(row, names[first], names[second]) for row, first, second in chosen]

    def ranked_labels(self, row: int) -> list[RankedLabel]:
        """Return the given labels of a training row, the most important one first.

        Parameters
        ----------
        row : int
            Number of the row.

        Returns
        -------
        list of RankedLabel
            Number of each label, the probability that it matters most among the given ones, and
            whether its order to the next one is sure or a toss-up.
        """
        check_is_fitted(self)
        if not 0 <= row < len(self.evidence_.given):
            raise ValueError(
                f"row must be a number from 0 to {len(self.evidence_.given) - 1}, got {row!r}."
            )
        given = self.evidence_.given[row]
        if row in self._known:
            degrees = self._known[row]
            ranked = ranked_labels(degrees, given)
            total = max(float(degrees[given].sum()), np.finfo(np.float64).tiny)
            return [
                one._replace(share=float(degrees[one.label]) / total, sure=True) for one in ranked
            ]
        return ranked_labels(self._order_values([row])[0], given)

    def _order_values(self, rows: Sequence[int] | None = None) -> FloatArray:
        """Return the values of the order, in which each answer holds in its row."""
        if rows is None:
            return keep_answers(self.order_.values(self.evidence_), self._compared)
        part = Evidence(self.evidence_.values[list(rows)], self.evidence_.given[list(rows)])
        told = [
            answer._replace(row=number)
            for number, row in enumerate(rows)
            for answer in self._answers.get(row, ())
        ]
        return keep_answers(self.order_.values(part), told)

    @property
    def sources_(self) -> dict[str, FloatArray]:
        """The sources of the training rows."""
        return self._made_sources().sources

    @property
    def optimality_(self) -> float:
        """Certified relative gap of the fit of LEMLL."""
        return self._made_sources().optimality

    def _made_sources(self) -> _Made:
        check_is_fitted(self)
        if self._made is None:
            X, (Y, weight) = self._rows, self._given_labels
            lemll = LEMLLEnhancer(n_neighbors=self.n_neighbors, feature_scale="auto")
            rows = lemll._column_scaling(X)
            numbers = lemll._checked_labels(X if rows is None else rows(X), Y, weight)
            sources = label_sources(Y, weight, _smoother(X)) | {"LEMLL": unit_source(numbers)}
            self._made = _Made(sources, lemll.optimality_)
        return self._made

    def _prior_scale(self) -> float:
        return check_number("prior_scale", self.prior_scale, above=0)

    def _sources(self) -> dict[str, FloatArray]:
        return self.sources_


def _smoother(X: Features) -> Callable[[FloatArray], FloatArray] | None:
    """Return a function that smooths a matrix over similar rows; None if it is too expensive."""
    if X.shape[0] * X.shape[1] * min(X.shape) > _LARGEST_DECOMPOSITION:
        return None
    basis = principal_rows(X)
    return lambda rough: smooth_by_energy(basis, rough, _SMOOTHNESS, _ENERGY)
