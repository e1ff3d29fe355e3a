"""The objective of LEMLL (Eq. 9), its gradient, and a proven bound on the distance to the optimum.

The data are the features ``X`` (n x d), the logical labels ``Y`` in {-1, +1} (n x l) and the
rebuilding weights ``W`` (n x n), whose rows sum to one. The unknowns are the numerical labels ``U``
(n x l) and the linear model ``p(x) = Theta x + b``. Eq. (9) is::

    F = sum_i L(|u_i - Theta x_i - b|)                tube loss, L(r) = max(0, r - epsilon)^2
        + alpha |Theta|_F^2                           keeps the model simple
        + beta  |U - Y|_F^2                           keeps U near the logical labels
        + gamma tr(U' M U),  M = (I-W)'(I-W)          makes U follow the neighbourhoods

Each cell of Y may have a weight ``c_ij >= 0``, and the third term is then ``beta sum_ij c_ij
(U_ij - Y_ij)^2``. A cell that nobody observed has the weight 0, and its Y is arbitrary.

Eq. (9) is jointly convex in ``(U, Theta, b)``. Therefore every feasible dual point gives a lower
bound of the optimum, and `duality_gap` proves how close a point is to the optimum.

All functions here are pure. They accept arrays of lower precision and compute all products in
float64, with centred features. If X is far from the origin, the results are exact for an intercept
that differs from `b` only in the last digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lemll._types import Features, FloatArray, MatrixLike, SparseMatrix
from lemll.objective.certificate import (
    DualityGap,
    GapParts,
    row_norms,
    smallest_objective,
    tube_loss,
    tube_weights,
    weighed,
)
from lemll.objective.features import CentredKernel, ShiftedFeatures
from lemll.topology import ReconstructionOperator

__all__ = [
    "LemllPoint",
    "duality_gap",
    "lemll_gradient",
    "lemll_objective",
    "objective_value",
]


class LemllPoint(NamedTuple):
    """The three unknowns of Eq. (9), or the derivatives of Eq. (9) with respect to them.

    Attributes
    ----------
    numerical_labels : ndarray of shape (n_samples, n_labels)
        ``U``.
    coef : ndarray of shape (n_labels, n_features)
        ``Theta``.
    intercept : ndarray of shape (n_labels,)
        ``b``.
    """

    numerical_labels: FloatArray
    coef: FloatArray
    intercept: FloatArray


def lemll_objective(
    X: Features,
    Y: MatrixLike,
    W: SparseMatrix,
    point: LemllPoint,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float,
    cell_weight: FloatArray | None = None,
) -> float:
    """Evaluate Eq. (9).

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features), or CentredKernel
        Features, or their kernel. With a kernel, the rows of Theta hold one coefficient per sample.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, -1 or +1.
    W : sparse array of shape (n_samples, n_samples) or ReconstructionOperator
        Rebuilding weights. Each row sums to one.
    point : LemllPoint
        The point ``(U, Theta, b)`` at which to evaluate.
    alpha, beta, gamma : float
        Weights of ``|Theta|_F^2``, ``|U - Y|_F^2`` and ``tr(U' M U)``.
    epsilon : float
        Radius of the tube.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights c of the cells of Y; by default 1.

    Returns
    -------
    float
        The objective, in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from lemll.objective import LemllPoint, lemll_objective
    >>> Y = np.array([[1.0], [-1.0]])
    >>> W = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> point = LemllPoint(Y, np.zeros((1, 2)), np.zeros(1))
    >>> lemll_objective(np.eye(2), Y, W, point, alpha=1.0, beta=1.0, gamma=0.5, epsilon=0.5)
    4.5
    """
    Y, point = _as_float(Y), LemllPoint(*map(_as_float, point))
    U, coef, _ = point
    features = _centred(X)
    return objective_value(
        features.residuals(*point),
        features.square(coef),
        U - Y,
        ReconstructionOperator.of(W).residual(U),
        alpha=alpha,
        beta=beta,
        gamma=gamma,
        epsilon=epsilon,
        cell_weight=cell_weight,
    )


def objective_value(
    residuals: FloatArray,
    coef_square: float,
    change: FloatArray,
    rebuilt: FloatArray,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float,
    cell_weight: FloatArray | None = None,
) -> float:
    """Evaluate Eq. (9) from products that are already known.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples, n_labels)
        ``U - X Theta' - 1 b'``.
    coef_square : float
        ``|Theta|_F^2``.
    change : ndarray of shape (n_samples, n_labels)
        ``U - Y``.
    rebuilt : ndarray of shape (n_samples, n_labels)
        ``(I - W) U``.
    alpha, beta, gamma, epsilon : float
        The weights of Eq. (9) and the radius of its tube.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1.

    Returns
    -------
    float
        The objective.
    """
    return (
        float(tube_loss(row_norms(residuals), epsilon).sum())
        + alpha * coef_square
        + beta * float(np.vdot(change, weighed(change, cell_weight)))
        + gamma * _square(rebuilt)
    )


def lemll_gradient(
    X: Features,
    Y: MatrixLike,
    W: SparseMatrix,
    point: LemllPoint,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float,
    cell_weight: FloatArray | None = None,
) -> LemllPoint:
    """Evaluate the gradient of Eq. (9).

    Parameters
    ----------
    X, Y, W, point
        The problem and the point, as in `lemll_objective`.
    alpha, beta, gamma, epsilon : float
        The weights of Eq. (9) and the radius of its tube.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1.

    Returns
    -------
    LemllPoint
        Partial derivatives. Each has the shape of its unknown.
    """
    Y, point = _as_float(Y), LemllPoint(*map(_as_float, point))
    U, coef, _ = point
    residuals = ShiftedFeatures(X).residuals(*point)
    # By the chain rule, all three derivatives contain `pull`, half the gradient of the tube loss
    # with respect to the residuals: U enters with the sign +, Theta and b with the sign -.
    pull = tube_weights(row_norms(residuals), epsilon)[:, None] * residuals
    return LemllPoint(
        2
        * (pull + beta * weighed(U - Y, cell_weight) + gamma * (ReconstructionOperator.of(W) @ U)),
        2 * (alpha * coef - (X.T @ pull).T),
        -2 * pull.sum(axis=0),
    )


def duality_gap(
    X: Features,
    Y: MatrixLike,
    W: SparseMatrix,
    point: LemllPoint,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float,
    half_dual: Any = None,
    cell_weight: FloatArray | None = None,
) -> DualityGap:
    """Bound the distance of a point to the optimum of Eq. (9), without solving a linear system.

    Parameters
    ----------
    X, Y, W, point
        The problem and the point, as in `lemll_objective`. The bound holds for any `W`. It is
        tightest if the rows of `W` sum to one.
    alpha, beta, gamma, epsilon : float
        The weights of Eq. (9) and the radius of its tube. `alpha` and `beta` must be positive.
    half_dual : ndarray of shape (n_samples, n_labels), optional
        ``Z/2`` of a dual point, for example from a solution. Every dual point gives a valid bound;
        a better dual point gives a tighter bound. By default two dual points are computed from
        `point`, and the better one is used.
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1. Each label needs a positive weight.

    Returns
    -------
    DualityGap
        Objective, lower bound and certified relative gap.

    See Also
    --------
    lemll.objective.GapParts : the same from products that a solver already has.

    Examples
    --------
    At the optimum the gap is 0. In this example the labels are constant and the optimum is 0.

    >>> import numpy as np
    >>> from scipy import sparse
    >>> from lemll.objective import LemllPoint, duality_gap
    >>> Y = np.ones((2, 1))
    >>> W = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> point = LemllPoint(Y, np.zeros((1, 2)), np.ones(1))
    >>> duality_gap(np.eye(2), Y, W, point, alpha=1.0, beta=1.0, gamma=1.0, epsilon=0.1)
    DualityGap(objective=0.0, lower_bound=0.0, relative=0.0)
    """
    Y, point = _as_float(Y), LemllPoint(*map(_as_float, point))
    U, coef, _ = point
    features, smoothness, change = _centred(X), ReconstructionOperator.of(W), U - Y
    residuals, rebuilt = features.residuals(*point), smoothness.residual(U)
    objective = objective_value(
        residuals,
        features.square(coef),
        change,
        rebuilt,
        alpha=alpha,
        beta=beta,
        gamma=gamma,
        epsilon=epsilon,
        cell_weight=cell_weight,
    )
    parts = GapParts(
        residuals,
        beta * weighed(change, cell_weight) + gamma * smoothness.adjoint(rebuilt),
        alpha=alpha,
        beta=beta,
        epsilon=epsilon,
        cell_weight=cell_weight,
    )
    if half_dual is None:
        duals = [parts.from_tube(), parts.from_labels()]
    else:
        duals = [parts.feasible(_as_float(half_dual))]
    gap = min(parts.gap(dual, features.misfit(alpha, coef, dual)) for dual in duals)
    # The floor avoids 0 / 0 if the optimum is exactly 0.
    scale = max(objective, smallest_objective(Y, beta))
    return DualityGap(objective, objective - gap, gap / scale)


def _centred(X: Features) -> CentredKernel | ShiftedFeatures:
    return X if isinstance(X, CentredKernel) else ShiftedFeatures(X)


def _square(array: FloatArray) -> float:
    return float(np.vdot(array, array))


def _as_float(array: MatrixLike) -> FloatArray:
    return np.asarray(array, dtype=np.float64)
