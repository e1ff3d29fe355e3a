"""Label enhancement by propagation over the graph of the labels; the features are not used."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import get_args

import numpy as np

from lemll._types import Features, FloatArray, LabelArray
from lemll._validation import check_choice, check_number
from lemll.enhancers.base import BaseEnhancer
from lemll.enhancers.sources import SMALLEST, Measure, propagate_labels


@dataclass(eq=False, repr=False)
class LabelGraphEnhancer(BaseEnhancer):
    r"""Recover label distributions by propagation over the graph of the labels.

    Two labels are connected if they are relevant in the same rows. With A the weights of these
    connections (diagonal 1), D the diagonal matrix of their row sums and
    :math:`\mathcal L=D^{-1/2}AD^{-1/2}`, the numerical labels p of a row with the logical labels y
    minimise

    .. math:: (1-\alpha)\|p-y\|^2+\alpha\,p^\top(I-\mathcal L)p ,

    which gives :math:`p=(1-\alpha)(I-\alpha\mathcal L)^{-1}y`. The features are not used. This
    propagation is a part of GLERB [1]_.

    The steepness of the distribution is not determined by the labels. At scale 1, irrelevant labels
    receive too little, and the uniform distribution is often better. So rate a few rows and call
    `calibrate`. Without rated rows, use `BlendEnhancer`.

    Parameters
    ----------
    alpha : float, default=0.5
        How far the labels are propagated, 0 <= alpha < 1. With 0 the numerical labels are the
        logical ones.
    measure : {"jaccard", "cosine"}, default="jaccard"
        The weight of two labels: the number of rows in which both are relevant, divided by the
        number in which at least one is ("jaccard"), or by the geometric mean of the numbers in
        which each is ("cosine").
    normalization : {"sum", "sigmoid", "softmax"}, default="sum"
        How the numerical labels become a distribution.
    scale : float, default=1.0
        With "sum" the exponent of the numerical labels, > 0. Otherwise they are multiplied by it.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        p, at least 1e-4.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.
    label_graph_ : ndarray of shape (n_labels, n_labels)
        A.
    residual_ : float
        Largest error of the linear system, which certifies the solution.
    scale_ : float
        The scale in use: the parameter, or the value found by `calibrate`.
    scale_interval_ : tuple of float or None
        The confidence interval of the scale, set by `calibrate`. None before that.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels.

    See Also
    --------
    BlendEnhancer : Weighs the graph of the labels and the features by rated rows.

    Notes
    -----
    The cost is one system of the size of the number of labels, and one product with Y. Unknown
    cells of y count as the frequency of their label, and a pair of labels is counted in the rows
    where both are known. A row without relevant labels becomes uniform.

    References
    ----------
    .. [1] Y. Lu, W. Li, H. Li and X. Jia, "Ranking-preserved generative label enhancement", Machine
       Learning, 2023.

    Examples
    --------
    >>> from lemll.enhancers import LabelGraphEnhancer
    >>> Y = [[1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]]
    >>> enhancer = LabelGraphEnhancer().fit([[0.0]] * 4, Y)
    >>> enhancer.label_distribution_[0].round(2)
    array([0.48, 0.46, 0.06])
    """

    needs_features = False

    alpha: float = 0.5
    _: KW_ONLY
    measure: Measure = "jaccard"

    def _numerical_labels(
        self, X: Features, Y: LabelArray, weight: FloatArray | None = None
    ) -> FloatArray:
        alpha = check_number("alpha", self.alpha, above=0, inclusive=True)
        if alpha >= 1:
            raise ValueError(f"alpha={self.alpha!r} must be below 1; the default is 0.5.")
        check_choice("measure", self.measure, get_args(Measure))
        found = propagate_labels(Y, weight, alpha, self.measure)
        self.label_graph_, self.residual_ = found.graph, found.residual
        # A row without labels has no information, so all its labels get the same value.
        return np.maximum(found.scores, SMALLEST)

    _partial_labels = _numerical_labels
