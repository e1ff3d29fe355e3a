"""Convert numerical labels to a label distribution, in one of three ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from scipy.special import expit, softmax

from lemll._types import FloatArray

__all__ = ["NORMALIZATIONS", "Normalization", "check_normalization", "normalize"]

Normalization = Literal["sigmoid", "softmax", "sum"]


def _by_sum(values: FloatArray, scale: float) -> FloatArray:
    positive = np.maximum(values, 0)
    largest = positive.max(axis=1, keepdims=True)
    # A row without a positive entry has no information about its labels, so it becomes uniform.
    # Divide by the largest entry first: then the powers cannot overflow.
    uniform = np.full_like(positive, 1 / positive.shape[1])
    powers = np.divide(positive, largest, out=np.zeros_like(positive), where=largest > 0) ** scale
    sums = powers.sum(axis=1, keepdims=True)
    shares: FloatArray = np.divide(powers, sums, out=uniform, where=largest > 0)
    return shares


def _by_sigmoid(values: FloatArray, scale: float) -> FloatArray:
    return _by_sum(expit(scale * values), 1.0)


def _by_softmax(values: FloatArray, scale: float) -> FloatArray:
    # SciPy subtracts the largest entry of each row first, so the powers cannot overflow.
    result: FloatArray = softmax(scale * values, axis=1)
    return result


NORMALIZATIONS: dict[str, Callable[[FloatArray, float], FloatArray]] = {
    "sigmoid": _by_sigmoid,
    "softmax": _by_softmax,
    "sum": _by_sum,
}


def check_normalization(normalization: str) -> None:
    """Refuse an unknown normalisation."""
    if not isinstance(normalization, str) or normalization not in NORMALIZATIONS:
        raise ValueError(
            f"normalization={normalization!r} must be one of {', '.join(NORMALIZATIONS)}."
        )


def normalize(
    numerical_labels: Any, normalization: Normalization = "sigmoid", *, scale: float = 1.0
) -> FloatArray:
    r"""Turn numerical labels into a label distribution.

    With s the scale and :math:`\sigma` the logistic function, a row u becomes

    .. math:: \frac{\sigma(s u_j)}{\sum_k \sigma(s u_k)}, \qquad
        \frac{e^{s u_j}}{\sum_k e^{s u_k}}, \qquad
        \frac{\max(0, u_j)^s}{\sum_k \max(0, u_k)^s} .

    Parameters
    ----------
    numerical_labels : array-like of shape (n_samples, n_labels)
        U.
    normalization : {"sigmoid", "softmax", "sum"}, default="sigmoid"
        "sigmoid" applies the logistic function and divides by the sum of each row, as the LEMLL
        paper does. "softmax" is the softmax. "sum" divides the positive parts by their sum; a row
        without positive entries becomes uniform.
    scale : float, default=1.0
        Numerical labels are multiplied by this first. A small scale makes the distribution flat, a
        large scale makes it steep. In "sum" a common factor would cancel, so there the scale is an
        exponent.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The label distribution: non-negative, each row sums to one.

    Examples
    --------
    >>> normalize([[0.0, 0.0], [1.0, -1.0]]).round(3)
    array([[0.5  , 0.5  ],
           [0.731, 0.269]])
    >>> normalize([[3.0, 1.0]], "sum", scale=2.0)
    array([[0.9, 0.1]])
    """
    check_normalization(normalization)
    return NORMALIZATIONS[normalization](np.asarray(numerical_labels, dtype=np.float64), scale)
