"""Rebuilding weights: against a plain solver, by their invariances, and on degenerate rows."""

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_limits

from lemll.topology import local_weights, nearest_neighbors, reconstruction_weights
from lemll.topology.graphs import ReconstructionOperator
from lemll.topology.weights import check_graph, ill_conditioned, local_grams, solve_for_ones


def normal(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def binary(n, d, seed=0):
    return (np.random.default_rng(seed).random((n, d)) < 0.2).astype(float)


def oracle(X, K, reg=1e-3, policy="auto"):
    """One row at a time, as methods are written on paper."""
    W = np.zeros((len(X), len(X)))
    for i, around in enumerate(nearest_neighbors(X, K)):
        Z = X[around] - X[i]
        G = Z @ Z.T
        if policy == "always" or X.shape[1] < K or np.linalg.cond(G) > 1e12:
            trace = np.trace(G)
            G = G + np.eye(K) * (reg * trace if trace > 0 else reg)
        w = np.linalg.solve(G, np.ones(K))
        W[i, around] = w / w.sum()
    return W


@pytest.mark.parametrize("policy", ["auto", "always"])
@pytest.mark.parametrize(
    "X",
    [normal(150, 12), normal(150, 3), binary(150, 40), normal(15, 9)[np.arange(150) % 15]],
    ids=["normal", "fewer features than neighbours", "binary", "twins"],
)
def test_agrees_with_a_row_by_row_solver(X, policy):
    W = reconstruction_weights(X, 5, reg_policy=policy)
    np.testing.assert_allclose(W.toarray(), oracle(X, 5, policy=policy), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("reg", [1e-5, 0.1])
def test_reg_is_relative_to_the_trace(reg):
    X = normal(60, 2)
    W = reconstruction_weights(X, 4, reg=reg)
    np.testing.assert_allclose(W.toarray(), oracle(X, 4, reg=reg), rtol=1e-9, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 60),
    d=st.integers(1, 15),
    K=st.integers(1, 12),
    kinds=st.integers(1, 60),
    seed=st.integers(0, 999),
)
def test_rows_sum_to_one_and_beat_equal_weights(n, d, K, kinds, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, d)).astype(float) if seed % 2 else rng.standard_normal((n, d))
    X = X[rng.integers(0, min(n, kinds), n)]
    K = min(K, n - 1)
    for form in (X, sparse.csr_array(X)):
        W = reconstruction_weights(form, K)
        assert np.isfinite(W.data).all()
        assert not W.diagonal().any()
        largest = np.maximum(1, abs(W).sum(axis=1))
        assert (np.abs(W.sum(axis=1) - 1) <= 1e-12 * largest).all()
        equal = np.mean(X[nearest_neighbors(X, K)], axis=1)
        left = np.linalg.norm(X - W @ X, axis=1)
        assert (left <= np.linalg.norm(X - equal, axis=1) * (1 + 1e-6) + 1e-9).all()


def test_csr_with_k_sorted_entries_a_row():
    W = reconstruction_weights(normal(40, 6), 5)
    assert isinstance(W, sparse.csr_array)
    assert W.shape == (40, 40)
    assert W.dtype == np.float64
    np.testing.assert_array_equal(np.diff(W.indptr), 5)
    assert W.has_sorted_indices
    assert W.has_canonical_format


