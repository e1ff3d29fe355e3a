"""The tube loss of Eq. (3) and its weights, row by row."""

from __future__ import annotations

import numpy as np

from lemll._types import FloatArray

__all__ = ["row_norms", "tube_loss", "tube_weights"]


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
