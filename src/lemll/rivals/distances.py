"""Distances between rows, the width of a Gaussian kernel, and the number of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lemll._sparse import squared_lengths
from lemll._types import Features, FloatArray
from lemll._validation import check_memory, check_number, is_sparse

# In this range, gamma times a squared distance of ordinary rows neither overflows nor underflows.
GAMMAS = (1e-200, 1e200)
# The square of a smaller mean distance, or its inverse, has lost its digits.
SMALLEST_DISTANCE = 1e-100
# Blocks of this size stay in the cache while several operations run over them.
CACHE_BYTES = 1 << 20
# Number of rows per block: enough for efficient products.
BLOCK_ROWS = 128


def check_gamma(name: str, gamma: object) -> float:
    """Return the parameter gamma of exp(-gamma |x - z|^2), or refuse it.

    Parameters
    ----------
    name : str
        Name of the parameter, for the message.
    gamma : object
        The value that the user passed.

    Returns
    -------
    float
        The value. It lies between 1e-200 and 1e200.
    """
    value = check_number(name, gamma, above=0)
    if not GAMMAS[0] <= value <= GAMMAS[1]:
        raise ValueError(
            f"{name} must lie between {GAMMAS[0]:.0e} and {GAMMAS[1]:.0e}, got {gamma!r}; a usual "
            "value is 1 / (2 d^2), where d is the mean distance of two rows."
        )
    return value


def gamma_of_distance(distance: float) -> float:
    """Return gamma such that the kernel of two rows with the mean distance is exp(-1/2).

    Parameters
    ----------
    distance : float
        The mean distance between two rows.

    Returns
    -------
    float
        1 / (2 distance^2). If all rows are equal, every kernel value is 1, and so is the result.
    """
    if 0 < distance < SMALLEST_DISTANCE:
        raise ValueError(
            f"the mean distance between two rows of X is {distance:.1e}, too small to be squared; "
            "rescale the features first, or pass a number as kernel_gamma."
        )
    return 0.5 / distance**2 if distance > 0 else 1.0


def choose_gamma(gamma: str | float, distance: Callable[[], float]) -> float:
    """Return gamma as a number.

    Parameters
    ----------
    gamma : "distance" or float
        The parameter kernel_gamma of an estimator.
    distance : callable
        Returns the mean distance between two rows. It is called only for "distance".

    Returns
    -------
    float
        The number, or that of `gamma_of_distance`.
    """
    if isinstance(gamma, str):
        if gamma != "distance":
            raise ValueError(f"kernel_gamma={gamma!r} must be 'distance' or a number > 0.")
        return gamma_of_distance(distance())
    return check_gamma("kernel_gamma", gamma)


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
            return _product(*_factors(X - centre, Z - centre))
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
        # Rounding can make the distance of nearly equal rows negative, or that of a row to itself
        # positive.
        np.maximum(part, 0, out=part)
    if others is None:
        np.fill_diagonal(distances, 0)
    return distances


def upper_distances(
    X: Features, block_rows: int = BLOCK_ROWS, *, out: FloatArray | None = None
) -> list[FloatArray]:
    """Return the squared distances of blocks of rows to themselves and to all later rows.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Rows.
    block_rows : int, default=128
        Number of rows of a block.
    out : ndarray of shape (n_samples, n_samples), optional
        If given, the blocks are parts of this array, and its other entries do not change.

    Returns
    -------
    list of ndarray
        The block that begins at row i has ``n_samples - i`` columns. The distances are never
        negative, and that of a row to itself is zero.
    """
    starts = range(0, X.shape[0], block_rows)
    blocks = _upper_parts(X.shape[0], block_rows) if out is None else [
        out[i : i + block_rows, i:] for i in starts
    ]  # fmt: skip
    if not is_sparse(X):
        centred = X - X.mean(axis=0)
        left, right = _factors(centred, centred)
    for i, block in zip(starts, blocks, strict=True):
        if is_sparse(X):
            block[...] = squared_distances(X[i : i + block_rows], X[i:])
        else:
            np.matmul(left[i : i + block_rows], right[i:].T, out=block)
            np.maximum(block, 0, out=block)
        np.fill_diagonal(block, 0)
    return blocks


def _upper_parts(n_samples: int, block_rows: int) -> list[FloatArray]:
    """Return empty blocks, which are parts of one array.

    One large array is faster than many small ones, because Linux gives it larger pages of memory.
    """
    shapes = [
        (min(block_rows, n_samples - i), n_samples - i) for i in range(0, n_samples, block_rows)
    ]
    ends = np.cumsum([rows * columns for rows, columns in shapes])
    total = int(ends[-1]) if shapes else 0
    check_memory(8 * total, f"The distances between {n_samples} rows", "use fewer rows")
    parts = np.split(np.empty(total), ends[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _factors(X: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    # With two more columns, one product gives |x|^2 - 2 x'z + |z|^2. This is faster than further
    # passes over the large result.
    left = np.column_stack([X, squared_lengths(X), np.ones(len(X))])
    right = np.column_stack([-2 * Z, np.ones(len(Z)), squared_lengths(Z)])
    return left, right


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    distances = left @ right.T
    return np.asarray(np.maximum(distances, 0, out=distances))


def mean_distance(squared: Sequence[FloatArray]) -> float:
    """Return the mean distance of two different rows, from the blocks of `upper_distances`."""
    total, n_samples = 0.0, int(squared[0].shape[1])
    # New memory for each block would take longer than the roots.
    memory = np.empty(squared[0].size)
    for part in squared:
        distances = np.sqrt(part, out=memory[: part.size].reshape(part.shape))
        # Every pair must count twice. The diagonal block already holds its pairs twice.
        total += 2 * float(distances.sum()) - float(distances[:, : len(part)].sum())
    # The diagonal is zero, so the sum has n (n - 1) terms that count.
    return total / max(1, n_samples * (n_samples - 1))
