"""The objective of LEMLL (Eq. 9), its gradient, and a proof of how far a point is from the optimum.

With ``X`` (n x d), logical labels ``Y`` in {-1, +1} (n x l), rebuilding weights ``W`` (n x n, rows
summing to one), numerical labels ``U`` (n x l) and the linear model ``p(x) = Theta x + b``, Eq. (9)
is::

    F = sum_i L(|u_i - Theta x_i - b|)                tube loss, L(r) = max(0, r - epsilon)^2
        + alpha |Theta|_F^2                           a flat model
        + beta  |U - Y|_F^2                           close to the logical labels
        + gamma tr(U' M U),  M = (I-W)'(I-W)          smooth along the neighbourhoods

It is jointly convex in ``(U, Theta, b)``, so every dual feasible point bounds the optimum from
below and "converged" is a number that can be proven, `duality_gap`.

Everything here is a pure function and computes in float64, whatever the arrays passed in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lemll._validation import is_sparse

__all__ = [
    "DualityGap",
    "LemllPoint",
    "duality_gap",
    "gap_from_gradient_parts",
    "lemll_gradient",
    "lemll_objective",
    "row_norms",
    "smallest_objective",
    "smoothness_product",
    "tube_loss",
    "tube_weights",
]

FloatArray = npt.NDArray[np.float64]


class LemllPoint(NamedTuple):
    """The three unknowns of Eq. (9), or its derivatives by them.

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


class DualityGap(NamedTuple):
    """What is proven about a point: ``lower_bound <= min F <= objective``.

    Attributes
    ----------
    objective : float
        Eq. (9) at the point.
    lower_bound : float
        The better of two dual values.
    relative : float
        ``(objective - lower_bound) / objective``, the certified relative error of the objective;
        relative to `smallest_objective` when the objective is smaller than that.
    """

    objective: float
    lower_bound: float
    relative: float


def tube_loss(residual_norms: FloatArray, epsilon: float) -> FloatArray:
    """Squared distance to the tube, ``max(0, r - epsilon)^2`` (Eq. 3).

    Parameters
    ----------
    residual_norms : ndarray
        Euclidean norms ``r`` of the rows of residuals.
    epsilon : float
        Radius of the tube.

    Returns
    -------
    ndarray
        The loss of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.objective import tube_loss
    >>> tube_loss(np.array([0.25, 0.5, 2.5]), epsilon=0.5)
    array([0., 0., 4.])
    """
    return np.square(np.maximum(residual_norms - epsilon, 0.0))


def tube_weights(residual_norms: FloatArray, epsilon: float) -> FloatArray:
    """Weights ``a_i = max(0, r_i - epsilon) / r_i`` of Eq. (14), 0 inside the tube.

    Twice ``a_i`` times the residual is the gradient of the tube loss.

    Parameters
    ----------
    residual_norms : ndarray
        Euclidean norms ``r`` of the rows of residuals.
    epsilon : float
        Radius of the tube.

    Returns
    -------
    ndarray
        Weights in [0, 1); with ``epsilon=0``, 1 for every non-zero residual.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.objective import tube_weights
    >>> tube_weights(np.array([0.0, 0.5, 2.0]), epsilon=0.5)
    array([0.  , 0.  , 0.75])
    """
    outside = residual_norms > epsilon
    return np.where(outside, 1.0 - epsilon / np.where(outside, residual_norms, 1.0), 0.0)


def smoothness_product(W: Any, U: FloatArray) -> FloatArray:
    """Multiply by ``M = (I-W)'(I-W)`` without forming it (Eq. 8).

    Parameters
    ----------
    W : sparse array of shape (n_samples, n_samples)
        Rebuilding weights.
    U : ndarray of shape (n_samples, n_labels)
        What to multiply.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        ``M U``.
    """
    rebuilt = U - W @ U
    product: FloatArray = rebuilt - W.T @ rebuilt
    return product


