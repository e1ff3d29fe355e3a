"""The tube loss, the best step along a line, and lower bounds of Eq. (9) without a solve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lemll._types import Features, FloatArray

__all__ = [
    "DualityGap",
    "GapParts",
    "LineSearch",
    "exact_step",
    "row_norms",
    "smallest_objective",
    "tube_loss",
    "tube_weights",
]


MAX_TRIALS = 50
# phi' need not be driven to zero: a slope reduced to this share of the first leaves the objective
# within about its square of the minimum on the line.
SLOPE_SHARE = 1e-3
# An objective below this share of that of trivial labels is taken for zero.
ZERO_SHARE = 1e-18
# The best dual point between two is searched among so many, so many times.
TRIALS, ROUNDS = 6, 2
TINY = float(np.finfo(np.float64).tiny)


def row_norms(rows: FloatArray) -> FloatArray:
    """Euclidean norm of each row."""
    norms: FloatArray = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


def tube_loss(residual_norms: FloatArray, epsilon: float | FloatArray) -> FloatArray:
    """Squared distance to the tube, ``max(0, r - epsilon)^2`` (Eq. 3).

    Parameters
    ----------
    residual_norms : ndarray
        Euclidean norms ``r`` of the rows of residuals.
    epsilon : float or ndarray
        Radius of the tube, or one for each row.

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


