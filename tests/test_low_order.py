"""Low orders of the Gaussian kernel and waves for the rest, against the exact kernel."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from lemll import LEMLL, _validation
from lemll.exceptions import NotEnoughMemoryError
from lemll.fitting import approximations, low_order
from lemll.fitting.approximations import FourierFeatures, approximate
from lemll.fitting.kernels import choose_kernel
from lemll.fitting.low_order import LowOrderWaves, fit_low_order_waves, orthogonal_frequencies

FORMS = pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])


def rows(n=80, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, d)) < 0.5, rng.standard_normal((n, d)), 0.0) + 0.1


def exact_kernel(X, others, gamma):
    return np.exp(-gamma * cdist(X, others, "sqeuclidean"))


def fitted(X, n_components, seed=0):
    kernel = choose_kernel(LEMLL(kernel="rbf"), X)
    return kernel, fit_low_order_waves(kernel, X, n_components, np.random.default_rng(seed))


@FORMS
def test_all_pairs_give_the_first_two_orders_of_the_series(convert):
    X = rows()
    kernel, found = fitted(convert(X), 2 * 22)
    assert found.pairs.shape == (2, 21)  # 6 * 7 / 2
    low = found.values(convert(X))[:, : 7 + 21]
    z = X - X.mean(axis=0)
    t = 2 * kernel.gamma * z @ z.T
    heights = np.exp(-kernel.gamma * np.square(z).sum(axis=1))
    expected = np.outer(heights, heights) * (1 + t + t**2 / 2)
    np.testing.assert_allclose(low @ low.T, expected, atol=1e-13)


def test_the_waves_have_the_mean_of_the_rest_of_the_kernel():
    X = rows(n=12, d=3)
    kernel, found = fitted(X, 8)
    assert found.pairs.shape[1] == 4  # of 6: the rest has a part of order 2 too
    many = fit_low_order_waves(kernel, X, 400_000, np.random.default_rng(1))
    # The same features of order 2, with many waves of weight 1.
    v = many.frequencies / np.sqrt(2 * kernel.gamma)
    along = found.directions.T @ v
    j, k = found.pairs
    parts = -(along[j] * along[k] - (j == k)[:, None]) * np.where(j == k, np.sqrt(0.5), 1)[:, None]
    waves = LowOrderWaves(
        kernel.gamma, found.centre, found.directions, found.pairs, many.frequencies, parts
    ).values(X)
    low, waves = waves[:, :8], waves[:, 8:]
    rest = exact_kernel(X, X, kernel.gamma) - low @ low.T
    np.testing.assert_allclose(waves @ waves.T, rest, atol=5e-3)
    # Without the correction the waves would have the mean of the whole kernel.
    assert (low @ low.T).mean() > 0.1


@FORMS
def test_many_waves_give_the_kernel(convert):
    X = rows()
    kernel, found = fitted(convert(X), 20_000)
    assert found.wave_weight > 0.95
    values = found.values(convert(X))
    assert values.shape == (80, found.width)
    error = values @ values.T - exact_kernel(X, X, kernel.gamma)
    assert np.sqrt(np.square(error).mean()) < 0.005


def test_the_weight_of_the_waves_is_the_best_one():
    X = rows(n=60, d=8)
    kernel, found = fitted(X, 60)
    K = exact_kernel(X, X, kernel.gamma)
    different = ~np.eye(60, dtype=bool)

    def error(weight):
        changed = LowOrderWaves(
            found.gamma, found.centre, found.directions, found.pairs, found.frequencies,
            found.pair_parts, wave_weight=weight,
        ).values(X)  # fmt: skip
        return np.square((changed @ changed.T - K)[different]).sum()

    assert 0.02 < found.wave_weight < 0.98
    assert error(found.wave_weight) < min(
        error(found.wave_weight - 0.02), error(found.wave_weight + 0.02)
    )


@pytest.mark.parametrize("count", [1, 2, 7, 30, 55])
@pytest.mark.parametrize("seed", range(3))
def test_the_largest_pairs_are_those_of_all_pairs(count, seed):
    variances = np.sort(np.random.default_rng(seed).gamma(0.3, size=10))[::-1]
    pairs, directions = low_order._largest_pairs(variances, np.eye(10), count)
    everything = sorted(
        (
            variances[j] * variances[k]
            for j, k in itertools.combinations_with_replacement(range(10), 2)
        ),
        reverse=True,
    )
    found = sorted(variances[pairs[0]] * variances[pairs[1]], reverse=True)
    np.testing.assert_allclose(found, everything[:count])
    assert len({tuple(pair) for pair in pairs.T}) == count
    assert directions.shape == (10, pairs.max() + 1)


def test_low_orders_lower_the_error_of_the_kernel(monkeypatch):
    X = rows(n=300, d=20)
    kernel = choose_kernel(LEMLL(kernel="rbf"), X)
    settings = {"n_labels": 3, "seed": 0, "precision": "float64", "n_components": 100}
    errors = []
    for columns in (0, 2):
        monkeypatch.setattr(approximations, "COLUMNS_PER_COMPONENT", columns)
        mapped = approximate(kernel, X, approximation="fourier", **settings)
        assert isinstance(mapped.kernel, FourierFeatures if columns == 0 else LowOrderWaves)
        error = mapped.features @ mapped.features.T - exact_kernel(X, X, kernel.gamma)
        errors.append(np.square(error - np.diag(error.diagonal())).mean())
    assert errors[1] < 0.1 * errors[0]


@FORMS
def test_a_shift_of_the_rows_changes_nothing(convert):
    X = rows(n=100)
    Y = (X[:, :3] > 0.2).astype(int)
    model = LEMLL(kernel="rbf", approximation="fourier", n_components=30, tol=1e-8)
    scores = model.fit(convert(X), Y).decision_function(convert(X))
    moved = model.fit(convert(X + 3.0), Y).decision_function(convert(X + 3.0))
    np.testing.assert_allclose(moved, scores, atol=1e-3)


@pytest.mark.parametrize("n_components", [2, 3, 5])
def test_few_components_and_equal_rows_work(n_components):
    Y = np.tile([[0, 1], [1, 0]], (15, 1))
    for X in (np.ones((30, 4)), rows(n=30, d=4), 1e3 * rows(n=30, d=4)):
        model = LEMLL(kernel="rbf", approximation="fourier", n_components=n_components).fit(X, Y)
        assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("gamma", [None, 10.0])
def test_products_are_used_where_they_help(gamma):
    rng = np.random.default_rng(0)
    X = 2 * rng.standard_normal((20, 10))[rng.integers(0, 20, 300)]
    X += 0.3 * rng.standard_normal(X.shape)
    factor = 1.0 if gamma is None else gamma
    usual = choose_kernel(LEMLL(kernel="rbf"), X).gamma
    kernel = choose_kernel(LEMLL(kernel="rbf", kernel_gamma=factor * usual), X)
    found = fit_low_order_waves(kernel, X, 60, np.random.default_rng(0))
    # With a large gamma all rows are far from their mean, where the products are near 0.
    assert found.pairs.shape[1] == (30 if gamma is None else 0)
    assert found.frequencies.shape[1] == (15 if gamma is None else 30)


@FORMS
def test_the_directions_of_more_columns_than_rows_are_the_same(convert):
    X = rows(n=12, d=20)
    centre = X.mean(axis=0)
    squares, Q = low_order._principal_directions(convert(X), centre, 0.05, 8)
    z = X - centre
    z *= np.exp(-0.05 * np.square(z).sum(axis=1))[:, None]
    _, S, V = np.linalg.svd(z, full_matrices=False)
    np.testing.assert_allclose(squares, S[:8] ** 2)
    np.testing.assert_allclose(np.abs(np.sum(Q * V[:8].T, axis=0)), 1)


def test_the_scale_of_the_rows_does_not_matter():
    X = rows(n=60)
    Y = (X[:, :3] > 0.2).astype(int)
    model = LEMLL(kernel="rbf", approximation="fourier", n_components=20, tol=1e-8)
    expected = model.fit(X, Y).decision_function(X)
    for factor in (1e-85, 1e99):
        found = model.fit(factor * X, Y).decision_function(factor * X)
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_rows_that_are_very_far_have_finite_scores():
    X = rows(n=60)
    Y = (X[:, :3] > 0.2).astype(int)
    model = LEMLL(kernel="rbf", approximation="fourier", n_components=20).fit(X, Y)
    assert np.isfinite(model.decision_function(np.array([[1e160] * 6, [-1e200] * 6]))).all()


def test_the_decomposition_counts_in_the_estimate_of_the_memory(monkeypatch):
    X = sparse.csr_array((3_000, 3_000))
    monkeypatch.setattr(_validation, "available_bytes", lambda: 1000)
    monkeypatch.setattr(approximations, "solver_bytes", lambda *_, **__: 0)
    kernel = choose_kernel(LEMLL(kernel="rbf", kernel_gamma=1.0), X)
    settings = {"n_labels": 1, "seed": 0, "precision": "float32", "n_components": 1_500}
    with pytest.raises(NotEnoughMemoryError, match=r"0\.2 GiB"):
        approximate(kernel, X, approximation="fourier", **settings)


def test_frequencies_are_orthogonal_in_groups():
    v = orthogonal_frequencies(np.random.default_rng(0), 5, 8)
    assert v.shape == (5, 8)
    products = v[:, :5].T @ v[:, :5]
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)
    assert orthogonal_frequencies(np.random.default_rng(0), 5, 0).shape == (5, 0)
