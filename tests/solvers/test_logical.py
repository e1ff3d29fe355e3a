"""Logical labels 0/1, some of them the same in every row."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from lemll.solvers import GridPoint, LogicalPath, solve_joint
from lemll.solvers.equation9 import duality_gap
from lemll.solvers.joint import solve_logical

ONES = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0, "epsilon": 0.1}


@pytest.fixture(name="labelled")
def _labelled(make_problem):
    """Two labels that vary between two that do not."""
    X, Y, W = make_problem(1, n_labels=2)
    Y = (Y > 0).astype(np.uint8)
    return X, np.column_stack([0 * Y[:, 0], Y, 0 * Y[:, 0] + 1]), W


def test_constant_labels_come_back_and_the_others_are_those_of_the_solver(labelled):
    X, Y, W = labelled
    solution = solve_logical(X, Y, W, **ONES, tol=1e-8)
    inner = solve_joint(X, 2.0 * Y[:, 1:3] - 1, W, **ONES, tol=1e-8)
    np.testing.assert_array_equal(solution.coef[[0, 3]], 0)
    np.testing.assert_array_equal(solution.intercept[[0, 3]], [-1, 1])
    np.testing.assert_array_equal(solution.numerical_labels[:, 1:3], inner.numerical_labels)
    assert solution.objective == pytest.approx(inner.objective, rel=1e-12)


@pytest.mark.parametrize("columns", [[0, 3], [0, 1, 2, 3]], ids=["all constant", "some constant"])
@pytest.mark.parametrize("off", [0.0, 9e-7])
def test_the_certificate_is_that_of_all_labels(columns, off, labelled):
    X, Y, W = labelled
    # Off by as much as is let pass for a graph stored in float32.
    W = sparse.csr_array(W * (1 + off))
    Y = Y[:, columns]
    solution = solve_logical(X, Y, W, **ONES, tol=1e-6)
    proof = duality_gap(X, 2.0 * Y - 1, W, solution.point, **ONES)
    if off == 0 and len(columns) == 2:
        proof = (0.0, 0.0, 0.0)  # and not what rounding makes of it
    assert (solution.objective, solution.optimality) == (proof[0], proof[2])
    assert solution.converged
    assert solution.optimality <= 1e-6
    assert solution.objective_trace[-1] == pytest.approx(solution.objective, rel=1e-6, abs=1e-20)
    assert off == 0 or solution.objective > 0


def test_a_solution_cut_short_is_not_begun_again(labelled):
    X, Y, W = labelled
    solution = solve_logical(X, Y, W, **ONES, tol=1e-12, max_iter=1)
    assert (solution.status, solution.n_iter) == ("max_iter", 1)
    assert solution.optimality > 1e-12


GRID = [GridPoint(*point) for point in itertools.product((1 / 4, 4.0), repeat=3)]


def test_a_path_puts_constant_labels_back(labelled):
    X, Y, W = labelled
    path = LogicalPath(X, Y, W)
    places = []
    for place, solution in path.solve(GRID, tol=1e-10, max_iter=10_000):
        places.append(place)
        weights = GRID[place]._asdict() | {"epsilon": 0.1}
        alone = solve_logical(X, Y, W, **weights, tol=1e-10, max_iter=10_000)
        assert solution.converged
        np.testing.assert_array_equal(solution.coef[[0, 3]], 0)
        np.testing.assert_array_equal(solution.intercept[[0, 3]], [-1, 1])
        np.testing.assert_array_equal(solution.numerical_labels[:, 0], -1)
        np.testing.assert_allclose(solution.coef, alone.coef, atol=1e-4)
        np.testing.assert_allclose(solution.numerical_labels, alone.numerical_labels, atol=1e-3)
        certificate = duality_gap(X, 2.0 * Y - 1, W, solution.point, **weights)
        assert certificate.relative <= 1e-9
    assert sorted(places) == list(range(8))


def test_a_path_of_nothing_but_constant_labels(labelled, arrays_of):
    X, Y, W = labelled
    steps = list(LogicalPath(X, Y[:, [0, 3]], W).solve(GRID[:2]))
    assert [step.place for step in steps] == [0, 1]
    for _, solution in steps:
        assert solution.converged
        assert solution.objective == solution.optimality == 0
        np.testing.assert_array_equal(solution.intercept, [-1, 1])
    for name, array in arrays_of(steps[0].solution):
        assert not np.shares_memory(array, getattr(steps[1].solution, name)), name


def test_a_path_prepared_once_goes_on_with_more_points(labelled, monkeypatch):
    X, Y, W = labelled
    path = LogicalPath(X, Y, W)
    monkeypatch.setattr("lemll.solvers.linear.SPECTRUM_PAYS", len(GRID))
    first = [step.solution.coef for step in path.solve(GRID)]
    # A second decomposition would fail.
    monkeypatch.setattr("lemll.solvers.linear.eigh", None)
    again = [step.solution.coef for step in path.solve(GRID)]
    np.testing.assert_array_equal(first, again)
