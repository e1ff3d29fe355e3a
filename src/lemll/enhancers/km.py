"""KM: kernel distances to the centre of a label's rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from lemll._sparse import lighter
from lemll._types import Features, FloatArray, KernelLike, LabelArray
from lemll._validation import check_memory, check_number, is_sparse
from lemll.enhancers._base import BaseEnhancer
from lemll.fitting import Normalization, squared_distances

__all__ = ["KMEnhancer"]

KERNELS = ("linear", "rbf")
RADII = ("positives", "all")
# Of the kernel, at a time.
BLOCK_ROWS = 128


class KMEnhancer(BaseEnhancer):
    r"""Recover label distributions by the kernel method (KM): degrees fall with the distance.

    Each label has a centre :math:`\psi_j`, the mean of the rows that have it, in the kernel's
    feature space. With the squared distance :math:`s_{ij}^2=\|\varphi(x_i)-\psi_j\|^2` and the
    squared radius :math:`r_j^2`, the largest of these distances, a row that has the label gets

    .. math:: u_{ij} = 1 - \sqrt{s_{ij}^2 / (r_j^2 + \delta)},

    and 0 where it has it not. This is the membership function of fuzzy support vector machines
    [1]_, used for label enhancement in [2]_ and [3]_.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default="linear"
        Linear as in [2]_, or :math:`\exp(-\|x-z\|^2/(2\sigma^2))`.
    sigma : float, optional
        Width of the rbf kernel, > 0; by default the mean distance of two rows.
    delta : float, default=0.01
        :math:`\delta`, > 0, which keeps the farthest row's degree above 0. [2]_ does not give it;
        with 0.01 its figures come out.
    radius : {"positives", "all"}, default="positives"
        Whether the radius is taken over the rows that have the label, or over all rows.
    normalization : {"sum", "sigmoid", "softmax"}, default="sum"
        How U becomes a distribution. By the sum, labels a row has not get the degree 0; a row
        without labels becomes uniform.
    scale : float, default=1.0
        Factor on U before normalising, > 0; with "sum" a power.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        U, in [0, 1].
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        Non-negative, rows summing to one.
    scale_ : float
        The scale used: the parameter, or what `calibrate` found.
    scale_interval_ : tuple of float or None
        From `calibrate`.
    classes_ : ndarray
        The labels' numbers, 0 to n_labels - 1; of a 1-D target its classes.
    label_names_ : ndarray of str
        The labels' names.

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
    >>> from lemll.enhancers import KMEnhancer
    >>> X, Y = [[0.0], [1.0], [2.0]], [[1, 1], [1, 0], [1, 1]]
    >>> KMEnhancer().fit_enhance(X, Y).round(3)
    array([[0.5, 0.5],
           [1. , 0. ],
           [0.5, 0.5]])
    """

    def __init__(
        self,
        *,
        kernel: KernelLike = "linear",
        sigma: Any = None,
        delta: float = 0.01,
        radius: Any = "positives",
        normalization: Normalization = "sum",
        scale: float = 1.0,
    ) -> None:
        self.kernel = kernel
        self.sigma = sigma
        self.delta = delta
        self.radius = radius
        self.normalization = normalization
        self.scale = scale

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel={self.kernel!r} must be one of {', '.join(KERNELS)}.")
        if self.radius not in RADII:
            raise ValueError(f"radius={self.radius!r} must be one of {', '.join(RADII)}.")
        delta = check_number("delta", self.delta, above=0)
        sigma = None if self.sigma is None else check_number("sigma", self.sigma, above=0)
        X, members = lighter(X), Y.astype(np.float64)
        # A label without rows has no centre, and no row whose degree would be read.
        shares = members / np.maximum(members.sum(axis=0), 1)
        squared = _to_means(X, shares) if self.kernel == "linear" else _to_centres(X, shares, sigma)
        counted = squared if self.radius == "all" else squared * members
        U = 1 - np.sqrt(squared / (counted.max(axis=0) + delta))
        return np.asarray(np.maximum(U, 0) * members)


def _to_means(X: Features, shares: FloatArray) -> FloatArray:
    """Return the squared distances of rows to the weighted means of rows."""
    if not is_sparse(X):
        # Distances do not see a shift, and centred rows lose fewer digits in the products.
        X = X - X.mean(axis=0)
    means = np.asarray(shares.T @ X)
    return squared_distances(X, means)


def _to_centres(X: Features, shares: FloatArray, sigma: float | None) -> FloatArray:
    """Return the same in the feature space of the rbf kernel."""
    n_samples = len(shares)
    check_memory(
        4 * n_samples**2,
        f"The distances between {n_samples} rows",
        "enhance fewer rows at a time, or use the linear kernel",
    )
    # The kernel is symmetric: of each block of rows, what lies from its diagonal on is enough.
    blocks = [slice(i, min(i + BLOCK_ROWS, n_samples)) for i in range(0, n_samples, BLOCK_ROWS)]
    squared = [squared_distances(X[block], X[block.start :]) for block in blocks]
    width = (_mean_distance(squared) if sigma is None else sigma) or 1.0
    to_rows = np.zeros_like(shares)
    for block, kernel in zip(blocks, squared, strict=True):
        np.multiply(kernel, -0.5 / width**2, out=kernel)
        np.exp(kernel, out=kernel)
        to_rows[block] += kernel @ shares[block.start :]
        to_rows[block.stop :] += kernel[:, block.stop - block.start :].T @ shares[block]
    within = np.einsum("ij,ij->j", shares, to_rows)
    return np.asarray(np.maximum(1 - 2 * to_rows + within, 0))


def _mean_distance(squared: list[FloatArray]) -> float:
    """Return the mean distance of two different rows, from what lies on and above the diagonal."""
    total, n_samples = 0.0, int(squared[0].shape[1])
    for part in squared:
        distances = np.sqrt(part)
        # The first columns are the block itself, each pair of it in there twice.
        total += 2 * float(distances.sum()) - float(distances[:, : len(part)].sum())
    return total / max(1, n_samples * (n_samples - 1))
