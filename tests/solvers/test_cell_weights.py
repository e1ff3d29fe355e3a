"""Eq. (9) with a weight per cell: cells that nobody observed, and confidences."""

import numpy as np
import pytest

from lemll.solvers import GridPoint, solve_joint, solve_path
from lemll.solvers.certificate import CentredKernel
from lemll.solvers.equation9 import LemllPoint, duality_gap
from lemll.solvers.joint import JointProblem

KINDS = ("hidden", "confidence", "heavy")


def draw_weights(rng, shape, kind):
    """Draw 0/1 weights, confidences with zeros, or weights of different sizes."""
    weights = rng.random(shape)
    if kind == "hidden":
        weights = (weights > 0.6).astype(float)
    elif kind == "confidence":
        weights *= rng.random(shape) > 0.3
    else:
        weights = 10.0 ** rng.uniform(-3, 1, shape)
    weights[0] = 1.0  # every label has an observed cell
    return weights


@pytest.mark.nightly(when=lambda block: block > 0)
@pytest.mark.parametrize("block", range(4))
def test_an_interior_point_solver_agrees_on_a_hundred_problems(
    block, make_problem, draw_parameters, solve_by_clarabel
):
    for seed in range(25 * block, 25 * block + 25):
        rng = np.random.default_rng(seed)
        X, Y, W = make_problem(seed, n=20 + seed % 20, d=3 + seed % 4)
        weights, parameters = draw_weights(rng, Y.shape, KINDS[seed % 3]), draw_parameters(rng)
        program, _ = solve_by_clarabel(X, Y, W, **parameters, weights=weights, tol=1e-10)
        best = program.value
        # Every fourth problem is solved by the kernel of its features.
        data = CentredKernel(X @ X.T) if seed % 4 == 3 else X
        found = solve_joint(data, Y, W, **parameters, tol=1e-7, cell_weight=weights)
        assert found.converged
        assert found.objective == pytest.approx(best, rel=1e-6)
        # The certificate is never below the true gap, up to the accuracy of the other solver.
        true_gap = (found.objective - best) / found.objective
        assert found.optimality >= true_gap - 1e-8


def test_the_bound_holds_far_from_the_optimum(make_problem, draw_parameters):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, Y, W = make_problem(seed)
        weights, parameters = draw_weights(rng, Y.shape, KINDS[seed % 3]), draw_parameters(rng)
        best = solve_joint(X, Y, W, **parameters, tol=1e-9, cell_weight=weights).objective
        point = LemllPoint(
            Y + rng.standard_normal(Y.shape),
            rng.standard_normal((Y.shape[1], X.shape[1])),
            rng.standard_normal(Y.shape[1]),
        )
        for half_dual in (None, rng.standard_normal(Y.shape)):
            found = duality_gap(
                X, Y, W, point, **parameters, half_dual=half_dual, cell_weight=weights
            )
            assert found.lower_bound <= best * (1 + 1e-9)


def test_weights_of_one_change_nothing(corner, make_problem):
    X, Y, W = make_problem(3)
    plain = solve_joint(X, Y, W, **corner, tol=1e-13, max_iter=5000)
    weighted = solve_joint(
        X, Y, W, **corner, tol=1e-13, max_iter=5000, cell_weight=np.ones(Y.shape)
    )
    assert weighted.objective == pytest.approx(plain.objective, rel=1e-12)
    np.testing.assert_allclose(
        weighted.numerical_labels, plain.numerical_labels, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_hidden_values_never_influence_anything(precision, make_problem, arrays_of):
    X, Y, W = make_problem(1)
    rng = np.random.default_rng(0)
    weights = draw_weights(rng, Y.shape, "hidden")
    options = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0, "precision": precision}
    first = solve_joint(X, Y, W, **options, cell_weight=weights)
    for poison in (np.inf, -np.inf, np.nan, 0.0, 1e300):
        other = solve_joint(X, np.where(weights > 0, Y, poison), W, **options, cell_weight=weights)
        assert other.objective == first.objective
        for (name, one), (_, two) in zip(arrays_of(first), arrays_of(other), strict=True):
            np.testing.assert_array_equal(one, two, err_msg=name)


def test_rows_without_any_observed_cell_take_part(make_problem):
    X, Y, W = make_problem(5, n=60)
    weights = np.ones(Y.shape)
    weights[20:] = 0
    found = solve_joint(X, Y, W, alpha=1.0, beta=4.0, gamma=4.0, tol=1e-7, cell_weight=weights)
    assert found.converged
    # Their numerical labels follow the model and the neighbours: better than chance.
    assert (np.sign(found.numerical_labels[20:]) == Y[20:]).mean() > 0.6


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_path_solves_what_single_searches_solve(precision, make_problem):
    X, Y, W = make_problem(4)
    weights = draw_weights(np.random.default_rng(4), Y.shape, "confidence")
    points = [GridPoint(a, b, g) for a in (0.25, 4.0) for b in (0.25, 4.0) for g in (0.0, 1.0)]
    problem = JointProblem(X, Y, W, weights)
    for place, solution in solve_path(problem, points, tol=1e-5, precision=precision):
        alone = solve_joint(X, Y, W, **points[place]._asdict(), tol=1e-8, cell_weight=weights)
        assert solution.converged
        assert solution.objective == pytest.approx(alone.objective, rel=2e-5)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((2, 2)), r"cell_weight must have the shape of Y, \(30, 3\); got \(2, 2\)"),
        (np.full((30, 3), -1.0), "cell_weight must be finite and not negative, got -1.0"),
        (np.full((30, 3), np.nan), "cell_weight must be finite and not negative, got nan"),
        (np.eye(30, 3) * [1, 0, 1], "label 1 has no cell with a positive weight; leave it out"),
    ],
)
def test_refusals(weights, message, make_problem):
    X, Y, W = make_problem()
    with pytest.raises(ValueError, match=message):
        solve_joint(X, Y, W, alpha=1.0, beta=1.0, gamma=1.0, cell_weight=weights)
