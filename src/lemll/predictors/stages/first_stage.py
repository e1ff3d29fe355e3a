"""The first stage of learners that have two: numerical labels by an enhancer."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_memory

from lemll._types import Estimator, Features, FloatArray, LabelArray

__all__ = ["fit_enhancer"]


def fit_enhancer(
    enhancer: Estimator, X: Features, Y: LabelArray, memory: Estimator
) -> tuple[Features, FloatArray]:
    """Fit a clone of an enhancer, or find it where it has been kept.

    Parameters
    ----------
    enhancer : BaseEnhancer
        Not fitted itself.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1.
    memory : None, str or object with the interface of joblib.Memory
        Where fits of the same enhancer to the same rows are kept.

    Returns
    -------
    enhancer : BaseEnhancer
        Fitted.
    numerical_labels : ndarray of shape (n_samples, n_labels)
        U.
    """
    # One label alone is no distribution: its complement is the other, as of a binary target.
    labels = Y if Y.shape[1] > 1 else np.column_stack([1 - Y, Y])
    # Without a memory joblib is not called either: warnings then point at the user's line.
    run = _fit if memory is None else check_memory(memory).cache(_fit)
    fitted = run(clone(enhancer), X, labels)
    return fitted, fitted.numerical_labels_[:, -Y.shape[1] :]


def _fit(enhancer: Estimator, X: Features, Y: LabelArray) -> Features:
    return enhancer.fit(X, Y)
