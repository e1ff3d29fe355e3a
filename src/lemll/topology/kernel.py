"""Neighbours and rebuilding weights of rows that are known only through a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from lemll._types import Features, FloatArray, IndexArray
from lemll._validation import check_finite, is_sparse
from lemll.topology.rows import check_n_neighbors
from lemll.topology.weights import graph_of, weights_of_grams

__all__ = ["kernel_reconstruction_weights"]

# Distances are computed in blocks of this size.
BLOCK_BYTES = 1 << 25


def kernel_reconstruction_weights(
    K: Any, n_neighbors: int = 10, *, reg: float = 1e-3, reg_policy: str = "always"
) -> Features:
    r"""Return the weights that rebuild every row from its K nearest rows in a feature space.

    The result is the same as that of `reconstruction_weights` for features :math:`\varphi(x_i)`
    with :math:`k_{ij} = \varphi(x_i)^T \varphi(x_j)`. It minimises Eq. 6. The squared distances
    are :math:`k_{ii} + k_{jj} - 2 k_{ij}`, and the local Gram matrices are
    :math:`G_{jk} = k_{ii} - k_{ij} - k_{ik} + k_{jk}`.

    Parameters
    ----------
    K : array-like of shape (n_samples, n_samples)
        Symmetric positive semi-definite kernel matrix.
    n_neighbors : int, default=10
        The number of neighbours, smaller than `n_samples`.
    reg : float, default=1e-3
        Regularisation of a local Gram matrix, relative to its trace; see `local_weights`.
    reg_policy : {"auto", "always"}, default="always"
        Regularise only singular local Gram matrices ("auto") or all of them ("always").

    Returns
    -------
    csr_array of shape (n_samples, n_samples), float64
        W, in the same form as from `reconstruction_weights`.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.topology import kernel_reconstruction_weights
    >>> X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0], [1.0, 1.5]])
    >>> kernel_reconstruction_weights(X @ X.T, n_neighbors=2).toarray()[3].round(3)
    array([0.5, 0. , 0.5, 0. ])
    """
    K = K.toarray() if is_sparse(K) else np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"a kernel matrix must be square, got shape {K.shape}.")
    check_finite(K, name="the kernel")
    n_neighbors = check_n_neighbors(n_neighbors, len(K))
    neighbors = _nearest(K, n_neighbors)
    row = np.arange(len(K))[:, None]
    to_row = K[row, neighbors]
    # The features are not known, so G cannot be computed from differences as in `local_grams`.
    grams = K.diagonal()[:, None, None] - to_row[:, :, None] - to_row[:, None, :]
    grams = grams + K[neighbors[:, :, None], neighbors[:, None, :]]
    return graph_of(neighbors, weights_of_grams(grams, reg=reg, reg_policy=reg_policy))


def _nearest(K: FloatArray, n_neighbors: int) -> IndexArray:
    """Return the nearest rows of each row, nearest first; ties go to the lower index."""
    diagonal = K.diagonal()
    nearest = np.empty((len(K), n_neighbors), np.intp)
    step = max(1, BLOCK_BYTES // (8 * len(K)))
    for start in range(0, len(K), step):
        rows = np.arange(start, min(start + step, len(K)))
        # Omit k_ii of the row itself: it is the same for all candidates.
        distance = diagonal - 2 * K[rows]
        distance[rows - start, rows] = np.inf
        nearest[rows] = np.argsort(distance, axis=1, kind="stable")[:, :n_neighbors]
    return nearest
