"""FCM: label enhancement by fuzzy c-means clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from lemll._sparse import dense, lighter, squared_lengths
from lemll._types import Features, FloatArray, LabelArray, RandomState
from lemll._validation import (
    check_choice,
    check_memory,
    check_number,
    check_whole,
    is_sparse,
    warn_caller,
)
from lemll.enhancers.base import BaseEnhancer

# A larger rise of the objective, relative to it, is not a rounding error.
_ROUNDING = 1e-12
# Momentum in earlier, larger steps often leads to another local minimum, and not to a better one.
_NEAR = 0.1


@dataclass(frozen=True)
class FuzzyMeans:
    """The memberships at which fuzzy c-means stopped.

    Attributes
    ----------
    memberships : ndarray of shape (n_samples, n_clusters)
        The share of each cluster in each row. Each row sums to one.
    objective : float
        The objective before the last step; that of the result is not larger.
    change : float
        The largest change of a membership in the last step.
    n_iter : int
        Number of steps.
    """

    memberships: FloatArray
    objective: float
    change: float
    n_iter: int


def solve_fuzzy_means(
    X: Features,
    memberships: FloatArray,
    *,
    fuzzifier: float = 2.0,
    tol: float = 1e-7,
    objective_tol: float | None = None,
    max_iter: int = 10000,
) -> FuzzyMeans:
    r"""Find centres and memberships of clusters from a start.

    The centres :math:`c_k` and the memberships :math:`m_{ik}`, which sum to one in each row,
    minimise

    .. math:: \sum_{ik} m_{ik}^\beta \|x_i - c_k\|^2 .

    A step computes the best centres for the memberships, and then the best memberships for these
    centres. Near a minimum such steps become short and many. So, after the first step that changes
    all memberships by less than 0.1, each step starts at a point beyond the last memberships, in
    the direction of the last change (the momentum of Nesterov). If the objective of this point is
    higher than that of the point before, the point is not used, and the momentum begins again at
    zero.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Rows. Subtract the mean from dense rows, because this keeps digits in the products.
    memberships : ndarray of shape (n_samples, n_clusters)
        The start.
    fuzzifier : float, default=2.0
        :math:`\beta`, > 1.
    tol : float, default=1e-7
        Stop when a step changes every membership by less than this.
    objective_tol : float, optional
        If given, stop when the objective changes by less than this instead, and use no momentum,
        as ``fcm`` of MATLAB does.
    max_iter : int, default=10000
        Largest number of steps.

    Returns
    -------
    FuzzyMeans
        The memberships at which the steps stopped.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.rivals.fcm import solve_fuzzy_means
    >>> X = np.array([[-5.1], [-4.9], [5.0]])
    >>> start = np.array([[0.6, 0.4], [0.6, 0.4], [0.4, 0.6]])
    >>> solve_fuzzy_means(X, start).memberships.round(2)
    array([[1., 0.],
           [1., 0.],
           [0., 1.]])
    """
    squared_distances = _distances_to_means(X)
    # The point of the present step, the memberships after the last one, and their momentum.
    point, last, momentum = memberships, memberships, 1.0
    objective, change, n_iter, near = np.inf, np.inf, 0, False
    while True:
        n_iter += 1
        weights = point**fuzzifier
        # If no row belongs to a cluster any more, its centre becomes 0 instead of 0 / 0.
        total = weights.sum(axis=0)
        squared = squared_distances(weights / np.where(total > 0, total, 1))
        value = float(np.vdot(weights, squared))
        if momentum > 1 and value > objective * (1 + _ROUNDING):
            if n_iter == max_iter:
                return FuzzyMeans(last, objective, change, n_iter)
            point, momentum = last, 1.0
            continue
        found = _memberships(squared, fuzzifier)
        change = float(np.abs(found - point).max())
        enough = change < tol if objective_tol is None else abs(objective - value) < objective_tol
        objective = value
        if enough or n_iter == max_iter:
            return FuzzyMeans(found, objective, change, n_iter)
        near = near or change < _NEAR
        if near and objective_tol is None:
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            point = _simplex(found + (momentum - 1) / following * (found - last))
            momentum = following
        else:
            point = found
        last = found


def _simplex(memberships: FloatArray) -> FloatArray:
    """Set negative memberships to 0, and divide the rows by their sums, if there are any."""
    if memberships.min() >= 0:
        return memberships
    raised = np.maximum(memberships, 0)
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _distances_to_means(X: Features) -> Callable[[FloatArray], FloatArray]:
    """Return a function: weights of the rows, one column per mean, to squared distances.

    There may be thousands of steps, so what does not change is computed once. The products of the
    rows replace the rows themselves where this makes a step cheaper.
    """
    n_samples, n_features = X.shape
    size = X.nnz if is_sparse(X) else n_samples * n_features
    gram = dense(X @ X.T) if n_samples**2 < 2 * size else None
    lengths = squared_lengths(X)[:, None]

    def squared_distances(weights: FloatArray) -> FloatArray:
        # |x|^2 - 2 x'c + |c|^2 with the means c = X'w.
        if gram is not None:
            squared = gram @ weights
            of_means = np.einsum("ij,ij->j", weights, squared)
        else:
            means = np.asarray(weights.T @ X)
            squared = np.asarray(X @ means.T)
            of_means = np.einsum("ij,ij->i", means, means)
        squared *= -2
        squared += lengths
        squared += of_means
        return np.asarray(np.maximum(squared, 0, out=squared))

    return squared_distances


def _memberships(squared: FloatArray, fuzzifier: float) -> FloatArray:
    """Return 1 / sum_k' (d_k / d_k')^(2 / (fuzzifier - 1)), also for a row equal to a centre."""
    nearest = squared.min(axis=1, keepdims=True)
    # Divide by the distance to the nearest centre, so that nothing overflows. A row equal to a
    # centre gives 0 / 0 for this centre only; `out` sets that ratio to 1, and the others are 0.
    ratio = (
        nearest / squared
        if nearest.min() > 0
        else np.divide(nearest, squared, out=np.ones_like(squared), where=squared > 0)
    )
    if fuzzifier != 2:
        ratio **= 1 / (fuzzifier - 1)
    return np.asarray(ratio / ratio.sum(axis=1, keepdims=True))


@dataclass(eq=False, repr=False)
class FCMEnhancer(BaseEnhancer):
    r"""Recover label distributions by fuzzy c-means (FCM) clusters and fuzzy composition.

    Fuzzy c-means finds centres :math:`c_k` and memberships :math:`m_{ik}` that minimise
    :math:`\sum_{ik} m_{ik}^\beta \|x_i - c_k\|^2`. The memberships of each row sum to one. The
    connection of label j with cluster k is :math:`A_{jk} = \sum_{i: y_{ij}=1} m_{ik}`, scaled to
    [0, 1]. The numerical labels are

    .. math:: u_{ij} = \max_k A_{jk} m_{ik} .

    Parameters
    ----------
    n_clusters : int, default=3
        Number of clusters, >= 1. The LEMLL paper [2]_ does not state it; 3 reproduces its figures.
    fuzzifier : float, default=2.0
        :math:`\beta`, > 1.
    connection : {"minmax", "label", "none"}, default="minmax"
        How A is scaled. "minmax" subtracts the smallest entry of A and divides by the range.
        "label" divides the row of each label by its sum. "none" does not change A.
    composition : {"product", "minimum"}, default="product"
        :math:`\max_k A_{jk} m_{ik}` or :math:`\max_k \min(A_{jk}, m_{ik})`.
    stop : {"memberships", "objective"}, default="memberships"
        The quantity whose change must be below `tol`: every membership, or the objective. With
        "memberships" the iterations are accelerated (`lemll.solvers.solve_fuzzy_means`); with
        "objective" they are those of `fcm` of MATLAB.
    normalization : {"sum", "sigmoid", "softmax"}, default="sum"
        How U becomes a distribution.
    scale : float, default=1.0
        U is multiplied by this before it is normalised, > 0. With "sum" it is an exponent.
    feature_scale : {"none", "standard", "maxabs", "auto"}, default="none"
        Scaling of the columns of X, learned from the training rows. "none" changes nothing, as in
        the paper. "standard" subtracts the mean and divides by the standard deviation; sparse
        features are only divided. "maxabs" divides by the largest absolute value. "auto" is
        "standard", or "maxabs" for sparse features. Learners call it `scale`, but here `scale` is
        the scale of the degrees.
    tol : float, default=1e-7
        See `stop`. The published figures come from `fcm` of MATLAB, which stops when the objective
        changes by less than 1e-5.
    max_iter : int, default=10000
        Largest number of iterations.
    random_state : int, RandomState or None, default=None
        Seed of the initial memberships. Fuzzy c-means finds a local minimum, so with None two fits
        may give different results. Pass an int for reproducible results.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows in the clusters.
    n_iter_ : int
        Number of iterations.
    scale_ : float
        The scale in use: the parameter, or the value found by `calibrate`.
    scale_interval_ : tuple of float or None
        The confidence interval of the scale, set by `calibrate`. None before that.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels.

    Notes
    -----
    The logical labels of a row have no direct influence on its distribution: rows with the same
    memberships get the same distribution, even if their labels differ. With many features, all
    memberships are close to 1 / n_clusters, and then all rows get almost the same distribution.

    References
    ----------
    .. [1] N. El Gayar, F. Schwenker and G. Palm, "A study of the robustness of KNN classifiers
       trained using soft labels", Artificial Neural Networks in Pattern Recognition, 2006.
    .. [2] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll.rivals import FCMEnhancer
    >>> X, Y = [[0.0], [0.1], [5.0], [5.1]], [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> FCMEnhancer(n_clusters=2, random_state=0).fit_enhance(X, Y).round(1)
    array([[1. , 0. ],
           [1. , 0. ],
           [0.3, 0.7],
           [0.3, 0.7]])
    """

    n_clusters: int = 3
    _: KW_ONLY
    fuzzifier: float = 2.0
    connection: Any = "minmax"
    composition: Any = "product"
    stop: Any = "memberships"
    feature_scale: str = "none"
    tol: float = 1e-7
    max_iter: int = 10000
    random_state: RandomState = None

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        check_choice("connection", self.connection, ("minmax", "label", "none"))
        check_choice("composition", self.composition, ("product", "minimum"))
        check_choice("stop", self.stop, ("memberships", "objective"))
        rows = lighter(X)
        # Distances do not change if all rows are shifted. Centring keeps digits in the products.
        self.memberships_ = self._cluster(rows if is_sparse(rows) else rows - rows.mean(axis=0))
        # The soft connection of a label and a cluster is the sum of the memberships of its rows.
        A = self._connected(Y.T.astype(np.float64) @ self.memberships_)
        if self.composition == "product":
            return np.asarray((A * self.memberships_[:, None, :]).max(axis=2))
        return np.asarray(np.minimum(A, self.memberships_[:, None, :]).max(axis=2))

    def _cluster(self, X: Features) -> FloatArray:
        """Return the memberships at which fuzzy c-means stops."""
        n_clusters = check_whole("n_clusters", self.n_clusters, least=1)
        check_memory(
            80 * X.shape[0] * n_clusters,
            f"{n_clusters} clusters of {X.shape[0]} rows",
            "lower n_clusters, or enhance fewer rows at a time",
        )
        fuzzifier = check_number("fuzzifier", self.fuzzifier, above=1)
        tol = check_number("tol", self.tol, above=0)
        max_iter = check_whole("max_iter", self.max_iter, least=1)
        start = check_random_state(self.random_state).uniform(size=(X.shape[0], n_clusters))
        found = solve_fuzzy_means(
            X,
            start / start.sum(axis=1, keepdims=True),
            fuzzifier=fuzzifier,
            tol=tol,
            objective_tol=tol if self.stop == "objective" else None,
            max_iter=max_iter,
        )
        self.n_iter_ = found.n_iter
        if found.change >= tol and self.stop == "memberships":
            warn_caller(
                f"Fuzzy c-means stopped after {found.n_iter} iterations, when memberships still "
                f"changed by {found.change:.2e}, wanted tol={tol:.2e}; raise max_iter or tol.",
                ConvergenceWarning,
            )
        return found.memberships

    def _connected(self, A: FloatArray) -> FloatArray:
        if self.connection == "minmax":
            reach = float(np.ptp(A))
            return np.asarray((A - A.min()) / reach) if reach > 0 else np.ones_like(A)
        if self.connection == "label":
            sums = A.sum(axis=1, keepdims=True)
            return np.asarray(A / np.where(sums > 0, sums, 1))
        return A
