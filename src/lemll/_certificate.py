"""Lower bounds of Eq. (9) that need no linear solve."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lemll._tube import row_norms, tube_loss, tube_weights

__all__ = ["DualityGap", "gap_from_gradient_parts", "smallest_objective"]

FloatArray = npt.NDArray[np.float64]

# An objective below this share of that of trivial labels is taken for zero.
ZERO_SHARE = 1e-18
TINY = float(np.finfo(np.float64).tiny)


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
    with ``B = beta I + gamma M`` the gap is a sum of three non-negative terms, none of which is a
    difference of large ones near the optimum; each bracket is, and is exact up to the rounding of
    its ``L(|xi_i|)``::

        F - D(Z) = sum_i [ L(|xi_i|) + |z_i|^2/4 + epsilon |z_i| - <z_i, xi_i> ]
                   + |alpha Theta' - X'Z/2|_F^2 / alpha
                   + tr E' B^-1 E,                       E = beta Y - Z/2 - B U = -C - Z/2

    No solve with B is needed: M is positive semidefinite, so ``tr E' B^-1 E <= |E|_F^2 / beta``.
    Two choices of Z make that a good bound. Centring the gradient of the tube loss, by a change of
    the rows outside the tube, gives a small first term. Centring ``-2 C`` leaves in E only columns
    of constants, which M does not see where the rows of W sum to one: then the bound is exact. The
    smaller gap of the two is returned.
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
    shares = weights / max(float(weights.sum()), TINY)
    centred_pull = pull - np.outer(shares, pull.sum(axis=0))
    mismatch = label_gradient + centred_pull
    from_tube = gap(centred_pull, float(np.vdot(mismatch, mismatch)) / beta)
    drift = label_gradient.mean(axis=0)
    from_labels = gap(drift - label_gradient, len(label_gradient) * float(drift @ drift) / beta)
    return min(from_tube, from_labels)
