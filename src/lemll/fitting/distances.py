"""Distances between rows, and checks of widths and of the number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from lemll._types import Features, FloatArray
from lemll._validation import check_memory, is_sparse

__all__ = [
    "check_two_rows",
    "check_width",
    "mean_distance",
    "squared_distances",
    "squared_lengths",
]

# Squares of widths in this range, and their inverses, neither overflow nor underflow.
WIDTHS = (1e-100, 1e100)
# Blocks of this size stay in the cache while several operations run over them.
CACHE_BYTES = 1 << 20


def check_width(name: str, width: Any) -> None:
    """Refuse a width whose square, or its inverse, overflows or underflows; accept None."""
    if isinstance(width, int | float) and not WIDTHS[0] <= width <= WIDTHS[1]:
        raise ValueError(
            f"{name} must lie between {WIDTHS[0]:.0e} and {WIDTHS[1]:.0e}, got {width!r}; a usual "
            "width is the mean distance of two rows."
        )


def check_two_rows(X: Features, method: str) -> None:
    """Refuse a single row, because the method compares rows with each other."""
    if X.shape[0] < 2:
        raise ValueError(
            f"{method} needs at least 2 rows, because each is rebuilt from others; "
            f"got n_samples={X.shape[0]}."
        )


def squared_distances(X: Features, others: Features = None) -> FloatArray:
    """Return the squared Euclidean distances of rows to other rows, or to each other.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Rows.
    others : ndarray or csr_array of shape (n_others, n_features), optional
        By default X itself; then the diagonal is exactly zero.

    Returns
    -------
    ndarray of shape (n_samples, n_others)
        The squared distances. They are never negative.
    """
    Z = X if others is None else others
    needed = 8 * X.shape[0] * Z.shape[0]
    check_memory(
        needed,
        f"The distances of {X.shape[0]} rows to {Z.shape[0]}",
        "enhance fewer rows at a time",
    )
    if not is_sparse(X) and not is_sparse(Z):
        # Distances do not change if all rows are shifted. Centring keeps digits in the products.
        centre = Z.mean(axis=0)
        if others is not None:
            return _by_one_product(X - centre, Z - centre)
        X = Z = X - centre
    products = X @ Z.T
    distances: FloatArray = products.toarray() if is_sparse(products) else np.asarray(products)
    of_rows, of_others = squared_lengths(X), squared_lengths(Z)
    step = max(1, CACHE_BYTES // (8 * Z.shape[0]))
    for start in range(0, X.shape[0], step):
        part = distances[start : start + step]
        part *= -2
        part += of_rows[start : start + step, None]
        part += of_others
        np.maximum(part, 0, out=part)
    if others is None:
        np.fill_diagonal(distances, 0)
    return distances


def _by_one_product(X: FloatArray, Z: FloatArray) -> FloatArray:
    # With two more columns, one product gives |x|^2 - 2 x'z + |z|^2. This is faster than further
    # passes over the large result.
    left = np.column_stack([X, squared_lengths(X), np.ones(len(X))])
    right = np.column_stack([-2 * Z, np.ones(len(Z)), squared_lengths(Z)])
    distances = left @ right.T
    return np.asarray(np.maximum(distances, 0, out=distances))


def mean_distance(squared: FloatArray) -> float:
    """Return the mean distance of two different rows, from all squared distances."""
    n_samples = len(squared)
    step = max(1, CACHE_BYTES // (8 * n_samples))
    total = sum(
        float(np.sqrt(squared[start : start + step]).sum()) for start in range(0, n_samples, step)
    )
    return total / max(1, n_samples * (n_samples - 1))


def squared_lengths(X: Features) -> FloatArray:
    """Return the squared lengths of rows."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))
