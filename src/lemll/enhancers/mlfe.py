"""MLFE: label enhancement by sparse codes that rebuild features and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from lemll._sparse import SPARSE_DENSITY
from lemll._types import Features, FloatArray, LabelArray, SparseMatrix
from lemll._validation import check_memory, check_number, check_whole, is_sparse
from lemll._warnings import warn_caller
from lemll.enhancers._base import BaseEnhancer
from lemll.enhancers._boxed import boxed_labels
from lemll.fitting import Normalization, check_two_rows
from lemll.topology import admm_codes, check_graph, lasso_codes

__all__ = ["MLFEEnhancer"]

CODINGS = ("admm", "lasso")
# Relative duality gap to which "lasso" solves the codes.
LASSO_TOL = 1e-8


class MLFEEnhancer(BaseEnhancer):
    r"""Recover label distributions by the enriched labels of MLFE, the first stages of [1]_.

    A lasso rebuilds every row from all other rows,

    .. math:: \min_s \tfrac12\|x_i-\textstyle\sum_{j\ne i}s_jx_j\|^2+\lambda_i\|s\|_1,
        \qquad \lambda_i = \text{share} \cdot \max_{j\ne i}|x_j^\top x_i|,

    and its solutions are the rows of W. The same weights shall rebuild the numerical labels, which
    keep the signs of the logical labels Y in -1/+1. For each label k, the numerical labels minimise

    .. math:: \min_u \|(I-W)u\|^2 \quad\text{s.t.}\quad c_1 \le y_{ik}u_i \le c_2 .

    Parameters
    ----------
    lower : float, default=1.0
        :math:`c_1`, > 0.
    upper : float, default=2.0
        :math:`c_2`, >= `lower`.
    coding : {"admm", "lasso"}, default="admm"
        "admm" stops early, as in the code of the authors, which gave the published figures. Then
        most weights are small but not zero. "lasso" solves each lasso to a relative duality gap of
        1e-8.
    share : float, default=0.01
        Factor of :math:`\lambda_i` in the formula above, > 0.
    penalty : float, default=1.0
        Penalty :math:`\rho` of the alternating direction method, > 0. Used only by "admm".
    relaxation : float, default=0.5
        Relaxation of the alternating direction method, between 0 and 2.
    absolute_tol, relative_tol : float, default=1e-4, 1e-2
        Stopping tolerances of the alternating direction method, > 0.
    ridge : float, default=0.0
        Weight of an added :math:`\|u\|^2`, >= 0.
    graph : array-like or sparse matrix of shape (n_samples, n_samples), optional
        Precomputed weights W, from `admm_codes` or `lasso_codes`. They do not depend on the labels,
        so several label matrices can share them.
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
        The solver stops when the largest violation of the optimality conditions of U is at most
        this.
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
    lemll.topology.sparse_coding : The codes.
    lemll.solvers.solve_box_qp : The solver.

    References
    ----------
    .. [1] Q.-W. Zhang, Y. Zhong and M.-L. Zhang, "Feature-induced labeling information enrichment
       for multi-label learning", AAAI Conference on Artificial Intelligence, 2018.

    Examples
    --------
    >>> from lemll.datasets import make_artificial, binarize_distribution
    >>> from lemll.enhancers import MLFEEnhancer
    >>> data = make_artificial(100, random_state=0)
    >>> enhancer = MLFEEnhancer().fit(data.X, binarize_distribution(data.D, 0.5))
    >>> enhancer.label_distribution_.shape, enhancer.kkt_residual_ <= 1e-8
    ((100, 3), True)
    """

    def __init__(
        self,
        *,
        lower: float = 1.0,
        upper: float = 2.0,
        coding: Any = "admm",
        share: float = 0.01,
        penalty: float = 1.0,
        relaxation: float = 0.5,
        absolute_tol: float = 1e-4,
        relative_tol: float = 1e-2,
        ridge: float = 0.0,
        graph: SparseMatrix = None,
        normalization: Normalization = "sigmoid",
        scale: float = 1.0,
        feature_scale: str = "none",
        tol: float = 1e-8,
        max_iter: int = 500,
    ) -> None:
        self.lower = lower
        self.upper = upper
        self.coding = coding
        self.share = share
        self.penalty = penalty
        self.relaxation = relaxation
        self.absolute_tol = absolute_tol
        self.relative_tol = relative_tol
        self.ridge = ridge
        self.graph = graph
        self.normalization = normalization
        self.scale = scale
        self.feature_scale = feature_scale
        self.tol = tol
        self.max_iter = max_iter

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        check_two_rows(X, "MLFE")
        lower = check_number("lower", self.lower, above=0)
        upper = check_number("upper", self.upper, above=lower, inclusive=True)
        ridge = check_number("ridge", self.ridge, above=0, inclusive=True)
        # Check these before the graph, which takes most of the time.
        check_number("tol", self.tol, above=0)
        check_whole("max_iter", self.max_iter, least=1)
        if self.graph is None:
            W = self._make_graph(X, Y.shape[1])
        else:
            # Codes minimise a lasso without the constraint that the weights sum to one.
            W = check_graph(self.graph, X.shape[0], sum_to_one=False)
        # Use the faster form: sparse for few nonzeros, dense for many.
        few = W.nnz if is_sparse(W) else np.count_nonzero(W)
        if is_sparse(W) != (few < SPARSE_DENSITY * W.shape[0] ** 2):
            W = W.toarray() if is_sparse(W) else sparse.csr_array(W)
        return boxed_labels(self, W, Y, lower=lower, upper=upper, ridge=ridge)

    def _make_graph(self, X: Features, n_labels: int) -> Features:
        if self.coding not in CODINGS:
            raise ValueError(f"coding={self.coding!r} must be one of {', '.join(CODINGS)}.")
        share = check_number("share", self.share, above=0)
        if self.coding == "lasso":
            codes = lasso_codes(X, share=share, tol=LASSO_TOL)
            if codes.gap.max() > LASSO_TOL:
                warn_caller(
                    f"{int((codes.gap > LASSO_TOL).sum())} of {X.shape[0]} rows have codes with "
                    f"relative duality gaps of up to {codes.gap.max():.2e}, wanted "
                    f"{LASSO_TOL:.0e}; rescale the features.",
                    ConvergenceWarning,
                )
            return codes.weights
        check_memory(
            16 * X.shape[0] ** 2,
            f"The weights between {X.shape[0]} rows",
            'use coding="lasso", or enhance fewer rows at a time',
        )
        return admm_codes(
            X,
            share=share,
            penalty=check_number("penalty", self.penalty, above=0),
            relaxation=check_number("relaxation", self.relaxation, above=0),
            absolute=check_number("absolute_tol", self.absolute_tol, above=0),
            relative=check_number("relative_tol", self.relative_tol, above=0),
        ).weights
