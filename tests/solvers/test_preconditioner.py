"""The pieces of the preconditioner of the joint solver."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from lemll.solvers import solve_joint
from lemll.solvers._point import Operators
from lemll.solvers._preconditioner import ChebyshevSeries


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
    monkeypatch.setattr("lemll.solvers._point.LANCZOS_STEPS", 1)
    monkeypatch.setattr("lemll.solvers._point.LANCZOS_END", -2.5)
    misled = solve_joint(X, Y, W, **parameters)
    assert misled.converged
    assert misled.objective == pytest.approx(plain.objective, rel=2e-8)
