"""Checks of label matrices that more than one room needs.

Logical labels are 0/1 everywhere in public; -1/+1 exists only inside the solvers. Coded -1/+1,
most metrics would still return a number, and a wrong one, so it is refused here, loudly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lemll._memory import check_memory
from lemll._types import FloatArray, LabelArray

__all__ = ["check_distribution", "check_finite", "check_logical_labels", "is_sparse"]

# Rows of a float32 distribution are off by about 3e-7; a row off by more than this is no rounding.
SUM_TOLERANCE = 1e-5


def is_sparse(X: Any) -> bool:
    """Tell whether `X` is any of SciPy's sparse matrices or arrays."""
    # A plain bool, where SciPy's stubs would narrow the caller's Any to a class without methods.
    return bool(sparse.issparse(X))


def check_logical_labels(Y: Any, *, name: str = "Y") -> LabelArray:
    """Return logical labels as a dense 0/1 array of ``int8``, or say what is wrong with them.

    Parameters
    ----------
    Y : array-like or sparse matrix of shape (n_samples, n_labels)
        Logical labels: 0/1 numbers or booleans.
    name : str, default="Y"
        What the caller calls this matrix, for the message.

    Returns
    -------
    ndarray of shape (n_samples, n_labels), int8
        A new array; `Y` is never changed.
    """
    given: Any = _canonical(Y) if is_sparse(Y) else np.asarray(Y)
    if given.ndim != 2:
        raise ValueError(
            f"{name} must be 2-D (rows x labels), got {given.ndim}-D with shape {given.shape}; "
            "for a single label pass a column, Y.reshape(-1, 1)."
        )
    if 0 in given.shape:
        raise ValueError(f"{name} needs at least one row and one label, got shape {given.shape}.")
    # Of a sparse matrix the stored values suffice: all others are 0, and stay implicit until known
    # to fit into memory.
    values: npt.NDArray[Any] = given.data if is_sparse(Y) else given
    if values.dtype.kind == "O":
        values = _plain_numbers(values)
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold numbers 0 and 1, got dtype {values.dtype}; convert it first, for "
            "example with Y.astype(int)."
        )
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        if ((values == 1) | (values == -1)).all():
            raise ValueError(
                f"{name} is coded -1/+1, logical labels must be 0/1; convert with (Y + 1) // 2."
            )
        raise ValueError(
            f"{name} must hold only 0 and 1, got {values[wrong].flat[0]}{_place(given, wrong)}; "
            "binarise it first (lemll.datasets.binarize_distribution does it for distributions)."
        )
    check_memory(
        int(np.prod(given.shape, dtype=object)),
        f"A dense label matrix of shape {given.shape}",
        "keep fewer rows or labels",
    )
    if not is_sparse(Y):
        return values.astype(np.int8)
    # SciPy's own conversion would first make a dense copy in the matrix's wider type.
    coo = given.tocoo()
    dense = np.zeros(given.shape, dtype=np.int8)
    dense[coo.row, coo.col] = coo.data != 0
    return dense


def _canonical(Y: Any) -> Any:
    """Return a sparse matrix by rows, entries given twice added up, without changing `Y`."""
    rows = Y.tocsr()
    if rows.has_canonical_format:
        return rows
    rows = rows.copy() if rows is Y else rows
    rows.sum_duplicates()
    return rows


def _plain_numbers(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Turn Python objects, as pandas' nullable columns hold, into numbers where possible."""
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return values


def _place(given: Any, wrong: npt.NDArray[np.bool_]) -> str:
    if is_sparse(given):
        return ""
    row, label = (int(i) for i in np.argwhere(wrong)[0])
    return f" in row {row}, label {label}"


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
    given = np.asarray(D.toarray() if is_sparse(D) else D)
    if given.dtype.kind == "c":
        raise ValueError(f"{name} must hold real numbers, got dtype {given.dtype}.")
    array = given.astype(np.float64, copy=False)
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
