"""How much memory the joint solver takes, known before it takes it."""

from __future__ import annotations

from typing import Any

from lemll import _kernel, _shift
from lemll._validation import is_sparse
from lemll.solvers import _features, _model

__all__ = ["kernel_bytes", "solver_bytes"]

# An entry of a sparse array: its value and a 32-bit index.
ENTRY = 12
# Per row: I - W, its transpose and its scaled transpose, with ten neighbours; norms and weights.
ROW = 3 * 11 * ENTRY + 20 * 8
# Most arrays of n_samples x n_labels alive at once: in the factorisation, search and certificate.
LABELS_FACTORISING, LABELS_SEARCHING, LABELS_CERTIFYING = 6, 20, 14
# Arrays of n_features x n_labels.
WEIGHTS = 8
# Blocks of a kernel alive at once while it is computed and looked through.
WORKING_BLOCKS = 2
# Small things, and what differs from one release of SciPy to the next.
MARGIN = 1.1


def solver_bytes(X: Any, n_labels: int) -> int:
    """Estimate the peak of what `solve_joint` allocates in float64, beside its arguments.

    The estimate is meant to be a little too large. It counts the features once more (centred, or
    sparse with their transpose), the graph with ten neighbours a row, the arrays of labels, and
    two square matrices of the smaller of n_samples and n_features, where one is factorised.
    In float32 no more is needed, but for half as much again where float64 has to finish.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features; only their shape and the number of their entries are looked at.
    n_labels : int
        Number of columns of Y.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers import solver_bytes
    >>> solver_bytes(np.empty((10_000, 100)), n_labels=20) < 80e6
    True
    """
    n_samples, n_features = (int(size) for size in X.shape)
    order = min(n_samples, n_features)
    square = 8 * order**2 if order <= _model.MAX_DENSE_ORDER else 0
    labels, weights = 8 * n_samples * n_labels, 8 * n_features * n_labels
    dense = 8 * n_samples * n_features
    if is_sparse(X):
        features = 2 * ENTRY * int(X.nnz)
        block = min(dense, _features.BLOCK_BYTES)
        # A block is dense in float64 and, for a matrix by features, perhaps rounded to float32.
        building = block * (1.0 if n_samples <= n_features else 1.5) if square else 0.0
        certifying = 8 * int(X.nnz)
    else:
        features = dense
        building, certifying = dense / 2, min(dense, _shift.BLOCK_BYTES)
    peak = max(
        2 * square + building,
        2 * square + LABELS_FACTORISING * labels,
        2 * square + LABELS_SEARCHING * labels + WEIGHTS * weights,
        2 * square + LABELS_CERTIFYING * labels + WEIGHTS * weights + certifying,
    )
    return int(MARGIN * (features + ROW * n_samples + peak))


def kernel_bytes(n_samples: int, n_labels: int) -> int:
    """Estimate the peak of what a fit with a kernel allocates in float64, beside its arguments.

    The kernel itself and its factor, each of n_samples squared; the graph; the arrays of labels.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    n_labels : int
        Number of columns of Y.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    >>> from lemll.solvers import kernel_bytes
    >>> round(kernel_bytes(10_000, 10) / 1e9, 1)
    1.8
    """
    square, labels = 8 * n_samples**2, 8 * n_samples * n_labels
    block = min(square, _kernel.BLOCK_BYTES)
    # Computed block by block, then factorised; the model has a row for every sample too.
    peak = square + max(WORKING_BLOCKS * block, square + (LABELS_SEARCHING + WEIGHTS) * labels)
    return int(MARGIN * (ROW * n_samples + peak))
