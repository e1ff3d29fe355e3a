"""From numerical labels to a label distribution: three ways to make rows sum to one."""

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
    # A row without anything positive says nothing about its labels: all alike.
    uniform = np.full_like(positive, 1 / positive.shape[1])
    powers = np.divide(positive, largest, out=np.zeros_like(positive), where=largest > 0) ** scale
    sums = powers.sum(axis=1, keepdims=True)
    shares: FloatArray = np.divide(powers, sums, out=uniform, where=largest > 0)
    return shares


def _by_sigmoid(values: FloatArray, scale: float) -> FloatArray:
    return _by_sum(expit(scale * values), 1.0)


def _by_softmax(values: FloatArray, scale: float) -> FloatArray:
    result: FloatArray = softmax(scale * values, axis=1)
    return result


NORMALIZATIONS: dict[str, Callable[[FloatArray, float], FloatArray]] = {
    "sigmoid": _by_sigmoid,
    "softmax": _by_softmax,
    "sum": _by_sum,
}


def check_normalization(normalization: str) -> None:
    """Refuse a normalisation that there is not."""
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
        Logistic function and division by the row's sum, as the LEMLL paper does; softmax; or
        division of the positive parts by their sum (a row without any becomes uniform).
    scale : float, default=1.0
        Factor on the numerical labels before normalising: small ones flatten the distribution,
        large ones make it steep. A common factor would cancel in "sum"; there it multiplies their
        logarithms, that is, it is a power.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Non-negative, rows summing to one.

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
