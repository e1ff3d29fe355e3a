"""LESC: the linear system of its second stage, closed forms, and published figures."""

import numpy as np
import pytest

from lemll.datasets import binarize_distribution, load_dataset
from lemll.metrics import METRICS
from lemll.rivals import LESCEnhancer
from lemll.rivals.lesc import principal_rows, solve_low_rank


@pytest.fixture(name="data")
def _data():
    rng = np.random.RandomState(0)
    X = rng.randn(50, 6) @ np.diag([10, 5, 2, 1, 0.5, 0.1]) + 3
    return X, (rng.uniform(size=(50, 4)) < 0.4).astype(int)


def second_stage(C, Y, smoothness):
    """Solve the whole system."""
    off = np.eye(len(Y)) - C
    return np.linalg.solve(np.eye(len(Y)) + smoothness * off.T @ off, Y)


def test_squared_noise_is_the_dense_solution(data):
    X, Y = data
    Q, S = principal_rows(X)
    share = np.cumsum(S**2) / np.sum(S**2)
    cut = S[np.argmax(share >= 0.8)] ** 2
    C = Q @ np.diag(np.maximum(0, 1 - cut / S**2)) @ Q.T
    found = LESCEnhancer(2.0).fit(X, Y)
    np.testing.assert_allclose(found.numerical_labels_, second_stage(C, Y, 2.0), atol=1e-12)
    assert found.optimality_ == 0


@pytest.mark.parametrize("n_features", [6, 60])  # Woodbury's identity, and the whole system
@pytest.mark.parametrize("beta", [0.05, 0.2, 10.0])
def test_noise_of_rows_is_the_dense_solution(beta, n_features):
    rng = np.random.RandomState(1)
    X, Y = rng.randn(50, n_features), (rng.uniform(size=(50, 4)) < 0.4).astype(int)
    Q, S = principal_rows(X)
    C = Q @ solve_low_rank(Q, S, beta, tol=1e-5).Z
    found = LESCEnhancer(3.0, noise="rows", beta=beta, tol=1e-5).fit(X, Y)
    np.testing.assert_allclose(found.numerical_labels_, second_stage(C, Y, 3.0), atol=1e-9)
    assert found.optimality_ <= 1e-5


def test_limits(data):
    X, Y = data
    none = LESCEnhancer(3.0, noise="rows", beta=1e-6).fit(X, Y).numerical_labels_
    np.testing.assert_allclose(none, Y / 4, atol=1e-12)
    Q, _ = principal_rows(X)
    P = Q @ Q.T
    full = LESCEnhancer(3.0, noise="rows", beta=1e6).fit(X, Y).numerical_labels_
    np.testing.assert_allclose(full, P @ Y + (Y - P @ Y) / 4, atol=1e-12)
    for noise in ("rows", "squared"):
        plain = LESCEnhancer(0.0, noise=noise).fit(X, Y).numerical_labels_
        np.testing.assert_allclose(plain, Y, atol=1e-12)


def test_the_order_of_rows_and_the_units_of_columns_do_not_matter(data):
    X, Y = data
    order = np.random.RandomState(2).permutation(len(X))
    for noise in ("rows", "squared"):
        enhancer = LESCEnhancer(noise=noise, beta=0.1, tol=1e-6)
        one = enhancer.fit_enhance(X, Y)
        two = enhancer.fit_enhance(X[order] * 10.0 ** np.arange(6), Y[order])
        np.testing.assert_allclose(two, one[order], atol=1e-6)


def test_constant_features_do_not_count(data):
    X, Y = data
    wide = np.column_stack([X, np.full(len(X), 1e6), np.zeros(len(X))])
    np.testing.assert_allclose(
        LESCEnhancer().fit_enhance(wide, Y), LESCEnhancer().fit_enhance(X, Y), atol=1e-9
    )
    only = LESCEnhancer().fit(np.ones((len(Y), 1)), Y).numerical_labels_
    np.testing.assert_allclose(only, Y / 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "columns"}, "noise='columns' must be one of squared, rows"),
        ({"energy": 1.5}, "energy=1.5 must be at most 1"),
        ({"smoothness": -1.0}, "smoothness"),
        ({"noise": "rows", "beta": 0.0}, "beta"),
    ],
)
def test_refusals(data, options, message):
    with pytest.raises(ValueError, match=message):
        LESCEnhancer(**options).fit(*data)


def test_too_few_iterations_are_reported(data):
    enhancer = LESCEnhancer(noise="rows", beta=0.04, tol=1e-9, max_iter=5)
    with pytest.warns(UserWarning, match="LESC reached the certified gap .* raise max_iter or tol"):
        enhancer.fit(*data)


# Chebyshev, Clark, Canberra, K-L (recovered, true), cosine, intersection: the exact second stage
# at beta = lambda = 10, and the closed form at the default.
FIGURES = {
    ("SJAFFE", "rows"): (0.0885, 0.3815, 0.7943, 0.0502, 0.9575, 0.8710),
    ("SJAFFE", "squared"): (0.0691, 0.2757, 0.5598, 0.0283, 0.9733, 0.9052),
    ("Yeast_spoem", "rows"): (0.0746, 0.1122, 0.1556, 0.0267, 0.9829, 0.9254),
    ("Yeast_spoem", "squared"): (0.0671, 0.1040, 0.1429, 0.0190, 0.9888, 0.9329),
    ("Yeast_spo5", "rows"): (0.0791, 0.1606, 0.2465, 0.0284, 0.9797, 0.9209),
    ("Yeast_cold", "rows"): (0.0475, 0.1279, 0.2189, 0.0139, 0.9901, 0.9462),
}


@pytest.mark.parametrize(("name", "noise"), FIGURES)
def test_figures_that_we_measured_with_other_code(data_dir, name, noise):
    data = load_dataset(name)
    smoothness = 10.0 if noise == "rows" else 1.0
    found = LESCEnhancer(smoothness, noise=noise).fit_enhance(
        data.X, binarize_distribution(data.D, 0.5)
    )
    names = ("chebyshev", "clark", "canberra", "kl_divergence_pred_true", "cosine", "intersection")
    measured = [METRICS[measure](data.D, found) for measure in names]
    np.testing.assert_allclose(measured, FIGURES[name, noise], atol=2e-4)
