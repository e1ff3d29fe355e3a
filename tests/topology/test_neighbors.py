"""The K nearest rows against a brute-force oracle, on data that breaks careless distances."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from lemll.topology import nearest_neighbors
from lemll.topology import neighbors as neighbors_module
from lemll.topology.neighbors import BLOCK_BYTES, Rows, check_features, worker_threads


def oracle(X, K):
    """Direct differences in float64, summed in order, ties by index."""
    X = np.asarray(X, dtype=np.float64)
    nearest = []
    for i in range(len(X)):
        distance = np.cumsum((X - X[i]) ** 2, axis=1)[:, -1]
        distance[i] = np.inf
        nearest.append(np.lexsort((np.arange(len(X)), distance))[:K])
    return np.array(nearest)


def rational_oracle(X, K):
    """Distances without any rounding at all, ties by index."""
    rows = [[Fraction(float(value)) for value in row] for row in np.asarray(X)]
    nearest = []
    for i, x in enumerate(rows):
        key = [
            (sum((a - b) ** 2 for a, b in zip(x, y, strict=True)), j)
            for j, y in enumerate(rows)
            if j != i
        ]
        nearest.append([j for _, j in sorted(key)[:K]])
    return np.array(nearest)


def check_both(X, K, expected):
    np.testing.assert_array_equal(nearest_neighbors(X, K), expected)
    np.testing.assert_array_equal(nearest_neighbors(sparse.csr_array(X), K), expected)


def normal(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


KINDS = {
    "normal": lambda rng, n, d: rng.standard_normal((n, d)),
    "float32": lambda rng, n, d: rng.standard_normal((n, d)).astype(np.float32),
    "whole": lambda rng, n, d: rng.integers(-3, 4, (n, d)).astype(float),
    "large whole": lambda rng, n, d: rng.integers(0, 10**6, (n, d)).astype(float),
    "binary": lambda rng, n, d: (rng.random((n, d)) < 0.2).astype(float),
    "tenths": lambda rng, n, d: rng.integers(0, 4, (n, d)) * 0.1,
    "offset": lambda rng, n, d: 1e8 + rng.standard_normal((n, d)),
    "whole offset": lambda rng, n, d: 1e8 + rng.integers(0, 3, (n, d)),
    "twins": lambda rng, n, d: rng.standard_normal((n // 10 + 1, d))[
        rng.integers(0, n // 10 + 1, n)
    ],
    "binary twins": lambda rng, n, d: (rng.random((n // 10 + 1, d)) < 0.3).astype(float)[
        rng.integers(0, n // 10 + 1, n)
    ],
    "outlier": lambda rng, n, d: np.vstack(
        [1e-12 * rng.standard_normal((n - 1, d)), np.full((1, d), 1e3)]
    ),
    "scaled features": lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** np.arange(d),
    "sparse": lambda rng, n, d: rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.1),
    "constant": lambda rng, n, d: np.full((n, d), 0.1),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None)
@given(n=st.integers(2, 90), d=st.integers(1, 12), K=st.integers(1, 12), seed=st.integers(0, 999))
def test_agrees_with_the_oracle(kind, n, d, K, seed):
    X = KINDS[kind](np.random.default_rng(seed), n, d)
    K = min(K, n - 1)
    check_both(X, K, oracle(X, K))


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_the_oracle_over_many_tiles(kind, monkeypatch):
    monkeypatch.setattr("lemll.topology.neighbors.MIN_BLOCK_ROWS", 40)
    monkeypatch.setattr("lemll.topology.neighbors.MAX_BLOCK_ROWS", 64)
    X = KINDS[kind](np.random.default_rng(7), 333, 9)
    check_both(X, 10, oracle(X, 10))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_agrees_with_rational_arithmetic(data):
    n, d = data.draw(st.integers(2, 10)), data.draw(st.integers(1, 3))
    entry = st.integers(-4, 4) | st.sampled_from([1000, 4096, -(2**20), 2**24 + 1])
    scale = data.draw(st.sampled_from([1.0, 2.0**-40, 2.0**-500, 2.0**450]))
    rows = data.draw(st.lists(st.lists(entry, min_size=d, max_size=d), min_size=n, max_size=n))
    K = data.draw(st.integers(1, n - 1))
    X = np.array(rows, dtype=float) * scale
    check_both(X, K, rational_oracle(X, K))


@pytest.mark.parametrize("power", [-1040, -1000, -530, 530, 1000, 1019])
def test_scale_overflows_and_underflows_nowhere(power):
    # Small whole numbers: even subnormal multiples of them are exact.
    X = np.random.default_rng(1).integers(-9, 10, (60, 5)).astype(float)
    X[0] = [0.5, 0.25, 0, 0, 0]
    check_both(X * 2.0**power, 5, nearest_neighbors(X, 5))


def test_largest_floats_of_both_signs():
    X = np.array([[1.7e308], [-1.7e308], [1.6e308], [-1.6e308], [0.0]])
    check_both(X, 1, [[2], [3], [0], [1], [2]])


def test_a_huge_constant_feature_hides_nothing():
    X = np.column_stack([np.full(50, 1e300), normal(50, 1)])
    np.testing.assert_array_equal(nearest_neighbors(X, 4), oracle(X, 4))


def test_two_rows():
    check_both(np.array([[1.0], [1.0]]), 1, [[1], [0]])


def test_all_rows_equal_gives_the_lowest_other_indices():
    expected = [[j for j in range(4) if j != i][:3] for i in range(3)] + [[0, 1, 2]] * 3
    check_both(np.full((6, 2), 0.3), 3, expected)
    check_both(np.zeros((6, 2)), 3, expected)


def test_no_row_is_its_own_neighbour_among_twins():
    rng = np.random.default_rng(3)
    for X in (normal(20, 3)[rng.integers(0, 20, 200)], rng.integers(0, 2, (200, 3)).astype(float)):
        assert not (nearest_neighbors(X, 15) == np.arange(200)[:, None]).any()


def test_negative_zero_equals_zero():
    X = np.array([[0.0, 0.1], [-0.0, 0.1], [0.0, 0.3]])
    check_both(X, 2, [[1, 2], [0, 2], [0, 1]])


def test_sparse_in_any_form():
    X = normal(80, 6) * (normal(80, 6, seed=1) > 0.5)
    expected = oracle(X, 4)
    csr = sparse.csr_array(X)
    twice = sparse.csr_array(sparse.hstack([csr, csr]))
    unsorted = csr[:, ::-1][:, ::-1]
    halves = sparse.csr_array(
        (
            np.repeat(csr.data / 2, 2),
            np.repeat(csr.indices, 2),
            csr.indptr * 2,
        ),
        shape=csr.shape,
    )
    stored = halves.copy()
    stored.data[::2] *= 0
    stored.data[1::2] *= 2
    for form in (csr.tocsc(), csr.tocoo(), sparse.csr_matrix(csr), unsorted, halves, stored):
        np.testing.assert_array_equal(nearest_neighbors(form, 4), expected)
    np.testing.assert_array_equal(nearest_neighbors(twice, 4), expected)


def test_mostly_zero_dense_data_is_sifted_as_sparse(monkeypatch):
    X = normal(120, 40) * (normal(120, 40, seed=1) > 1.8)
    seen = []
    monkeypatch.setattr(
        neighbors_module, "Rows", lambda X: seen.append(sparse.issparse(X)) or Rows(X)
    )
    np.testing.assert_array_equal(nearest_neighbors(X, 5), oracle(X, 5))
    assert seen[0]


def test_agrees_with_scikit_learn_on_digits():
    from sklearn.datasets import load_digits
    from sklearn.neighbors import NearestNeighbors

    X = load_digits().data
    ours = nearest_neighbors(X, 10)
    theirs = NearestNeighbors(n_neighbors=10, algorithm="brute").fit(X).kneighbors()[0]
    np.testing.assert_allclose(
        np.sqrt(((X[ours] - X[:, None]) ** 2).sum(axis=2)), theirs, rtol=1e-12
    )


@pytest.mark.parametrize("kind", ["normal", "binary", "twins", "tenths", "sparse"])
def test_same_for_one_and_two_threads(kind, monkeypatch):
    monkeypatch.setattr("lemll.topology.neighbors.MIN_BLOCK_ROWS", 128)
    monkeypatch.setattr("lemll.topology.neighbors.MAX_BLOCK_ROWS", 128)
    X = KINDS[kind](np.random.default_rng(0), 1500, 30)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append((nearest_neighbors(X, 8), nearest_neighbors(sparse.csr_array(X), 8)))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(found[0][0], found[0][1])


def test_workers_are_as_many_as_allowed_and_the_limit_is_given_back():
    for allowed in (1, 2):
        with threadpool_limits(allowed, user_api="blas"):
            before = threadpool_info()
            with worker_threads() as workers:
                assert workers == allowed
            assert threadpool_info() == before


def test_neither_changes_nor_needs_to_change_its_input():
    X = normal(50, 4)
    csr = sparse.csr_array(X * (X > 0))
    before = [array.copy() for array in (X, csr.data, csr.indices, csr.indptr)]
    for array in (X, csr.data, csr.indices, csr.indptr):
        array.flags.writeable = False
    nearest_neighbors(X, 3)
    nearest_neighbors(csr, 3)
    nearest_neighbors(X[:, ::-1], 3)
    for old, new in zip(before, (X, csr.data, csr.indices, csr.indptr), strict=True):
        np.testing.assert_array_equal(old, new)


def test_lists_integers_and_booleans():
    expected = [[1], [0], [1]]
    for X in ([[0, 0], [1, 1], [3, 3]], np.array([[0], [1], [3]], np.uint8)):
        np.testing.assert_array_equal(nearest_neighbors(X, 1), expected)
    np.testing.assert_array_equal(
        nearest_neighbors(np.array([[True], [False], [True]]), 1), [[2], [0], [0]]
    )


def test_bound_is_below_the_distance_and_close():
    for kind in ("normal", "float32", "offset", "sparse", "scaled features", "outlier"):
        X = KINDS[kind](np.random.default_rng(5), 200, 12)
        for form in (X, sparse.csr_array(X)):
            rows = Rows(check_features(form))
            i, j = (index.ravel() for index in np.indices((200, 200)))
            exact = rows.distances(i, j).reshape(200, 200)
            bounds = exact.copy()
            for dtype, slack in ((np.float32, 1e-4), (np.float64, 1e-12)):
                low = rows.lowered_norms(dtype).astype(float)
                bounds = low + low[:, None] - 2 * rows.products(rows.centred(slice(None)))
                assert (bounds <= exact * (1 + 1e-14)).all()
                assert (exact - bounds <= slack * (rows.norms + rows.norms[:, None]) + 1e-30).all()


def test_features_go_where_they_are_multiplied_fastest():
    rng = np.random.default_rng(0)
    X = np.zeros((800, 90))
    for features, rows in ((slice(0, 30), 400), (slice(30, 60), 40), (slice(60, 90), 2)):
        for feature in range(90)[features]:
            X[rng.choice(800, rows, replace=False), feature] = rng.standard_normal(rows)
    block = Rows(check_features(sparse.csr_array(X))).block(0, 10)
    # Two more dense columns hold the lengths.
    assert [part.shape[1] for part in block] == [32, 30, 30]
    check_both(X, 6, oracle(X, 6))
    check_both(X != 0, 6, oracle(X != 0, 6))


def test_blocks_are_bounded_however_wide_x_is():
    rng = np.random.default_rng(0)
    place = (rng.integers(0, 300, 10**6), rng.integers(0, 10**5, 10**6))
    rows = Rows(check_features(sparse.coo_array((np.ones(10**6), place), shape=(300, 10**5))))
    block = rows.block(0, rows.block_rows)
    assert rows.block_rows < 300
    assert block.dense.nbytes <= BLOCK_BYTES
    assert 4 * block.occasional.shape[0] * block.occasional.shape[1] <= BLOCK_BYTES


@pytest.mark.parametrize(
    ("X", "K", "message"),
    [
        (np.zeros((8, 2)), 10, "n_neighbors=10 must be smaller than n_samples=8; lower"),
        (np.zeros((1, 2)), 1, "n_neighbors=1 must be smaller than n_samples=1; lower"),
        (np.zeros((8, 2)), 0, "n_neighbors must be a whole number of at least 1, got 0"),
        (np.zeros((8, 2)), 2.0, r"n_neighbors must be a whole number of at least 1, got 2\.0"),
        (np.zeros(8), 2, r"X must be 2-D \(rows x features\) .* got shape \(8,\)"),
        (np.zeros((8, 0)), 2, r"at least one feature, got shape \(8, 0\)"),
        (np.full((3, 2), "a"), 1, "X must hold real numbers, got dtype <U1; convert"),
        (np.zeros((3, 2), complex), 1, "X must hold real numbers, got dtype complex128"),
        ([[0.0], [np.nan], [1.0]], 1, "X must be finite, got nan in row 1, column 0"),
        (sparse.csr_array([[0.0], [np.inf]]), 1, "X must be finite, got inf in row 1, column 0"),
    ],
)
def test_bad_input_is_named(X, K, message):
    with pytest.raises(ValueError, match=message):
        nearest_neighbors(X, K)