def tube_weights(residual_norms: FloatArray, epsilon: float | FloatArray) -> FloatArray:
    """Weights ``a_i = max(0, r_i - epsilon) / r_i`` of Eq. (14), 0 inside the tube.

    Twice ``a_i`` times the residual is the gradient of the tube loss.

    Parameters
    ----------
    residual_norms : ndarray
        Euclidean norms ``r`` of the rows of residuals.
    epsilon : float or ndarray
        Radius of the tube, or one for each row.

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


class LineSearch(NamedTuple):
    """Where on the line (0 if it does not descend), and how much the objective falls."""

    step: float
    decrease: float


def exact_step(
    square: FloatArray,
    cross: FloatArray,
    speed: FloatArray,
    *,
    linear: float,
    quadratic: float,
    epsilon: float | FloatArray,
    other: Callable[[float], tuple[float, float]] | None = None,
) -> LineSearch:
    """Minimise Eq. (9) along a line.

    With residuals ``xi_i + s h_i`` the objective on the line is, up to a constant,
    ``phi(s) = sum_i L(sqrt(square_i + 2 s cross_i + s^2 speed_i)) + 2 s linear + s^2 quadratic``,
    convex and continuously differentiable: Newton's method on phi', kept inside a bracket.

    Parameters
    ----------
    square, cross, speed : ndarray of shape (n_samples,)
        ``|xi_i|^2``, ``<xi_i, h_i>`` and ``|h_i|^2``.
    linear, quadratic : float
        Halved slope and curvature of the quadratic terms of Eq. (9).
    epsilon : float or ndarray of shape (n_samples,)
        Radius of the tube, or one for each row.
    other : callable, optional
        Halved slope and curvature at s of a further convex term.

    Returns
    -------
    LineSearch
        The step s and ``phi(0) - phi(s) >= 0``, a further term left out.
    """
    start_norms = np.sqrt(square)
    start_loss = np.maximum(start_norms - epsilon, 0.0)
    step, low, high = 0.0, 0.0, np.inf
    norms = start_norms
    first_slope = 0.0
    for trial in range(MAX_TRIALS):
        # d/ds of |xi + s h|^2 / 2, and the part of it per unit of norm.
        drift = cross + step * speed
        safe = np.maximum(norms, epsilon)
        safe[safe == 0] = 1.0  # only without a tube, where every weight is 1
        weights = 1.0 - epsilon / safe
        more_slope, more_curvature = (0.0, 0.0) if other is None else other(step)
        slope = float(weights @ drift) + linear + step * quadratic + more_slope
        if trial == 0:
            first_slope = slope
            if not slope < 0:
                return LineSearch(0.0, 0.0)
        elif abs(slope) <= SLOPE_SHARE * -first_slope:
            break
        if slope < 0:
            low = step
        else:
            high = step
        inside = norms <= epsilon
        bend = drift / safe
        bend *= bend
        bend *= 1.0 - weights
        bend[inside] = 0.0
        curvature = float(weights @ speed) + float(bend.sum()) + quadratic + more_curvature
        newton = step - slope / curvature if curvature > 0 else np.inf
        if not low < newton < high:
            newton = 2 * step + 1.0 if np.isinf(high) else (low + high) / 2
        if newton in (low, high):
            break
        step = newton
        norms = np.sqrt(np.maximum(square + step * (2 * cross + step * speed), 0.0))
    loss = np.maximum(norms - epsilon, 0.0)
    # Difference of squares, row by row: the decrease keeps its digits when it is tiny beside F.
    decrease = float((start_loss - loss) @ (start_loss + loss)) - step * (
        2 * linear + step * quadratic
    )
    # phi is convex and its slope at 0 negative: what looks like a rise here is rounding.
    return LineSearch(step, max(decrease, 0.0))


class DualityGap(NamedTuple):
    """What is proven about a point: ``lower_bound <= min F <= objective``.

    Attributes
    ----------
    objective : float
        Eq. (9) at the point.
    lower_bound : float
        The better of two dual values.
    relative : float
        ``(objective - lower_bound) / max(objective, smallest_objective(Y, beta))``: what is
        certified of the relative error of the objective.
    """

    objective: float
    lower_bound: float
    relative: float


def smallest_objective(Y: FloatArray, beta: float) -> float:
    """Objective below which gaps are no longer taken relative to the objective itself.

    Where the optimum is exactly 0 (constant labels, say) a gap relative to F would be 0/0 at the
    optimum and 1 beside it. Everywhere else it should be, so this is hardly more than what the
    rounding of U makes of an objective of zero. It falls with `beta`, as the optimum does: labels
    that are all equal to their mean cost at most ``beta |Y|_F^2``. It does not grow with `beta`,
    as the optimum does not.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels.
    beta : float
        Weight of ``|U - Y|_F^2``.

    Returns
    -------
    float
        ``1e-18 min(beta, 1) |Y|_F^2``, positive also for labels that are all 0.
    """
    return max(ZERO_SHARE * min(beta, 1.0) * float(np.vdot(Y, Y)), TINY)


class GapParts:
    """The gap of Eq. (9) between a point and any dual point, from products a solver keeps anyway.

    Parameters
    ----------
    residuals : ndarray of shape (n_samples, n_labels)
        ``Xi = U - X Theta' - 1 b'``.
    label_gradient : ndarray of shape (n_samples, n_labels)
        ``C = beta (U - Y) + gamma M U``.
    alpha, beta, epsilon : float
        Parameters of Eq. (9); `gamma` enters through `label_gradient`.

    Notes
    -----
    For any Z (n x l) whose columns sum to zero the dual value D(Z) is a lower bound of Eq. (9), and
    with ``B = beta I + gamma M`` the gap is a sum of three non-negative terms, none of which is a
    difference of large ones near the optimum; each bracket is, and is exact up to the rounding of
    its ``L(|xi_i|)``::

        F - D(Z) = sum_i [ L(|xi_i|) + |z_i|^2/4 + epsilon |z_i| - <z_i, xi_i> ]
                   + |alpha Theta' - X'Z/2|_F^2 / alpha
                   + tr E' B^-1 E,                       E = beta Y - Z/2 - B U = -C - Z/2

    No solve with B is needed: M is positive semidefinite, so ``tr E' B^-1 E <= |E|_F^2 / beta``.
    Two choices of Z make that a good bound. Centring the gradient of the tube loss, by a change of
    the rows outside the tube, gives a small first term. Centring ``-2 C`` leaves in E only columns
    of constants, which M does not see where the rows of W sum to one: then the bound is exact.
    """

    def __init__(
        self,
        residuals: FloatArray,
        label_gradient: FloatArray,
        *,
        alpha: float,
        beta: float,
        epsilon: float,
    ) -> None:
        self._residuals, self._label_gradient = residuals, label_gradient
        self._alpha, self._beta, self._epsilon = alpha, beta, epsilon
        norms = row_norms(residuals)
        self._weights = tube_weights(norms, epsilon)
        self._loss = tube_loss(norms, epsilon)

    def from_tube(self) -> FloatArray:
        """``Z/2`` from the pull of the tube."""
        # Rows inside the tube stay at zero, where any change of z_i would cost in proportion to
        # it; for the others the first term is smooth at its minimum.
        pull = self._weights[:, None] * self._residuals
        total = max(float(self._weights.sum()), float(np.finfo(self._weights.dtype).tiny))
        shares = self._weights / total
        pull -= np.outer(shares, pull.sum(axis=0))
        return pull

    def from_labels(self) -> FloatArray:
        """``Z/2`` from what holds the labels where they are."""
        half_dual: FloatArray = self._label_gradient.mean(axis=0) - self._label_gradient
        return half_dual

    def gap(self, half_dual: FloatArray, misfit: float) -> float:
        """Sum the three terms.

        Parameters
        ----------
        half_dual : ndarray of shape (n_samples, n_labels)
            ``Z/2``, its columns summing to zero.
        misfit : float
            ``|alpha Theta' - X'Z/2|_F^2``.

        Returns
        -------
        float
            An upper bound of ``F - min F``, at least 0.
        """
        lengths = row_norms(half_dual)
        inner = np.einsum("ij,ij->i", half_dual, self._residuals)
        mismatch = self._label_gradient + half_dual
        return self._total(lengths, inner, misfit, float(np.vdot(mismatch, mismatch)))

    def best_between(
        self, first: FloatArray, second: FloatArray, misfits: tuple[float, float, float]
    ) -> float:
        """Share of `second` at which the gap is least, to some digits, between two dual points.

        Parameters
        ----------
        first, second : ndarray of shape (n_samples, n_labels)
            ``Z/2`` of both.
        misfits : tuple of float
            ``<F1, F1>``, ``<F1, F2>`` and ``<F2, F2>`` of their ``F = alpha Theta' - X'Z/2``.

        Returns
        -------
        float
            In [0, 1]; the gap is convex in it.
        """
        inner_first, inner_second = (
            np.einsum("ij,ij->i", half_dual, self._residuals) for half_dual in (first, second)
        )
        squares = (
            np.einsum("ij,ij->i", first, first),
            np.einsum("ij,ij->i", first, second),
            np.einsum("ij,ij->i", second, second),
        )
        one, two = self._label_gradient + first, self._label_gradient + second
        mismatches = float(np.vdot(one, one)), float(np.vdot(one, two)), float(np.vdot(two, two))
        low, high = 0.0, 1.0
        for _ in range(ROUNDS):
            shares = np.linspace(low, high, TRIALS)
            gaps = [
                self._total(
                    np.sqrt(np.maximum(_mixed(squares, share), 0.0)),
                    (1 - share) * inner_first + share * inner_second,
                    float(_mixed(misfits, share)),
                    float(_mixed(mismatches, share)),
                )
                for share in shares
            ]
            best = int(np.argmin(gaps))
            low, high = shares[max(best - 1, 0)], shares[min(best + 1, TRIALS - 1)]
        return float(shares[best])

    def _total(self, lengths: FloatArray, inner: FloatArray, misfit: float, square: float) -> float:
        fenchel = self._loss + lengths * (lengths + 2 * self._epsilon) - 2 * inner
        tube_part = float(np.maximum(fenchel, 0.0).sum())
        return tube_part + misfit / self._alpha + square / self._beta


def _mixed(products: Any, share: float) -> Features:
    """Square of ``(1 - share) a + share b``, from the squares and the product of a and b."""
    first, both, second = products
    rest = 1 - share
    return rest * rest * first + 2 * rest * share * both + share * share * second
