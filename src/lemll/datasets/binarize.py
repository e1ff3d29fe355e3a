"""Convert a label distribution to logical labels."""

from __future__ import annotations

import numpy as np

from lemll._types import LabelArray, MatrixLike
from lemll._validation import check_distribution

__all__ = ["binarize_distribution"]


def binarize_distribution(D: MatrixLike, threshold: float) -> LabelArray:
    """Convert a label distribution to logical labels.

    In each row, the labels are selected in order of descending degree, until the sum of the
    selected degrees *exceeds* the threshold [1]_. If the sum equals the threshold, one more label
    is selected, as in the code of the authors. If two degrees are equal, the label with the lower
    index is selected first. At least one label is selected. If rounding errors keep the sum of a
    whole row below the threshold, all labels are selected.

    Parameters
    ----------
    D : array-like of shape (n_samples, n_labels)
        Degrees. They are non-negative, and the sum of every row is one.
    threshold : float
        A number between 0 and 1, both excluded. The paper uses 0.1, 0.2, 0.3, 0.4 and 0.5.

    Returns
    -------
    ndarray of shape (n_samples, n_labels), int8
        Logical labels, 0/1. Each row has at least one relevant label.

    References
    ----------
    .. [1] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018, section on the reconstruction of label
       importance.

    Examples
    --------
    >>> from lemll.datasets import binarize_distribution
    >>> D = [[0.25, 0.5, 0.125, 0.125]]
    >>> binarize_distribution(D, 0.3)
    array([[0, 1, 0, 0]], dtype=int8)
    >>> binarize_distribution(D, 0.5)  # 0.5 does not exceed 0.5
    array([[1, 1, 0, 0]], dtype=int8)
    """
    if not isinstance(threshold, (float, int, np.floating)) or not 0 < threshold < 1:
        raise ValueError(f"threshold must be a number between 0 and 1, got {threshold!r}.")
    degrees = check_distribution(D)
    order = np.argsort(-degrees, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(degrees, order, axis=1), axis=1)
    chosen = np.ones(degrees.shape, dtype=np.int8)
    # A label is selected if the sum of the larger degrees does not exceed the threshold.
    chosen[:, 1:] = sums[:, :-1] <= threshold
    labels = np.empty_like(chosen)
    np.put_along_axis(labels, order, chosen, axis=1)
    return labels
