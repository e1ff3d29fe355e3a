"""Dense or sparse matrices: the form with faster products, and what both forms need."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
from scipy import sparse

from lemll._types import Array, Features, FloatArray
from lemll._validation import is_sparse

# Below this share of nonzeros, products are faster with a sparse matrix than with a dense one.
SPARSE_DENSITY = 0.1


def lighter(X: Features) -> Features:
    """Return X in float64; convert a dense X with few nonzeros to a CSR array."""
    if is_sparse(X):
        return sparse.csr_array(X, dtype=np.float64)
    if np.count_nonzero(X) < SPARSE_DENSITY * X.size:
        return sparse.csr_array(X).astype(np.float64)
    return np.asarray(X, dtype=np.float64)


def dense(product: Features) -> FloatArray:
    """Return a product as a dense array, for dense and for sparse factors."""
    return np.asarray(product.toarray() if is_sparse(product) else product)


def squared_lengths(X: Features) -> FloatArray:
    """Return the squared lengths of rows."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))


def row_hashes(X: Features) -> Array:
    """Return a hash of the features of each row, the same in every process.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Features.

    Returns
    -------
    ndarray of shape (n_rows,), uint64
        Equal numbers for equal rows, also if one is dense and the other sparse.
    """
    hashes = [blake2b(row, digest_size=8).digest() for row in _contents(X)]
    return np.frombuffer(b"".join(hashes), dtype="<u8")


def _contents(X: Features) -> Iterator[bytes]:
    """Yield the places and values of each row that are not zero."""
    if not is_sparse(X):
        for row in np.asarray(X):
            places = np.flatnonzero(row)
            yield places.astype("<i8").tobytes() + row[places].astype("<f8").tobytes()
        return
    rows = sparse.csr_array(X, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        yield (
            rows.indices[start:end].astype("<i8").tobytes()
            + rows.data[start:end].astype("<f8").tobytes()
        )
