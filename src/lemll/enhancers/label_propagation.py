"""Label propagation between similar rows, which is the first stage of RELIAB."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lemll._sparse import lighter
from lemll._types import Features, FloatArray, LabelArray
from lemll._validation import check_number, check_whole
from lemll._warnings import warn_caller
from lemll.enhancers._base import BaseEnhancer
from lemll.fitting import Normalization, check_gamma, squared_distances

__all__ = ["LabelPropagationEnhancer"]

TRANSITIONS = ("column", "row", "symmetric")


class LabelPropagationEnhancer(BaseEnhancer):
    r"""Recover label distributions by label propagation, the first stage of RELIAB [1]_.

    Rows pass their labels to similar rows. The result is the fixed point F of

    .. math:: F = \alpha P F + (1 - \alpha) Y, \qquad
        A_{ij} = \exp(-\kappa\|x_i - x_j\|^2), \quad A_{ii} = 0,

    with Y in 0/1 and P the normalised A. This F is the solution of a linear system, and not the
    minimum of an objective. The rows of F, divided by their sums, are the relative labelling
    importance.

    Parameters
    ----------
    alpha : float, default=0.5
        Share of F that comes from other rows, >= 0 and < 1. The LEMLL paper [2]_ states 0.5.
    kernel_gamma : float, default=0.5
        :math:`\kappa`, > 0.
    transition : {"column", "row", "symmetric"}, default="column"
        How A is normalised. With the sums :math:`d_j=\sum_iA_{ij}`, P is :math:`A_{ij}/d_j`,
        :math:`A_{ij}/d_i` or :math:`A_{ij}/\sqrt{d_id_j}`. "column" reproduces the figures of
        [2]_.
    self_similarity : bool, default=False
        Whether to keep :math:`A_{ii}=1` instead of 0.
    normalization : {"sum", "sigmoid", "softmax"}, default="sum"
        How F becomes a distribution. A row without labels that is far from all other rows becomes
        uniform.
    scale : float, default=1.0
        F is multiplied by this before it is normalised, > 0. With "sum" it is an exponent.
    feature_scale : {"none", "standard", "maxabs", "auto"}, default="none"
        Scaling of the columns of X, learned from the training rows. "none" changes nothing, as in
        the paper. "standard" subtracts the mean and divides by the standard deviation; sparse
        features are only divided. "maxabs" divides by the largest absolute value. "auto" is
        "standard", or "maxabs" for sparse features. Learners call it `scale`, but here `scale` is
        the scale of the degrees.
    tol : float, default=1e-12
        The iteration stops when the largest difference between the two sides of the equation,
        divided by the largest entry of F, is at most this.
    max_iter : int, default=1000
        Largest number of iterations.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        F.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.
    residual_ : float
        The relative difference at the end.
    n_iter_ : int
        Number of iterations.
    scale_ : float
        The scale in use: the parameter, or the value found by `calibrate`.
    scale_interval_ : tuple of float or None
        The confidence interval of the scale, set by `calibrate`. None before that.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels.

    Notes
    -----
    All three forms of P have the same eigenvalues as the symmetric form: real numbers between -1
    and 1. This allows the Chebyshev iteration. It needs one product with P per step and no matrix
    inverse. Each step reduces the error by the factor :math:`\alpha/(1+\sqrt{1-\alpha^2})`. For
    alpha = 0.5 this is 0.27, while the simple iteration has the factor 0.5.

    References
    ----------
    .. [1] Y.-K. Li, M.-L. Zhang and X. Geng, "Leveraging implicit relative labeling-importance
       information for effective multi-label learning", IEEE International Conference on Data
       Mining, 2015.
    .. [2] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.

    Examples
    --------
    >>> from lemll.enhancers import LabelPropagationEnhancer
    >>> X, Y = [[0.0], [0.0], [9.0]], [[1, 0], [0, 1], [0, 1]]
    >>> LabelPropagationEnhancer().fit_enhance(X, Y).round(3)
    array([[0.533, 0.467],
           [0.267, 0.733],
           [0.   , 1.   ]])
    """

    def __init__(
        self,
        alpha: float = 0.5,
        *,
        kernel_gamma: float = 0.5,
        transition: str = "column",
        self_similarity: bool = False,
        normalization: Normalization = "sum",
        scale: float = 1.0,
        feature_scale: str = "none",
        tol: float = 1e-12,
        max_iter: int = 1000,
    ) -> None:
        self.alpha = alpha
        self.kernel_gamma = kernel_gamma
        self.transition = transition
        self.self_similarity = self_similarity
        self.normalization = normalization
        self.scale = scale
        self.feature_scale = feature_scale
        self.tol = tol
        self.max_iter = max_iter

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        alpha = check_number("alpha", self.alpha, above=0, inclusive=True)
        if alpha >= 1:
            raise ValueError(
                f"alpha must be smaller than 1, or the labels are forgotten; got {alpha:g}."
            )
        gamma = check_gamma("kernel_gamma", self.kernel_gamma)
        tol = check_number("tol", self.tol, above=0)
        max_iter = check_whole("max_iter", self.max_iter, least=1)
        if self.transition not in TRANSITIONS:
            raise ValueError(
                f"transition={self.transition!r} must be one of {', '.join(TRANSITIONS)}."
            )
        P = _transitions(lighter(X), gamma, self.transition, bool(self.self_similarity))
        F, self.residual_, self.n_iter_ = _fixed_point(
            P, Y.astype(np.float64), alpha, tol=tol, max_iter=max_iter
        )
        if self.residual_ > tol:
            warn_caller(
                f"Label propagation stopped after {self.n_iter_} iterations with a residual of "
                f"{self.residual_:.2e}, wanted tol={tol:.2e}; raise max_iter or tol.",
                ConvergenceWarning,
            )
        # F is a sum of products of non-negative numbers. Negative entries are rounding errors.
        return np.maximum(F, 0)


def _transitions(X: Features, gamma: float, transition: str, self_similarity: bool) -> FloatArray:
    A = squared_distances(X)
    A *= -gamma
    np.exp(A, out=A)
    if not self_similarity:
        np.fill_diagonal(A, 0)
    sums = A.sum(axis=0)
    # All similarities of such a row underflow to 0. Avoid 0 / 0: it exchanges nothing.
    sums[sums == 0] = 1
    if transition == "column":
        A /= sums
    elif transition == "row":
        A /= sums[:, None]
    else:
        A /= np.sqrt(sums)
        A /= np.sqrt(sums)[:, None]
    return A


def _fixed_point(
    P: FloatArray, Y: FloatArray, alpha: float, *, tol: float, max_iter: int
) -> tuple[FloatArray, float, int]:
    """Solve F = alpha P F + (1 - alpha) Y by Chebyshev's iteration.

    Parameters
    ----------
    P : ndarray of shape (n_samples, n_samples)
        Its eigenvalues must be real and in [-1, 1].
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels.
    alpha : float
        In [0, 1).
    tol : float
        Relative residual at which to stop.
    max_iter : int
        Largest number of iterations.

    Returns
    -------
    F : ndarray of shape (n_samples, n_labels)
        The fixed point.
    residual : float
        max |alpha P F + (1 - alpha) Y - F| / max |F|.
    n_iter : int
        Number of iterations.
    """
    constant = (1 - alpha) * Y
    previous, F, weight = np.zeros_like(Y), constant.copy(), 2.0
    for iteration in range(max_iter + 1):
        step = alpha * (P @ F) + constant - F
        size = np.abs(F).max(initial=0.0)
        residual = float(np.abs(step).max(initial=0.0) / size) if size > 0 else 0.0
        if residual <= tol or iteration == max_iter:
            break
        # Recurrence of the Chebyshev polynomial that is 1 at 1 and smallest on [-alpha, alpha].
        # There all eigenvalues of alpha P lie, so the error shrinks as fast as possible.
        weight = 1 / (1 - alpha**2 * weight / 4)
        F, previous = weight * (step + F - previous) + previous, F
    return F, residual, iteration
