"""Rebuilding weights from a kernel alone: those of its features."""

import numpy as np
import pytest
from scipy import sparse

from lemll.topology import graphs as kernel
from lemll.topology import reconstruction_weights
from lemll.topology.graphs import kernel_reconstruction_weights


@pytest.mark.parametrize("reg_policy", ["always", "auto"])
@pytest.mark.parametrize("d", [3, 30])
def test_the_linear_kernel_gives_the_weights_of_the_features(d, reg_policy, monkeypatch):
    monkeypatch.setattr(kernel, "BLOCK_BYTES", 8 * 60 * 7)
    X = np.random.default_rng(0).standard_normal((60, d))
    K = min(10, d)
    expected = reconstruction_weights(X, K, reg_policy=reg_policy).toarray()
    found = kernel_reconstruction_weights(X @ X.T, K, reg_policy=reg_policy).toarray()
    np.testing.assert_allclose(found, expected, atol=1e-8)
    by_sparse = kernel_reconstruction_weights(sparse.csr_array(X @ X.T), K, reg_policy=reg_policy)
    np.testing.assert_array_equal(by_sparse.toarray(), found)


def test_twins_are_neighbours_and_ties_go_to_the_lower_index():
    X = np.array([[1.0], [1.0], [1.0], [5.0]])
    W = kernel_reconstruction_weights(X @ X.T, 2).toarray()
    np.testing.assert_allclose(
        W, [[0, 0.5, 0.5, 0], [0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]]
    )


@pytest.mark.parametrize(
    ("K", "n_neighbors", "message"),
    [
        (np.ones((2, 3)), 1, r"must be square, got shape \(2, 3\)"),
        (np.full((3, 3), np.nan), 1, "the kernel"),
        (np.eye(3), 3, "n_neighbors"),
    ],
)
def test_bad_input_is_named(K, n_neighbors, message):
    with pytest.raises(ValueError, match=message):
        kernel_reconstruction_weights(K, n_neighbors)
