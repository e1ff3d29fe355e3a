"""Checks of label matrices that more than one room needs.

Logical labels are 0/1 everywhere in public; -1/+1 exists only inside the solvers. Coded -1/+1,
most metrics would still return a number, and a wrong one, so it is refused here, loudly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = ["check_distribution", "check_finite", "check_logical_labels", "is_sparse"]

FloatArray = npt.NDArray[np.float64]
LabelArray = npt.NDArray[np.uint8]

# Rows of a float32 distribution are off by about 3e-7; a row off by more than this is no rounding.
SUM_TOLERANCE = 1e-5


def is_sparse(X: Any) -> bool:
    """Tell whether `X` is any of SciPy's sparse matrices or arrays."""
    # A plain bool, where SciPy's stubs would narrow the caller's Any to a class without methods.
    return bool(sparse.issparse(X))


def check_logical_labels(Y: Any, *, name: str = "Y") -> LabelArray:
    """Return logical labels as a dense 0/1 array of ``uint8``, or say what is wrong with them.

    Parameters
    ----------
    Y : array-like or sparse matrix of shape (n_samples, n_labels)
        Logical labels: 0/1 numbers or booleans.
    name : str, default="Y"
        What the caller calls this matrix, for the message.

    Returns
    -------
    ndarray of shape (n_samples, n_labels), uint8
        A new array; `Y` is never changed.
    """
    array = Y.toarray() if is_sparse(Y) else np.asarray(Y)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be 2-D (rows x labels), got {array.ndim}-D with shape {array.shape}; "
            "for a single label pass a column, Y.reshape(-1, 1)."
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold numbers 0 and 1, got dtype {array.dtype}; convert it first."
        )
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        row, label = (int(i) for i in np.argwhere(wrong)[0])
        value = array[row, label]
        if ((array == 1) | (array == -1)).all():
            raise ValueError(
                f"{name} is coded -1/+1, logical labels must be 0/1; convert with (Y + 1) // 2."
            )
        raise ValueError(
            f"{name} must hold only 0 and 1, got {value} in row {row}, label {label}; "
            "binarise it first (lemll.datasets.binarize_distribution does it for distributions)."
        )
    return array.astype(np.uint8)


def check_distribution(D: Any, *, name: str = "D") -> FloatArray:
    """Return a label distribution as a float64 array, or say what is wrong with it.

    Parameters
    ----------
    D : array-like of shape (n_samples, n_labels)
        Degrees: non-negative, every row summing to one (within 1e-5).
    name : str, default="D"
        What the caller calls this matrix, for the message.

    Returns
    -------
    ndarray of shape (n_samples, n_labels), float64
        The degrees as given (not renormalised). May share memory with `D`.
    """
    array = np.asarray(D.toarray() if is_sparse(D) else D, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be 2-D (rows x labels), got {array.ndim}-D with shape {array.shape}."
        )
    check_finite(array, name=name)
    if (array < 0).any():
        row, label = (int(i) for i in np.argwhere(array < 0)[0])
        raise ValueError(
            f"{name} must not be negative, got {array[row, label]} in row {row}, label {label}; "
            "a distribution holds degrees between 0 and 1."
        )
    sums = array.sum(axis=1)
    off = np.abs(sums - 1) > SUM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(
            f"every row of {name} must sum to 1, got {sums[row]:.6g} in row {row}; "
            "divide each row by its sum."
        )
    return array


def check_finite(X: Any, *, name: str = "X") -> None:
    """Refuse NaN and infinity, naming the first row and column that hold one.

    Parameters
    ----------
    X : ndarray or sparse matrix, 2-D
        What to look through.
    name : str, default="X"
        What the caller calls this matrix, for the message.
    """
    if is_sparse(X):
        if np.isfinite(X.data).all():
            return
        coo = X.tocoo()
        first = int(np.argmin(np.isfinite(coo.data)))
        row, column, value = int(coo.row[first]), int(coo.col[first]), coo.data[first]
    else:
        finite = np.isfinite(X)
        if finite.all():
            return
        row, column = (int(i) for i in np.argwhere(~finite)[0])
        value = X[row, column]
    raise ValueError(
        f"{name} must be finite, got {value} in row {row}, column {column}; "
        "impute or drop such rows first."
    )
