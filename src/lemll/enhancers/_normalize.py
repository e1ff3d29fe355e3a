"""From numerical labels to a label distribution: three ways to make rows sum to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

__all__ = ["NORMALIZATIONS", "Normalization", "normalize"]

FloatArray = npt.NDArray[np.float64]
Normalization = Literal["sigmoid", "softmax", "sum"]


def _by_sum(values: FloatArray) -> FloatArray:
    positive = np.maximum(values, 0)
    sums = positive.sum(axis=1, keepdims=True)
    # A row without anything positive says nothing about its labels: all alike.
    uniform = np.full_like(positive, 1 / positive.shape[1])
    shares: FloatArray = np.divide(positive, sums, out=uniform, where=sums > 0)
    return shares


def _by_sigmoid(values: FloatArray) -> FloatArray:
    return _by_sum(expit(values))


def _by_softmax(values: FloatArray) -> FloatArray:
    result: FloatArray = softmax(values, axis=1)
    return result


NORMALIZATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "sigmoid": _by_sigmoid,
    "softmax": _by_softmax,
    "sum": _by_sum,
}


def normalize(
    numerical_labels: Any, normalization: Normalization = "sigmoid", *, scale: float = 1.0
) -> FloatArray:
    """Turn numerical labels into a label distribution.

    Parameters
    ----------
    numerical_labels : array-like of shape (n_samples, n_labels)
        U.
    normalization : {"sigmoid", "softmax", "sum"}, default="sigmoid"
        Logistic function and division by the row's sum, as the LEMLL paper does; softmax; or
        division of the positive parts by their sum (a row without any becomes uniform).
    scale : float, default=1.0
        Factor on the numerical labels before normalising.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Non-negative, rows summing to one.

    Examples
    --------
    >>> normalize([[0.0, 0.0], [1.0, -1.0]]).round(3)
    array([[0.5  , 0.5  ],
           [0.731, 0.269]])
    """
    if normalization not in NORMALIZATIONS:
        raise ValueError(
            f"normalization={normalization!r} must be one of {', '.join(NORMALIZATIONS)}."
        )
    return NORMALIZATIONS[normalization](scale * np.asarray(numerical_labels, dtype=np.float64))