def lemll_objective(
    X: Any,
    Y: Any,
    W: Any,
    point: LemllPoint,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float,
) -> float:
    """Evaluate Eq. (9).

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, -1 or +1.
    W : sparse array of shape (n_samples, n_samples)
        Rebuilding weights, rows summing to one.
    point : LemllPoint
        Where: ``(U, Theta, b)``.
    alpha, beta, gamma : float
        Weights of ``|Theta|_F^2``, ``|U - Y|_F^2`` and ``tr(U' M U)``.
    epsilon : float
        Radius of the tube.

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
    Y = _as_float(Y)
    U, coef, intercept = map(_as_float, point)
    residuals, rebuilt = _residuals(X, U, coef, intercept), U - W @ U
    return (
        float(tube_loss(row_norms(residuals), epsilon).sum())
        + alpha * _square(coef)
        + beta * _square(U - Y)
        + gamma * _square(rebuilt)
    )


def lemll_gradient(
    X: Any,
    Y: Any,
    W: Any,
    point: LemllPoint,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float,
) -> LemllPoint:
    """Evaluate the gradient of Eq. (9); its parameters are those of `lemll_objective`.

    Parameters
    ----------
    X, Y, W, point
        The problem and the point, as in `lemll_objective`.
    alpha, beta, gamma, epsilon : float
        The weights of Eq. (9) and the radius of its tube.

    Returns
    -------
    LemllPoint
        Partial derivatives, each of the shape of its unknown.
    """
    Y = _as_float(Y)
    U, coef, intercept = map(_as_float, point)
    residuals = _residuals(X, U, coef, intercept)
    pull = tube_weights(row_norms(residuals), epsilon)[:, None] * residuals
    return LemllPoint(
        2 * (pull + beta * (U - Y) + gamma * smoothness_product(W, U)),
        2 * (alpha * coef - (X.T @ pull).T),
        -2 * pull.sum(axis=0),
    )


def duality_gap(
    X: Any,
    Y: Any,
    W: Any,
    point: LemllPoint,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float,
) -> DualityGap:
    """Bound the distance of a point from the optimum of Eq. (9), without solving any system.

    Parameters
    ----------
    X, Y, W, point
        The problem and the point, as in `lemll_objective`. The rows of `W` must sum to one:
        the bound rests on ``M 1 = 0``.
    alpha, beta, gamma, epsilon : float
        The weights of Eq. (9), `alpha` and `beta` positive, and the radius of its tube.

    Returns
    -------
    DualityGap
        Objective, lower bound and certified relative gap.

    See Also
    --------
    gap_from_gradient_parts : the same from products a solver already has.

    Examples
    --------
    At the optimum the gap closes; here the labels are constant and the optimum is 0.

    >>> import numpy as np
    >>> from scipy import sparse
    >>> from lemll.objective import LemllPoint, duality_gap
    >>> Y = np.ones((2, 1))
    >>> W = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> point = LemllPoint(Y, np.zeros((1, 2)), np.ones(1))
    >>> duality_gap(np.eye(2), Y, W, point, alpha=1.0, beta=1.0, gamma=1.0, epsilon=0.1)
    DualityGap(objective=0.0, lower_bound=0.0, relative=0.0)
    """
    Y = _as_float(Y)
    U, coef, intercept = map(_as_float, point)
    residuals, rebuilt, change = _residuals(X, U, coef, intercept), U - W @ U, U - Y
    # Eq. (9) written out once more: the products are shared with the gap.
    objective = (
        float(tube_loss(row_norms(residuals), epsilon).sum())
        + alpha * _square(coef)
        + beta * _square(change)
        + gamma * _square(rebuilt)
    )
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).reshape(-1)

    def misfit(half_dual: FloatArray) -> float:
        # Its columns sum to zero, so centring X changes nothing but the rounding.
        correlation = (X.T @ half_dual).T if is_sparse(X) else half_dual.T @ X
        correlation -= np.outer(half_dual.sum(axis=0), mean)
        return _square(alpha * coef - correlation)

    gap = gap_from_gradient_parts(
        residuals,
        beta * change + gamma * (rebuilt - W.T @ rebuilt),
        misfit,
        alpha=alpha,
        beta=beta,
        epsilon=epsilon,
    )
    scale = max(objective, smallest_objective(Y, beta))
    return DualityGap(objective, objective - gap, gap / scale)


def smallest_objective(Y: FloatArray, beta: float) -> float:
    """Objective below which gaps are no longer taken relative to the objective itself.

    Where the optimum is exactly 0 (constant labels, say) a gap relative to F would be 0/0 at the
    optimum and 1 beside it.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels.
    beta : float
        Weight of ``|U - Y|_F^2``.

    Returns
    -------
    float
        ``1e-10 beta |Y|_F^2``, positive also for labels that are all 0.
    """
    return max(1e-10 * beta * float(np.vdot(Y, Y)), float(np.finfo(np.float64).tiny))


def gap_from_gradient_parts(
    residuals: FloatArray,
    label_gradient: FloatArray,
    misfit: Callable[[FloatArray], float],
    *,
    alpha: float,
    beta: float,
    epsilon: float,
) -> float:
    """Certified absolute gap of Eq. (9), from products a solver keeps anyway.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples, n_labels)
        ``Xi = U - X Theta' - 1 b'``.
    label_gradient : ndarray of shape (n_samples, n_labels)
        ``C = beta (U - Y) + gamma M U``.
    misfit : callable
        ``Z/2 -> |alpha Theta' - X'Z/2|_F^2`` for Z whose columns sum to zero.
    alpha, beta, epsilon : float
        Parameters of Eq. (9); `gamma` enters through `label_gradient`.

    Returns
    -------
    float
        An upper bound of ``F - min F``, at least 0.

    Notes
    -----
    For any Z (n x l) whose columns sum to zero the dual value D(Z) is a lower bound of Eq. (9), and
    with ``B = beta I + gamma M`` the gap is a sum of three terms, each non-negative, so nothing
    cancels::

        F - D(Z) = sum_i [ L(|xi_i|) + |z_i|^2/4 + epsilon |z_i| - <z_i, xi_i> ]
                   + |alpha Theta' - X'Z/2|_F^2 / alpha
                   + tr E' B^-1 E,                       E = beta Y - Z/2 - B U = -C - Z/2

    Two choices of Z need no solve with B. Centring the gradient of the tube loss, by a change of
    the rows outside the tube, gives a small first term, and ``tr E' B^-1 E <= |E|_F^2 / beta``.
    Centring ``-2 C`` leaves in E only columns of constants, on which B is beta exactly. The smaller
    gap of the two is returned.
    """
    norms = row_norms(residuals)
    weights = tube_weights(norms, epsilon)
    pull = weights[:, None] * residuals
    loss = tube_loss(norms, epsilon)

    def gap(half_dual: FloatArray, label_part: float) -> float:
        """Sum the three terms at ``Z = 2 half_dual``."""
        lengths = row_norms(half_dual)
        inner = np.einsum("ij,ij->i", half_dual, residuals)
        fenchel = loss + lengths * (lengths + 2 * epsilon) - 2 * inner
        return float(np.maximum(fenchel, 0.0).sum()) + misfit(half_dual) / alpha + label_part

    # Rows inside the tube stay at zero, where any change of z_i would cost in proportion to it;
    # for the others the first term is smooth at its minimum.
    shares = weights / max(float(weights.sum()), np.finfo(np.float64).tiny)
    centred_pull = pull - np.outer(shares, pull.sum(axis=0))
    mismatch = label_gradient + centred_pull
    from_tube = gap(centred_pull, _square(mismatch) / beta)
    drift = label_gradient.mean(axis=0)
    from_labels = gap(drift - label_gradient, len(label_gradient) * float(drift @ drift) / beta)
    return min(from_tube, from_labels)


def _square(array: FloatArray) -> float:
    return float(np.vdot(array, array))


def _as_float(array: Any) -> FloatArray:
    return np.asarray(array, dtype=np.float64)


def row_norms(rows: FloatArray) -> FloatArray:
    """Euclidean norm of each row."""
    norms: FloatArray = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


def _residuals(X: Any, U: FloatArray, coef: FloatArray, intercept: FloatArray) -> FloatArray:
    residuals: FloatArray = U - (X @ coef.T + intercept)
    return residuals
