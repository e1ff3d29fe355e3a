"""Algorithm 1 as the paper writes it."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from lemll.lab.reference import MsvrBlock, solve_reference
from lemll.solvers.certificate import row_norms, tube_weights
from lemll.solvers.equation9 import LemllPoint, duality_gap

ONES = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0, "epsilon": 0.1}
TIGHT = {"tol": 1e-14, "inner_tol": 1e-13}


def test_a_general_minimiser_finds_nothing_lower(make_problem):
    X, Y, W = make_problem(n=12)
    solution = solve_reference(X, Y, W, **ONES, **TIGHT)
    difference = np.eye(12) - W.toarray()
    shapes = [part.shape for part in solution.point]
    cuts = np.cumsum([part.size for part in solution.point])[:-1]

    def unpack(flat):
        parts = np.split(flat, cuts)
        return LemllPoint(*(p.reshape(s) for p, s in zip(parts, shapes, strict=True)))

    def value_and_gradient(flat):
        U, coef, intercept = point = unpack(flat)
        residuals = U - X @ coef.T - intercept
        pull = tube_weights(row_norms(residuals), 0.1)[:, None] * residuals
        labels = pull + U - Y + difference.T @ (difference @ U)
        parts = labels, coef - pull.T @ X, -pull.sum(axis=0)
        slope = 2 * np.concatenate([part.ravel() for part in parts])
        return duality_gap(X, Y, W, point, **ONES).objective, slope

    size = sum(part.size for part in solution.point)
    other = minimize(
        value_and_gradient,
        np.zeros(size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9},
    )
    assert solution.objective == pytest.approx(other.fun, rel=1e-8)
    assert solution.optimality < 1e-8


def test_the_objective_never_rises(make_problem, draw_parameters):
    rng = np.random.default_rng(5)
    for seed in range(20):
        solution = solve_reference(*make_problem(seed, n=15), **draw_parameters(rng))
        trace = solution.objective_trace
        assert (np.diff(trace) <= 1e-12 * trace[:-1]).all()
        assert trace[-1] == pytest.approx(solution.objective, rel=1e-10)


def test_the_start_does_not_matter(make_problem):
    X, Y, W = make_problem(1)
    from_zero = solve_reference(X, Y, W, **ONES, **TIGHT)
    from_labels = solve_reference(X, Y, W, **ONES, **TIGHT, U0=Y)
    np.testing.assert_allclose(from_zero.numerical_labels, from_labels.numerical_labels, atol=1e-6)


def test_one_reweighting_per_block_ends_at_the_same_point(make_problem):
    problem = make_problem(2)
    nested = solve_reference(*problem, **ONES, **TIGHT)
    single = solve_reference(*problem, **ONES, tol=1e-14, one_reweighting=True)
    assert single.objective == pytest.approx(nested.objective, rel=1e-10)
    assert single.n_linear_solves < nested.n_linear_solves


def test_the_kernel_form_is_the_primal_form(make_problem):
    # Padding with constant-zero features turns d < n into d >= n and changes nothing else.
    X, Y, W = make_problem(3)
    padded = np.column_stack([X, np.zeros((len(X), len(X)))])
    primal = solve_reference(X, Y, W, **ONES, **TIGHT)
    kernel = solve_reference(padded, Y, W, **ONES, **TIGHT)
    assert kernel.objective == pytest.approx(primal.objective, rel=1e-11)
    np.testing.assert_allclose(kernel.coef[:, : X.shape[1]], primal.coef, atol=1e-6)
    np.testing.assert_array_equal(kernel.coef[:, X.shape[1] :], 0)


def test_inside_the_tube_the_model_shrinks_instead_of_stopping(make_problem):
    X, Y, _ = make_problem(4)
    block = MsvrBlock(X, Y.shape[1], alpha=0.01, epsilon=0.1)
    block.fit(Y, tol=1e-12, max_reweightings=100)
    assert np.abs(block.coef).max() > 0.1
    # In a tube this wide no row pulls any more, and Theta = 0 costs nothing.
    block.epsilon = 100.0
    block.fit(Y, tol=1e-12, max_reweightings=100)
    np.testing.assert_array_equal(block.coef, 0)


def test_it_stops_where_it_is_told_to(make_problem):
    problem = make_problem(6)
    assert solve_reference(*problem, **ONES, max_outer=2).status == "max_iter"
    out_of_time = solve_reference(*problem, **ONES, time_limit=0.0)
    assert (out_of_time.n_iter, out_of_time.status) == (1, "max_iter")
    assert solve_reference(*problem, **ONES).converged


def test_sparse_features_are_accepted(make_problem):
    X, Y, W = make_problem(7)
    dense = solve_reference(X, Y, W, **ONES)
    assert solve_reference(sparse.csr_array(X), Y, W, **ONES).objective == dense.objective
