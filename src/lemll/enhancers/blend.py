"""A blend of label graph, labels and features, which a few rated rows weigh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

from sklearn.utils.validation import check_is_fitted

from lemll._types import Features, FloatArray, LabelArray
from lemll._validation import check_number, check_whole
from lemll.enhancers.base import BaseEnhancer
from lemll.enhancers.calibrate import unit_source
from lemll.enhancers.lemll import LEMLLEnhancer
from lemll.enhancers.sources import graph_source, label_sources, principal_rows, smooth_by_energy
from lemll.fitting.scaling import Normalization

# Larger decompositions of the features take minutes.
_LARGEST_DECOMPOSITION = 5e10
_SMOOTHNESS, _ENERGY = 1.0, 0.8


class _Made(NamedTuple):
    """The sources, and the certified gap of the one of LEMLL."""

    sources: dict[str, FloatArray]
    optimality: float


@dataclass(eq=False, repr=False)
class BlendEnhancer(BaseEnhancer):
    r"""Decide by rated rows how much to trust the labels' graph, the rows and the features.

    Sources :math:`z_m` give numbers to the labels of each row:

    - "label graph": the logarithm of the labels after propagation over the graph of the labels
      (`LabelGraphEnhancer`); "label graph by size": the same, more in rows with many labels;
    - "far label graph": propagation that goes farther, over a graph in which labels of similar rows
      are neighbours too; "smooth label graph": such a propagation, made smooth by the features;
    - "logical labels", and "labels and frequencies": the labels alone, and together with the
      frequencies of the labels;
    - "LEMLL": the numerical labels of `LEMLLEnhancer` on scaled features;
    - "smooth labels": the labels made smooth by the features (`LESCEnhancer`).

    Their weights need not sum to 1, and a negative one corrects the others. The distribution of row
    i is

    .. math:: \mathrm{softmax}\Bigl(\sum_m w_mz_{m,i}+b\Bigr).

    Without rated rows, only the label graph counts, with the small weight `prior_scale`, because
    logical labels do not determine how steep a distribution is. `calibrate` finds w and b. With
    :math:`d_i` the rated distributions and :math:`p_i(w,b)` those of the model, it minimises

    .. math:: -\sum_{ij}d_{ij}\log p_{ij}(w,b)+\tfrac{\rho}{2}\|w-w_0\|^2
        +\tfrac{\sigma}{2}\|b\|^2

    for up to 12 models, from one weight of one source or of the mean of the sources to all weights
    and biases, each convex and certified. The result is their mean. A model counts by how
    consistently it is worse than the best one on rated rows that were left out: like
    :math:`\exp(-t^2/4)`, with t the statistic of the paired t-test of losses, which are the
    Kullback-Leibler divergence and the squared error in equal parts. Biases alone count only if no
    other model is better.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours of `LEMLLEnhancer`.
    prior_scale : float, default=0.1
        The weight of the label graph without rated rows, > 0: the standard deviation of the
        logarithms of the degrees. `calibrate` pulls the first weight of each model to it.
    normalization : {"softmax", "sigmoid", "sum"}, default="softmax"
        How the numerical labels become a distribution, before `calibrate`. The numerical labels
        are logarithms of degrees, so "softmax" is right; "sum" sets the negative ones to 0.
    scale : float, default=1.0
        The numerical labels are multiplied by this before they are normalised, > 0.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        `prior_scale` times the source "label graph".
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.
    blend_ : RatedBlend or None
        What `calibrate` found: weights, biases, the errors of rated rows that were left out, and
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
        # The other sources count only with rated rows, and take minutes for many rows. The caller
        # may change his features before he rates rows.
        self._rows = X.copy()
        self._made: _Made | None = None
        return prior_scale * graph_source(Y, weight)

    _partial_labels = _numerical_labels

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
