"""FCM: labels carried over by fuzzy clusters."""

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
from lemll.fitting import Normalization, squared_lengths

__all__ = ["FCMEnhancer"]

CONNECTIONS = ("minmax", "label", "none")
COMPOSITIONS = ("product", "minimum")
STOPS = ("memberships", "objective")


class FCMEnhancer(BaseEnhancer):
    r"""Recover label distributions by fuzzy c-means (FCM) clusters and fuzzy composition [1]_.

    Fuzzy c-means finds centres :math:`c_k` and memberships :math:`m_{ik}`, rows summing to one,
    that minimise :math:`\sum_{ik} m_{ik}^\beta \|x_i - c_k\|^2`. The connection of label j with
    cluster k is :math:`A_{jk} = \sum_{i: y_{ij}=1} m_{ik}`, brought to [0, 1]; then

    .. math:: u_{ij} = \max_k A_{jk} m_{ik} .

    Parameters
    ----------
    n_clusters : int, default=3
        Number of clusters, >= 1. The LEMLL paper [2]_ does not give it; its figures come from 3.
    fuzzifier : float, default=2.0
        :math:`\beta`, > 1.
    connection : {"minmax", "label", "none"}, default="minmax"
        A minus its smallest entry, divided by its range; each label's row divided by its sum; or
        A as it is.
    composition : {"product", "minimum"}, default="product"
        :math:`\max_k A_{jk} m_{ik}` or :math:`\max_k \min(A_{jk}, m_{ik})`.
    stop : {"memberships", "objective"}, default="memberships"
        What has to change by less than `tol`: every membership, or the objective.
    normalization : {"sum", "sigmoid", "softmax"}, default="sum"
        How U becomes a distribution.
    scale : float, default=1.0
        Factor on U before normalising, > 0; with "sum" a power.
    tol : float, default=1e-7
        See `stop`. MATLAB's `fcm`, behind the published figures, stops at 1e-5 of the objective.
    max_iter : int, default=10000
        Cap on the iterations.
    random_state : int, RandomState or None, default=None
        Of the memberships to start from. With None every fit starts from others, and its result
        may differ: clusters are a local minimum. Pass an int for results that can be repeated.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        Non-negative, rows summing to one.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Of the rows in the clusters.
    n_iter_ : int
        Iterations done.
    scale_ : float
        The scale used: the parameter, or what `calibrate` found.
    scale_interval_ : tuple of float or None
        From `calibrate`.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.
    label_names_ : ndarray of str
        The labels' names.

    Notes
    -----
    The logical labels of a row enter only through its memberships: rows that belong to the same
    clusters get the same distribution, whatever their labels. In many dimensions all memberships
    tend to 1 / n_clusters, and the distribution says nothing about single rows.

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
        # Distances do not see a shift of all rows, but products lose digits to it.
        self.memberships_ = self._cluster(rows if is_sparse(rows) else rows - rows.mean(axis=0))
        A = self._connected(Y.T.astype(np.float64) @ self.memberships_)
        if self.composition == "product":
            return np.asarray((A * self.memberships_[:, None, :]).max(axis=2))
        return np.asarray(np.minimum(A, self.memberships_[:, None, :]).max(axis=2))

    def _cluster(self, X: Features) -> FloatArray:
        """Return the memberships at which fuzzy c-means stops."""
        n_clusters = check_whole("n_clusters", self.n_clusters, least=1)
        check_memory(
            48 * X.shape[0] * n_clusters,
            f"{n_clusters} clusters of {X.shape[0]} rows",
            "lower n_clusters, or enhance fewer rows at a time",
        )
        fuzzifier = check_number("fuzzifier", self.fuzzifier, above=1)
        tol = check_number("tol", self.tol, above=0)
        max_iter = check_whole("max_iter", self.max_iter, least=1)
        rng = check_random_state(self.random_state)
        memberships = rng.uniform(size=(X.shape[0], n_clusters))
        memberships /= memberships.sum(axis=1, keepdims=True)
        objective = np.inf
        lengths = squared_lengths(X)[:, None]
        self.n_iter_ = 0
        while True:
            self.n_iter_ += 1
            weights = memberships**fuzzifier
            # A cluster that no row belongs to any more keeps out of the way, at 0.
            total = weights.sum(axis=0)
            centres = np.asarray((weights / np.where(total > 0, total, 1)).T @ X)
            # Thousands of steps may follow: no more than this is computed in each.
            squared = np.asarray(X @ centres.T)
            squared *= -2
            squared += lengths
            squared += np.einsum("ij,ij->i", centres, centres)
            np.maximum(squared, 0, out=squared)
            before, memberships = memberships, _memberships(squared, fuzzifier)
            if self.stop == "memberships":
                change = float(np.abs(memberships - before).max())
            else:
                value = float((weights * squared).sum())
                objective, change = value, abs(objective - value)
            if change < tol or self.n_iter_ == max_iter:
                break
        if change >= tol and self.stop == "memberships":
            warn_caller(
                f"Fuzzy c-means stopped after {self.n_iter_} iterations, when memberships still "
                f"changed by {change:.2e}, wanted tol={tol:.2e}; raise max_iter or tol.",
                ConvergenceWarning,
            )
        return memberships

    def _connected(self, A: FloatArray) -> FloatArray:
        if self.connection == "minmax":
            reach = float(np.ptp(A))
            return np.asarray((A - A.min()) / reach) if reach > 0 else np.ones_like(A)
        if self.connection == "label":
            sums = A.sum(axis=1, keepdims=True)
            return np.asarray(A / np.where(sums > 0, sums, 1))
        return A


def _memberships(squared: FloatArray, fuzzifier: float) -> FloatArray:
    """Return 1 / sum_k' (d_k / d_k')^(2 / (fuzzifier - 1)); a row on a centre belongs to it."""
    nearest = squared.min(axis=1, keepdims=True)
    # Relative to the nearest centre nothing overflows, and a row on a centre gives 0 / 0 only
    # for that centre.
    ratio = np.divide(nearest, squared, out=np.ones_like(squared), where=squared > 0)
    if fuzzifier != 2:
        ratio **= 1 / (fuzzifier - 1)
    return np.asarray(ratio / ratio.sum(axis=1, keepdims=True))
