"""The exact nearest training rows of new rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lemll._validation import is_sparse
from lemll.topology._light import dense, lighter

__all__ = ["nearest_training_rows"]

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

BLOCK_BYTES = 1 << 25
# Whole numbers up to this are exact, and so are sums of a few of them.
EXACT = 2.0**50


def nearest_training_rows(X: Any, rows: Any, n_neighbors: int) -> IndexArray:
    """Return the K nearest rows of X for each of other rows, exactly; ties go to the lower index.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Where to search.
    rows : ndarray or csr_array of shape (n_queries, n_features)
        What to search for.
    n_neighbors : int
        K, at most n_samples.

    Returns
    -------
    ndarray of shape (n_queries, n_neighbors)
        In the order of the indices.

    Examples
    --------
    >>> nearest_training_rows(np.array([[0.0], [1.0], [5.0]]), np.array([[2.0], [9.0]]), 2)
    array([[0, 1],
           [1, 2]])
    """
    X, rows = lighter(X), lighter(rows)
    if is_sparse(rows) and not is_sparse(X):
        rows = rows.toarray()
    norms, lengths = _squares(X), _squares(rows)
    exact = _whole(X) and _whole(rows) and (norms.max() + lengths.max()) * len(norms) < EXACT / 4
    found = np.empty((rows.shape[0], n_neighbors), dtype=np.intp)
    step = max(1, BLOCK_BYTES // (8 * len(norms)))
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        # Squared distances, but for the query's own length.
        distance = dense(part @ X.T)
        distance *= -2
        distance += norms
        if exact:
            distance *= len(norms)
            distance += np.arange(len(norms))
            nearest = np.argpartition(distance, n_neighbors - 1, axis=1)[:, :n_neighbors]
        else:
            error = 8 * (X.shape[1] + 4) * 2.0**-53 * (norms.max() + lengths[start : start + step])
            nearest = _certain(X, part, distance, error, n_neighbors)
        found[start : start + step] = np.sort(nearest, axis=1)
    return found


def _certain(
    X: Any, rows: Any, distance: FloatArray, error: FloatArray, n_neighbors: int
) -> IndexArray:
    """Choose by distances that are known up to an error; where it matters, compute them anew."""
    reach = np.partition(distance, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    line, column = np.nonzero(distance <= (reach + 2 * error)[:, None])
    count = np.bincount(line, minlength=len(distance))
    doubtful = np.flatnonzero(count > n_neighbors)
    first = np.cumsum(count) - count
    nearest = column[first[:, None] + np.arange(n_neighbors)]
    for i in doubtful:
        candidates = column[first[i] : first[i] + count[i]]
        difference = dense(X[candidates]) - dense(rows[[i]])
        order = np.argsort(np.square(difference).sum(axis=1), kind="stable")
        nearest[i] = candidates[order[:n_neighbors]]
    return np.asarray(nearest)


def _squares(X: Any) -> FloatArray:
    return np.asarray(X.multiply(X).sum(axis=1) if is_sparse(X) else np.einsum("ij,ij->i", X, X))


def _whole(X: Any) -> bool:
    values = X.data if is_sparse(X) else X
    return bool((np.rint(values) == values).all())
