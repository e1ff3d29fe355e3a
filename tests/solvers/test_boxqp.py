"""Bounded quadratic programs against enumeration, Clarabel, and their own certificate."""

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from lemll.rivals import boxqp
from lemll.rivals import boxqp as boxqp_hessian
from lemll.rivals.boxqp import kkt_residual, solve_box_qp
from lemll.topology import reconstruction_weights


def random_problem(seed, n_variables=30, n_problems=3):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n_variables + 5, n_variables)) * np.logspace(0, -2, n_variables)
    centre = rng.normal(size=(n_variables, n_problems))
    width = rng.exponential(size=centre.shape)
    lower, upper = centre - width, centre + width
    lower[rng.random(centre.shape) < 0.2] = -np.inf
    upper[rng.random(centre.shape) < 0.2] = np.inf
    return A, lower, upper, 3 * rng.normal(size=centre.shape)


def by_enumeration(A, lower, upper, ridge, linear):
    """Try all ways to put variables on bounds; keep the one that meets the conditions best."""
    n = A.shape[1]
    H = A.T @ A + ridge * np.eye(n)
    best, least = None, np.inf
    for places in map(np.array, product((-1, 0, 1), repeat=n)):
        x = np.where(places < 0, lower, upper)
        free = places == 0
        if not np.isfinite(x[~free]).all():
            continue
        right = -linear[free] - H[np.ix_(free, ~free)] @ x[~free]
        x[free] = np.linalg.solve(H[np.ix_(free, free)], right)
        if (x < lower - 1e-12).any() or (x > upper + 1e-12).any():
            continue
        residual = kkt_residual(x, H @ x + linear, lower, upper)
        if residual < least:
            best, least = x, residual
    return best


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_what_enumeration_finds(seed):
    A, lower, upper, linear = random_problem(seed, n_variables=6, n_problems=2)
    solution = solve_box_qp(A, lower, upper, ridge=0.01, linear=linear, tol=1e-10)
    for k in range(2):
        expected = by_enumeration(A, lower[:, k], upper[:, k], 0.01, linear[:, k])
        np.testing.assert_allclose(solution.x[:, k], expected, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_clarabel(seed):
    A, lower, upper, linear = random_problem(seed)
    solution = solve_box_qp(sparse.csr_array(A), lower, upper, ridge=1e-3, linear=linear)
    assert solution.converged
    assert (solution.residual <= 1e-8).all()
    assert (solution.x >= lower).all()
    assert (solution.x <= upper).all()
    for k in range(3):
        x = cp.Variable(30)
        objective = cp.sum_squares(A @ x) / 2 + 1e-3 * cp.sum_squares(x) / 2 + linear[:, k] @ x
        low, high = np.isfinite(lower[:, k]), np.isfinite(upper[:, k])
        bounds = [x[low] >= lower[low, k], x[high] <= upper[high, k]]
        value = cp.Problem(cp.Minimize(objective), bounds).solve(solver=cp.CLARABEL)
        assert solution.objective[k] == pytest.approx(value, rel=1e-6, abs=1e-6)


def manifold(n_rows=150, twins=20, seed=0):
    """Pose an ill-conditioned problem, of the kind that ML2 has."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 4))
    X[:twins] = X[twins : 2 * twins] + 1e-7
    W = reconstruction_weights(X, 6, reg=1e-9, reg_policy="absolute")
    A = sparse.csr_array(sparse.eye_array(n_rows) - W)
    Y = rng.random((n_rows, 4)) < 0.3
    return A, np.where(Y, 1.0, -np.inf), np.where(Y, np.inf, -1.0)


def test_an_ill_conditioned_manifold_is_solved_to_the_certificate():
    A, lower, upper = manifold()
    assert np.linalg.cond(A.toarray()) > 100
    solution = solve_box_qp(A, lower, upper, ridge=1e-5)
    H = (A.T @ A).toarray() + 1e-5 * np.eye(150)
    residual = kkt_residual(solution.x, H @ solution.x, lower, upper)
    assert residual.max() <= 1e-8
    assert np.ptp(np.abs(solution.x)) > 1


@pytest.mark.parametrize(
    "settings",
    [
        {"PATIENCE": 0},
        {"LARGEST_INVERSE": 0},
        {"LARGEST_INVERSE": 0, "LARGEST_FACTOR": 5},
        {"DESCENTS": 1, "PATIENCE": 1},
    ],
    ids=str,
)
def test_every_way_leads_to_the_same_point(monkeypatch, settings):
    A, lower, upper = manifold(n_rows=80, twins=10)
    straight = solve_box_qp(A.toarray(), lower, upper, ridge=1e-2, tol=1e-10)
    for name, value in settings.items():
        module = boxqp_hessian if hasattr(boxqp_hessian, name) else boxqp
        monkeypatch.setattr(module, name, value)
    other = solve_box_qp(A, lower, upper, ridge=1e-2, tol=1e-10, max_iter=5000)
    assert straight.converged
    assert other.converged
    np.testing.assert_allclose(other.x, straight.x, atol=1e-6)


def test_a_singular_hessian_is_solved_all_the_same():
    A = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    solution = solve_box_qp(A, [[1.0], [-5.0], [-1.0]], [[2.0], [5.0], [1.0]])
    assert solution.converged
    assert solution.objective[0] == pytest.approx(0, abs=1e-15)


def test_equal_bounds_leave_no_choice():
    bounds = np.array([[1.0, 2.0], [3.0, -4.0]])
    solution = solve_box_qp(np.eye(2), bounds, bounds)
    np.testing.assert_array_equal(solution.x, bounds)
    assert solution.converged


def test_a_cap_is_kept_and_told():
    A, lower, upper = manifold()
    solution = solve_box_qp(A, lower, upper, ridge=1e-5, max_iter=1)
    assert solution.status == "max_iter"
    assert not solution.converged
    assert solution.n_iter.max() <= 1
    assert solution.residual.max() > 1e-8
