"""KM: label enhancement by the kernel distance of a row to the centre of each label."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from lemll._sparse import lighter
from lemll._types import Features, FloatArray, KernelLike, LabelArray
from lemll._validation import check_choice, check_memory, check_number, is_sparse
from lemll.enhancers.base import BaseEnhancer
from lemll.rivals.distances import choose_gamma, mean_distance, squared_distances, upper_distances

KERNELS = ("linear", "rbf")
RADII = ("positives", "all")


@dataclass(eq=False, repr=False)
class KMEnhancer(BaseEnhancer):
    r"""Recover label distributions by the kernel method (KM): degrees fall with the distance.

    KM does not minimise an objective. The centre :math:`\psi_j` of label j is the mean of the rows
    that have the label, in the feature space of the kernel. Let
    :math:`s_{ij}^2=\|\varphi(x_i)-\psi_j\|^2` be the squared distance of row i to this centre, and
    :math:`r_j^2` the largest of these squared distances. A row that has the label gets

    .. math:: u_{ij} = 1 - \sqrt{s_{ij}^2 / (r_j^2 + \delta)}.

    A row that does not have the label gets 0. This is the membership function of fuzzy support
    vector machines [1]_. It is used for label enhancement in [2]_ and [3]_.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default="linear"
        "linear" as in [2]_, or "rbf", which is :math:`\exp(-\kappa\|x-z\|^2)`.
    kernel_gamma : "distance" or float, default="distance"
        :math:`\kappa` of the rbf kernel, > 0. "distance": :math:`1/(2\sigma^2)`, where
        :math:`\sigma` is the mean distance between two rows.
    delta : float, default=0.01
        :math:`\delta`, > 0. It keeps the degree of the farthest row above 0. [2]_ does not state
        its value; 0.01 reproduces the figures of [2]_.
    radius : {"positives", "all"}, default="positives"
        Compute the radius over the rows that have the label ("positives") or over all rows.
    normalization : {"sum", "sigmoid", "softmax"}, default="sum"
        How U becomes a distribution. With "sum", a label that a row does not have gets the degree
        0, and a row without labels becomes uniform.
    scale : float, default=1.0
        U is multiplied by this before it is normalised, > 0. With "sum" it is an exponent.
    feature_scale : {"none", "standard", "maxabs", "auto"}, default="none"
        Scaling of the columns of X, learned from the training rows. "none" changes nothing, as in
        the paper. "standard" subtracts the mean and divides by the standard deviation; sparse
        features are only divided. "maxabs" divides by the largest absolute value. "auto" is
        "standard", or "maxabs" for sparse features. Learners call it `scale`, but here `scale` is
        the scale of the degrees.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U, in [0, 1].
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

    References
    ----------
    .. [1] X. Jiang, Z. Yi and J. C. Lv, "Fuzzy SVM with a new fuzzy membership function", Neural
       Computing and Applications 15, 2006.
    .. [2] R. Shao, N. Xu and X. Geng, "Multi-label learning with label enhancement", IEEE
       International Conference on Data Mining, 2018.
    .. [3] N. Xu, A. Tao and X. Geng, "Label enhancement for label distribution learning",
       International Joint Conference on Artificial Intelligence, 2018.

    Examples
    --------
    >>> from lemll.rivals import KMEnhancer
    >>> X, Y = [[0.0], [1.0], [2.0]], [[1, 1], [1, 0], [1, 1]]
    >>> KMEnhancer().fit_enhance(X, Y).round(3)
    array([[0.5, 0.5],
           [1. , 0. ],
           [0.5, 0.5]])
    """

    _: KW_ONLY
    kernel: KernelLike = "linear"
    kernel_gamma: str | float = "distance"
    delta: float = 0.01
    radius: Any = "positives"
    feature_scale: str = "none"

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        check_choice("kernel", self.kernel, KERNELS)
        check_choice("radius", self.radius, RADII)
        delta = check_number("delta", self.delta, above=0)
        X, members = lighter(X), Y.astype(np.float64)
        # A label without rows does not have a centre. Any value will do, because all degrees of
        # this label are multiplied by 0 below.
        shares = members / np.maximum(members.sum(axis=0), 1)
        if self.kernel == "linear":
            squared = _to_means(X, shares)
        else:
            squared = _to_centres(X, shares, self.kernel_gamma)
        counted = squared if self.radius == "all" else squared * members
        U = 1 - np.sqrt(squared / (counted.max(axis=0) + delta))
        return np.asarray(np.maximum(U, 0) * members)


def _to_means(X: Features, shares: FloatArray) -> FloatArray:
    """Return the squared distances of the rows to weighted means of the rows."""
    if not is_sparse(X):
        # Distances do not change if all rows are shifted. Centring keeps digits in the products.
        X = X - X.mean(axis=0)
    means = np.asarray(shares.T @ X)
    return squared_distances(X, means)


def _to_centres(X: Features, shares: FloatArray, kernel_gamma: str | float) -> FloatArray:
    """Return the squared distances of `_to_means` in the feature space of the rbf kernel."""
    n_samples = len(shares)
    check_memory(
        4 * n_samples**2,
        f"The distances between {n_samples} rows",
        "enhance fewer rows at a time, or use the linear kernel",
    )
    # The kernel is symmetric, so compute only the part on and right of the diagonal blocks.
    squared = upper_distances(X)
    gamma = choose_gamma(kernel_gamma, lambda: mean_distance(squared))
    to_rows = np.zeros_like(shares)
    for kernel in squared:
        start = n_samples - kernel.shape[1]
        block = slice(start, start + len(kernel))
        np.multiply(kernel, -gamma, out=kernel)
        np.exp(kernel, out=kernel)
        to_rows[block] += kernel @ shares[start:]
        to_rows[block.stop :] += kernel[:, len(kernel) :].T @ shares[block]
    # |phi(x) - psi|^2 = k(x, x) - 2 <phi(x), psi> + |psi|^2, and k(x, x) = 1 for this kernel.
    within = np.einsum("ij,ij->j", shares, to_rows)
    return np.asarray(np.maximum(1 - 2 * to_rows + within, 0))
