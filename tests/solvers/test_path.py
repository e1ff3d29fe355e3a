"""Many parameters on one path: each point as if it were alone."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from lemll.solvers import GridPoint, solve_joint, solve_path
from lemll.solvers import linear as models
from lemll.solvers.certificate import CentredKernel
from lemll.solvers.equation9 import duality_gap
from lemll.solvers.joint import JointProblem
from lemll.solvers.linear import LARGE_GRAM, SPECTRUM_PAYS

GRID = [GridPoint(*point) for point in itertools.product((1 / 64, 1.0, 64.0), repeat=3)]

FORMS = {
    "n > d": (3, np.asarray),
    "n < d": (50, np.asarray),
    "sparse": (3, sparse.csr_array),
    "kernel": (3, lambda X: CentredKernel(rbf_kernel(X))),
}


@pytest.fixture(name="factorise", params=["one by one", "all at once"])
def _factorise(request, monkeypatch):
    """Let a path of any length use one factorisation per point, or one decomposition for all."""
    pays = {"one by one": 1000, "all at once": 1}[request.param]
    monkeypatch.setattr(models, "SPECTRUM_PAYS", pays)


@pytest.mark.usefixtures("factorise")
@pytest.mark.parametrize("form", FORMS)
def test_every_point_is_the_optimum_that_a_solve_of_its_own_finds(form, make_problem):
    d, features = FORMS[form]
    X, Y, W = make_problem(0, d=d)
    problem = JointProblem(features(X), Y, W)
    seen = set()
    for index, solution in solve_path(problem, GRID, tol=1e-12, max_iter=20_000):
        seen.add(index)
        weights = GRID[index]._asdict() | {"epsilon": 0.1}
        alone = solve_joint(features(X), Y, W, **weights, tol=1e-12, max_iter=20_000)
        assert solution.converged
        assert solution.objective == pytest.approx(alone.objective, rel=1e-10)
        np.testing.assert_allclose(solution.numerical_labels, alone.numerical_labels, atol=1e-4)
        afresh = duality_gap(
            features(X), Y, W, solution.point, **weights, half_dual=solution.half_dual
        )
        assert solution.optimality == pytest.approx(afresh.relative, rel=1e-3, abs=1e-13)
        assert solution.objective == pytest.approx(afresh.objective, rel=1e-12)
    assert seen == set(range(27))


@pytest.mark.parametrize("n_labels", [1, 3])
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("form", FORMS)
def test_solutions_stay_what_they_were_when_the_path_goes_on(
    form, precision, n_labels, make_problem, arrays_of
):
    d, features = FORMS[form]
    X, Y, W = make_problem(3, d=d, n_labels=n_labels)
    problem = JointProblem(features(X), Y, W)
    kept, copies = [], []
    for step in solve_path(problem, GRID, precision=precision):
        kept.append(step.solution)
        copies.append(copy.deepcopy(step.solution))
    for solution, as_it_was in zip(kept, copies, strict=True):
        for name, array in arrays_of(as_it_was):
            np.testing.assert_array_equal(getattr(solution, name), array, err_msg=name)


@pytest.mark.parametrize("n_labels", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_what_a_user_writes_into_a_solution_does_not_reach_the_next(
    form, n_labels, make_problem, arrays_of
):
    d, features = FORMS[form]
    X, Y, W = make_problem(4, d=d, n_labels=n_labels)
    untouched = [s.solution.objective for s in solve_path(JointProblem(features(X), Y, W), GRID)]
    objectives = []
    for _, solution in solve_path(JointProblem(features(X), Y, W), GRID):
        objectives.append(solution.objective)
        for _, array in arrays_of(solution):
            array[...] = np.nan
    assert objectives == untouched


@pytest.mark.usefixtures("factorise")
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_loose_path_is_certified_all_the_same(precision, make_problem):
    X, Y, W = make_problem(1)
    for index, solution in solve_path(JointProblem(X, Y, W), GRID, precision=precision):
        weights = GRID[index]._asdict() | {"epsilon": 0.1}
        assert solution.converged
        proof = duality_gap(X, Y, W, solution.point, **weights, half_dual=solution.half_dual)
        assert proof.relative <= 1e-3 * (1 + 1e-9)


def _singular_features(kind, make_problem):
    """Return a problem whose Gram matrix is singular up to rounding."""
    X, Y, W = make_problem(6, n=60, d=20 if kind == "few features" else 80)
    if kind == "equal rows":
        X[30:] = X[:30]
    else:
        X = X[:, :6] @ np.random.default_rng(6).standard_normal((6, X.shape[1]))
    return X, Y, W


@pytest.mark.usefixtures("factorise")
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("kind", ["few features", "many features", "equal rows"])
def test_a_rounded_system_proves_no_more_than_is_true(kind, scale, make_problem):
    # The smallest alpha is far below the rounding errors of the Gram matrix.
    X, Y, W = _singular_features(kind, make_problem)
    X = scale * X
    points = [GridPoint(a, b, 1.0) for a in (1e-5, 1.0, 1e5) for b in (0.25, 1.0, 4.0)]
    for index, solution in solve_path(JointProblem(X, Y, W), points, tol=1e-6):
        weights = points[index]._asdict() | {"epsilon": 0.1}
        proof = duality_gap(X, Y, W, solution.point, **weights, half_dual=solution.half_dual)
        assert proof.relative <= max(1e-6, solution.optimality) * (1 + 1e-3)
        assert solution.objective >= 0
        assert solution.optimality >= 0


def test_a_gram_matrix_in_float32_proves_no_more_than_is_true(make_problem):
    X, Y, W = make_problem(7, n=1500, d=100)
    assert X.shape[0] * X.shape[1] ** 2 >= LARGE_GRAM
    alpha = 2e-5 * float(np.square(X - X.mean(axis=0)).sum())
    # Points close to each other, so that most of them are certified without an iteration.
    points = [GridPoint(alpha * 1.5**k, b, 1.0) for k in range(4) for b in (0.8, 1.0, 1.25)]
    for index, solution in solve_path(JointProblem(X, Y, W), points, tol=1e-3):
        weights = points[index]._asdict() | {"epsilon": 0.1}
        proof = duality_gap(X, Y, W, solution.point, **weights, half_dual=solution.half_dual)
        assert proof.relative <= solution.optimality * (1 + 1e-11)


@pytest.mark.parametrize("form", FORMS)
def test_neither_paths_nor_solves_depend_on_earlier_ones(form, make_problem):
    d, features = FORMS[form]
    X, Y, W = make_problem(8, d=d)

    def objectives(problem, points):
        return [step.solution.objective for step in solve_path(problem, points)]

    def alone(problem):
        return problem.solve(**GRID[5]._asdict(), epsilon=0.1).objective

    used = JointProblem(features(X), Y, W)
    long, short = objectives(used, GRID), objectives(used, GRID[:3])
    single = alone(used)
    assert objectives(used, GRID) == long == objectives(JointProblem(features(X), Y, W), GRID)
    assert short == objectives(JointProblem(features(X), Y, W), GRID[:3])
    assert single == alone(JointProblem(features(X), Y, W))


@pytest.mark.parametrize("n_points", [SPECTRUM_PAYS - 1, SPECTRUM_PAYS])
def test_long_paths_share_one_decomposition(n_points, make_problem):
    X, Y, W = make_problem(9)
    steps = list(solve_path(JointProblem(X, Y, W), GRID[:n_points]))
    solves = sum(step.solution.n_linear_solves for step in steps)
    assert (solves == 0) == (n_points == SPECTRUM_PAYS)


@pytest.mark.parametrize("n_points", [3, 27])
@pytest.mark.parametrize("form", FORMS)
def test_a_problem_can_be_copied_after_a_path(form, n_points, make_problem):
    d, features = FORMS[form]
    X, Y, W = make_problem(10, d=d)
    problem = JointProblem(features(X), Y, W)
    expected = [step.solution.objective for step in solve_path(problem, GRID[:n_points])]
    for other in (copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):  # noqa: S301
        found = [step.solution.objective for step in solve_path(other, GRID[:n_points])]
        assert found == expected


def test_warm_starts_save_iterations(make_problem):
    X, Y, W = make_problem(2, n=100)
    values = [4.0**k for k in range(-3, 4)]
    grid = [GridPoint(*point) for point in itertools.product(values, repeat=3)]
    warm = sum(step.solution.n_iter for step in solve_path(JointProblem(X, Y, W), grid))
    cold = sum(
        solve_joint(X, Y, W, **point._asdict(), epsilon=0.1, tol=1e-3).n_iter for point in grid[::8]
    )
    assert warm / len(grid) < 0.7 * cold / len(grid[::8])


def test_the_order_of_the_grid_given_does_not_matter(make_problem):
    X, Y, W = make_problem(3)
    shuffled = [GRID[i] for i in np.random.default_rng(0).permutation(27)]
    first = {GRID[i]: s.objective for i, s in solve_path(JointProblem(X, Y, W), GRID)}
    second = {shuffled[i]: s.objective for i, s in solve_path(JointProblem(X, Y, W), shuffled)}
    assert first == second


def test_what_is_not_solved_in_time_says_so(make_problem):
    X, Y, W = make_problem(4)
    steps = list(solve_path(JointProblem(X, Y, W), GRID[:3], tol=1e-12, max_iter=1))
    assert {step.solution.status for step in steps} == {"max_iter"}
    assert all(step.solution.n_iter == 1 for step in steps)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"points": [GridPoint(0.0, 1.0, 1.0)]}, "alpha must be finite and > 0"),
        ({"tol": 0.0}, "tol must be finite"),
        ({"precision": "half"}, 'precision must be "float64" or "float32"'),
    ],
)
def test_bad_settings_are_named(wrong, message, make_problem):
    settings = {"points": GRID} | wrong
    with pytest.raises(ValueError, match=message):
        list(solve_path(JointProblem(*make_problem(5)), **settings))
