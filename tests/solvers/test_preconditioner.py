"""The pieces of the preconditioner of the joint solver."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from scipy import sparse

from lemll.solvers import solve_joint
from lemll.solvers.linear import CentredFeatures
from lemll.solvers.search import ChebyshevSeries, Operators


def label_hessian(W, beta, gamma):
    difference = np.eye(W.shape[0]) - W.toarray()
    return (1 + beta) * np.eye(W.shape[0]) + gamma * difference.T @ difference


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n", [2, 5, 40])
def test_the_bound_of_the_spectrum_holds(n, seed, make_problem):
    X, Y, W = make_problem(seed, n=n)
    operators = Operators(X, Y, W, "float64")
    smoothness = label_hessian(W, -1.0, 1.0)
    np.testing.assert_allclose(operators.roughness, smoothness.diagonal(), rtol=1e-12)
    top = scipy.linalg.eigh(smoothness, np.diag(smoothness.diagonal()), eigvals_only=True)[-1]
    assert top <= operators.roughness_bound <= 2 * top


@pytest.mark.parametrize(
    ("beta", "gamma", "quality"), [(1.0, 0.0, 1e-12), (1.0, 1.0, 0.35), (0.25, 16.0, 0.9)]
)
def test_the_series_is_nearly_the_inverse(beta, gamma, quality, make_problem):
    X, Y, W = make_problem(1, n=40)
    series = ChebyshevSeries(Operators(X, Y, W, "float64"), beta, gamma)
    approximate = series.apply(np.eye(40))
    np.testing.assert_allclose(approximate, approximate.T, atol=1e-12)
    product = scipy.linalg.eigvals(approximate @ label_hessian(W, beta, gamma)).real
    assert 1 - quality <= product.min()
    assert product.max() <= 1 + quality


def test_a_bound_that_is_too_low_is_found_out_and_raised(make_problem, monkeypatch):
    X, Y, W = make_problem(2, n=40)
    parameters = {"alpha": 1.0, "beta": 1.0, "gamma": 64.0, "tol": 1e-8}
    plain = solve_joint(X, Y, W, **parameters)
    monkeypatch.setattr("lemll.solvers.search.LANCZOS_STEPS", 1)
    monkeypatch.setattr("lemll.solvers.search.LANCZOS_MARGIN", 0.3)
    misled = solve_joint(X, Y, W, **parameters)
    assert misled.converged
    assert misled.objective == pytest.approx(plain.objective, rel=2e-8)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_gram_matrix_is_single_only_where_that_is_enough(kind, make_problem, monkeypatch):
    X, _, _ = make_problem(3)
    centred = X - X.mean(axis=0)
    exact = centred.T @ centred
    features = CentredFeatures(X if kind == "dense" else sparse.csr_array(X), "float64")
    np.testing.assert_allclose(features.gram(1.0), exact, rtol=1e-12, atol=1e-12)
    monkeypatch.setattr("lemll.solvers.linear.LARGE_GRAM", 0)
    np.testing.assert_allclose(features.gram(1e-9), exact, rtol=1e-12, atol=1e-12)
    single = features.gram(1.0)
    assert 0 < np.abs(single - exact).max() < 1e-4
    assert features.gram(1.0) is single
    np.testing.assert_allclose(features.gram_diagonal, exact.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(features.kernel, centred @ centred.T, rtol=1e-10, atol=1e-12)
