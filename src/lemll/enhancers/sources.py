"""Sources of degrees made from the labels, which may be smoothed over similar rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from scipy import linalg

from lemll._labels import fill_labels, known_labels
from lemll._types import Array, Features, FloatArray
from lemll._validation import check_memory, is_sparse
from lemll.enhancers.calibrate import unit_source
from lemll.fitting.scaling import Normalization

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
    relevant = known_labels(Y, weight)
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


# The alpha of `propagate_labels`: how far the labels are propagated.
_NEAR, _MIDDLE, _FAR = 0.5, 0.7, 0.9
# The logarithm enlarges small weights of the graph. Without this count, a pair of labels that
# occurs in one row by chance would be far from a pair that never occurs.
_PSEUDO_COUNT = 1.0
# Singular values below this share of the largest one are rounding errors.
_RANK_TOLERANCE = 1e-10


def graph_source(Y: Array, weight: FloatArray | None) -> FloatArray:
    """Return the source "label graph" of `label_sources`, which needs no other source.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Labels, as in `label_sources`.
    weight : ndarray of shape (n_samples, n_labels) or None
        How sure each cell is.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The source.
    """
    return _propagated(Y, weight, _NEAR, None)


def _propagated(
    Y: Array,
    weight: FloatArray | None,
    alpha: float,
    smooth: Callable[[FloatArray], FloatArray] | None,
) -> FloatArray:
    return _log_source(
        propagate_labels(Y, weight, alpha, pseudo_count=_PSEUDO_COUNT, smooth=smooth).scores
    )


def label_sources(
    Y: Array, weight: FloatArray | None, smooth: Callable[[FloatArray], FloatArray] | None = None
) -> dict[str, FloatArray]:
    """Return what the labels say about the logarithms of the degrees.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1, or degrees from 0 to 1. Unknown cells may hold any value.
    weight : ndarray of shape (n_samples, n_labels) or None
        How sure each cell is; None means that all are certain.
    smooth : callable, optional
        Makes a matrix of one row per sample smooth over similar samples, as in `propagate_labels`.

    Returns
    -------
    dict of str to ndarray of shape (n_samples, n_labels)
        "label graph" is the logarithm of the propagated labels. "plain label graph" is the same
        without the pseudo count, which hides the neighbours of ordered labels. "label graph by
        size" is the label graph,
        times the logarithm of the number of relevant labels of the row, centred: the degrees of a
        row with many relevant labels are flatter. "far label graph" propagates farther, with
        `smooth` over a graph that also connects the labels of similar rows. "logical labels" are
        the labels. "labels and frequencies" is the logarithm of the mean of the row's labels and
        the frequencies of the labels: where rows have one label, the frequent labels have the
        larger degrees among the others.

        Only with `smooth`: "smooth labels" are the labels after it. "smooth label graph" propagates
        the labels over the graph that also connects the labels of similar rows; `smooth` is then
        applied to the logarithms.
    """
    labels = fill_labels(Y, weight)
    near = graph_source(Y, weight)
    size = np.log(np.maximum(labels.sum(axis=1, keepdims=True), 1))
    found = {
        "label graph": near,
        "label graph by size": near * (size - size.mean()),
        "plain label graph": _log_source(propagate_labels(Y, weight, _NEAR).scores),
        "far label graph": _propagated(Y, weight, _FAR, smooth),
        "logical labels": unit_source(labels),
        "labels and frequencies": _log_source((labels + labels.mean(axis=0)) / 2),
    }
    if smooth is not None:
        found["smooth labels"] = unit_source(smooth(labels))
        found["smooth label graph"] = unit_source(smooth(_propagated(Y, weight, _MIDDLE, smooth)))
    return found


def own_source(numerical_labels: FloatArray, normalization: Normalization) -> FloatArray:
    """Return the numerical labels of an enhancer as a source.

    Parameters
    ----------
    numerical_labels : ndarray of shape (n_samples, n_labels)
        U.
    normalization : {"sigmoid", "softmax", "sum"}
        With "sum" the numerical labels are degrees, otherwise logarithms of degrees.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        A source of mean square 1.
    """
    if normalization != "sum":
        return unit_source(numerical_labels)
    largest = np.maximum(numerical_labels.max(axis=1, keepdims=True), np.finfo(float).tiny)
    return _log_source(numerical_labels / largest)


def _log_source(degrees: FloatArray) -> FloatArray:
    return unit_source(np.log(np.maximum(degrees, SMALLEST)))


class PrincipalRows(NamedTuple):
    """The thin singular value decomposition of standardised features.

    Attributes
    ----------
    Q : ndarray of shape (n_samples, rank)
        Orthonormal columns.
    S : ndarray of shape (rank,)
        Singular values, in descending order.
    """

    Q: FloatArray
    S: FloatArray


def principal_rows(X: Features) -> PrincipalRows:
    """Standardise the features and decompose them.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features. Sparse features are made dense.

    Returns
    -------
    PrincipalRows
        Of the features minus their means, divided by their standard deviations with the divisor
        n - 1. Constant features do not count.
    """
    check_memory(
        4 * 8 * X.shape[0] * X.shape[1],
        f"The decomposition of {X.shape[0]} rows with {X.shape[1]} features",
        "use fewer features or rows, or LabelGraphEnhancer, which does not use the features",
    )
    rows = (X.toarray() if is_sparse(X) else X).astype(np.float64)
    rows = rows - rows.mean(axis=0)
    deviations = np.sqrt(np.square(rows).sum(axis=0) / max(1, len(rows) - 1))
    # A deviation that is only rounding error must not be scaled up to 1.
    size = np.abs(X).max(axis=0)
    largest = np.asarray(size.toarray() if is_sparse(size) else size, dtype=np.float64).ravel()
    constant = deviations <= 1e-12 * np.maximum(largest, np.finfo(np.float64).tiny)
    rows = np.where(constant, 0.0, rows / np.where(constant, 1.0, deviations))
    Q, S, _ = linalg.svd(rows, full_matrices=False, check_finite=False)
    kept = S > _RANK_TOLERANCE * max(float(S.max(initial=0.0)), np.finfo(np.float64).tiny)
    return PrincipalRows(Q[:, kept], S[kept])


def smooth_by_energy(
    basis: PrincipalRows, Y: FloatArray, smoothness: float, energy: float
) -> FloatArray:
    r"""Return the minimiser of stage two for the representation with squared noise.

    The representation is :math:`C=Q\,\mathrm{diag}(f)\,Q^\top` with
    :math:`f_k=\max(0,1-s^2/s_k^2)`, where s is the first singular value at which the sum of
    the squares reaches the share `energy`. Everything is diagonal in Q.

    Parameters
    ----------
    basis : PrincipalRows
        The decomposition of the features.
    Y : ndarray of shape (n_samples, n_labels)
        Labels.
    smoothness : float
        The weight of the second term.
    energy : float
        Between 0 and 1.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Numerical labels.
    """
    Q, S = basis
    if not len(S):
        return np.asarray(Y / (1 + smoothness))
    squares = S**2
    last = int(np.argmax(np.cumsum(squares) >= energy * squares.sum()))
    kept = np.maximum(0, 1 - squares[last] / squares)
    # A direction outside of Q is not represented at all.
    alone = 1 / (1 + smoothness)
    factor = 1 / (1 + smoothness * (1 - kept) ** 2) - alone
    return np.asarray(alone * Y + Q @ (factor[:, None] * (Q.T @ Y)))
