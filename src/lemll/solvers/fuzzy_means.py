"""Fuzzy c-means: clusters in which each row has a share, accelerated or as published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lemll._sparse import dense, squared_lengths
from lemll._types import Features, FloatArray
from lemll._validation import check_number, check_whole, is_sparse
from lemll.solvers.interface import check_stopping

__all__ = ["FuzzyMeans", "solve_fuzzy_means"]

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
    >>> from lemll.solvers import solve_fuzzy_means
    >>> X = np.array([[-5.1], [-4.9], [5.0]])
    >>> start = np.array([[0.6, 0.4], [0.6, 0.4], [0.4, 0.6]])
    >>> solve_fuzzy_means(X, start).memberships.round(2)
    array([[1., 0.],
           [1., 0.],
           [0., 1.]])
    """
    check_stopping(tol=tol, max_iter=check_whole("max_iter", max_iter, least=1))
    check_number("fuzzifier", fuzzifier, above=1)
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
