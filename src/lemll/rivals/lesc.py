"""LESC: labels are made smooth by a representation of the rows of low rank.

Each row is a combination of all rows, by a matrix of low rank. The rows of X, with the thin
singular value decomposition ``X = Q S V'``, are represented up to errors of whole rows. In the
basis Q, with one column of Z per row, the problem is

    min |Z|_* + beta sum_j |S (q_j - z_j)|,

where ``|.|_*`` is the sum of the singular values and ``q_j`` is row j of Q. Its dual is

    max <L, S Q'>   such that the largest singular value of S L is at most 1, and |l_j| <= beta.

The method is the alternating direction method of multipliers (ADMM) with copies of Z and of the
errors, over-relaxed [1]_. Both penalties are adapted to the residuals at first and then kept, so
that the method converges. Every primal point and every dual point gives a bound, and the
difference of the best two is the certified gap.

References
----------
.. [1] S. Boyd, N. Parikh, E. Chu, B. Peleato and J. Eckstein, "Distributed optimization and
   statistical learning via the alternating direction method of multipliers", Foundations and
   Trends in Machine Learning 3(1), 2011.
"""

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
from lemll.solvers.equation9 import Solution, check_stopping

# Over-relaxation of ADMM; the usual range is 1.5 to 1.8.
RELAXATION = 1.6
# The gap is computed after this many iterations, and a penalty may change after this many.
CHECK_EVERY, ADAPT_EVERY = 10, 20
# No penalty changes after this iteration.
LAST_ADAPTATION = 300
# A penalty changes at most by this factor at a time, and only if it would change by more than 2.
LARGEST_FACTOR = 5.0


@dataclass(frozen=True)
class LowRankSolution(Solution):
    """A low-rank representation.

    Attributes
    ----------
    Z : ndarray of shape (rank, n_samples)
        The minimiser, one column per row of X.
    objective : float
        The objective at Z.
    gap : float
        Certified distance to the minimum, relative to the objective.
    n_iter : int
        Number of iterations.
    status : {"converged", "max_iter"}
        Whether the gap met the tolerance.
    """

    Z: FloatArray
    objective: float
    gap: float
    n_iter: int


def solve_low_rank(
    Q: FloatArray, S: FloatArray, beta: float, *, tol: float = 1e-3, max_iter: int = 3000
) -> LowRankSolution:
    r"""Minimise :math:`\|Z\|_*+\beta\sum_j\|S(q_j-z_j)\|_2` to a certified gap.

    Parameters
    ----------
    Q : ndarray of shape (n_samples, rank)
        Orthonormal columns.
    S : ndarray of shape (rank,)
        The positive singular values.
    beta : float
        Weight of the errors, > 0.
    tol : float, default=1e-3
        Stop when the certified relative gap is at most this.
    max_iter : int, default=3000
        Largest number of iterations.

    Returns
    -------
    LowRankSolution
        The representation.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.rivals.lesc import solve_low_rank
    >>> Q, S, _ = np.linalg.svd(np.random.RandomState(0).randn(30, 4), full_matrices=False)
    >>> solution = solve_low_rank(Q, S, beta=10.0)
    >>> bool(np.allclose(solution.Z, Q.T)), round(solution.objective, 6)  # no errors: rank 4
    (True, 4.0)
    """
    beta = check_number("beta", beta, above=0)
    check_stopping(tol=tol, max_iter=max_iter)
    target, s = Q.T, S[:, None]
    # From these weights on, an error costs more than the largest singular value it could save; and
    # up to the other bound, representing anything costs more than all errors.
    if beta >= np.linalg.norm(target / s, axis=0).max():
        return LowRankSolution(target.copy(), float(len(S)), 0.0, 0, status="converged")
    lengths = np.linalg.norm(s * target, axis=0)
    shortest = np.divide(s * target, lengths, out=np.zeros_like(target), where=lengths > 0)
    if beta * np.linalg.norm(s * shortest, 2) <= 1:
        return LowRankSolution(
            np.zeros_like(target), float(beta * lengths.sum()), 0.0, 0, status="converged"
        )
    return _Admm(target, s, beta).run(tol, max_iter)


