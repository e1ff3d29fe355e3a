"""Local Gram matrices of Eq. 7, and many small positive definite systems solved side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lemll._types import FloatArray, IndexArray
from lemll._validation import is_sparse

__all__ = ["ill_conditioned", "local_grams", "solve_for_ones"]

# Pieces of this size stay in the cache; nothing here allocates more at once, but for wide X.
CACHE_BYTES = 1 << 21
# Squares of numbers above its inverse overflow, Grams with a trace below it have lost digits.
UNDERFLOW = 2.0**-900


def local_grams(X: Any, neighbors: IndexArray, *, rescale: bool = True) -> FloatArray:
    r"""Return the local Gram matrices of Eq. 7, each up to a factor.

    :math:`(G_i)_{jk} = (x_i - x_j)^T (x_i - x_k)` over the neighbours j, k of row i, from the
    differences themselves, so that nothing cancels. Where the entries would overflow or underflow,
    all of a matrix is scaled by a power of two, which its weights do not see.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        As `check_features` returns it.
    neighbors : ndarray of shape (n_samples, n_neighbors)
        The neighbours of each row.
    rescale : bool, default=True
        Whether that factor may differ from 1. Without it, entries may underflow to 0; features
        whose squares overflow are scaled nevertheless.

    Returns
    -------
    ndarray of shape (n_samples, n_neighbors, n_neighbors)
        The matrices G_i.
    """
    n_samples, n_neighbors = neighbors.shape
    grams = np.empty((n_samples, n_neighbors, n_neighbors))
    around = np.column_stack([np.arange(n_samples), neighbors])
    values = X.data if is_sparse(X) else X
    huge = float(max(values.max(initial=0), -values.min(initial=0))) > 2.0**500
    width = X.shape[1]
    if is_sparse(X):
        width = min(width, 4 * (n_neighbors + 1) * (X.nnz // n_samples + 1))
    step = max(1, CACHE_BYTES // (8 * width * n_neighbors))
    for start in range(0, n_samples, step):
        part = slice(start, min(start + step, n_samples))
        rows = _dense_rows(X, around[part])
        if huge:
            rows *= 2.0**-530
        difference = rows[:, 1:] - rows[:, :1]
        np.matmul(difference, difference.transpose(0, 2, 1), out=grams[part])
        weak = np.flatnonzero(np.trace(grams[part], axis1=1, axis2=2) < UNDERFLOW)
        if rescale and len(weak):
            largest = np.abs(difference[weak]).max(axis=(1, 2), keepdims=True, initial=0)
            strong = np.ldexp(difference[weak], -np.frexp(largest)[1])
            grams[start + weak] = strong @ strong.transpose(0, 2, 1)
    return grams


def _dense_rows(X: Any, index: IndexArray) -> FloatArray:
    """Return some rows, dense, without the features that none of them has."""
    if not is_sparse(X):
        return np.asarray(X[index], dtype=np.float64)
    rows = X[index.ravel()]
    used = np.zeros(X.shape[1], bool)
    used[rows.indices] = True
    place = np.cumsum(used, dtype=rows.indices.dtype) - 1
    shape = (index.size, int(place[-1]) + 1)
    dense = sparse.csr_array((rows.data, place[rows.indices], rows.indptr), shape=shape).toarray()
    return np.asarray(dense, dtype=np.float64).reshape(*index.shape, shape[1])


def solve_for_ones(grams: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve G w = 1 for many symmetric matrices G, without their order in the inner loop.

    Elimination without pivoting (stable for positive definite G) runs over all matrices of a
    piece at once: for K = 10 that is many times faster than a LAPACK call for each.

    Parameters
    ----------
    grams : ndarray of shape (n_samples, n_neighbors, n_neighbors)
        The matrices.

    Returns
    -------
    w : ndarray of shape (n_samples, n_neighbors)
        The solutions; meaningless where `trace` is infinite.
    trace : ndarray of shape (n_samples,)
        Traces of the inverses; infinite where a pivot vanishes.
    """
    n_samples, n_neighbors, _ = grams.shape
    w = np.empty((n_samples, n_neighbors))
    trace = np.empty(n_samples)
    step = max(1, CACHE_BYTES // (8 * n_neighbors**2))
    for start in range(0, n_samples, step):
        part = slice(start, start + step)
        w[part], trace[part] = _eliminate(np.ascontiguousarray(grams[part].transpose(1, 2, 0)))
    return w, trace


def _eliminate(G: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn G (K x K x many, overwritten) into V G V' = D, and use G^-1 = V' D^-1 V."""
    n_neighbors = len(G)
    V = np.zeros_like(G)
    V[np.arange(n_neighbors), np.arange(n_neighbors)] = 1
    # A pivot is at least the smallest eigenvalue, so one this small means singular.
    least = np.einsum("jjb->b", G) * 2.0**-60
    regular = np.ones(G.shape[2], bool)
    for j in range(n_neighbors):
        regular &= G[j, j] > least
        pivot = np.where(regular, G[j, j], 1.0)
        factor = G[j + 1 :, j] * np.where(regular, 1 / pivot, 0.0)
        G[j + 1 :, j + 1 :] -= factor[:, None] * G[j, j + 1 :]
        V[j + 1 :, : j + 1] -= factor[:, None] * V[j, : j + 1]
        G[j, j] = pivot
    pivots = np.einsum("jjb->jb", G)
    ones = V.sum(axis=1) / pivots
    w = np.einsum("jkb,jb->bk", V, ones)
    trace = np.einsum("jkb,jkb,jb->b", V, V, 1 / pivots)
    return w, np.where(regular, trace, np.inf)


def ill_conditioned(
    grams: FloatArray, inverse_trace: FloatArray, limit: float
) -> npt.NDArray[np.bool_]:
    """Tell which matrices are singular or have a condition number above `limit`.

    Parameters
    ----------
    grams : ndarray of shape (n_samples, n_neighbors, n_neighbors)
        Symmetric positive semidefinite matrices.
    inverse_trace : ndarray of shape (n_samples,)
        Traces of their inverses, from `solve_for_ones`.
    limit : float
        Largest condition number (in the spectral norm) that passes.

    Returns
    -------
    ndarray of shape (n_samples,), bool
    """
    # The condition number lies between tr(G) tr(G^-1) / K^2 and tr(G) tr(G^-1).
    ill: npt.NDArray[np.bool_] = np.isinf(inverse_trace)
    most = np.trace(grams, axis1=1, axis2=2) * np.where(ill, 0.0, inverse_trace)
    ill |= most > limit
    doubtful = np.flatnonzero((most > limit) & (most <= limit * grams.shape[1] ** 2))
    eigenvalues = np.linalg.eigvalsh(grams[doubtful])
    ill[doubtful] = eigenvalues[:, -1] > limit * eigenvalues[:, 0]
    return ill
