"""A baseline without enhancement: every label gets the same degree."""

from __future__ import annotations

import numpy as np

from lemll._types import Features, FloatArray, LabelArray
from lemll.enhancers._base import BaseEnhancer
from lemll.fitting import Normalization

__all__ = ["UniformEnhancer"]


class UniformEnhancer(BaseEnhancer):
    r"""Give every label of every row the degree 1 / n_labels, independent of X and Y.

    This is the first baseline: a useful method must be better than it. It minimises nothing, and
    all numerical labels are 0.

    Parameters
    ----------
    normalization : {"sum", "sigmoid", "softmax"}, default="sum"
        How the numerical labels become a distribution. Here all three give the same result.
    scale : float, default=1.0
        As in the other enhancers, > 0. Here it has no effect.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        Zeros.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        All 1 / n_labels.
    scale_ : float
        The parameter.
    scale_interval_ : None
        Always None, because the scale has no effect.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels.

    Examples
    --------
    >>> from lemll.enhancers import UniformEnhancer
    >>> UniformEnhancer().fit_enhance([[0.0], [1.0]], [[1, 0], [1, 1]])
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    needs_features = False

    def __init__(self, *, normalization: Normalization = "sum", scale: float = 1.0) -> None:
        self.normalization = normalization
        self.scale = scale

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        return np.zeros(Y.shape)
