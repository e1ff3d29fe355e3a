"""Fit a maximum entropy model to label distributions, as the second stage of RELIAB does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import linalg
from scipy.optimize import minimize
from scipy.special import log_softmax, xlogy

from lemll._types import Features, FloatArray, LabelArray, MatrixLike
from lemll._validation import is_sparse
from lemll.solvers.equation9 import Solution, Status

Empirical = Literal["virtual", "pairwise"]

EMPIRICAL_LOSSES = ("virtual", "pairwise")
# Number of steps from which L-BFGS estimates the curvature.
MEMORY = 10
# The residual is computed after this number of evaluations, and in each step if the length of the
# gradient is at most this multiple of the tolerance.
CHECK_EVERY = 5
CHECK_BELOW = 10.0
# Largest number of steps that polish the solution.
MAX_POLISH = 200
# Up to this number of rows or features, the principal components are cheaper than slow steps.
LARGEST_ROTATION = 5000
LARGEST_DENSE_BYTES = 1 << 28
# The mean degree of a label that no row has, as a number of rows.
SMALLEST_DEGREE = 0.05
# Components whose squared length is a smaller share of the largest are rounding errors.
SMALLEST_COMPONENT = 1e-14


@dataclass(frozen=True)
class MaxentSolution(Solution):
    """A stationary point of the objective.

    Attributes
    ----------
    coef : ndarray of shape (n_labels + 1, n_features)
        ``theta``. The first row belongs to the virtual label.
    intercept : ndarray of shape (n_labels + 1,)
        The intercepts. The first entry belongs to the virtual label.
    objective : float
        The objective at the solution.
    residual : float
        Largest entry of the gradient. The objective is divided by the number of rows, and weights
        are scaled so that their curvature is similar to that of the intercepts.
    n_iter : int
        Number of iterations.
    status : {"converged", "max_iter", "stalled"}
        "stalled" means that no further descent was found before the requested residual.
    """

    coef: FloatArray
    intercept: FloatArray
    objective: float
    residual: float
    n_iter: int


def solve_maxent(
    X: Features | MaxentBasis,
    distribution: MatrixLike,
    labels: MatrixLike,
    *,
    beta: float = 0.1,
    emp: Empirical = "virtual",
    clip: bool = False,
    ridge: float = 0.1,
    tol: float = 1e-5,
    max_iter: int = 2000,
    start: MaxentSolution | None = None,
) -> MaxentSolution:
    """Fit ``f_k(x) = exp(theta_k x + b_k) / sum_k' exp(theta_k' x + b_k')`` to distributions.

    Minimises ``sum_ik d_ik ln(d_ik / f_k(x_i)) + beta V + ridge |theta|_F^2`` by L-BFGS. It
    starts from ``theta = 0``, if there is no `start`. V is the loss of `empirical_loss`. Because of
    V the objective is not convex.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features), or MaxentBasis
        Features, or their basis if it serves several solves.
    distribution : ndarray of shape (n_samples, n_labels + 1)
        Degrees d. Each row sums to one. The first column belongs to the virtual label.
    labels : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1.
    beta : float, default=0.1
        Weight of V, not negative.
    emp, clip
        As in `empirical_loss`.
    ridge : float, default=0.1
        Weight of the squared weights, not negative. It keeps the weights finite if the rows are
        separable.
    tol : float, default=1e-5
        The solver stops when the residual is at most this.
    max_iter : int, default=2000
        Largest number of iterations.
    start : MaxentSolution, optional
        Where to start: the solution of a similar problem, for example with another beta.

    Returns
    -------
    MaxentSolution
        A stationary point. If beta is 0, it is the minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.rivals.maxent import solve_maxent
    >>> X, degrees = np.array([[0.0], [1.0]]), np.array([[0.2, 0.5, 0.3], [0.2, 0.3, 0.5]])
    >>> model = solve_maxent(X, degrees, degrees[:, 1:] > 0.4, beta=0, ridge=0)
    >>> scores = np.exp(X @ model.coef.T + model.intercept)
    >>> (scores / scores.sum(axis=1, keepdims=True)).round(3)
    array([[0.2, 0.5, 0.3],
           [0.2, 0.3, 0.5]])
    """
    basis = X if isinstance(X, MaxentBasis) else MaxentBasis(X)
    D, Y = np.asarray(distribution, dtype=np.float64), np.asarray(labels).astype(np.int8)
    objective = _Objective(basis, D, Y, beta=beta, emp=emp, clip=clip, ridge=ridge)
    W = objective.first_weights() if start is None else basis.encode(start.coef, start.intercept)

    def stop_when_small(intermediate_result: object) -> None:
        # The residual costs a product as large as those of a step. Far from the solution, it is not
        # computed in each step.
        near = objective.slope <= CHECK_BELOW * tol
        if (near or objective.n_calls % CHECK_EVERY == 0) and objective.residual() <= tol:
            raise StopIteration

    found = minimize(
        objective,
        (W / objective.units).ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=stop_when_small,
        # Zeros: stop only when the residual is small.
        options={"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": MEMORY, "ftol": 0.0,
                 "gtol": 0.0},
    )  # fmt: skip
    flat, n_iter = _polished(objective, found.x, tol, max_iter - int(found.nit))
    n_iter += int(found.nit)
    residual = objective.residual()
    status: Status = "converged" if residual <= tol else "stalled"
    if status == "stalled" and n_iter >= max_iter:
        status = "max_iter"
    coef, intercept = basis.decode(objective.weights(flat))
    return MaxentSolution(
        coef=coef,
        intercept=intercept,
        objective=float(found.fun) * basis.n_samples,
        residual=residual,
        n_iter=n_iter,
        status=status,
    )


def _polished(
    objective: _Objective, flat: FloatArray, tol: float, max_steps: int
) -> tuple[FloatArray, int]:
    """Reduce the gradient where the value of the objective has no digits left.

    A line search compares values, so it fails when the decrease is below their rounding error. In
    units of the curvature the Hessian is near the identity, so a step against the gradient shrinks
    the gradient itself. The last call of `objective` is at the returned point.
    """
    _, gradient = objective(flat)
    share, steps = 1.0, 0
    while steps < min(MAX_POLISH, max_steps) and share > 1e-3 and objective.residual() > tol:
        steps, length = steps + 1, objective.slope
        trial = flat - share * gradient
        _, new = objective(trial)
        if objective.slope < length:
            flat, gradient = trial, new
        else:
            share /= 2
            objective(flat)
    return flat, steps


class MaxentBasis:
    """Rows in coordinates in which the problem is well conditioned. It serves several solves.

    The centred rows are ``R V'`` with orthogonal columns of R and orthonormal columns of V (the
    principal components). If all rows had the same distribution f, the Hessian in these
    coordinates would be ``(diag(f) - f f') x diag(|R_j|^2) + 2 ridge I``, which is diagonal up to
    f f'. Large data stay in their own features, where V is the identity.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features.
    """

    def __init__(self, X: Features) -> None:
        X = X.tocsr() if is_sparse(X) else X
        X = X.astype(np.float64, copy=False)
        self.n_samples, self.n_features = X.shape
        self.mean, self.variance = _location_and_variance(X)
        self.V: FloatArray | None = None
        # Sparse rows stay sparse unless they are small as dense rows.
        small = not is_sparse(X) or 8 * X.shape[0] * X.shape[1] <= LARGEST_DENSE_BYTES
        if small and min(X.shape) <= LARGEST_ROTATION:
            self.R, self.squares, self.V = _principal_components(X, self.mean)
        else:
            # Sparse rows cannot be centred; the intercepts absorb their mean.
            self.mean = np.zeros(X.shape[1]) if is_sparse(X) else self.mean
            self.R, self.squares = (
                X - self.mean if not is_sparse(X) else X,
                X.shape[0] * self.variance,
            )

    def encode(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """Return the weights and, in the last row, the intercepts in these coordinates."""
        weights = coef.T if self.V is None else self.V.T @ coef.T
        return np.vstack([weights, intercept + coef @ self.mean])

    def decode(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return coef and intercept of the features."""
        coef = np.ascontiguousarray(self.of_features(W[:-1]).T)
        return coef, W[-1] - coef @ self.mean

    def of_features(self, weights: FloatArray) -> FloatArray:
        """Return weights, or a gradient with respect to them, in the features' coordinates."""
        return weights if self.V is None else np.asarray(self.V @ weights)


class _Objective:
    """The mean objective per row, as a function of weights in units of their curvature."""

    def __init__(
        self,
        basis: MaxentBasis,
        D: FloatArray,
        Y: LabelArray,
        *,
        beta: float,
        emp: Empirical,
        clip: bool,
        ridge: float,
    ) -> None:
        self.basis, self.D, self.Y = basis, D, Y
        self.beta, self.emp, self.clip, self.ridge = beta, emp, clip, ridge
        self.totals = D.sum(axis=1, keepdims=True)
        self.entropy = float(xlogy(D, D).sum())
        # A label without rows has a degree of 0, whose logarithm is not finite.
        self.mean_degrees = np.maximum(D.mean(axis=0), SMALLEST_DEGREE / len(D))
        bent = self.mean_degrees * (1 - self.mean_degrees)
        curvature = np.vstack(
            [np.outer(basis.squares, bent) / len(D) + 2 * ridge / len(D), bent[None]]
        )
        # A feature that does not vary, without a ridge, has no curvature. Its weight stays 0.
        self.units = 1 / np.sqrt(np.where(curvature > 0, curvature, 1.0))
        self.scale = np.sqrt(basis.variance + 2 * ridge * D.shape[1] / len(D))
        self.scale[self.scale == 0] = 1.0
        self.n_calls = 0
        self.slope = np.inf
        self.gradient = np.zeros_like(self.units)

    def first_weights(self) -> FloatArray:
        """Return the best model that does not look at the features."""
        W = np.zeros_like(self.units)
        W[-1] = np.log(self.mean_degrees)
        return W

    def weights(self, flat: FloatArray) -> FloatArray:
        """Return the weights and intercepts of a point of the search."""
        return flat.reshape(self.units.shape) * self.units

    def __call__(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        self.n_calls += 1
        W, R, n_samples = self.weights(flat), self.basis.R, self.basis.n_samples
        log_f: FloatArray = log_softmax(R @ W[:-1] + W[-1], axis=1)
        f = np.exp(log_f)
        value = self.entropy - float(np.vdot(self.D, log_f))
        value += self.ridge * float(np.vdot(W[:-1], W[:-1]))
        slopes = f * self.totals - self.D
        if self.beta > 0:
            loss, by_f = empirical_loss(f, self.Y, emp=self.emp, clip=self.clip)
            value += self.beta * loss
            slopes += self.beta * f * (by_f - np.einsum("ij,ij->i", by_f, f)[:, None])
        gradient = np.empty_like(W)
        gradient[:-1] = R.T @ slopes + 2 * self.ridge * W[:-1]
        gradient[-1] = slopes.sum(axis=0)
        self.gradient = gradient / n_samples
        slopes_in_units = (self.gradient * self.units).ravel()
        self.slope = float(np.linalg.norm(slopes_in_units))
        return value / n_samples, slopes_in_units

    def residual(self) -> float:
        """Return the largest entry of the last gradient, by scaled weights of the features."""
        by_features = self.basis.of_features(self.gradient[:-1]) / self.scale[:, None]
        return float(max(np.abs(by_features).max(), np.abs(self.gradient[-1]).max()))


def empirical_loss(
    f: FloatArray, labels: LabelArray, *, emp: Empirical = "virtual", clip: bool = False
) -> tuple[float, FloatArray]:
    r"""Return the loss of a model that should rank relevant labels above irrelevant labels.

    Let Y be the relevant labels of a row and Z the irrelevant labels. "virtual" compares both with
    the virtual label. "pairwise" compares them with each other:

    ``sum_i [ sum_{j in Y} (f_0 - f_j) + |Y| / |Z| sum_{k in Z} (f_k - f_0) ]`` and
    ``sum_i 1 / (|Y| |Z|) sum_{j in Y, k in Z} (f_k - f_j)``.

    Parameters
    ----------
    f : ndarray of shape (n_samples, n_labels + 1)
        Degrees. The first column belongs to the virtual label.
    labels : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1. A sum over no label is 0.
    emp : {"virtual", "pairwise"}, default="virtual"
        The form of the loss.
    clip : bool, default=False
        Whether to count only positive differences.

    Returns
    -------
    loss : float
        The sum over all rows.
    by_f : ndarray of shape (n_samples, n_labels + 1)
        The derivatives of the loss with respect to f.
    """
    relevant = labels == 1
    wanted = relevant.sum(axis=1, keepdims=True)
    others = labels.shape[1] - wanted
    by_f = np.zeros_like(f)
    of_labels = by_f[:, 1:]
    if emp == "virtual":
        above = f[:, 1:] - f[:, :1]
        # `above * weights` is positive if a label is on the wrong side of the virtual label.
        weights = np.where(relevant, -1.0, wanted / np.maximum(others, 1))
        counted = above * weights > 0 if clip else np.ones_like(relevant)
        of_labels += np.where(counted, weights, 0.0)
        by_f[:, 0] = -of_labels.sum(axis=1)
    elif clip:
        pairs = np.maximum(wanted * others, 1)
        for j in range(labels.shape[1]):
            ahead = (f[:, 1:] > f[:, [j + 1]]) & ~relevant & relevant[:, [j]]
            of_labels += ahead / pairs
            of_labels[:, j] -= ahead.sum(axis=1) / pairs[:, 0]
    else:
        both = (wanted > 0) & (others > 0)
        shares = np.where(relevant, -1 / np.maximum(wanted, 1), 1 / np.maximum(others, 1))
        of_labels += np.where(both, shares, 0.0)
    # The loss is positively homogeneous in f, so by Euler's theorem it equals <gradient, f>.
    return float(np.vdot(by_f, f)), by_f


def _location_and_variance(X: Features) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the variance of each feature."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    if is_sparse(X):
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        variance = np.maximum(squares - mean**2, 0.0)
    else:
        variance = X.var(axis=0)
    # The computed variance of a constant feature is only rounding error.
    varies = variance > 1e-20 * np.maximum(mean**2, np.finfo(np.float64).tiny)
    return mean, np.where(varies, variance, 0.0)


def _principal_components(
    X: Features, mean: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return R, the squared lengths of its columns, and V, with X - mean = R V'."""
    centred = (X.toarray() if is_sparse(X) else X) - mean
    by_rows = centred.shape[0] < centred.shape[1]
    gram = centred @ centred.T if by_rows else centred.T @ centred
    squares, vectors = linalg.eigh(gram, overwrite_a=True, check_finite=False)
    kept = squares > SMALLEST_COMPONENT * max(squares[-1], 0.0)
    squares, vectors = squares[kept], vectors[:, kept]
    if by_rows:
        lengths = np.sqrt(squares)
        return vectors * lengths, squares, centred.T @ (vectors / lengths)
    return centred @ vectors, squares, vectors
