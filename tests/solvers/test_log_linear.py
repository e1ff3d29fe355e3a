"""Log-linear models of distributions: another optimiser as oracle, and the certificate."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from lemll.solvers.log_linear import solve_log_linear


def problem(seed, n_rows=7, n_labels=5, n_coefficients=4):
    rng = np.random.RandomState(seed)
    G = rng.randn(n_rows, n_labels, n_coefficients)
    D = rng.dirichlet(np.full(n_labels, 0.5), size=n_rows)
    D[0] = np.eye(n_labels)[0]
    return G, D, rng.uniform(0.01, 1.0, n_coefficients), rng.randn(n_coefficients)


def value(G, D, ridge, centre, t):
    p = softmax(G @ t, axis=1)
    return -(D * np.log(p)).sum() + (ridge * (t - centre) ** 2).sum() / 2


@pytest.mark.parametrize("seed", range(10))
def test_it_finds_the_minimum_of_another_optimiser(seed):
    given = problem(seed)
    found = solve_log_linear(*given)
    assert found.converged
    assert found.objective == pytest.approx(value(*given, found.coef), rel=1e-12)
    other = minimize(lambda t: value(*given, t), given[3], tol=1e-12)
    np.testing.assert_allclose(found.coef, other.x, atol=1e-4)
    assert found.objective <= other.fun + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_the_gap_bounds_the_distance_to_the_minimum(seed):
    given = problem(seed)
    best = solve_log_linear(*given, tol=1e-13).objective
    for max_iter in range(4):
        early = solve_log_linear(*given, max_iter=max_iter, tol=1e-13)
        assert early.objective - best <= early.gap * early.objective + 1e-10


def test_a_strong_ridge_keeps_the_centre_and_no_rows_too():
    G, D, _, centre = problem(0)
    strong = solve_log_linear(G, D, np.full(4, 1e9), centre)
    np.testing.assert_allclose(strong.coef, centre, atol=1e-6)
    none = solve_log_linear(G[:0], D[:0], np.ones(4), centre)
    np.testing.assert_array_equal(none.coef, centre)
