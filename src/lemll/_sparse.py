"""Dense or sparse matrices: the form with faster products, and what both forms need."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from lemll._types import Features, FloatArray
from lemll._validation import is_sparse

__all__ = ["SPARSE_DENSITY", "dense", "lighter", "squared_lengths"]

# Below this share of nonzeros, products are faster with a sparse matrix than with a dense one.
SPARSE_DENSITY = 0.1


def lighter(X: Features) -> Features:
    """Return X in float64; convert a dense X with few nonzeros to a CSR array."""
    if is_sparse(X):
        return sparse.csr_array(X, dtype=np.float64)
    if np.count_nonzero(X) < SPARSE_DENSITY * X.size:
        return sparse.csr_array(X).astype(np.float64)
    return np.asarray(X, dtype=np.float64)


def dense(product: Any) -> FloatArray:
    """Return a product as a dense array, for dense and for sparse factors."""
    return np.asarray(product.toarray() if is_sparse(product) else product)


def squared_lengths(X: Features) -> FloatArray:
    """Return the squared lengths of rows."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))
