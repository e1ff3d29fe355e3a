"""LESC: labels are made smooth by a representation of the rows of low rank."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal, get_args

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from lemll._types import Features, FloatArray, LabelArray
from lemll._validation import check_choice, check_magnitude, check_number, warn_caller
from lemll.enhancers.base import BaseEnhancer
from lemll.enhancers.sources import principal_rows, smooth_by_energy
from lemll.fitting.scaling import Normalization
from lemll.rivals.low_rank import solve_low_rank

Noise = Literal["squared", "rows"]


@dataclass(eq=False, repr=False)
class LESCEnhancer(BaseEnhancer):
    r"""Recover label distributions by low-rank representation of the rows (LESC) [1]_.

    First, the matrix C represents each standardised row by the others, with low rank. With X the
    standardised features and :math:`\|\cdot\|_*` the sum of the singular values, C minimises

    .. math:: \|C\|_*+\tfrac\tau2\|X-C^\top X\|_F^2 \qquad\text{or}\qquad
        \|C\|_*+\beta\sum_i\|(X-C^\top X)_i\|_2

    with the noise "squared" or "rows". Second, with Y the logical labels in 0/1, the numerical
    labels F minimise

    .. math:: \|F-Y\|_F^2+\lambda\|F-CF\|_F^2 .

    The paper has the noise "rows" and a kernel model of F. If no two rows are equal, this kernel
    model can produce any F, so the minimum does not depend on it. Here it is the exact solution of
    a linear system, and nothing depends on where iterations stop.

    Parameters
    ----------
    smoothness : float, default=1.0
        :math:`\lambda`, >= 0.
    noise : {"squared", "rows"}, default="squared"
        "squared" has a closed form. "rows" is the paper's; it is solved to a certified gap.
    energy : float, default=0.8
        With "squared" noise: :math:`1/\tau` is the square of the first singular value of X at
        which the sum of the squares reaches this share, between 0 and 1.
    beta : float, default=10.0
        :math:`\beta`, > 0, with the noise "rows".
    tol : float, default=1e-3
        The certified relative gap of C, with the noise "rows".
    max_iter : int, default=3000
        Largest number of iterations for C.
    normalization : {"softmax", "sigmoid", "sum"}, default="softmax"
        How F becomes a distribution.
    scale : float, default=1.0
        F is multiplied by this before it is normalised, > 0. With "sum" it is an exponent.

    Attributes
    ----------
    numerical_labels_ : ndarray of shape (n_samples, n_labels)
        F.
    label_distribution_ : ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.
    optimality_ : float
        Certified relative gap of C; 0 if it has a closed form.
    n_iter_ : int
        Number of iterations for C.
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
    The authors try beta and lambda in {0.0001, 0.001, ..., 1000} and compare with the true
    distributions. ``LESCEnhancer(10.0, noise="rows", beta=10.0)`` is the setting that their later
    code has. From a beta on that depends on the data, C is the projection on the features and
    has a closed form; below another value it is 0, and F is proportional to Y.

    References
    ----------
    .. [1] H. Tang, J. Zhu, Q. Zheng, J. Wang, S. Pang and Z. Li, "Label enhancement with sample
       correlations via low-rank representation", AAAI Conference on Artificial Intelligence, 2020.

    Examples
    --------
    >>> from lemll.datasets import make_artificial, binarize_distribution
    >>> from lemll.rivals import LESCEnhancer
    >>> data = make_artificial(200, random_state=0)
    >>> LESCEnhancer().fit_enhance(data.X, binarize_distribution(data.D, 0.5)).shape
    (200, 3)
    """

    signed_labels = False

    smoothness: float = 1.0
    _: KW_ONLY
    noise: Noise = "squared"
    energy: float = 0.8
    beta: float = 10.0
    tol: float = 1e-3
    max_iter: int = 3000
    normalization: Normalization = "softmax"

    def _numerical_labels(self, X: Features, Y: LabelArray) -> FloatArray:
        check_magnitude(X)
        smoothness = check_number("smoothness", self.smoothness, above=0, inclusive=True)
        check_choice("noise", self.noise, get_args(Noise))
        energy = check_number("energy", self.energy, above=0)
        if energy > 1:
            raise ValueError(f"energy={self.energy!r} must be at most 1; the default is 0.8.")
        labels = Y.astype(np.float64)
        basis = principal_rows(X)
        self.optimality_, self.n_iter_ = 0.0, 0
        if self.noise == "squared" or not len(basis.S):
            return smooth_by_energy(basis, labels, smoothness, energy)
        found = solve_low_rank(basis.Q, basis.S, self.beta, tol=self.tol, max_iter=self.max_iter)
        self.optimality_, self.n_iter_ = found.gap, found.n_iter
        if not found.converged:
            warn_caller(
                f"LESC reached the certified gap {found.gap:.2e} in {found.n_iter} iterations, "
                f"above tol={self.tol:g}; raise max_iter or tol.",
                ConvergenceWarning,
            )
        return _second_stage(basis.Q, found.Z, labels, smoothness)


def _second_stage(Q: FloatArray, Z: FloatArray, Y: FloatArray, smoothness: float) -> FloatArray:
    """Solve (I + smoothness (I - C)'(I - C)) F = Y with C = Q Z."""
    n_samples, rank = Q.shape
    if n_samples <= 2 * rank:
        off = np.eye(n_samples) - Q @ Z
        system = np.eye(n_samples) + smoothness * off.T @ off
        return np.asarray(linalg.solve(system, Y, assume_a="pos", check_finite=False))
    if smoothness == 0:
        return Y
    # The matrix is (1 + smoothness) I plus B K B' with B = [Q, Z'], so a system of twice the rank
    # is enough (Woodbury's identity). K and its inverse consist of multiples of the identity.
    B = np.hstack([Q, Z.T])
    eye, nothing = np.eye(rank), np.zeros((rank, rank))
    inverse = np.block([[-eye, -eye], [-eye, nothing]]) / smoothness
    diagonal = 1 + smoothness
    small = linalg.solve(diagonal * inverse + B.T @ B, B.T @ Y, check_finite=False)
    return np.asarray((Y - B @ small) / diagonal)
