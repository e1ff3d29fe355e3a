"""Label propagation, the first stage of RELIAB."""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lemll._sparse import lighter
from lemll._types import Features, FloatArray, LabelArray
from lemll._validation import check_number, check_whole
from lemll._warnings import warn_caller
from lemll.enhancers._base import BaseEnhancer
from lemll.fitting import Normalization, check_width, squared_distances

__all__ = ["LabelPropagationEnhancer"]

TRANSITIONS = ("column", "row", "symmetric")


class LabelPropagationEnhancer(BaseEnhancer):
    r"""Recover label distributions by label propagation, the first stage of RELIAB [1]_.

    Rows pass on their labels to near rows, in the fixed point of

    .. math:: F = \alpha P F + (1 - \alpha) Y, \qquad
        A_{ij} = \exp(-\|x_i - x_j\|^2 / (2 \sigma^2)), \quad A_{ii} = 0,

    with Y in 0/1 and P the normalised A. Its divided rows are the relative labelling importance.

    Parameters
    ----------
    alpha : float, default=0.5
        Share of what comes from other rows, >= 0 and < 1. The LEMLL paper [2]_ states 0.5.
    sigma : float, default=1.0
        Width of the similarity, > 0.
    transition : {"column", "row", "symmetric"}, default="column"
        With the sums :math:`d_j=\sum_iA_{ij}`, P is :math:`A_{ij}/d_j`, :math:`A_{ij}/d_i` or
        :math:`A_{ij}/\sqrt{d_id_j}`. The figures of [2]_ come from the first.
    self_similarity : bool, default=False
        Keep :math:`A_{ii}=1`.
    normalization : {"sum", "sigmoid", "softmax"}, default="sum"
        How F becomes a distribution. A row without labels, far from all others, becomes uniform.
    scale : float, default=1.0
        Factor on F before normalising, > 0; with "sum" a power.
    tol : float, default=1e-12
        Largest difference, relative to the largest entry of F, between the two sides of the
        equation at which to stop.
    max_iter : int, default=1000
        Cap on the iterations.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        F.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        Non-negative, rows summing to one.
    residual_ : float
        The difference reached.
    n_iter_ : int
        Iterations done.
    scale_ : float
        The scale used: the parameter, or what `calibrate` found.
    scale_interval_ : tuple of float or None
        From `calibrate`.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.
    label_names_ : ndarray of str
        The labels' names.

    Notes
    -----
    All three P have the real eigenvalues of the symmetric one, between -1 and 1. Chebyshev's
    iteration uses that: it needs one product with P a step, gains the factor
    :math:`\alpha/(1+\sqrt{1-\alpha^2})` (0.27 at 0.5, where the plain iteration gains 0.5), and
    inverts nothing.

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
        sigma: float = 1.0,
        transition: str = "column",
        self_similarity: bool = False,
        normalization: Normalization = "sum",
        scale: float = 1.0,
        tol: float = 1e-12,
        max_iter: int = 1000,
    ) -> None:
        self.alpha = alpha
        self.sigma = sigma
        self.transition = transition
        self.self_similarity = self_similarity
        self.normalization = normalization
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        alpha = check_number("alpha", self.alpha, above=0, inclusive=True)
        if alpha >= 1:
            raise ValueError(
                f"alpha must be smaller than 1, or the labels are forgotten; got {alpha:g}."
            )
        sigma = check_number("sigma", self.sigma, above=0)
        check_width("sigma", sigma)
        tol = check_number("tol", self.tol, above=0)
        max_iter = check_whole("max_iter", self.max_iter, least=1)
        if self.transition not in TRANSITIONS:
            raise ValueError(
                f"transition={self.transition!r} must be one of {', '.join(TRANSITIONS)}."
            )
        P = _transitions(lighter(X), sigma, self.transition, bool(self.self_similarity))
        F, self.residual_, self.n_iter_ = _fixed_point(
            P, Y.astype(np.float64), alpha, tol=tol, max_iter=max_iter
        )
        if self.residual_ > tol:
            warn_caller(
                f"Label propagation stopped after {self.n_iter_} iterations with a residual of "
                f"{self.residual_:.2e}, wanted tol={tol:.2e}; raise max_iter or tol.",
                ConvergenceWarning,
            )
        # Below zero by rounding alone: F is a sum of products of what is not negative.
        return np.maximum(F, 0)


def _transitions(X: Features, sigma: float, transition: str, self_similarity: bool) -> FloatArray:
    A = squared_distances(X)
    A *= -0.5 / sigma**2
    np.exp(A, out=A)
    if not self_similarity:
        np.fill_diagonal(A, 0)
    sums = A.sum(axis=0)
    # A row without any neighbour passes on nothing and gets nothing.
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
        With real eigenvalues in [-1, 1].
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels.
    alpha : float
        In [0, 1).
    tol : float
        Relative residual at which to stop.
    max_iter : int
        Cap on the iterations.

    Returns
    -------
    F : ndarray of shape (n_samples, n_labels)
        The fixed point.
    residual : float
        max |alpha P F + (1 - alpha) Y - F| / max |F|.
    n_iter : int
        Iterations done.
    """
    constant = (1 - alpha) * Y
    previous, F, weight = np.zeros_like(Y), constant.copy(), 2.0
    for iteration in range(max_iter + 1):
        step = alpha * (P @ F) + constant - F
        size = np.abs(F).max(initial=0.0)
        residual = float(np.abs(step).max(initial=0.0) / size) if size > 0 else 0.0
        if residual <= tol or iteration == max_iter:
            break
        # The polynomial that is smallest on [-alpha, alpha] and 1 at 1, by its recurrence.
        weight = 1 / (1 - alpha**2 * weight / 4)
        F, previous = weight * (step + F - previous) + previous, F
    return F, residual, iteration
