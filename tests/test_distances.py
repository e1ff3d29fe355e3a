"""Squared distances between rows, against scipy."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist, pdist

from lemll.rivals.distances import mean_distance, squared_distances, upper_distances


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("block_rows", [1, 4, 10, 50])
def test_blocks_hold_the_distances_to_all_later_rows(form, block_rows):
    # A constant shift of all rows must not cost digits of dense rows.
    X = np.random.RandomState(0).randn(10, 3) + (1e4 if form is np.asarray else 0)
    X[7] = X[2]
    blocks = upper_distances(form(X), block_rows)
    assert len(blocks) == -(-10 // block_rows)
    expected = cdist(X, X, "sqeuclidean")
    for number, block in enumerate(blocks):
        start = number * block_rows
        np.testing.assert_allclose(
            block, expected[start : start + block_rows, start:], rtol=1e-9, atol=1e-10
        )
        assert (block >= 0).all()
        assert (np.diag(block) == 0).all()
    assert mean_distance(blocks) == pytest.approx(pdist(X).mean(), rel=1e-9)


def test_blocks_can_be_parts_of_a_square():
    X = np.random.RandomState(0).randn(10, 3)
    out = np.full((10, 10), -1.0)
    upper_distances(X, 4, out=out)
    expected = cdist(X, X, "sqeuclidean")
    below = np.zeros((10, 10), dtype=bool)
    below[4:, :4] = below[8:, :8] = True
    np.testing.assert_allclose(out[~below], expected[~below], atol=1e-12)
    assert (out[below] == -1).all()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_distances_to_other_rows(form):
    rng = np.random.RandomState(0)
    X, Z = rng.randn(6, 3), rng.randn(4, 3)
    np.testing.assert_allclose(squared_distances(form(X), form(Z)), cdist(X, Z, "sqeuclidean"))
    found = squared_distances(form(X))
    np.testing.assert_allclose(found, cdist(X, X, "sqeuclidean"), atol=1e-12)
    np.testing.assert_array_equal(np.diag(found), 0)
