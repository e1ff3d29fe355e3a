"""Dual points that prove more."""

import numpy as np
import pytest

from lemll.solvers import solve_joint
from lemll.solvers.equation9 import LemllPoint, duality_gap
from lemll.solvers.joint import JointProblem
from lemll.solvers.search import Point, Preconditioner, Weights

CORNERS = [Weights(1.0, 1.0, 1.0, 0.1), Weights(1 / 64, 1 / 64, 64.0, 0.1), Weights(64, 1, 0, 0.0)]


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


def test_a_system_of_another_alpha_is_not_used(make_problem):
    X, Y, W = make_problem(3)
    model = JointProblem(X, Y, W).operators("float64").model
    assert model.reconcile(2.0, np.zeros((X.shape[1], Y.shape[1]))) is None
    model.factorise(0.6, 1.0)
    assert model.reconcile(2.0, np.zeros((X.shape[1], Y.shape[1]))) is None
