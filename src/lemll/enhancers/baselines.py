"""A baseline without enhancement: every label gets the same degree."""

from __future__ import annotations

import numpy as np

from lemll._types import Features, FloatArray, LabelArray
from lemll.enhancers.base import BaseEnhancer


class LogicalEnhancer(BaseEnhancer):
    r"""Give all relevant labels of a row the same degree, and irrelevant labels the degree 0.

    This is the second baseline, in addition to `UniformEnhancer`. It uses only the 0/1 labels and
    minimises nothing. A row without relevant labels becomes uniform.

    Parameters
    ----------
    normalization : {"sum", "sigmoid", "softmax"}, default="sum"
        How the numerical labels become a distribution. Here they are the logical labels.
    scale : float, default=1.0
        The numerical labels are multiplied by this before they are normalised, > 0. With "sum" it
        is an exponent, which has no effect on 0 and 1.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        The logical labels, 0/1.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.
    scale_ : float
        The scale in use: the parameter, or the value found by `calibrate`.
    scale_interval_ : tuple of float or None
        The confidence interval of the scale, set by `calibrate`. None before that.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels.

    Examples
    --------
    >>> from lemll.enhancers import LogicalEnhancer
    >>> LogicalEnhancer().fit_enhance([[0.0], [1.0]], [[1, 0], [1, 1]])
    array([[1. , 0. ],
           [0.5, 0.5]])
    """

    needs_features = False

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        return Y.astype(np.float64)


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

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        return np.zeros(Y.shape)