class _Admm:
    """The iterates: Z, its copy of low rank, the errors, and the scaled multipliers of both."""

    def __init__(self, target: FloatArray, s: FloatArray, beta: float) -> None:
        self.s, self.beta = s, beta
        self.data = s * target
        self.Z = target.copy()
        self.low_rank = self.Z
        self.errors = np.zeros_like(target)
        self.of_copy, self.of_errors = np.zeros_like(target), np.zeros_like(target)
        self.penalty = 1.0
        self.error_penalty = 1.0 / float(np.median(s**2))
        self.upper, self.lower, self.best = np.inf, -np.inf, self.Z

    def run(self, tol: float, max_iter: int) -> LowRankSolution:
        gap = np.inf
        for iteration in range(1, max_iter + 1):
            before = self.low_rank, self.errors
            self._step()
            if iteration % CHECK_EVERY == 0 or iteration == max_iter:
                self._bound()
                gap = max(0.0, self.upper - self.lower) / self.upper
                if gap <= tol:
                    return LowRankSolution(
                        self.best, self.upper, gap, iteration, status="converged"
                    )
            if iteration % ADAPT_EVERY == 0 and iteration <= LAST_ADAPTATION:
                self._adapt(*before)
        return LowRankSolution(self.best, self.upper, gap, max_iter, status="max_iter")

    def _step(self) -> None:
        s, data = self.s, self.data
        self.low_rank = _shrink_singular_values(self.Z + self.of_copy, 1 / self.penalty)
        residual = data - s * self.Z
        self.errors = _shrink_columns(residual + self.of_errors, self.beta / self.error_penalty)
        copy = RELAXATION * self.low_rank + (1 - RELAXATION) * self.Z
        errors = RELAXATION * self.errors + (1 - RELAXATION) * residual
        # The copies determine Z by least squares, one equation per entry.
        pull = self.penalty * (copy - self.of_copy)
        pull += self.error_penalty * s * (data - errors + self.of_errors)
        self.Z = pull / (self.penalty + self.error_penalty * s**2)
        self.of_copy += self.Z - copy
        self.of_errors += data - s * self.Z - errors

    def _bound(self) -> None:
        """Improve both bounds of the minimum."""
        for Z in (self.Z, self.low_rank):
            errors = np.linalg.norm(self.data - self.s * Z, axis=0).sum()
            value = float(np.linalg.svd(Z, compute_uv=False).sum() + self.beta * errors)
            if value < self.upper:
                self.upper, self.best = value, Z
        # Make the multipliers feasible: first the lengths of the columns, then the norm.
        dual = self.error_penalty * self.of_errors
        lengths = np.linalg.norm(dual, axis=0)
        dual = dual * (self.beta / np.maximum(lengths, self.beta))
        dual /= max(1.0, float(np.linalg.norm(self.s * dual, 2)))
        self.lower = max(self.lower, float((dual * self.data).sum()))

    def _adapt(self, low_rank: FloatArray, errors: FloatArray) -> None:
        """Bring the residuals of both constraints near to those of the steps of their copies."""
        off = np.linalg.norm(self.Z - self.low_rank)
        moved = self.penalty * np.linalg.norm(self.low_rank - low_rank)
        factor = _factor(float(off), float(moved))
        self.penalty *= factor
        self.of_copy /= factor
        off = np.linalg.norm(self.data - self.s * self.Z - self.errors)
        moved = self.error_penalty * np.linalg.norm(self.s * (self.errors - errors))
        factor = _factor(float(off), float(moved))
        self.error_penalty *= factor
        self.of_errors /= factor


def _factor(off: float, moved: float) -> float:
    ratio = np.sqrt(off / max(moved, np.finfo(float).tiny))
    factor = float(np.clip(ratio, 1 / LARGEST_FACTOR, LARGEST_FACTOR))
    return 1.0 if 0.5 < factor < 2 else factor


def _shrink_singular_values(Z: FloatArray, by: float) -> FloatArray:
    """Reduce each singular value by a constant; those that would become negative become 0."""
    wide = Z if Z.shape[0] <= Z.shape[1] else Z.T
    squares, axes = np.linalg.eigh(wide @ wide.T)
    values = np.sqrt(np.maximum(squares, 0))
    shrunk = (axes * _kept_share(values, by)) @ (axes.T @ wide)
    return np.asarray(shrunk if wide is Z else shrunk.T)


def _shrink_columns(E: FloatArray, by: float) -> FloatArray:
    return np.asarray(E * _kept_share(np.linalg.norm(E, axis=0), by))


def _kept_share(sizes: FloatArray, by: float) -> FloatArray:
    """Return what is left of each size, as a share of it, after it is reduced by a constant."""
    rest = np.maximum(sizes - by, 0)
    return np.divide(rest, sizes, out=np.zeros_like(sizes), where=rest > 0)


Noise = Literal["squared", "rows"]


@dataclass(eq=False, repr=False)
class LESCEnhancer(BaseEnhancer):
    r"""Recover label distributions by low-rank representation of the rows (LESC).

    LESC [1]_ has two steps. First, the matrix C represents each standardised row by the others,
    with low rank. With X the standardised features and :math:`\|\cdot\|_*` the sum of the
    singular values, C minimises

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