def test_translation_rotation_and_scale_change_nothing():
    X = normal(120, 15)
    W = reconstruction_weights(X, 8).toarray()
    rotation = np.linalg.qr(normal(15, 15, seed=1))[0]
    for moved in (X + 100 * normal(1, 15, seed=2), X @ rotation, X * 3.7, X / 1e9):
        np.testing.assert_allclose(
            reconstruction_weights(moved, 8).toarray(), W, rtol=1e-8, atol=1e-10
        )
    # Singular Grams, where the regularisation must scale with the data.
    flat = X[:, :4]
    W = reconstruction_weights(flat, 8).toarray()
    np.testing.assert_allclose(
        reconstruction_weights(flat * 1e-3 + 5, 8).toarray(), W, rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("power", [-1000, -600, -300, 300, 600, 1000])
def test_powers_of_two_change_not_a_digit(power):
    X = normal(50, 8)
    expected = reconstruction_weights(X, 5).toarray()
    for form in (X, sparse.csr_array(X)):
        scaled = form * 2.0**power
        np.testing.assert_array_equal(reconstruction_weights(scaled, 5).toarray(), expected)


def test_close_rows_beside_far_ones_do_not_underflow():
    near = normal(30, 6)
    X = np.vstack([near * 1e-140, [[1e155] * 6], [[-1e155] * 6]])
    around = nearest_neighbors(near, 4)
    around = np.vstack([around, [[0, 1, 2, 3]] * 2])
    expected = local_weights(near, around[:30])
    np.testing.assert_allclose(local_weights(X, around)[:30], expected, rtol=1e-9)


def test_coincident_neighbours_share_equally():
    for X in (np.zeros((6, 4)), np.full((6, 4), 0.3), np.full((6, 1), 1e300)):
        for form in (X, sparse.csr_array(X)):
            np.testing.assert_array_equal(reconstruction_weights(form, 4).data, 0.25)


def test_a_twin_among_the_neighbours_carries_almost_all():
    X = normal(30, 10)
    X[1] = X[0]
    W = reconstruction_weights(X, 4)
    assert W[0, 1] > 0.95


@pytest.mark.parametrize("X", [normal(200, 20), binary(200, 60), binary(200, 60) * 0.3])
def test_sparse_equals_dense(X):
    dense = reconstruction_weights(X, 7)
    other = reconstruction_weights(sparse.csr_array(X), 7)
    np.testing.assert_array_equal(dense.indices, other.indices)
    np.testing.assert_allclose(dense.data, other.data, rtol=1e-10, atol=1e-12)


def test_wide_sparse_rows_look_only_at_features_they_have():
    rng = np.random.default_rng(1)
    place = (rng.integers(0, 60, 1800), rng.integers(0, 10**5, 1800))
    X = sparse.coo_array((rng.random(1800), place), shape=(60, 10**5)).tocsr()
    used = np.unique(X.indices)
    np.testing.assert_allclose(
        reconstruction_weights(X, 5).toarray(),
        reconstruction_weights(X[:, used].toarray(), 5).toarray(),
        rtol=1e-10,
        atol=1e-13,
    )


def test_float32_is_rebuilt_in_float64():
    X = normal(60, 8).astype(np.float32)
    W = reconstruction_weights(X, 5)
    np.testing.assert_array_equal(W.data, reconstruction_weights(X.astype(float), 5).data)


def test_same_for_one_and_two_threads():
    for X in (normal(1200, 40), sparse.csr_array(binary(1200, 100))):
        found = []
        for threads in (1, 2):
            with threadpool_limits(threads):
                found.append(reconstruction_weights(X, 10))
        np.testing.assert_array_equal(found[0].indices, found[1].indices)
        np.testing.assert_allclose(found[0].data, found[1].data, rtol=1e-12)


def test_neither_changes_nor_needs_to_change_its_input():
    X = normal(50, 4)
    csr = sparse.csr_array(X * (X > 0))
    before = [array.copy() for array in (X, csr.data, csr.indices, csr.indptr)]
    for array in (X, csr.data, csr.indices, csr.indptr):
        array.flags.writeable = False
    W = reconstruction_weights(X, 3)
    reconstruction_weights(csr, 3)
    W.data.flags.writeable = W.indices.flags.writeable = W.indptr.flags.writeable = False
    kept = W.data.copy()
    check_graph(W, 50)
    ReconstructionOperator(W)
    np.testing.assert_array_equal(W.data, kept)
    for old, new in zip(before, (X, csr.data, csr.indices, csr.indptr), strict=True):
        np.testing.assert_array_equal(old, new)


def test_condition_is_decided_as_by_the_singular_values():
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    smallest = 10.0 ** rng.uniform(-16, 0, 2000)
    values = np.column_stack([np.ones(2000), rng.uniform(smallest, 1, (8, 2000)).T, smallest])
    grams = (rotation * values[:, None, :]) @ rotation.T
    expected = np.linalg.cond(grams)
    clear = np.abs(np.log10(expected) - 12) > 0.01
    ill = ill_conditioned(grams, solve_for_ones(grams)[1], 1e12)
    np.testing.assert_array_equal(ill[clear], expected[clear] > 1e12)


@pytest.mark.parametrize(("name", "expected"), [("Yeast_alpha", 301), ("SJAFFE", 16)])
def test_number_of_singular_grams_of_the_published_data(data_dir, name, expected):
    X = scipy.io.loadmat(data_dir / "distribution" / f"{name}.mat")["features"]
    grams = local_grams(X, nearest_neighbors(X, 10))
    ill = ill_conditioned(grams, solve_for_ones(grams)[1], 1e12)
    assert ill.sum() == expected
    W = reconstruction_weights(X)
    np.testing.assert_allclose(W.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reg": 0}, "reg must be a positive number, got 0; the usual value is 1e-3"),
        ({"reg": np.nan}, "reg must be a positive number, got nan"),
        ({"reg_policy": "never"}, 'reg_policy must be "auto", "always" or "absolute", got'),
        ({"n_neighbors": 20}, "n_neighbors=20 must be smaller than n_samples=20"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        reconstruction_weights(normal(20, 3), **{"n_neighbors": 2, **options})


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.coo_matrix])
def test_a_good_graph_passes(form):
    W = reconstruction_weights(normal(20, 3), 4)
    graph = check_graph(form(W.toarray()), 20)
    assert isinstance(graph, sparse.csr_array)
    np.testing.assert_array_equal(graph.toarray(), W.toarray())


def test_a_graph_in_float32_passes():
    W = reconstruction_weights(normal(200, 15), 10).astype(np.float32)
    assert check_graph(W, 200).dtype == np.float64


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.ones((2, 3)), r"one row and one column for each of 3 samples, got shape \(2, 3\)"),
        (np.ones(3), r"got shape \(1, 3\)"),
        (np.eye(3) + 0j, "the graph must hold real numbers, got dtype complex128"),
        ([[0, 1, 0], [0, 0, np.nan], [1, 0, 0]], "the graph must be finite, got nan in row 1"),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 1]], "zero diagonal, got 1 in row 2; a row is not rebuilt"),
        ([[0, 1, 0], [1, 0, 0], [0, 0.5, 0]], r"must sum to 1, got 0\.5 in row 2; divide each"),
    ],
)
def test_a_bad_graph_is_refused(W, message):
    with pytest.raises(ValueError, match=message):
        check_graph(W, 3)


