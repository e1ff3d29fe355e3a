"""Sources of degrees that need only the labels."""

from __future__ import annotations

import numpy as np

from lemll._types import Array, FloatArray
from lemll.enhancers._propagation import SMALLEST, fill_labels, propagate_labels
from lemll.enhancers._rated import unit_source
from lemll.fitting import Normalization

__all__ = ["label_sources", "own_source"]

_NEAR, _FAR = 0.5, 0.9
# The logarithm enlarges small weights of the graph. Without this count, a pair of labels that
# occurs in one row by chance would be far from a pair that never occurs.
_PSEUDO_COUNT = 1.0


def label_sources(Y: Array, weight: FloatArray | None) -> dict[str, FloatArray]:
    """Return what the labels alone say about the logarithms of the degrees.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1, or degrees from 0 to 1. Unknown cells may hold any value.
    weight : ndarray of shape (n_samples, n_labels) or None
        How sure each cell is; None means that all are certain.

    Returns
    -------
    dict of str to ndarray of shape (n_samples, n_labels)
        "label graph" is the logarithm of the propagated labels. "label graph by size" is the same,
        times the logarithm of the number of relevant labels of the row, centred: the degrees of a
        row with many relevant labels are flatter. "far label graph" propagates farther. "logical
        labels" are the labels.
    """
    labels = fill_labels(Y, weight)
    near, far = (
        unit_source(np.log(np.maximum(found.scores, SMALLEST)))
        for found in (
            propagate_labels(Y, weight, alpha, pseudo_count=_PSEUDO_COUNT)
            for alpha in (_NEAR, _FAR)
        )
    )
    size = np.log(np.maximum(labels.sum(axis=1, keepdims=True), 1))
    return {
        "label graph": near,
        "label graph by size": near * (size - size.mean()),
        "far label graph": far,
        "logical labels": unit_source(labels),
    }


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
    return unit_source(np.log(np.maximum(numerical_labels / largest, SMALLEST)))
