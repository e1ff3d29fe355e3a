"""Fit a maximum entropy model to label distributions, as the second stage of RELIAB does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, xlogy

from lemll._types import Features, FloatArray, LabelArray, MatrixLike
from lemll._validation import is_sparse
from lemll.solvers.interface import Status, as_features, check_size, check_stopping

__all__ = ["EMPIRICAL_LOSSES", "MaxentSolution", "empirical_loss", "solve_maxent"]

Empirical = Literal["virtual", "pairwise"]

EMPIRICAL_LOSSES = ("virtual", "pairwise")
# Number of steps from which L-BFGS estimates the curvature.
MEMORY = 10


@dataclass(frozen=True)
class MaxentSolution:
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
    status: Status

    @property
    def converged(self) -> bool:
        """Whether the solver met its tolerance."""
        return self.status == "converged"


def solve_maxent(
    X: Features,
    distribution: Any,
    labels: MatrixLike,
    *,
    beta: float = 0.1,
    emp: Empirical = "virtual",
    clip: bool = False,
    ridge: float = 0.1,
    tol: float = 1e-5,
    max_iter: int = 2000,
) -> MaxentSolution:
    """Fit ``f_k(x) = exp(theta_k x + b_k) / sum_k' exp(theta_k' x + b_k')`` to distributions.

    Minimises ``sum_ik d_ik ln(d_ik / f_k(x_i)) + beta V + ridge |theta|_F^2`` by L-BFGS from
    ``theta = 0``. V is the loss of `empirical_loss`. Because of V the objective is not convex.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features. Sparse features are never converted to dense.
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

    Returns
    -------
    MaxentSolution
        A stationary point. If beta is 0, it is the minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers import solve_maxent
    >>> X, degrees = np.array([[0.0], [1.0]]), np.array([[0.2, 0.5, 0.3], [0.2, 0.3, 0.5]])
    >>> model = solve_maxent(X, degrees, degrees[:, 1:] > 0.4, beta=0, ridge=0)
    >>> scores = np.exp(X @ model.coef.T + model.intercept)
    >>> (scores / scores.sum(axis=1, keepdims=True)).round(3)
    array([[0.2, 0.5, 0.3],
           [0.2, 0.3, 0.5]])
    """
    X, D, Y = _check_arrays(X, distribution, labels)
    _check_numbers(beta=beta, ridge=ridge)
    check_stopping(tol=tol, max_iter=max_iter)
    _check_empirical(emp)
    # Scale the features so that weights and intercepts have a similar curvature, including that of
    # the ridge. L-BFGS converges much faster on such a problem.
    mean, scale = _location_and_scale(X, 2 * ridge * D.shape[1] / len(D))
    Z: Any = X.multiply(1 / scale).tocsr() if is_sparse(X) else (X - mean) / scale
    # The ridge applies to the weights of the original features, so convert it to scaled weights.
    ridges = np.append(ridge / scale**2, 0.0)[:, None]
    # The entropy is constant. With it the objective is a divergence, which is 0 for a perfect fit.
    entropy = float(xlogy(D, D).sum())
    n_samples, shape = len(D), (Z.shape[1] + 1, D.shape[1])

    def value_and_gradient(flat: FloatArray) -> tuple[float, FloatArray]:
        W = flat.reshape(shape)
        log_f: FloatArray = log_softmax(Z @ W[:-1] + W[-1], axis=1)
        f = np.exp(log_f)
        value = entropy - float(np.vdot(D, log_f)) + float(np.vdot(ridges * W, W))
        # Derivatives with respect to the scores, by the Jacobian diag(f) - f f' of the softmax. The
        # rows of D sum to one only approximately, so use their true sums.
        slopes = f * D.sum(axis=1, keepdims=True) - D
        if beta > 0:
            loss, by_f = empirical_loss(f, Y, emp=emp, clip=clip)
            value += beta * loss
            slopes += beta * f * (by_f - np.einsum("ij,ij->i", by_f, f)[:, None])
        gradient = 2 * ridges * W
        gradient[:-1] += Z.T @ slopes
        gradient[-1] += slopes.sum(axis=0)
        return value / n_samples, gradient.ravel() / n_samples

    found = minimize(
        value_and_gradient,
        np.zeros(shape[0] * shape[1]),
        jac=True,
        method="L-BFGS-B",
        # ftol=0: stop only when the gradient is small.
        options={"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": MEMORY, "ftol": 0.0,
                 "gtol": tol},
    )  # fmt: skip
    W, residual = found.x.reshape(shape), float(np.abs(found.jac).max())
    status: Status = "converged" if residual <= tol else "stalled"
    if status == "stalled" and found.nit >= max_iter:
        status = "max_iter"
    # Back to the original features: dense features were also centred, sparse ones only scaled.
    coef = np.ascontiguousarray((W[:-1] / scale[:, None]).T)
    return MaxentSolution(
        coef=coef,
        intercept=W[-1] if is_sparse(X) else W[-1] - coef @ mean,
        objective=float(found.fun) * n_samples,
        residual=residual,
        n_iter=int(found.nit),
        status=status,
    )


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


def _check_arrays(
    X: Features, distribution: Any, labels: MatrixLike
) -> tuple[Any, FloatArray, LabelArray]:
    X = as_features(X.tocsr() if is_sparse(X) else X)
    if not is_sparse(X) and not isinstance(X, np.ndarray):
        raise ValueError("X must hold features; a kernel has none.")
    check_size(X, "X", "float64")
    D, Y = np.asarray(distribution, dtype=np.float64), np.asarray(labels).astype(np.int8)
    if Y.ndim != 2 or D.shape != (Y.shape[0], Y.shape[1] + 1) or len(D) != X.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} rows, so labels must be ({X.shape[0]}, n_labels) and distribution "
            f"({X.shape[0]}, n_labels + 1); got {Y.shape} and {D.shape}."
        )
    if not ((D >= 0).all() and np.allclose(D.sum(axis=1), 1)):
        raise ValueError("distribution must not be negative, and its rows must sum to one.")
    return X.astype(np.float64, copy=False), D, Y


def _check_numbers(**numbers: float) -> None:
    for name, number in numbers.items():
        if not (np.isfinite(number) and number >= 0):
            raise ValueError(f"{name} must be finite and not negative, got {number}.")


def _check_empirical(emp: str) -> None:
    if emp not in EMPIRICAL_LOSSES:
        raise ValueError(f"emp={emp!r} must be one of {', '.join(EMPIRICAL_LOSSES)}.")


def _location_and_scale(X: Features, added: float) -> tuple[FloatArray, FloatArray]:
    """Return the mean of each feature, and the root of its variance plus `added` (1 if zero)."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    if is_sparse(X):
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        variance = np.maximum(squares - mean**2, 0.0)
    else:
        variance = X.var(axis=0)
    # The computed variance of a constant feature is only rounding error.
    varies = variance > 1e-20 * np.maximum(mean**2, np.finfo(np.float64).tiny)
    variance = np.where(varies, variance, 0.0) + added
    return mean, np.sqrt(np.where(variance > 0, variance, 1.0))
