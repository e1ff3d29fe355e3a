"""The exact minimiser of Eq. (9) along a line, at a cost of O(n) per trial."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lemll._types import FloatArray

__all__ = ["LineSearch", "exact_step"]


MAX_TRIALS = 50
# phi' need not be driven to zero: a slope reduced to this share of the first leaves the objective
# within about its square of the minimum on the line.
SLOPE_SHARE = 1e-3


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
