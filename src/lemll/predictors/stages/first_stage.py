"""The first stage of the two-stage classifiers: an enhancer computes numerical labels."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_memory

from lemll._types import Estimator, Features, FloatArray, LabelArray, MatrixLike

__all__ = ["fit_enhancer"]


def fit_enhancer(
    enhancer: Estimator,
    X: Features,
    Y: LabelArray,
    memory: Estimator,
    weight: FloatArray | None = None,
) -> tuple[Features, FloatArray]:
    """Fit a clone of an enhancer, or load it from a cache.

    Parameters
    ----------
    enhancer : BaseEnhancer
        The enhancer. A clone is fitted; this object is not changed.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1; -1 in unknown cells.
    memory : None, str or object with the interface of joblib.Memory
        The cache of fits of the same enhancer to the same rows.
    weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1. They are 0 in unknown cells.

    Returns
    -------
    enhancer : BaseEnhancer
        Fitted.
    numerical_labels : ndarray of shape (n_samples, n_labels)
        U.
    """
    # Enhancers need at least two labels. Add the complement of a single label as the other one.
    labels: MatrixLike = Y
    if Y.shape[1] == 1:
        labels = np.column_stack([1 - Y, Y])
        weight = None if weight is None else np.column_stack([weight, weight])
    if weight is not None:
        labels = np.where(weight > 0, labels, np.nan)
    # Without a cache, do not go through joblib: then warnings point at the line of the user.
    run = _fit if memory is None else check_memory(memory).cache(_fit)
    fitted = run(clone(enhancer), X, labels, weight)
    return fitted, fitted.numerical_labels_[:, -Y.shape[1] :]


def _fit(enhancer: Estimator, X: Features, Y: MatrixLike, weight: FloatArray | None) -> Features:
    with warnings.catch_warnings():
        # The classifier has already named the labels that nobody observed, and it does not show
        # the degrees of labels without a relevant row.
        warnings.filterwarnings("ignore", "labels without an observed cell")
        warnings.filterwarnings("ignore", "no row has the labels")
        # Without weights, an enhancer of the user need not know them.
        if weight is None:
            return enhancer.fit(X, Y)
        return enhancer.fit(X, Y, label_weight=weight)
