"""Sources of degrees made from the labels, which may be smoothed over similar rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lemll._types import Array, FloatArray
from lemll.enhancers._propagation import SMALLEST, fill_labels, propagate_labels
from lemll.enhancers._rated import unit_source
from lemll.fitting import Normalization

__all__ = ["graph_source", "label_sources", "own_source"]

# The alpha of `propagate_labels`: how far the labels are propagated.
_NEAR, _MIDDLE, _FAR = 0.5, 0.7, 0.9
# The logarithm enlarges small weights of the graph. Without this count, a pair of labels that
# occurs in one row by chance would be far from a pair that never occurs.
_PSEUDO_COUNT = 1.0


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
    Y: Array,
    weight: FloatArray | None,
    smooth: Callable[[FloatArray], FloatArray] | None = None,
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
        "label graph" is the logarithm of the propagated labels. "label graph by size" is the same,
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
