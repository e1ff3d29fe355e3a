"""Eq. (10) alone: the optimum, the proof of it, and what weights of rows mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

from lemll.lab.reference import MsvrBlock
from lemll.solvers import solve_msvr
from lemll.solvers.linear import CentredFeatures


class Drawn(NamedTuple):
    X: Any
    T: Any
    weights: Any
    alpha: float
    epsilon: float


def draw(seed, *, shape=None, epsilon=None):
    rng = np.random.default_rng(seed)
    n, d = shape or (int(rng.integers(3, 40)), int(rng.integers(1, 40)))
    m = int(rng.integers(1, 5))
    X = 2 * rng.standard_normal((n, d)) + rng.normal()
    X[rng.random((n, d)) < 0.3] = 0
    T = 0.3 * X @ rng.standard_normal((d, m)) + rng.standard_normal((n, m)) + 5
    weights = rng.integers(0, 4, n).astype(float)
    weights[0] = 1
    if epsilon is None:
        epsilon = float(rng.choice([0.0, 0.01, 0.1, 0.5, 2.0]))
    return Drawn(X, T, weights, float(4.0 ** rng.integers(-3, 4)), epsilon)


def value(problem, coef, intercept, weights=1.0):
    norms = np.linalg.norm(problem.T - problem.X @ coef.T - intercept, axis=1)
    loss = np.maximum(norms - problem.epsilon, 0) ** 2
    return float(np.sum(weights * loss) + problem.alpha * np.sum(coef**2))


def solve(problem, weights=None, X=None, **options):
    return solve_msvr(
        problem.X if X is None else X,
        problem.T,
        alpha=problem.alpha,
        epsilon=problem.epsilon,
        sample_weight=weights,
        **options,
    )


def predict(problem, solution):
    return problem.X @ solution.coef.T + solution.intercept


def ridge(X, T, alpha, weights):
    """Ridge regression with a free intercept, by its normal equations."""
    extended = np.column_stack([X, np.ones(len(X))])
    penalty = alpha * np.eye(X.shape[1] + 1)
    penalty[-1, -1] = 0
    weighted = weights[:, None] * extended
    solved = np.linalg.solve(extended.T @ weighted + penalty, weighted.T @ T)
    return solved[:-1].T, solved[-1]


@pytest.mark.parametrize("shape", [(40, 5), (12, 30), (20, 20)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_without_a_tube_it_is_ridge_regression_in_two_steps(shape, weighted, convert):
    problem = draw(1, shape=shape, epsilon=0.0)
    weights = problem.weights if weighted else None
    solution = solve(problem, weights, convert(problem.X))
    assert solution.converged
    assert solution.n_iter <= 2
    ones = np.ones(len(problem.T))
    coef, intercept = ridge(problem.X, problem.T, problem.alpha, weights if weighted else ones)
    np.testing.assert_allclose(solution.coef, coef, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(solution.intercept, intercept, rtol=1e-10, atol=1e-10)


@pytest.mark.nightly(when=lambda seed: seed >= 10)
# For some problems it is asked for a digit more than it can promise; those it gives are enough.
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_an_interior_point_solver_agrees(seed, weighted, solve_msvr_by_clarabel):
    problem = draw(seed)
    weights = problem.weights if weighted else np.ones(len(problem.T))
    X, T, _, *parameters = problem
    expected, theta = solve_msvr_by_clarabel(X, T, *parameters, rows=weights)
    for X in (problem.X, sparse.csr_array(problem.X)):
        solution = solve(problem, weights if weighted else None, X)
        assert solution.converged
        assert solution.objective == pytest.approx(expected, rel=1e-6)
        error = np.linalg.norm(theta - solution.coef)
        assert error <= 1e-4 * np.linalg.norm(solution.coef) + 1e-5


@pytest.mark.nightly(when=lambda block: block >= 2)
@pytest.mark.parametrize("block", range(5))
def test_two_hundred_problems_are_certified(block):
    for seed in range(100 + 40 * block, 140 + 40 * block):
        problem = draw(seed)
        solution = solve(problem, problem.weights)
        assert solution.converged, seed
        assert solution.optimality <= 1e-10
        found = value(problem, solution.coef, solution.intercept, problem.weights)
        assert solution.objective == pytest.approx(found, rel=1e-9, abs=1e-12)
        assert len(solution.objective_trace) == solution.n_iter + 1
        assert solution.objective_trace[-1] == solution.objective
        rises = np.diff(solution.objective_trace)
        assert rises.max(initial=0) <= 1e-12 * solution.objective_trace[0]


@pytest.mark.parametrize("seed", range(20))
def test_the_certificate_is_true_before_the_end(seed):
    problem = draw(seed)
    optimum = solve(problem).objective
    for max_iter in range(4):
        early = solve(problem, max_iter=max_iter)
        assert early.n_iter <= max_iter
        distance = early.objective - optimum
        assert distance <= early.optimality * early.objective + 1e-12


@pytest.mark.parametrize("shape", [(40, 5), (12, 30)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_irwls_ends_at_the_same_optimum(shape, epsilon):
    problem = draw(5, shape=shape, epsilon=epsilon)._replace(alpha=1.0)
    block = MsvrBlock(problem.X, problem.T.shape[1], alpha=1.0, epsilon=epsilon)
    block.fit(problem.T, tol=1e-15, max_reweightings=2000)
    solution = solve(problem)
    assert value(problem, block.coef, block.intercept) == pytest.approx(
        solution.objective, rel=1e-8
    )
    np.testing.assert_allclose(block.coef, solution.coef, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(30))
def test_a_whole_weight_is_that_many_rows(seed):
    problem = draw(seed)
    times = problem.weights.astype(int)
    repeated = problem._replace(
        X=np.repeat(problem.X, times, axis=0), T=np.repeat(problem.T, times, axis=0)
    )
    weighted, plain = solve(problem, problem.weights), solve(repeated)
    assert weighted.objective == pytest.approx(plain.objective, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(
        predict(problem, weighted), predict(problem, plain), rtol=1e-7, atol=1e-7
    )


@pytest.mark.parametrize("sparse_features", [False, True])
@pytest.mark.parametrize("shape", [(40, 5), (12, 30)])
def test_a_weight_of_zero_is_no_row(shape, sparse_features):
    problem = draw(3, shape=shape, epsilon=0.1)
    kept = np.random.default_rng(0).random(len(problem.T)) < 0.6
    X = sparse.csr_array(problem.X) if sparse_features else problem.X
    solution = solve(problem, kept.astype(float), X)
    fewer = solve(problem._replace(X=problem.X[kept], T=problem.T[kept]))
    np.testing.assert_allclose(solution.coef, fewer.coef, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(solution.intercept, fewer.intercept, rtol=1e-9)


def test_weights_of_very_different_size():
    problem = draw(8, shape=(40, 6), epsilon=0.1)
    weights = 10.0 ** np.random.default_rng(0).uniform(-6, 3, 40)
    solution = solve(problem, weights)
    assert solution.converged
    assert solution.optimality <= 1e-10


@pytest.mark.parametrize("shape", [(40, 5), (12, 30)])
def test_a_tube_wider_than_every_residual_leaves_nothing_to_learn(shape):
    problem = draw(4, shape=shape, epsilon=1e3)
    solution = solve(problem)
    assert solution.converged
    assert solution.objective == 0
    assert not solution.coef.any()


def test_a_tube_that_only_some_intercept_fits():
    # Many rows draw the mean away from the middle of the two extremes.
    T = np.r_[np.zeros(20), 1.9][:, None]
    solution = solve_msvr(np.zeros((21, 1)), T, alpha=1.0, epsilon=1.0)
    assert solution.converged
    assert solution.objective <= 1e-17
    assert 0.9 - 1e-6 <= solution.intercept[0] <= 1 + 1e-6


def test_constant_targets_are_learnt_exactly():
    problem = draw(6, shape=(30, 4), epsilon=0.1)
    T = np.column_stack([problem.T, np.full(30, -1.0)])
    solution = solve(problem._replace(T=T))
    assert not solution.coef[-1].any()
    assert solution.intercept[-1] == -1
    alone = solve(problem)
    np.testing.assert_allclose(solution.coef[:-1], alone.coef, rtol=1e-9, atol=1e-12)


def test_a_shift_of_features_and_targets_moves_the_intercept_alone():
    problem = draw(7, shape=(30, 4), epsilon=0.1)
    moved = solve(problem._replace(X=problem.X + 1e4, T=problem.T - 1e4))
    np.testing.assert_allclose(moved.coef, solve(problem).coef, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_weighted_products_are_those_of_scaled_rows(convert):
    problem = draw(2, shape=(12, 7))
    weights = problem.weights + 0.5
    features = CentredFeatures(convert(problem.X), np.float64, weights)
    root = np.sqrt(weights)[:, None]
    centred = root * (problem.X - np.average(problem.X, axis=0, weights=weights))
    np.testing.assert_allclose(features.gram(0.0), centred.T @ centred, atol=1e-10)
    np.testing.assert_allclose(features.kernel, centred @ centred.T, atol=1e-10)
    np.testing.assert_allclose(features.gram_diagonal, np.square(centred).sum(axis=0))
    V = np.random.default_rng(0).standard_normal((8, 3))
    np.testing.assert_allclose(features.times(V), np.hstack([centred, root]) @ V, atol=1e-10)
    A = np.random.default_rng(1).standard_normal((12, 3))
    np.testing.assert_allclose(
        features.transposed_times(A), np.hstack([centred, root]).T @ A, atol=1e-10
    )
    assert features.total_weight == pytest.approx(weights.sum())


def test_a_diagonal_preconditioner_will_do(monkeypatch):
    problem = draw(10, shape=(30, 8), epsilon=0.1)
    expected = solve(problem, problem.weights)
    monkeypatch.setattr("lemll.solvers.linear.MAX_DENSE_ORDER", 1)
    for X in (problem.X, sparse.csr_array(problem.X)):
        found = solve(problem, problem.weights, X)
        assert found.converged
        np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-6, atol=1e-8)


def test_the_callback_sees_every_step():
    seen = []
    solution = solve(draw(0, epsilon=0.5), callback=seen.append)
    assert [line.iteration for line in seen] == list(range(1, len(seen) + 1))
    # A last step that rounding spoilt was taken back.
    assert solution.n_iter <= len(seen) <= solution.n_iter + 1
    assert [line.elapsed for line in seen] == sorted(line.elapsed for line in seen)
    np.testing.assert_allclose(
        [line.objective for line in seen][: solution.n_iter],
        solution.objective_trace[1:],
        rtol=1e-9,
    )


def test_the_cap_on_the_steps_is_reported():
    solution = solve(draw(0, epsilon=0.5), max_iter=1)
    assert solution.status == "max_iter"
    assert not solution.converged
    assert solution.n_iter == 1
    assert solution.optimality > 1e-10


def test_what_rounding_forbids_is_reported():
    solution = solve(draw(0, epsilon=0.5), tol=1e-90)
    assert solution.status == "stalled"
    assert solution.optimality < 1e-15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.array([["a"], ["b"]])}, "X must hold real numbers"),
        ({"X": np.zeros(2)}, "X must be 2-D with rows and features"),
        ({"X": np.zeros((2, 0))}, "X must be 2-D with rows and features"),
        ({"X": np.array([[0.0], [np.nan]])}, "X must be finite, got nan in row 1"),
        ({"targets": np.zeros(2)}, r"X has 2 rows, so targets must be \(2, n_outputs\)"),
        ({"targets": np.zeros((3, 1))}, r"got \(3, 1\)"),
        ({"targets": np.zeros((2, 1), dtype=complex)}, "targets must hold real numbers"),
        ({"targets": np.array([[1e200], [0]])}, "whose squares overflow"),
        ({"alpha": 0.0}, "alpha must be finite and > 0"),
        ({"epsilon": -1.0}, "epsilon must be finite and >= 0"),
        ({"tol": 0.0}, "tol must be finite and > 0"),
        ({"max_iter": -1}, "max_iter must be a whole number"),
        ({"sample_weight": np.ones(3)}, "one weight for each of the 2 rows"),
        ({"sample_weight": np.array([1.0, -1.0])}, "must not be negative, got -1.0 in row 1"),
        ({"sample_weight": np.zeros(2)}, "sample_weight is zero for every row"),
        ({"sample_weight": np.array([1.0, np.inf])}, "sample_weight must be finite"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {"X": np.array([[0.0], [1.0]]), "targets": np.eye(2), "alpha": 1.0} | change
    with pytest.raises(ValueError, match=message):
        solve_msvr(arguments.pop("X"), arguments.pop("targets"), **arguments)
