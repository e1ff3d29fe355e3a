"""Data and helpers of the checks."""

from __future__ import annotations

import numpy as np

from lemll._types import Array, Estimator, Features, MatrixLike

__all__ = ["CLOSE", "assert_refused", "make_data", "scores_of"]

# Solvers stop at a tolerance, so scores of equal problems are equal only up to this difference.
CLOSE = 1e-3


def make_data(n_rows: int = 60, n_labels: int = 4, seed: int = 0) -> tuple[Array, Array]:
    """Make rows with six features, some of them 0, and labels that depend on them."""
    rng = np.random.RandomState(seed)
    X = rng.rand(n_rows, 6)
    X[X < 0.3] = 0
    scores = (X - X.mean(axis=0)) @ rng.randn(6, n_labels)
    Y = (scores + 0.05 * rng.randn(n_rows, n_labels) > 0).astype(int)
    Y[0], Y[1] = 0, 1  # so no label is constant, for every seed
    return X, Y


def scores_of(estimator: Estimator, X: Features) -> Array:
    """Return the scores of a fitted estimator as an array."""
    return np.asarray(estimator.decision_function(X))


def assert_refused(estimator: Estimator, X: Features, Y: MatrixLike, what: str) -> None:
    """Assert that `fit` raises a ValueError with a message."""
    try:
        estimator.fit(X, Y)
    except ValueError as error:
        message = str(error)
    else:
        raise AssertionError(f"{what} was accepted")
    if not message:
        raise AssertionError(f"{what} was refused without a message")
