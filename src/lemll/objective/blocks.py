"""The certificate of Eq. (9) for many rows: float64 sums over blocks of rows.

`duality_gap` holds about fourteen arrays of n_samples x n_labels in float64. A search in float32
needs less than that itself. Here only U and (I - W) U exist as a whole in float64; all other terms
are sums over rows, and each block of rows adds its part.
"""

from __future__ import annotations

import numpy as np

from lemll._types import Array, Features, FloatArray, Settings
from lemll.objective.certificate import DualityGap, GapParts, smallest_objective
from lemll.objective.equation9 import LemllPoint, duality_gap, objective_value
from lemll.objective.features import CentredKernel, ShiftedFeatures
from lemll.topology import ReconstructionOperator

__all__ = ["LARGE_LABEL_BYTES", "duality_gap_by_blocks", "proven_gap"]

# Above this size of one float64 array of n_samples x n_labels, the certificate goes by blocks.
LARGE_LABEL_BYTES = 1 << 25

# Size of one float64 array of a block of rows and all labels.
BLOCK_BYTES = 1 << 25


def proven_gap(
    X: Features,
    Y: Array,
    M: ReconstructionOperator,
    point: LemllPoint,
    *,
    half_dual: Array | None,
    cell_weight: FloatArray | None,
    **weights: float,
) -> DualityGap:
    """Return the certificate of `duality_gap`, for large problems with less memory.

    Parameters
    ----------
    X, Y, M, point, half_dual, cell_weight
        As in `duality_gap`.
    **weights : float
        alpha, beta, gamma and epsilon.

    Returns
    -------
    DualityGap
        Objective, lower bound and certified relative gap.
    """
    plain = half_dual is not None and cell_weight is None and not isinstance(X, CentredKernel)
    if plain and 8 * point.numerical_labels.size > LARGE_LABEL_BYTES:
        assert half_dual is not None
        return duality_gap_by_blocks(X, Y, M, point, half_dual=half_dual, **weights)
    return duality_gap(X, Y, M, point, half_dual=half_dual, cell_weight=cell_weight, **weights)


def duality_gap_by_blocks(
    X: Features,
    Y: Array,
    M: ReconstructionOperator,
    point: LemllPoint,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float,
    half_dual: Array,
) -> DualityGap:
    """Return the same certificate as `duality_gap` for a given dual point, with less memory.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, -1/+1.
    M : ReconstructionOperator
        M of the weights W, in float64.
    point : LemllPoint
        The point ``(U, Theta, b)``.
    alpha, beta, gamma, epsilon : float
        The weights of Eq. (9) and the radius of its tube.
    half_dual : ndarray of shape (n_samples, n_labels)
        ``Z/2`` of a dual point. Its columns are centred here.

    Returns
    -------
    DualityGap
        Objective, lower bound and certified relative gap.
    """
    coef = np.asarray(point.coef, dtype=np.float64)
    U = np.asarray(point.numerical_labels, dtype=np.float64)
    rebuilt = M.residual(U)
    mean = half_dual.mean(axis=0, dtype=np.float64)
    weights: Settings = {"alpha": alpha, "beta": beta, "epsilon": epsilon}
    features = ShiftedFeatures(X)
    correlation, sums = np.zeros(coef.shape), np.zeros(len(coef))
    objective = alpha * features.square(coef)
    gap = 0.0
    step = max(1, BLOCK_BYTES // (8 * U.shape[1]))
    for start in range(0, len(U), step):
        rows = slice(start, min(start + step, len(U)))
        residuals = features.residuals_of(rows, U[rows], coef, point.intercept)
        change = U[rows] - Y[rows]
        objective += objective_value(residuals, 0.0, change, rebuilt[rows], gamma=gamma, **weights)
        gradient = beta * change + gamma * M.adjoint_rows(rows, rebuilt)
        dual: FloatArray = half_dual[rows] - mean
        gap += GapParts(residuals, gradient, **weights).gap(dual, 0.0)
        correlation += features.correlation_of(rows, dual)
        sums += dual.sum(axis=0)
    difference = alpha * coef - features.without_sums(correlation, sums)
    gap += float(np.vdot(difference, difference)) / alpha
    scale = max(objective, smallest_objective(Y, beta))
    return DualityGap(objective, objective - gap, gap / scale)
