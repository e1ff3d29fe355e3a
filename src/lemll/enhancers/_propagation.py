"""Propagation of labels over the graph of the labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from scipy import linalg

from lemll._types import Array, FloatArray

__all__ = ["SMALLEST", "Measure", "Propagation", "fill_labels", "propagate_labels"]

Measure = Literal["jaccard", "cosine"]
# Scores below this are raised to it: otherwise a label that is far from all relevant labels of a
# row would have no share at any scale.
SMALLEST = 1e-4


class Propagation(NamedTuple):
    """Labels after propagation.

    Attributes
    ----------
    scores : ndarray of shape (n_samples, n_labels)
        The propagated labels, not negative.
    graph : ndarray of shape (n_labels, n_labels)
        The weights of the graph.
    residual : float
        Largest error of the linear system, relative to its right-hand side.
    """

    scores: FloatArray
    graph: FloatArray
    residual: float


def fill_labels(Y: Array, weight: FloatArray | None) -> FloatArray:
    """Return labels in which unknown cells hold the frequency of their label.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1, or degrees from 0 to 1. Unknown cells may hold any value.
    weight : ndarray of shape (n_samples, n_labels) or None
        How sure each cell is, 0 to 1; None means that all are certain.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Values from 0 to 1. A cell of the weight c is the mean of its label, with the weight c, and
        of the frequency.
    """
    labels = _known(Y, weight)
    if weight is None:
        return labels
    total = weight.sum(axis=0)
    relevant = (weight * labels).sum(axis=0)
    frequency = np.divide(relevant, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(weight * labels + (1 - weight) * frequency)


def _known(Y: Array, weight: FloatArray | None) -> FloatArray:
    """Return the labels as numbers, with 0 in unknown cells."""
    known = Y > 0 if weight is None else (Y > 0) & (weight > 0)
    return np.where(known, Y, 0).astype(np.float64)


def propagate_labels(
    Y: Array,
    weight: FloatArray | None,
    alpha: float,
    measure: Measure = "jaccard",
    *,
    pseudo_count: float = 0.0,
    smooth: Callable[[FloatArray], FloatArray] | None = None,
) -> Propagation:
    r"""Propagate the labels of each row over the graph of the labels.

    With A the graph, :math:`\mathcal L=D^{-1/2}AD^{-1/2}` and D the diagonal matrix of the row sums
    of A, the scores of a row y minimise

    .. math:: (1-\alpha)\|p-y\|^2+\alpha\,p^\top(I-\mathcal L)p .

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1, or degrees from 0 to 1. Unknown cells may hold any value.
    weight : ndarray of shape (n_samples, n_labels) or None
        How sure each cell is, 0 to 1; None means that all are certain.
    alpha : float
        Between 0 and 1.
    measure : {"jaccard", "cosine"}, default="jaccard"
        The weights of the graph.
    pseudo_count : float, default=0
        Added to the number of rows that have both labels; twice this is added to the divisor. Only
        for two labels that both occur. Then a pair that occurs once, by chance, differs little
        from a pair that does not occur.
    smooth : callable, optional
        Makes a matrix of one row per sample smooth over similar samples. It must be linear, with a
        symmetric matrix S whose eigenvalues are between 0 and 1. Two labels then occur together
        with the weight S_ij if row i has one of them and row j the other; in the same row with
        S_ii, which may be below 1. Negative sums count as 0.

    Returns
    -------
    Propagation
        Scores, graph and the error of the linear system.
    """
    graph = _graph(Y, weight, measure, pseudo_count, smooth)
    root = 1 / np.sqrt(graph.sum(axis=1))
    system = np.eye(len(graph)) - alpha * (root[:, None] * graph * root)
    labels = fill_labels(Y, weight)
    factor = linalg.cho_factor(system, check_finite=False)
    solved = linalg.cho_solve(factor, labels.T, check_finite=False)
    error = np.abs(system @ solved - labels.T).max(initial=0.0)
    residual = float(error / max(1.0, labels.max(initial=0.0)))
    # The matrix A is not negative, so neither are the scores, except for rounding errors.
    return Propagation(np.maximum(0, (1 - alpha) * solved.T), graph, residual)


def _graph(
    Y: Array,
    weight: FloatArray | None,
    measure: Measure,
    pseudo_count: float,
    smooth: Callable[[FloatArray], FloatArray] | None,
) -> FloatArray:
    """Count how often labels occur together, in rows where both are known.

    With `smooth`, pairs of similar rows count too, and unknown cells count as not relevant.
    """
    relevant = _known(Y, weight)
    if weight is not None:
        relevant = relevant * weight
    both = relevant.T @ relevant
    # Entry (j, k): how often label j is relevant where label k is known.
    alone = (
        np.broadcast_to(np.diag(both)[:, None], both.shape)
        if weight is None
        else relevant.T @ weight
    )
    if smooth is not None:
        both = relevant.T @ smooth(relevant)
        both = np.maximum(0, (both + both.T) / 2)
    scale = alone + alone.T - both if measure == "jaccard" else np.sqrt(alone * alone.T)
    # With `smooth`, `both` counts pairs of different rows, and `alone` only rows in which both
    # labels are known, so `both` can be larger.
    scale = np.maximum(scale, both)
    occur = (alone > 0) & (alone.T > 0)
    graph = np.divide(
        both + pseudo_count, scale + 2 * pseudo_count, out=np.zeros_like(both), where=occur
    )
    # A label without a relevant row is connected with itself only.
    np.fill_diagonal(graph, 1.0)
    return graph
