"""FCM: label enhancement by fuzzy c-means clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from lemll._sparse import lighter
from lemll._types import Features, FloatArray, LabelArray, RandomState
from lemll._validation import check_memory, check_number, check_whole, is_sparse
from lemll._warnings import warn_caller
from lemll.enhancers._base import BaseEnhancer
from lemll.fitting import Normalization
from lemll.solvers import solve_fuzzy_means

__all__ = ["FCMEnhancer"]

CONNECTIONS = ("minmax", "label", "none")
COMPOSITIONS = ("product", "minimum")
STOPS = ("memberships", "objective")


class FCMEnhancer(BaseEnhancer):
    r"""Recover label distributions by fuzzy c-means (FCM) clusters and fuzzy composition [1]_.

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
    >>> from lemll.enhancers import FCMEnhancer
    >>> X, Y = [[0.0], [0.1], [5.0], [5.1]], [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> FCMEnhancer(n_clusters=2, random_state=0).fit_enhance(X, Y).round(1)
    array([[1. , 0. ],
           [1. , 0. ],
           [0.3, 0.7],
           [0.3, 0.7]])
    """

    def __init__(
        self,
        n_clusters: int = 3,
        *,
        fuzzifier: float = 2.0,
        connection: Any = "minmax",
        composition: Any = "product",
        stop: Any = "memberships",
        normalization: Normalization = "sum",
        scale: float = 1.0,
        feature_scale: str = "none",
        tol: float = 1e-7,
        max_iter: int = 10000,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.fuzzifier = fuzzifier
        self.connection = connection
        self.composition = composition
        self.stop = stop
        self.normalization = normalization
        self.scale = scale
        self.feature_scale = feature_scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        for name, known in (
            ("connection", CONNECTIONS),
            ("composition", COMPOSITIONS),
            ("stop", STOPS),
        ):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} must be one of {', '.join(known)}."
                )
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
