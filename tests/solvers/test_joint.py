"""The joint solver: the optimum of Eq. (9), and the proof of it."""

from __future__ import annotations

import itertools

import cvxpy
import numpy as np
import pytest
from scipy import sparse

from lemll.objective import duality_gap, lemll_objective
from lemll.solvers import solve_joint, solve_reference
from lemll.solvers.joint import JointProblem
from lemll.solvers.reference import MsvrBlock

ONES = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0, "epsilon": 0.1}
CORNER = {"alpha": 1 / 64, "beta": 1 / 64, "gamma": 64.0, "epsilon": 0.1}
TIGHT = {"tol": 1e-12, "max_iter": 20_000}


def solve_by_clarabel(X, Y, W, *, alpha, beta, gamma, epsilon):
    """Eq. (9) as a second-order cone program: L(r) is the squared distance to a ball."""
    n, n_labels = Y.shape
    U, inside = cvxpy.Variable((n, n_labels)), cvxpy.Variable((n, n_labels))
    theta, intercept = cvxpy.Variable((X.shape[1], n_labels)), cvxpy.Variable((1, n_labels))
    prediction = X @ theta + np.ones((n, 1)) @ intercept
    objective = (
        cvxpy.sum_squares(U - prediction - inside)
        + alpha * cvxpy.sum_squares(theta)
        + beta * cvxpy.sum_squares(U - Y)
        + gamma * cvxpy.sum_squares((np.eye(n) - W.toarray()) @ U)
    )
    program = cvxpy.Problem(cvxpy.Minimize(objective), [cvxpy.norm(inside, 2, axis=1) <= epsilon])
    tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
    program.solve(solver="CLARABEL", **tolerances)
    return program, U.value


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", range(100))
def test_an_interior_point_solver_agrees(seed, make_problem, draw_parameters):
    rng = np.random.default_rng(seed)
    problem = make_problem(seed, n=int(rng.integers(5, 25)), d=int(rng.integers(1, 30)))
    parameters = draw_parameters(rng)
    program, U = solve_by_clarabel(*problem, **parameters)
    solution = solve_joint(*problem, **parameters, **TIGHT)
    assert solution.converged
    assert solution.objective == pytest.approx(program.value, rel=1e-6)
    # beta |U - U*|^2 <= F(U) - F*, and the other solver's own error may be 1e-11 of F.
    scale = np.linalg.norm(solution.numerical_labels)
    noise = np.sqrt(1e-11 * solution.objective / parameters["beta"])
    assert np.linalg.norm(U - solution.numerical_labels) <= 1e-6 * scale + noise


