"""No enhancement: every label matters alike."""

from __future__ import annotations

import numpy as np

from lemll._types import Features, FloatArray, LabelArray
from lemll.enhancers._base import BaseEnhancer
from lemll.fitting import Normalization

__all__ = ["UniformEnhancer"]


class UniformEnhancer(BaseEnhancer):
    r"""Give every label of every row the degree 1 / n_labels, whatever X and Y are.

    The baseline that a method has to beat before it says anything: all numerical labels are 0.

    Parameters
    ----------
    normalization : {"sum", "sigmoid", "softmax"}, default="sum"
        How the numerical labels become a distribution; here all three give the same.
    scale : float, default=1.0
        As in the other enhancers, > 0; here without effect.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        Zeros.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        All 1 / n_labels.
    scale_ : float
        The parameter.
    scale_interval_ : None
        Nothing can be calibrated.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.
    label_names_ : ndarray of str
        The labels' names.

    Examples
    --------
    >>> from lemll.enhancers import UniformEnhancer
    >>> UniformEnhancer().fit_enhance([[0.0], [1.0]], [[1, 0], [1, 1]])
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    def __init__(self, *, normalization: Normalization = "sum", scale: float = 1.0) -> None:
        self.normalization = normalization
        self.scale = scale

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        return np.zeros(Y.shape)