def test_operator_is_the_matrix_of_eq_8():
    W = reconstruction_weights(normal(60, 9), 5)
    M = ReconstructionOperator(W)
    R = np.eye(60) - W.toarray()
    U = normal(60, 4, seed=1)
    assert M.shape == (60, 60)
    np.testing.assert_allclose(M @ U, R.T @ R @ U, atol=1e-12)
    np.testing.assert_allclose(M.matmat(U[:, 0]), R.T @ R @ U[:, 0], atol=1e-12)
    np.testing.assert_allclose(M.residual(U), U - W @ U, atol=1e-13)
    np.testing.assert_allclose(M.adjoint(U), R.T @ U, atol=1e-13)
    np.testing.assert_allclose(M.diagonal(), np.diag(R.T @ R), rtol=1e-13)
    np.testing.assert_allclose(M.tocsr().toarray(), R.T @ R, atol=1e-13)
    assert M.value(U) == pytest.approx(np.trace(U.T @ R.T @ R @ U), rel=1e-13)
    np.testing.assert_allclose(M @ np.ones(60), 0, atol=1e-12)


def test_large_weights_that_cancel_are_no_graph():
    for size in (1e3, 1e6, 1e12, 1e15):
        cancelling = np.array([[0, size, -size], [1, 0, 0], [1, 0, 0]])
        with pytest.raises(ValueError, match=r"every row of the graph must sum to 1, got 0 in row"):
            check_graph(cancelling, 3)
    # As far as digits reach, such weights may still sum to one.
    check_graph(np.array([[0, 1e6 + 1, -1e6], [1, 0, 0], [1, 0, 0]]), 3)


def test_one_operator_serves_every_precision():
    W = reconstruction_weights(normal(40, 6), 5)
    M = ReconstructionOperator.of(W)
    assert ReconstructionOperator.of(M) is M
    assert M.astype(np.float64) is M
    single = M.astype(np.float32)
    U = normal(40, 2).astype(np.float32)
    assert (single @ U).dtype == np.float32
    np.testing.assert_allclose(single @ U, M @ U, atol=1e-5)
    scale = np.arange(1.0, 41.0)
    expected = scale[:, None] * M.adjoint(U)
    np.testing.assert_allclose(M.scaled_adjoint(scale) @ U, expected, rtol=1e-12)
