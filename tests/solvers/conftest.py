"""Small random problems for the tests of the solvers, from nothing but a seed."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import cvxpy
import numpy as np
import pytest
from scipy import sparse

GRID = tuple(4.0**k for k in range(-3, 4))


class Problem(NamedTuple):
    X: Any
    Y: Any
    W: Any


def make_problem(seed=0, *, n=30, d=4, n_labels=3, n_neighbors=4):
    """Labels that depend on the features but not linearly; rebuilding weights of both signs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X @ rng.standard_normal((d, n_labels)) + np.sin(3 * X[:, :1])
    Y = np.where(score + 0.5 * rng.standard_normal((n, n_labels)) > 0, 1.0, -1.0)
    if n == 1:
        # Only the row itself is left to rebuild it from: M = 0.
        return Problem(X, Y, sparse.csr_array(np.ones((1, 1))))
    K = min(n_neighbors, n - 1)
    W = np.zeros((n, n))
    for i in range(n):
        distance = ((X - X[i]) ** 2).sum(axis=1)
        distance[i] = np.inf
        W[i, np.argsort(distance)[:K]] = rng.dirichlet(np.ones(K)) * 1.5 - 0.5 / K
    return Problem(X, Y, sparse.csr_array(W))


CORNERS = tuple(
    {"alpha": alpha, "beta": beta, "gamma": gamma, "epsilon": 0.1}
    for alpha, beta, gamma in itertools.product((GRID[0], GRID[-1]), repeat=3)
)


def draw_parameters(rng):
    """Draw a point of the grid {1/64, .., 64}^3 of the paper."""
    alpha, beta, gamma = (float(v) for v in rng.choice(GRID, size=3))
    return {"alpha": alpha, "beta": beta, "gamma": gamma, "epsilon": 0.1}


@pytest.fixture(
    name="corner",
    params=CORNERS,
    ids=lambda p: f"{p['alpha']:.2g},{p['beta']:.2g},{p['gamma']:.2g}",
)
def _corner(request):
    return request.param


@pytest.fixture(name="corners")
def _corners():
    return CORNERS


@pytest.fixture(name="make_problem")
def _make_problem():
    return make_problem


@pytest.fixture(name="draw_parameters")
def _draw_parameters():
    return draw_parameters


def minimum(objective, inside, epsilon, tol=1e-11):
    """Solve a second-order cone program: L(r) is the squared distance to a ball."""
    # A ball of radius 0 has no interior for an interior point method to walk in.
    tube = [cvxpy.norm(inside, 2, axis=1) <= epsilon] if epsilon else [inside == 0]
    program = cvxpy.Problem(cvxpy.Minimize(objective), tube)
    tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tol)
    program.solve(solver="CLARABEL", **tolerances)
    return program


def solve_by_clarabel(X, Y, W, *, alpha, beta, gamma, epsilon, weights=None, tol=1e-11):
    """Return Eq. (9) as a solved program, and U."""
    n, n_labels = Y.shape
    U, inside = cvxpy.Variable((n, n_labels)), cvxpy.Variable((n, n_labels))
    theta, intercept = cvxpy.Variable((X.shape[1], n_labels)), cvxpy.Variable((1, n_labels))
    prediction = X @ theta + np.ones((n, 1)) @ intercept
    change = U - Y if weights is None else cvxpy.multiply(np.sqrt(weights), U - Y)
    objective = (
        cvxpy.sum_squares(U - prediction - inside)
        + alpha * cvxpy.sum_squares(theta)
        + beta * cvxpy.sum_squares(change)
        + gamma * cvxpy.sum_squares((np.eye(n) - W.toarray()) @ U)
    )
    return minimum(objective, inside, epsilon, tol), U.value


@pytest.fixture(name="solve_by_clarabel")
def _solve_by_clarabel():
    return solve_by_clarabel


@pytest.fixture(name="solve_msvr_by_clarabel")
def _solve_msvr_by_clarabel():
    """Return the minimum of Eq. (10) with weights of rows and of cells, and Theta."""

    def solve(X, T, alpha, epsilon, *, rows=None, cells=None):
        n, m = T.shape
        inside = cvxpy.Variable((n, m))
        theta, intercept = cvxpy.Variable((X.shape[1], m)), cvxpy.Variable((1, m))
        residuals = T - X @ theta - np.ones((n, 1)) @ intercept
        if cells is not None:
            residuals = cvxpy.multiply(np.sqrt(cells), residuals)
        outside = residuals - inside
        if rows is not None:
            outside = cvxpy.multiply(np.sqrt(rows)[:, None] @ np.ones((1, m)), outside)
        objective = cvxpy.sum_squares(outside) + alpha * cvxpy.sum_squares(theta)
        return float(minimum(objective, inside, epsilon).value), theta.value.T

    return solve


@pytest.fixture(name="arrays_of")
def _arrays_of():
    """Names and values of the arrays in a solution."""

    def arrays_of(solution):
        values = vars(solution).items()
        return [(name, value) for name, value in values if isinstance(value, np.ndarray)]

    return arrays_of
