"""ML2: label enhancement by the local linear structure (manifold) of the features."""

from __future__ import annotations

from typing import Any

import numpy as np

from lemll._types import Features, FloatArray, LabelArray, SparseMatrix
from lemll._validation import check_number, check_whole
from lemll.enhancers._base import BaseEnhancer
from lemll.enhancers._boxed import boxed_labels
from lemll.fitting import Normalization, check_two_rows
from lemll.topology import check_graph, reconstruction_weights

__all__ = ["ML2Enhancer"]


class ML2Enhancer(BaseEnhancer):
    r"""Recover label distributions by the label manifold of ML2, the first stages of [1]_.

    The LLE weights W rebuild the features of each row from its neighbours. The same weights shall
    rebuild the numerical labels, which keep the signs of the logical labels Y in -1/+1. For each
    label k, the numerical labels minimise

    .. math:: \min_u \; u^\top \big((I-W)^\top(I-W) + \rho I\big) u
        \quad \text{s.t.} \quad y_{ik} u_i \ge \lambda .

    Parameters
    ----------
    n_neighbors : int, optional
        Number of neighbours that rebuild a row. By default n_labels + 1, as in [1]_ and [2]_. If
        there are fewer rows, all other rows are used.
    lower : float, default=1.0
        :math:`\lambda`, > 0.
    upper : float, optional
        Largest magnitude of a numerical label, >= `lower`. By default there is no limit.
    reg : float, default=1e-5
        Added to the diagonals of the local Gram matrices of LLE, > 0. See `reg_policy`.
    reg_policy : {"absolute", "always", "auto"}, default="absolute"
        "absolute" adds `reg` itself. "always" adds `reg` relative to the trace of each Gram
        matrix. "auto" does the same, but only if the Gram matrix is singular. "absolute"
        reproduces the figures of [2]_.
    ridge : float, default=1e-5
        :math:`\rho`, >= 0. With 0 the optimum may not be unique.
    graph : csr_array of shape (n_samples, n_samples), optional
        Precomputed weights W, from `lemll.topology.reconstruction_weights`.
    normalization : {"sigmoid", "softmax", "sum"}, default="sigmoid"
        How U becomes a distribution.
    scale : float, default=1.0
        U is multiplied by this before it is normalised, > 0. With "sum" it is an exponent.
    feature_scale : {"none", "standard", "maxabs", "auto"}, default="none"
        Scaling of the columns of X, learned from the training rows. "none" changes nothing, as in
        the paper. "standard" subtracts the mean and divides by the standard deviation; sparse
        features are only divided. "maxabs" divides by the largest absolute value. "auto" is
        "standard", or "maxabs" for sparse features. Learners call it `scale`, but here `scale` is
        the scale of the degrees. A `graph` that is passed is not changed.
    tol : float, default=1e-8
        The solver stops when the largest violation of the optimality conditions is at most this.
    max_iter : int, default=500
        Largest number of iterations per label.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.
    kkt_residual_ : float
        The largest violation of the optimality conditions, over all labels.
    n_iter_ : int
        Number of iterations of the slowest label.
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
    lemll.solvers.solve_box_qp : The solver.

    References
    ----------
    .. [1] P. Hou, X. Geng and M.-L. Zhang, "Multi-label manifold learning", AAAI Conference on
       Artificial Intelligence, 2016.
    .. [2] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll.datasets import make_artificial, binarize_distribution
    >>> from lemll.enhancers import ML2Enhancer
    >>> data = make_artificial(200, random_state=0)
    >>> enhancer = ML2Enhancer().fit(data.X, binarize_distribution(data.D, 0.5))
    >>> enhancer.label_distribution_.shape, enhancer.kkt_residual_ <= 1e-8
    ((200, 3), True)
    """

    def __init__(
        self,
        n_neighbors: int | None = None,
        *,
        lower: float = 1.0,
        upper: Any = None,
        reg: float = 1e-5,
        reg_policy: str = "absolute",
        ridge: float = 1e-5,
        graph: SparseMatrix = None,
        normalization: Normalization = "sigmoid",
        scale: float = 1.0,
        feature_scale: str = "none",
        tol: float = 1e-8,
        max_iter: int = 500,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.lower = lower
        self.upper = upper
        self.reg = reg
        self.reg_policy = reg_policy
        self.ridge = ridge
        self.graph = graph
        self.normalization = normalization
        self.scale = scale
        self.feature_scale = feature_scale
        self.tol = tol
        self.max_iter = max_iter

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        check_two_rows(X, "ML2")
        lower = check_number("lower", self.lower, above=0)
        upper = np.inf
        if self.upper is not None:
            upper = check_number("upper", self.upper, above=lower, inclusive=True)
        ridge = check_number("ridge", self.ridge, above=0, inclusive=True)
        if self.graph is None:
            W = self._make_graph(X, Y.shape[1])
        else:
            W = check_graph(self.graph, X.shape[0])
        return boxed_labels(self, W, Y, lower=lower, upper=upper, ridge=ridge)

    def _make_graph(self, X: Features, n_labels: int) -> Features:
        # The authors use one neighbour more than there are labels.
        wanted = n_labels + 1
        if self.n_neighbors is not None:
            wanted = check_whole("n_neighbors", self.n_neighbors, least=1)
        reg = check_number("reg", self.reg, above=0)
        # A row cannot have more neighbours than there are other rows.
        return reconstruction_weights(
            X, min(wanted, X.shape[0] - 1), reg=reg, reg_policy=self.reg_policy
        )
