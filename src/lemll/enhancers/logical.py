"""No enhancement: the relevant labels share a row evenly."""

from __future__ import annotations

import numpy as np

from lemll._types import Features, FloatArray, LabelArray
from lemll.enhancers._base import BaseEnhancer
from lemll.fitting import Normalization

__all__ = ["LogicalEnhancer"]


class LogicalEnhancer(BaseEnhancer):
    r"""Take the logical labels for the truth: each relevant label gets the same share of its row.

    The other baseline beside `UniformEnhancer`: what the 0/1 labels say by themselves. A row
    without relevant labels becomes uniform.

    Parameters
    ----------
    normalization : {"sum", "sigmoid", "softmax"}, default="sum"
        How the numerical labels, here the logical ones, become a distribution.
    scale : float, default=1.0
        Factor on the numerical labels before normalising, > 0; with "sum" a power, which changes
        nothing in 0 and 1.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        The logical labels, 0/1.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        Non-negative, rows summing to one.
    scale_ : float
        The scale used: the parameter, or what `calibrate` found.
    scale_interval_ : tuple of float or None
        How sure a calibrated scale is.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.
    label_names_ : ndarray of str
        The labels' names.

    Examples
    --------
    >>> from lemll.enhancers import LogicalEnhancer
    >>> LogicalEnhancer().fit_enhance([[0.0], [1.0]], [[1, 0], [1, 1]])
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    def __init__(self, *, normalization: Normalization = "sum", scale: float = 1.0) -> None:
        self.normalization = normalization
        self.scale = scale

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        return Y.astype(np.float64)
