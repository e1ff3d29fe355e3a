"""Scale the columns of the features, so that their units do not matter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

from lemll._types import Estimator, Features
from lemll._validation import check_magnitude, is_sparse

__all__ = ["SCALES", "check_scale", "fit_scaling", "unit_rows", "usual_scale"]

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
