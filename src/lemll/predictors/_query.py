"""The exact nearest training rows of new rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from lemll._types import FloatArray, IndexArray
from lemll._validation import is_sparse
from lemll.topology._light import dense, lighter

__all__ = ["nearest_training_rows"]


BLOCK_BYTES = 1 << 25
# Sums and products of whole numbers below this are exact in float32.
EXACT_SINGLE = 2.0**21
# Two matrices with fewer nonzeros are multiplied faster as they are than with one made dense.
RARE = 0.005


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
    exact = norms.max() + lengths.max() < EXACT_SINGLE and _whole(X) and _whole(rows)
    if exact:
        X, rows, norms = X.astype(np.float32), rows.astype(np.float32), norms.astype(np.float32)
    error = 16 * (X.shape[1] + 4) * 2.0**-53 * (norms.max() + lengths)
    found = np.empty((rows.shape[0], n_neighbors), dtype=np.intp)
    step = max(1, BLOCK_BYTES // (8 * len(norms)))
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        # Squared distances, but for the query's own length.
        distance = _products(part, X)
        distance *= -2
        distance += norms
        reach = np.partition(distance, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
        if not exact:
            reach += error[start : start + step]
        line, column = np.nonzero(distance <= reach[:, None])
        near = distance[line, column]
        if not exact:
            _compute_anew(near, X, part, line=line, column=column, n_neighbors=n_neighbors)
        order = np.lexsort((column, near, line))
        first = np.searchsorted(line, np.arange(part.shape[0]))
        best = column[order[first[:, None] + np.arange(n_neighbors)]]
        found[start : start + step] = np.sort(best, axis=1)
    return found


def _products(rows: Any, X: Any) -> Any:
    """Return the products of all pairs, dense; sparse rows of X are made so block by block."""
    if not is_sparse(X) or X.nnz < RARE * np.prod(X.shape, dtype=float):
        return dense(rows @ X.T)
    rows = sparse.csr_array(rows)
    products = np.empty((rows.shape[0], X.shape[0]), dtype=X.dtype)
    step = max(1, BLOCK_BYTES // (8 * X.shape[1]))
    for start in range(0, X.shape[0], step):
        # Made dense row by row, as the product reads it.
        columns = X[start : start + step].T.tocsr().toarray()
        products[:, start : start + step] = rows @ columns
    return products


def _compute_anew(
    near: FloatArray,
    X: Any,
    rows: Any,
    *,
    line: IndexArray,
    column: IndexArray,
    n_neighbors: int,
) -> None:
    """Replace rounded distances by exact ones, where there are more candidates than wanted."""
    count = np.bincount(line, minlength=rows.shape[0])
    last = np.cumsum(count)
    for i in np.flatnonzero(count > n_neighbors):
        mine = slice(last[i] - count[i], last[i])
        difference = dense(X[column[mine]]) - dense(rows[[i]])
        near[mine] = np.square(difference).sum(axis=1)


def _squares(X: Any) -> FloatArray:
    return np.asarray(X.multiply(X).sum(axis=1) if is_sparse(X) else np.einsum("ij,ij->i", X, X))


def _whole(X: Any) -> bool:
    values = X.data if is_sparse(X) else X
    return bool((np.rint(values) == values).all())
