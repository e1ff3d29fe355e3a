"""LEMLL as a label enhancer, which minimises Eq. (9)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Self

from sklearn.utils.validation import check_consistent_length

from lemll._labels import code_degrees
from lemll._types import Features, FloatArray, LabelArray, MatrixLike
from lemll._validation import all_or_nothing
from lemll.enhancers.base import UNSEEN_EFFECT, BaseEnhancer
from lemll.fitting.equation9 import EXACT_GRAPH, Equation9, fit_equation9, make_graph, model_outputs
from lemll.fitting.scaling import Normalization


@dataclass(eq=False, repr=False)
class LEMLLEnhancer(Equation9, BaseEnhancer):
    r"""Recover label distributions by LEMLL, the joint optimum of its objective.

    The numerical labels U and a linear model together minimise Eq. (9) of [1]_,

    .. math::
        \sum_i L_\varepsilon(\|u_i-\Theta x_i-b\|)+\alpha\|\Theta\|_F^2
        +\beta\|U-Y\|_F^2+\gamma\,\mathrm{tr}(U^\top MU),

    with the logical labels Y in -1/+1, :math:`L_\varepsilon(r)=\max(0,r-\varepsilon)^2` and
    :math:`M=(I-W)^\top(I-W)` from the LLE weights W. The distribution is the logistic function of
    U, divided by the sum of each row. With unknown cells or confidences, the third term is
    :math:`\beta\sum_{ij}c_{ij}(U_{ij}-Y_{ij})^2` with the weights c of the cells. So the
    numerical label of an unknown cell follows the model and the neighbours.

    Parameters
    ----------
    alpha, beta, gamma, epsilon, kernel, kernel_params, n_neighbors
        As in :class:`lemll.LEMLL`.
    graph : dict, csr_array of shape (n_samples, n_samples), NeighborGraph, str or Path, optional
        As in :class:`lemll.LEMLL`, but ``neighbors`` is "exact" by default.
    normalization : {"sigmoid", "softmax", "sum"}, default="sigmoid"
        How U becomes a distribution.
    scale : float, default=1.0
        U is multiplied by this before it is normalised, > 0.
    feature_scale : {"none", "standard", "maxabs", "auto"}, default="none"
        Scaling of the columns of X, learned from the training rows. "none" changes nothing, as in
        the paper. "standard" subtracts the mean and divides by the standard deviation; sparse
        features are only divided. "maxabs" divides by the largest absolute value. "auto" is
        "standard", or "maxabs" for sparse features. Learners call it `scale`, but here `scale` is
        the scale of the degrees. A graph that is passed is not changed.
    tol, max_iter, solver_params, verbose
        As in :class:`lemll.LEMLL`.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.
    coef_, intercept_ : ndarray of shape (n_labels, n_features), (n_labels,)
        The model found together with U.
    dual_coef_ : ndarray of shape (n_labels, n_samples)
        Replaces `coef_` if a kernel is used: the coefficients a of the outputs
        :math:`\sum_j a_j k(x_j, x)+b`. Each row sums to zero.
    X_fit_ : ndarray or csr_array
        A copy of the training rows. Set only for a kernel that is not precomputed.
    kernel_ : object
        The name of the kernel and the parameters used. Set only if a kernel is used. For dense
        rows, "poly" and "cosine" are computed relative to the mean of the training rows, so that
        features far from the origin do not lose digits. This changes only `intercept_`.
    objective_ : float
        Eq. (9) at the solution.
    objective_trace_ : ndarray
        Eq. (9) at the start and after each iteration.
    optimality_ : float
        Certified relative duality gap.
    n_iter_ : int
        Number of iterations.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.

    See Also
    --------
    lemll.LEMLL : The same optimum as a classifier.

    References
    ----------
    .. [1] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll.datasets import make_artificial, binarize_distribution
    >>> from lemll.enhancers import LEMLLEnhancer
    >>> from lemll.metrics import chebyshev
    >>> data = make_artificial(200, random_state=0)
    >>> Y = binarize_distribution(data.D, 0.5)
    >>> recovered = LEMLLEnhancer().fit_enhance(data.X, Y)
    >>> bool(chebyshev(data.D, recovered) < chebyshev(data.D, Y / Y.sum(axis=1, keepdims=True)))
    True
    """

    _: KW_ONLY
    normalization: Normalization = "sigmoid"
    feature_scale: str = "none"

    def _numerical_labels(
        self, X: Features, Y: LabelArray, weight: FloatArray | None = None
    ) -> FloatArray:
        return fit_equation9(self, X, Y, weight, graph_defaults=EXACT_GRAPH)

    _partial_labels = _numerical_labels

    @all_or_nothing
    def fit_degrees(
        self, X: MatrixLike, degrees: MatrixLike, *, label_weight: MatrixLike = None
    ) -> Self:
        """Enhance labels that are relevant in part, for example the share of votes for a label.

        A degree d becomes the target ``2 d - 1`` of Eq. (9), where a label 0/1 becomes -1/+1. This
        is a method of its own because `fit` refuses such a matrix, which is often a mistake.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        degrees : array-like, sparse matrix or frame of shape (n_samples, n_labels)
            Degrees from 0 (not relevant) to 1 (relevant). NaN, None, ``pandas.NA`` and masked
            cells mean that nobody observed the cell.
        label_weight : array-like or sparse matrix of shape (n_samples, n_labels), optional
            How sure each degree is, from 0 (not observed) to 1 (certain, the default).

        Returns
        -------
        self
            The fitted enhancer.
        """
        X = self._validated_rows(X, degrees, label_weight)
        D, weight, coding = code_degrees(degrees, label_weight, effect=UNSEEN_EFFECT)
        check_consistent_length(X, D)
        return self._enhance(X, D, weight, coding)

    def _make_graph(self, X: Features, n_labels: int) -> Features:
        return make_graph(self, X, EXACT_GRAPH)

    def _model_outputs(self, X: Features) -> FloatArray:
        return model_outputs(self, X)
