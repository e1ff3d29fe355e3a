"""Dual points that prove more."""

import numpy as np
import pytest

from lemll.solvers import solve_joint
from lemll.solvers.certificate import CentredKernel, GapParts
from lemll.solvers.equation9 import LemllPoint, duality_gap
from lemll.solvers.joint import JointProblem
from lemll.solvers.search import Point, Preconditioner, Weights

CORNERS = [Weights(1.0, 1.0, 1.0, 0.1), Weights(1 / 64, 1 / 64, 64.0, 0.1), Weights(64, 1, 0, 0.0)]


FORMS = {"n > d": (4, lambda X: X), "n < d": (60, lambda X: X), "kernel": (4, None)}


def near_the_optimum(problem, weights, rng, *, distance=1e-2):
    best = JointProblem(*problem).solve(**weights._asdict(), tol=1e-12, max_iter=20_000)
    U, coef, intercept = best.point
    return best.objective, LemllPoint(
        U + distance * rng.standard_normal(U.shape),
        coef + distance * rng.standard_normal(coef.shape) * np.abs(coef).mean(),
        intercept,
    )


def point_at(problem, weights, unknowns):
    operators = JointProblem(*problem).operators("float64")
    Preconditioner(operators, weights)
    return Point(operators, weights, unknowns)


@pytest.mark.parametrize("weights", CORNERS)
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_holds_and_can_be_checked(seed, weights, make_problem):
    problem = make_problem(seed)
    least, unknowns = near_the_optimum(problem, weights, np.random.default_rng(seed))
    point = point_at(problem, weights, unknowns)
    error = duality_gap(*problem, unknowns, **weights._asdict()).objective - least
    plain = duality_gap(*problem, unknowns, **weights._asdict())
    tight = point.certified_gap()
    assert error <= tight * (1 + 1e-9)
    assert tight <= plain.objective - plain.lower_bound
    # Whoever doubts it can check the dual point that proves it.
    proof = duality_gap(*problem, unknowns, **weights._asdict(), half_dual=point.half_dual)
    assert proof.objective - proof.lower_bound == pytest.approx(tight, rel=1e-8)


def test_on_the_way_it_is_near_the_truth(make_problem):
    ratios = []
    for seed in range(20):
        problem, weights = make_problem(seed), CORNERS[0]
        best = solve_joint(*problem, **weights._asdict(), tol=1e-12, max_iter=20_000)
        early = solve_joint(*problem, **weights._asdict(), tol=1e-12, max_iter=3)
        plain = duality_gap(*problem, early.point, **weights._asdict()).relative
        ratios.append(plain / early.optimality)
        assert early.optimality >= (early.objective - best.objective) / early.objective
    assert np.median(ratios) > 2


@pytest.mark.parametrize("form", FORMS)
def test_reconciling_leaves_the_ridge_part_of_the_force(form, make_problem):
    d, features = FORMS[form]
    X, Y, W = make_problem(3, d=d)
    Xc = X - X.mean(axis=0)
    data = CentredKernel(X @ X.T) if features is None else X
    operators = JointProblem(data, Y, W).operators("float64")
    model = operators.model
    model.factorise(0.6, 2.0)
    rng = np.random.default_rng(0)
    V = rng.standard_normal((model.n_rows, Y.shape[1]))
    half_dual = rng.standard_normal(Y.shape)
    half_dual -= half_dual.mean(axis=0)
    if model.n_rows - 1 != d:
        V[:-1] -= V[:-1].mean(axis=0)
    theta = V[:-1] if model.n_rows - 1 == d else Xc.T @ V[:-1]
    force, image = model.force(2.0, V, half_dual)
    assert np.vdot(force, image) == pytest.approx(np.square(2 * theta - Xc.T @ half_dual).sum())
    change = model.reconcile(2.0, force)
    left = 2 * theta - Xc.T @ (half_dual + change)
    # With S = share Xc'Xc + alpha I, alpha S^-1 f is left.
    system = 0.6 * Xc.T @ Xc + 2.0 * np.eye(d)
    expected = 2.0 * np.linalg.solve(system, 2 * theta - Xc.T @ half_dual)
    np.testing.assert_allclose(left, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(change.mean(axis=0), 0, atol=1e-12)


def test_a_system_of_another_alpha_is_not_used(make_problem):
    X, Y, W = make_problem(3)
    model = JointProblem(X, Y, W).operators("float64").model
    assert model.reconcile(2.0, np.zeros((X.shape[1], Y.shape[1]))) is None
    model.factorise(0.6, 1.0)
    assert model.reconcile(2.0, np.zeros((X.shape[1], Y.shape[1]))) is None


def test_between_two_dual_points_it_finds_the_best(make_problem):
    problem, weights = make_problem(5), CORNERS[0]
    _, unknowns = near_the_optimum(problem, weights, np.random.default_rng(5))
    point = point_at(problem, weights, unknowns)
    parts = GapParts(point.residuals, point.label_gradient, Weights(1.0, 1.0, 1.0, 0.1))
    model = point.operators.model
    first, second = parts.from_tube(), parts.from_labels()
    forces = [model.force(1.0, point.V, dual)[0] for dual in (first, second)]
    squares = tuple(float(np.vdot(forces[i], forces[j])) for i, j in ((0, 0), (0, 1), (1, 1)))

    def gap(share):
        force = (1 - share) * forces[0] + share * forces[1]
        return parts.gap((1 - share) * first + share * second, float(np.vdot(force, force)))

    share = parts.best_between(first, second, squares)
    assert gap(share) <= min(gap(at) for at in np.linspace(0, 1, 201)) * 1.02
    assert gap(share) < min(gap(0), gap(1))
