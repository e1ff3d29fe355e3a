"""Fit distributions by a log-linear model of few coefficients, to a certified optimum.

Row i has the distribution softmax(G_i t), where G_i has one row per label and t are the
coefficients. Newton's method minimises a ridge-penalised cross entropy, which is strongly convex.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lemll._types import FloatArray
from lemll.solvers.equation9 import Solution, Status, check_stopping

# A step must achieve this share of the decrease predicted by the gradient (Armijo's rule).
SUFFICIENT = 1e-4
SMALLEST_STEP = 2.0**-40


@dataclass(frozen=True)
class LogLinearSolution(Solution):
    """Coefficients of a log-linear model.

    Attributes
    ----------
    coef : ndarray of shape (n_coefficients,)
        The minimiser.
    objective : float
        The objective there.
    gap : float
        Certified bound of the distance to the minimum, relative to the objective.
    n_iter : int
        Number of Newton steps.
    status : {"converged", "max_iter", "stalled"}
        "stalled" means that rounding errors stopped the descent.
    """

    coef: FloatArray
    objective: float
    gap: float
    n_iter: int


def solve_log_linear(
    G: FloatArray,
    D: FloatArray,
    ridge: FloatArray,
    centre: FloatArray,
    *,
    weight: FloatArray | None = None,
    tol: float = 1e-9,
    max_iter: int = 100,
) -> LogLinearSolution:
    r"""Fit a log-linear model of distributions.

    With :math:`p_i(t)=\mathrm{softmax}(G_it)`, the coefficients minimise

    .. math:: -\sum_iv_i\sum_jd_{ij}\log p_{ij}(t)+\tfrac12\sum_k r_k(t_k-c_k)^2 .

    Parameters
    ----------
    G : ndarray of shape (n_rows, n_labels, n_coefficients)
        What each coefficient adds to the logarithm of each degree.
    D : ndarray of shape (n_rows, n_labels)
        Distributions.
    ridge : ndarray of shape (n_coefficients,)
        The weights r, > 0.
    centre : ndarray of shape (n_coefficients,)
        The values c to which the coefficients are pulled.
    weight : ndarray of shape (n_rows,), optional
        The weights v of the rows, not negative. By default 1.
    tol : float, default=1e-9
        Stop when the certified relative gap is at most this.
    max_iter : int, default=100
        Largest number of Newton steps.

    Returns
    -------
    LogLinearSolution
        The coefficients. The objective is strongly convex with the modulus ``min(r)``, so a
        gradient g proves that the minimum is at most ``|g|^2 / (2 min(r))`` below.
    """
    check_stopping(tol=tol, max_iter=max_iter)
    curvature = float(ridge.min())

    flat = G.reshape(-1, G.shape[2])
    v = np.ones(len(D)) if weight is None else weight
    D = v[:, None] * D

    def logits(t: FloatArray) -> FloatArray:
        e = (flat @ t).reshape(D.shape)
        return np.asarray(e - e.max(axis=1, keepdims=True))

    def objective(t: FloatArray) -> float:
        e = logits(t)
        loss = v @ np.log(np.exp(e).sum(axis=1)) - (D * e).sum()
        return float(loss + ridge @ (t - centre) ** 2 / 2)

    t = centre.astype(np.float64)
    value = objective(t)
    status: Status = "max_iter"
    gap = np.inf
    for n_iter in range(max_iter + 1):
        p = np.exp(logits(t))
        p /= p.sum(axis=1, keepdims=True)
        gradient = (v[:, None] * p - D).ravel() @ flat + ridge * (t - centre)
        gap = float(gradient @ gradient) / (2 * curvature) / max(abs(value), np.finfo(float).tiny)
        if gap <= tol:
            status = "converged"
            break
        if n_iter == max_iter:
            break
        # The covariance of the columns of G under p, summed over the rows.
        weighted = p[:, :, None] * G
        mean = weighted.sum(axis=1)
        weighted *= v[:, None, None]
        hessian = weighted.reshape(flat.shape).T @ flat - mean.T @ (v[:, None] * mean)
        step = np.linalg.solve(hessian + np.diag(ridge), gradient)
        length = _step_length(objective, t, step, value, float(gradient @ step))
        if length == 0:
            status = "stalled"
            break
        t = t - length * step
        value = objective(t)
    return LogLinearSolution(t, value, gap, n_iter, status=status)


def _step_length(
    objective: Callable[[FloatArray], float],
    t: FloatArray,
    step: FloatArray,
    value: float,
    slope: float,
) -> float:
    """Halve the step until it lowers the objective enough; 0 if rounding errors prevent it."""
    length = 1.0
    while length >= SMALLEST_STEP:
        if objective(t - length * step) <= value - SUFFICIENT * length * slope:
            return length
        length /= 2
    return 0.0
