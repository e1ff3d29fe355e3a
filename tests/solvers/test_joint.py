"""The joint solver: the optimum of Eq. (9), and the proof of it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from lemll.lab.reference import MsvrBlock, solve_reference
from lemll.solvers import solve_joint
from lemll.solvers.equation9 import duality_gap
from lemll.solvers.joint import JointProblem

ONES = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0, "epsilon": 0.1}
CORNER = {"alpha": 1 / 64, "beta": 1 / 64, "gamma": 64.0, "epsilon": 0.1}
TIGHT = {"tol": 1e-13, "max_iter": 20_000}


@pytest.mark.nightly(when=lambda seed: seed >= 30)
# For some problems it is asked for a digit more than it can promise; those it gives are enough.
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", range(100))
def test_an_interior_point_solver_agrees(
    seed, make_problem, draw_parameters, corners, solve_by_clarabel
):
    rng = np.random.default_rng(seed)
    problem = make_problem(
        seed,
        n=int(rng.integers(5, 25)),
        d=int(rng.integers(1, 30)),
        n_labels=int(rng.integers(1, 6)),
    )
    parameters = corners[seed] if seed < len(corners) else draw_parameters(rng)
    parameters = parameters | {"epsilon": float(rng.choice([0.0, 0.01, 0.1, 0.5]))}
    program, U = solve_by_clarabel(*problem, **parameters)
    # beta |U - U*|^2 <= F - F*, and beta may be small.
    solution = solve_joint(*problem, **parameters, tol=1e-14, max_iter=20_000)
    assert solution.converged
    assert solution.objective == pytest.approx(program.value, rel=1e-6)
    error = np.linalg.norm(U - solution.numerical_labels)
    assert error <= 1e-6 * np.linalg.norm(solution.numerical_labels)


@pytest.mark.nightly(when=lambda block: block >= 2)
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
        proof = duality_gap(*problem, solution.point, **parameters, half_dual=solution.half_dual)
        assert proof.relative == solution.optimality
        trace = solution.objective_trace
        assert len(trace) == solution.n_iter + 1
        assert trace[-1] == pytest.approx(solution.objective, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(10))
def test_every_iterate_is_lower_than_the_last_and_as_low_as_traced(
    seed, precision, make_problem, draw_parameters
):
    rng = np.random.default_rng(seed)
    problem = make_problem(seed, n=25, d=int(rng.integers(1, 50)))
    parameters = draw_parameters(rng)
    options = {"tol": 1e-8, "precision": precision}
    trace = solve_joint(*problem, **parameters, **options, max_iter=40).objective_trace
    rounding = 1e-12 if precision == "float64" else 1e-3
    last = np.inf
    for n_iter, traced in enumerate(trace):
        point = solve_joint(*problem, **parameters, **options, max_iter=n_iter).point
        objective = duality_gap(*problem, point, **parameters).objective
        assert objective <= last * (1 + rounding)
        assert traced == pytest.approx(objective, rel=rounding)
        last = objective


@pytest.mark.parametrize("d", [4, 80], ids=["d<n", "n<d"])
@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_the_trace_keeps_its_digits_from_a_start_far_away(far, d, make_problem):
    X, Y, W = make_problem(1, d=d)
    solution = solve_joint(X, Y, W, **ONES, tol=1e-8, U0=far * Y)
    assert solution.converged
    assert solution.objective_trace[0] > 1e3 * solution.objective
    assert solution.objective_trace[-1] == pytest.approx(solution.objective, rel=1e-10)


@pytest.mark.parametrize("beta", [1e-6, 1e-8, 1e-10])
def test_a_small_beta_is_no_obstacle(beta, make_problem):
    X, Y, W = make_problem(1)
    solution = solve_joint(X, Y, W, **(ONES | {"beta": beta}), tol=1e-6)
    assert solution.converged
    # Nothing but beta holds the labels to Y: all but their mean is given up.
    np.testing.assert_allclose(
        solution.numerical_labels, np.tile(Y.mean(axis=0), (30, 1)), atol=1e-2
    )


def test_a_beta_below_rounding_descends_and_says_that_it_stalled(make_problem):
    problem = make_problem(1)
    solution = solve_joint(*problem, **(ONES | {"beta": 1e-30}), tol=1e-6)
    assert solution.status == "stalled"
    assert solution.objective < 1e-3 * solution.objective_trace[0]


@pytest.mark.parametrize("seed", range(10))
def test_algorithm_1_ends_at_the_same_point(seed, make_problem, draw_parameters):
    problem = make_problem(seed, n=20, d=6)
    parameters = draw_parameters(np.random.default_rng(seed + 7)) | {"beta": 1.0}
    joint = solve_joint(*problem, **parameters, **TIGHT)
    nested = solve_reference(*problem, **parameters, tol=1e-15, inner_tol=1e-14)
    assert nested.objective == pytest.approx(joint.objective, rel=1e-9)
    np.testing.assert_allclose(nested.numerical_labels, joint.numerical_labels, atol=1e-4)
    np.testing.assert_allclose(nested.coef, joint.coef, atol=1e-3)


@pytest.mark.parametrize("d", [4, 80], ids=["d<n", "n<d"])
def test_the_start_does_not_matter(d, corner, make_problem):
    problem = make_problem(1, d=d)
    # The gap bounds the square of the distance: 1e-14 leaves 1e-5 of a model with a small alpha.
    tight = {"tol": 1e-14, "max_iter": 20_000}
    from_labels = solve_joint(*problem, **corner, **tight)
    from_zero = solve_joint(*problem, **corner, **tight, U0=np.zeros_like(problem.Y))
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


def test_a_start_far_from_the_origin_keeps_its_intercept(make_problem):
    X, Y, W = make_problem(1, d=80)
    far = X + 1e6
    other = solve_reference(X, Y, W, **ONES, tol=1e-6)
    shifted = replace(other, intercept=other.intercept - 1e6 * other.coef.sum(axis=1))
    solution = JointProblem(far, Y, W).solve(**ONES, tol=1e-6, start=shifted)
    # Without the coefficients of the samples Theta starts from 0, but b from the mean prediction.
    assert solution.objective_trace[0] < 10 * len(X) * Y.shape[1]
    assert solution.converged


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


@pytest.mark.parametrize("d", [5, 80], ids=["d<n", "n<d"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_sparse_features_are_dense_features(d, precision, make_problem):
    X, Y, W = make_problem(7, n=40, d=d)
    X = np.where(np.abs(X) > 0.8, X, 0.0) + (np.arange(d) == 1) * 3.0
    dense = solve_joint(X, Y, W, **ONES, **TIGHT, precision=precision)
    thin = solve_joint(sparse.csr_array(X), Y, W, **ONES, **TIGHT, precision=precision)
    assert dense.converged
    assert thin.converged
    assert_same(thin, dense, atol=1e-6)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("parameters", [ONES, CORNER], ids=["ones", "corner"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("d", [4, 80], ids=["d<n", "n<d"])
def test_the_virtual_label_stays_exactly_zero(d, form, parameters, precision, make_problem):
    X, Y, W = make_problem(9, d=d)
    X = form(np.where(np.abs(X) > 0.5, X, 0.0))
    plain = solve_joint(X, Y, W, **parameters, tol=1e-6, precision=precision)
    with_virtual = np.column_stack([np.zeros(len(Y)), Y])
    solution = solve_joint(X, with_virtual, W, **parameters, tol=1e-6, precision=precision)
    np.testing.assert_array_equal(solution.numerical_labels[:, 0], 0)
    np.testing.assert_array_equal(solution.coef[0], 0)
    assert solution.intercept[0] == 0
    assert solution.objective == pytest.approx(plain.objective, rel=2e-6)


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
    proof = duality_gap(*problem, solution.point, **CORNER, half_dual=solution.half_dual)
    assert solution.optimality == proof.relative > 1e-12
    assert solution.objective == duality_gap(*problem, solution.point, **CORNER).objective


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
        ({"gamma": 1e300}, r"gamma=1e\+300 would overflow in float64, where weights lie between"),
        ({"beta": 1e-200}, r"beta=1e-200 would overflow in float64, .* scale X and the weights"),
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


@pytest.mark.parametrize("solve", [solve_joint, solve_reference])
@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("X", lambda X: np.where(X == X[3, 1], np.nan, X), "X must be finite, got nan in row 3, "),
        ("X", lambda X: X.astype(complex), "X must hold real numbers, got dtype complex128"),
        ("X", lambda X: X[:, 0], r"X must be 2-D with rows and features, got shape \(30,\)"),
        ("X", lambda X: X[:, :0], r"X must be 2-D with rows and features, got shape \(30, 0\)"),
        ("Y", lambda Y: np.where(np.arange(30)[:, None] == 2, np.nan, Y), "Y must be finite, got"),
        ("Y", lambda Y: Y.astype(str), "Y must hold real numbers, got dtype <U"),
        ("Y", lambda Y: Y * 1e200, r"Y holds numbers of size 1e\+200, whose squares overflow"),
        ("W", lambda W: W * np.inf, "W must be finite, got"),
        ("U0", lambda Y: Y * np.nan, "U0 must be finite, got nan in row 0, column 0"),
    ],
)
def test_arrays_without_meaning_are_refused(solve, name, spoil, message, make_problem):
    problem = make_problem()._asdict()
    options = dict(ONES)
    if name == "U0":
        options["U0"] = spoil(problem["Y"])
    else:
        with np.errstate(invalid="ignore"):
            problem[name] = spoil(problem[name])
    with pytest.raises(ValueError, match=message):
        solve(**problem, **options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"precision": "float16"}, 'precision must be "float64" or "float32", got \'float16\''),
        ({"tol": float("nan")}, "tol must be finite and > 0, got nan"),
        ({"tol": 0.0}, r"tol must be finite and > 0, got 0\.0"),
        ({"max_iter": -1}, "max_iter must be a whole number >= 0, got -1"),
        ({"max_iter": 2.5}, r"max_iter must be a whole number >= 0, got 2\.5"),
        ({"precision": "float32", "gamma": 1e20}, r"gamma=1e\+20 would overflow in float32"),
    ],
)
def test_options_without_meaning_are_refused(wrong, message, make_problem):
    with pytest.raises(ValueError, match=message):
        solve_joint(*make_problem(), **(ONES | wrong))


@pytest.mark.parametrize("solve", [solve_joint, solve_reference])
def test_lists_are_as_good_as_arrays(solve, make_problem):
    X, Y, W = make_problem()
    expected = solve(X, Y, W, **ONES)
    for X_form in (X.tolist(), X):
        solution = solve(X_form, Y.tolist(), W.toarray().tolist(), **ONES)
        assert solution.objective == pytest.approx(expected.objective, rel=1e-12)


def test_a_start_of_another_shape_is_refused(make_problem):
    X, Y, W = make_problem()
    with pytest.raises(ValueError, match=r"U0 must have the shape of Y, \(30, 3\); got \(30, 2\)"):
        solve_joint(X, Y, W, **ONES, U0=Y[:, :2])
    narrow = solve_joint(X, Y[:, :1], W, **ONES)
    with pytest.raises(ValueError, match=r"start\.numerical_labels must have the shape of Y"):
        JointProblem(X, Y, W).solve(**ONES, start=narrow)


@pytest.mark.parametrize("d", [4, 50])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("precision", "size"), [("float64", 1e300), ("float32", 1e30)])
def test_features_whose_squares_overflow_are_refused(precision, size, form, d, make_problem):
    X, Y, W = make_problem(d=d)
    message = rf"X holds numbers of size .*, whose squares overflow in {precision}, where at most"
    with pytest.raises(ValueError, match=message):
        solve_joint(form(size * X), Y, W, **ONES, precision=precision)


@pytest.mark.parametrize(("precision", "size"), [("float64", 1e99), ("float32", 1e11)])
def test_features_just_below_the_limit_do_not_overflow(precision, size, make_problem):
    X, Y, W = make_problem()
    solution = solve_joint(size * X, Y, W, **ONES, precision=precision)
    assert np.isfinite(solution.optimality)
    assert np.isfinite(solution.coef).all()


def test_weights_just_below_the_limit_do_not_overflow(make_problem):
    for name in ("alpha", "beta", "gamma", "epsilon"):
        solution = solve_joint(*make_problem(), **(ONES | {name: 1e100}))
        assert np.isfinite(solution.optimality)
        assert np.isfinite(solution.numerical_labels).all()


def test_a_certificate_found_in_the_search_alone_is_not_believed(make_problem, monkeypatch):
    problem = make_problem(1)
    monkeypatch.setattr("lemll.solvers.search.Point.certified_gap", lambda self, enough: 0.0)
    solution = solve_joint(*problem, **CORNER, tol=1e-12)
    assert solution.status == "stalled"
    assert not solution.converged
    proof = duality_gap(*problem, solution.point, **CORNER, half_dual=solution.half_dual)
    assert solution.optimality == proof.relative > 1e-12


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_it_needs_no_dense_matrix_where_none_would_fit(kind, make_problem, monkeypatch):
    X, Y, W = make_problem(20)
    plain = solve_joint(X, Y, W, **ONES, **TIGHT)
    monkeypatch.setattr("lemll.solvers.linear.MAX_DENSE_ORDER", 2)
    frugal = solve_joint(X if kind == "dense" else sparse.csr_array(X), Y, W, **ONES, **TIGHT)
    assert (plain.n_linear_solves, frugal.n_linear_solves) == (1, 0)
    assert_same(frugal, plain)