@pytest.mark.parametrize("block", range(10))
def test_five_hundred_problems_are_certified_to_1e_8(block, make_problem, draw_parameters):
    for seed in range(1000 + 50 * block, 1050 + 50 * block):
        rng = np.random.default_rng(seed)
        problem = make_problem(
            seed,
            n=int(rng.integers(2, 40)),
            d=int(rng.integers(1, 50)),
            n_labels=int(rng.integers(1, 6)),
        )
        parameters = draw_parameters(rng)
        solution = solve_joint(*problem, **parameters, tol=1e-8, max_iter=20_000)
        assert solution.converged, (seed, parameters)
        assert solution.optimality <= 1e-8
        proof = duality_gap(*problem, solution.point, **parameters)
        assert proof.relative == solution.optimality
        trace = solution.objective_trace
        assert (np.diff(trace) <= 1e-12 * trace[:-1]).all()
        assert len(trace) == solution.n_iter + 1
        assert trace[-1] == pytest.approx(solution.objective, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_algorithm_1_ends_at_the_same_point(seed, make_problem, draw_parameters):
    problem = make_problem(seed, n=20, d=6)
    parameters = draw_parameters(np.random.default_rng(seed + 7)) | {"beta": 1.0}
    joint = solve_joint(*problem, **parameters, **TIGHT)
    nested = solve_reference(*problem, **parameters, tol=1e-15, inner_tol=1e-14)
    assert nested.objective == pytest.approx(joint.objective, rel=1e-9)
    np.testing.assert_allclose(nested.numerical_labels, joint.numerical_labels, atol=1e-4)
    np.testing.assert_allclose(nested.coef, joint.coef, atol=1e-3)


@pytest.mark.parametrize("parameters", [ONES, CORNER], ids=["ones", "corner"])
def test_the_start_does_not_matter(parameters, make_problem):
    problem = make_problem(1)
    from_labels = solve_joint(*problem, **parameters, **TIGHT)
    from_zero = solve_joint(*problem, **parameters, **TIGHT, U0=np.zeros_like(problem.Y))
    assert_same(from_zero, from_labels)


@pytest.mark.parametrize("d", [4, 80], ids=["d<n", "n<d"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_solution_is_where_the_next_one_starts(precision, d, make_problem):
    problem = JointProblem(*make_problem(1, d=d))
    first = problem.solve(**ONES, tol=1e-6, precision=precision)
    again = problem.solve(**ONES, tol=2e-6, start=first, precision=precision)
    assert again.n_iter == 0
    assert again.objective == pytest.approx(first.objective, rel=1e-6)
    elsewhere = problem.solve(**(ONES | {"alpha": 4.0}), tol=1e-6, precision=precision)
    moved = problem.solve(**(ONES | {"alpha": 4.0}), tol=1e-6, precision=precision, start=first)
    assert moved.objective == pytest.approx(elsewhere.objective, rel=2e-6)
    assert moved.n_iter <= elsewhere.n_iter


def test_any_solution_will_do_as_a_start(make_problem):
    problem = make_problem(1, d=80)
    plain = solve_joint(*problem, **ONES, **TIGHT)
    other = solve_reference(*problem, **ONES, tol=1e-6)
    assert_same(JointProblem(*problem).solve(**ONES, **TIGHT, start=other), plain)


def test_by_samples_the_coefficients_give_the_weights(make_problem):
    X, Y, W = make_problem(2, d=80)
    solution = solve_joint(X, Y, W, **ONES, tol=1e-6)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(solution.coef, solution.dual_coef.T @ centred, atol=1e-10)
    assert solve_joint(*make_problem(2), **ONES).dual_coef is None


def test_without_tube_and_neighbours_it_is_ridge(make_problem):
    X, Y, W = make_problem(2)
    alpha, beta = 0.7, 0.3
    solution = solve_joint(X, Y, W, alpha=alpha, beta=beta, gamma=0.0, epsilon=0.0, **TIGHT)
    centred = X - X.mean(axis=0)
    gram = centred.T @ centred + alpha * (1 + beta) / beta * np.eye(X.shape[1])
    theta = np.linalg.solve(gram, centred.T @ (Y - Y.mean(axis=0)))
    np.testing.assert_allclose(solution.coef, theta.T, atol=1e-8)
    intercept = Y.mean(axis=0) - X.mean(axis=0) @ theta
    np.testing.assert_allclose(solution.intercept, intercept, atol=1e-8)
    prediction = X @ theta + intercept
    labels = (prediction + beta * Y) / (1 + beta)
    np.testing.assert_allclose(solution.numerical_labels, labels, atol=1e-8)


def test_with_a_large_beta_it_is_msvr_on_the_labels(make_problem):
    X, Y, W = make_problem(3)
    solution = solve_joint(X, Y, W, alpha=1.0, beta=1e9, gamma=1.0, **TIGHT)
    block = MsvrBlock(X, Y.shape[1], alpha=1.0, epsilon=0.1)
    block.fit(Y, tol=1e-15, max_reweightings=500)
    np.testing.assert_allclose(solution.numerical_labels, Y, atol=1e-7)
    np.testing.assert_allclose(solution.coef, block.coef, atol=1e-6)
    np.testing.assert_allclose(solution.intercept, block.intercept, atol=1e-6)


def assert_same(one, other, *, atol=1e-5):
    assert one.objective == pytest.approx(other.objective, rel=1e-10)
    np.testing.assert_allclose(one.numerical_labels, other.numerical_labels, atol=atol)
    # The intercept is left out: it is free where every row is inside the tube.
    np.testing.assert_allclose(one.coef, other.coef, atol=atol)


def test_permuted_labels_give_permuted_solutions(make_problem):
    X, Y, W = make_problem(4, n_labels=5)
    order = np.array([3, 0, 4, 1, 2])
    plain = solve_joint(X, Y, W, **ONES, **TIGHT)
    permuted = solve_joint(X, Y[:, order], W, **ONES, **TIGHT)
    np.testing.assert_allclose(permuted.coef, plain.coef[order], atol=1e-6)
    np.testing.assert_allclose(
        permuted.numerical_labels, plain.numerical_labels[:, order], atol=1e-6
    )


def test_permuted_rows_give_permuted_solutions(make_problem):
    X, Y, W = make_problem(5)
    order = np.random.default_rng(0).permutation(len(X))
    plain = solve_joint(X, Y, W, **ONES, **TIGHT)
    permuted = solve_joint(X[order], Y[order], W[order][:, order], **ONES, **TIGHT)
    np.testing.assert_allclose(permuted.coef, plain.coef, atol=1e-6)
    np.testing.assert_allclose(permuted.numerical_labels, plain.numerical_labels[order], atol=1e-6)


def test_rotated_and_translated_features_give_the_same_labels(make_problem):
    X, Y, W = make_problem(6)
    rotation, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))
    shift = np.array([1e4, -1e4, 50.0, 0.0])
    plain = solve_joint(X, Y, W, **ONES, **TIGHT)
    moved = solve_joint(X @ rotation + shift, Y, W, **ONES, **TIGHT)
    np.testing.assert_allclose(moved.numerical_labels, plain.numerical_labels, atol=1e-6)
    np.testing.assert_allclose(moved.coef, plain.coef @ rotation, atol=1e-6)


@pytest.mark.parametrize("d", [5, 80], ids=["d<n", "n<d"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_sparse_features_are_dense_features(d, precision, make_problem):
    X, Y, W = make_problem(7, n=40, d=d)
    X = np.where(np.abs(X) > 0.8, X, 0.0) + (np.arange(d) == 1) * 3.0
    dense = solve_joint(X, Y, W, **ONES, tol=1e-6, precision=precision)
    thin = solve_joint(sparse.csr_array(X), Y, W, **ONES, tol=1e-6, precision=precision)
    assert dense.converged
    assert thin.converged
    assert thin.objective == pytest.approx(dense.objective, rel=2e-6)
    np.testing.assert_allclose(thin.numerical_labels, dense.numerical_labels, atol=1e-2)


def test_sparse_features_are_dense_features_to_the_last_digits(make_problem):
    X, Y, W = make_problem(7, n=40)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    dense = solve_joint(X, Y, W, **ONES, **TIGHT)
    assert_same(solve_joint(sparse.csr_array(X), Y, W, **ONES, **TIGHT), dense, atol=1e-7)


def test_more_features_than_rows_changes_nothing(make_problem):
    # Features of zeros carry no information but move the problem to the other form.
    X, Y, W = make_problem(8)
    padded = np.column_stack([X, np.zeros((len(X), 2 * len(X)))])
    plain = solve_joint(X, Y, W, **ONES, **TIGHT)
    wide = solve_joint(padded, Y, W, **ONES, **TIGHT)
    np.testing.assert_allclose(wide.numerical_labels, plain.numerical_labels, atol=1e-6)
    np.testing.assert_allclose(wide.coef[:, :4], plain.coef, atol=1e-6)
    np.testing.assert_array_equal(wide.coef[:, 4:], 0)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("parameters", [ONES, CORNER], ids=["ones", "corner"])
def test_the_virtual_label_stays_exactly_zero(parameters, precision, make_problem):
    X, Y, W = make_problem(9)
    plain = solve_joint(X, Y, W, **parameters, tol=1e-6, precision=precision)
    with_virtual = np.column_stack([np.zeros(len(X)), Y])
    solution = solve_joint(X, with_virtual, W, **parameters, tol=1e-6, precision=precision)
    np.testing.assert_array_equal(solution.numerical_labels[:, 0], 0)
    np.testing.assert_array_equal(solution.coef[0], 0)
    assert solution.intercept[0] == 0
    assert solution.objective == pytest.approx(plain.objective, rel=2e-6)


def test_constant_labels_and_constant_features_are_no_obstacle(make_problem):
    X, Y, W = make_problem(10)
    X = np.column_stack([X, np.full(len(X), 7.0), np.zeros(len(X))])
    Y = np.column_stack([Y, np.ones(len(X)), -np.ones(len(X))])
    solution = solve_joint(X, Y, W, **ONES, **TIGHT)
    assert solution.converged
    np.testing.assert_allclose(solution.numerical_labels[:, -2:], Y[:, -2:], atol=1e-6)
    np.testing.assert_allclose(solution.coef[-2:], 0, atol=1e-6)
    np.testing.assert_allclose(solution.coef[:, -2:], 0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2])
def test_one_and_two_rows(n, make_problem):
    problem = make_problem(11, n=n, d=3, n_labels=1)
    solution = solve_joint(*problem, **ONES, **TIGHT)
    assert solution.converged
    reference = solve_reference(*problem, **ONES, tol=1e-15, inner_tol=1e-15)
    assert solution.objective == pytest.approx(reference.objective, rel=1e-8, abs=1e-12)
    np.testing.assert_allclose(solution.numerical_labels, reference.numerical_labels, atol=1e-5)


def test_a_tube_wider_than_every_residual_leaves_only_the_labels(make_problem):
    X, Y, W = make_problem(12)
    solution = solve_joint(X, Y, W, alpha=1.0, beta=1.0, gamma=2.0, epsilon=50.0, **TIGHT)
    difference = np.eye(len(X)) - W.toarray()
    labels = np.linalg.solve(np.eye(len(X)) + 2 * difference.T @ difference, Y)
    np.testing.assert_allclose(solution.numerical_labels, labels, atol=1e-5)
    np.testing.assert_allclose(solution.coef, 0, atol=1e-6)


@pytest.mark.parametrize("start", ["labels", "zeros"])
@pytest.mark.parametrize("case", ["zero labels", "constant labels", "no neighbours"])
def test_an_optimum_of_zero_is_found_and_certified(case, start, make_problem):
    X, Y, W = make_problem(13)
    Y = {"zero labels": 0 * Y, "constant labels": 0 * Y + 1, "no neighbours": Y}[case]
    gamma, epsilon = (0.0, 50.0) if case == "no neighbours" else (1.0, 0.1)
    solution = solve_joint(
        X,
        Y,
        W,
        alpha=1.0,
        beta=1.0,
        gamma=gamma,
        epsilon=epsilon,
        tol=1e-6,
        U0=None if start == "labels" else np.zeros_like(Y),
    )
    assert solution.converged
    assert solution.objective <= 1e-6
    np.testing.assert_allclose(solution.numerical_labels, Y, atol=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_single_precision_is_certified_to_1e_4(seed, make_problem, draw_parameters):
    parameters = draw_parameters(np.random.default_rng(seed))
    solution = solve_joint(*make_problem(seed), **parameters, tol=1e-4, precision="float32")
    assert solution.optimality <= 1e-4
    assert solution.numerical_labels.dtype == solution.coef.dtype == np.float64


def test_single_precision_finishes_in_double_when_it_must(make_problem):
    problem = make_problem(14)
    solution = solve_joint(*problem, **CORNER, tol=1e-10, max_iter=20_000, precision="float32")
    assert solution.optimality <= 1e-10


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse"])
def test_read_only_inputs_go_in_and_stay_as_they_are(kind, precision, make_problem, tmp_path):
    X, Y, W = make_problem(15)
    if kind == "dense":
        stored = np.memmap(tmp_path / "X", dtype=X.dtype, shape=X.shape, mode="w+")
        stored[:] = X
        stored.flush()
        X = np.memmap(tmp_path / "X", dtype=X.dtype, shape=X.shape, mode="r")
    else:
        X = X.astype(np.float32) if kind == "float32" else sparse.csr_array(X)
    buffers = [Y, W.data, W.indices, W.indptr]
    buffers += [X.data, X.indices, X.indptr] if kind == "sparse" else [X]
    before = [np.array(buffer) for buffer in buffers]
    for buffer in buffers:
        buffer.flags.writeable = False
    solution = solve_joint(X, Y, W, **ONES, precision=precision, U0=Y)
    assert solution.converged
    for buffer, copy in zip(buffers, before, strict=True):
        np.testing.assert_array_equal(buffer, copy)
    assert not np.shares_memory(solution.numerical_labels, Y)


def test_it_is_deterministic(make_problem):
    problem = make_problem(16)
    one, other = (solve_joint(*problem, **CORNER) for _ in range(2))
    np.testing.assert_array_equal(one.numerical_labels, other.numerical_labels)
    np.testing.assert_array_equal(one.coef, other.coef)


def test_it_reports_every_iteration(make_problem):
    lines = []
    solution = solve_joint(*make_problem(17), **ONES, tol=1e-8, callback=lines.append)
    assert [line.iteration for line in lines] == list(range(1, solution.n_iter + 1))
    assert [line.objective for line in lines] == solution.objective_trace[1:].tolist()
    assert all(a.elapsed < b.elapsed for a, b in itertools.pairwise(lines))


def test_the_cap_on_iterations_is_kept_and_still_certified(make_problem):
    problem = make_problem(18)
    solution = solve_joint(*problem, **CORNER, tol=1e-12, max_iter=3)
    assert (solution.n_iter, solution.status, solution.converged) == (3, "max_iter", False)
    proof = duality_gap(*problem, solution.point, **CORNER)
    assert solution.optimality == proof.relative > 1e-12
    assert solution.objective == lemll_objective(*problem, solution.point, **CORNER)


def test_a_gap_below_rounding_ends_in_a_stall_not_in_a_loop(make_problem):
    solution = solve_joint(*make_problem(19), **ONES, tol=1e-300, max_iter=100_000)
    assert solution.status == "stalled"
    assert solution.optimality < 1e-12


@pytest.mark.parametrize("solve", [solve_joint, solve_reference])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"alpha": 0.0}, r"alpha must be finite and > 0, got 0\.0"),
        ({"beta": -1.0}, r"beta must be finite and > 0, got -1\.0"),
        ({"gamma": -1.0}, r"gamma must be finite and >= 0, got -1\.0"),
        ({"epsilon": float("nan")}, r"epsilon must be finite and >= 0, got nan"),
    ],
)
def test_parameters_without_a_unique_optimum_are_refused(solve, wrong, message, make_problem):
    with pytest.raises(ValueError, match=message):
        solve(*make_problem(), **(ONES | wrong))


