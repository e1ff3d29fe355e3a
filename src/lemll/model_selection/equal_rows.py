"""Rows with equal features: a model that has learned one of them knows the others."""

from __future__ import annotations

import numpy as np

from lemll._sparse import row_hashes
from lemll._types import Features, IndexArray

__all__ = ["equal_row_groups"]


def equal_row_groups(X: Features, n_folds: int) -> IndexArray | None:
    """Return a group number per row, the same for rows with equal features.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Features.
    n_folds : int
        Number of folds that will be made of the rows.

    Returns
    -------
    ndarray of shape (n_rows,) or None
        The groups. None if no two rows are equal, or if there are fewer different rows than folds,
        so that they cannot be kept together.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.model_selection import equal_row_groups
    >>> equal_row_groups(np.array([[1.0, 2], [3, 4], [1, 2]]), 2).tolist()
    [0, 1, 0]
    """
    _, first, group = np.unique(row_hashes(X), return_index=True, return_inverse=True)
    if not n_folds <= len(first) < X.shape[0]:
        return None
    # Numbered in the order of the rows, not of the hashes.
    number = np.empty(len(first), dtype=np.intp)
    number[np.argsort(first)] = np.arange(len(first))
    return np.asarray(number[group])
