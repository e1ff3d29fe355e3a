"""Convert numerical labels to a label distribution, in one of three ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

from lemll._types import Estimator, Features, FloatArray, MatrixLike
from lemll._validation import check_choice, check_magnitude, is_sparse

SCALES = ("auto", "standard", "maxabs", "none")


def check_scale(scale: object, *, name: str = "scale") -> str:
    """Return the name of a scaling, or raise a ValueError that calls the parameter `name`."""
    if not isinstance(scale, str) or scale not in SCALES:
        raise ValueError(f"{name}={scale!r} must be one of {', '.join(map(repr, SCALES))}.")
    return scale


def usual_scale(X: Features) -> str:
    """Return the scaling that "auto" means: "maxabs" for sparse features, else "standard"."""
    return "maxabs" if is_sparse(X) else "standard"


def fit_scaling(scale: str, X: Features, *, name: str = "scale") -> Callable[[Features], Features]:
    """Return the function that scales rows as these training rows.

    Parameters
    ----------
    scale : {"auto", "standard", "maxabs", "none"}
        "standard" subtracts the mean of each column and divides by its standard deviation. Sparse
        features are only divided, so that they stay sparse. "maxabs" divides each column by its
        largest absolute value. "auto" is `usual_scale`. "none" changes nothing.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Training rows.
    name : str, default="scale"
        Name of the parameter, for the error message.

    Returns
    -------
    callable
        A function of rows. It does not change its argument.

    Examples
    --------
    >>> X = np.array([[0.0, 1e6], [2.0, 3e6]])
    >>> fit_scaling("standard", X)(X)
    array([[-1., -1.],
           [ 1.,  1.]])
    """
    scale = check_scale(scale, name=name)
    if scale == "auto":
        scale = usual_scale(X)
    if scale == "none":
        return _unchanged
    # The squares of the standard deviation must not overflow.
    check_magnitude(X)
    scaler = (
        StandardScaler(with_mean=not is_sparse(X)) if scale == "standard" else MaxAbsScaler()
    ).fit(X)
    return _Scaling(scaler)


def unit_rows() -> Callable[[Features], Features]:
    """Return the function that divides every row by its length."""
    return _Scaling(Normalizer())


def _unchanged(X: Features) -> Features:
    return X


class _Scaling:
    """Apply a fitted scaler. Fitted models hold it, so it must be possible to pickle it."""

    def __init__(self, scaler: Estimator) -> None:
        self._scaler = scaler

    def __call__(self, X: Features) -> Features:
        scaled = self._scaler.transform(X)
        return sparse.csr_array(scaled) if is_sparse(X) else np.asarray(scaled)


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


NORMALIZATIONS: dict[str, Callable[[FloatArray, float], FloatArray]] = {
    "sigmoid": lambda values, scale: _by_sum(expit(scale * values), 1.0),
    # SciPy subtracts the largest entry of each row first, so the powers cannot overflow.
    "softmax": lambda values, scale: np.asarray(softmax(scale * values, axis=1)),
    "sum": _by_sum,
}


def check_normalization(normalization: str) -> None:
    """Refuse an unknown normalisation."""
    check_choice("normalization", normalization, NORMALIZATIONS)


def normalize(
    numerical_labels: MatrixLike, normalization: Normalization = "sigmoid", *, scale: float = 1.0
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