@pytest.mark.parametrize("solve", [solve_joint, solve_reference])
def test_arrays_that_do_not_fit_are_refused(solve, make_problem):
    X, Y, W = make_problem()
    with pytest.raises(ValueError, match=r"X has 29 rows, so Y must be \(29, n_labels\)"):
        solve(X[:-1], Y, W, **ONES)


def test_a_start_of_another_shape_is_refused(make_problem):
    X, Y, W = make_problem()
    with pytest.raises(ValueError, match=r"U0 must have the shape of Y, \(30, 3\); got \(30, 2\)"):
        solve_joint(X, Y, W, **ONES, U0=Y[:, :2])


@pytest.mark.parametrize("d", [4, 50])
def test_features_whose_squares_overflow_are_refused(d, make_problem):
    X, Y, W = make_problem(d=d)
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="overflow"):
        solve_joint(1e300 * X, Y, W, **ONES)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_it_needs_no_dense_matrix_where_none_would_fit(kind, make_problem, monkeypatch):
    X, Y, W = make_problem(20)
    plain = solve_joint(X, Y, W, **ONES, **TIGHT)
    monkeypatch.setattr("lemll.solvers._model.MAX_DENSE_ORDER", 2)
    frugal = solve_joint(X if kind == "dense" else sparse.csr_array(X), Y, W, **ONES, **TIGHT)
    assert (plain.n_linear_solves, frugal.n_linear_solves) == (1, 0)
    assert_same(frugal, plain)
