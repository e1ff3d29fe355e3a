"""The best combination of solutions for other parameters."""

import numpy as np
import pytest
from scipy.optimize import minimize

import lemll.solvers.path as span_module
from lemll.solvers.equation9 import LemllPoint, duality_gap
from lemll.solvers.joint import JointProblem
from lemll.solvers.path import SolutionSpan
from lemll.solvers.search import Point, Weights

WEIGHTS = Weights(0.5, 0.7, 2.0, 0.1)


def span_of(problem, parameters):
    joint = JointProblem(*problem)
    point = Point(joint.operators("float64"), Weights(1.0, 1.0, 1.0, 0.1), joint.start())
    span, solutions = SolutionSpan(point), []
    for alpha, beta, gamma in parameters:
        weights = Weights(alpha, beta, gamma, 0.1)
        solution = joint.solve(**weights._asdict(), tol=1e-6)
        solutions.append(solution)
        there = Point(joint.operators("float64"), weights, solution.point, solution.dual_coef)
        span.add(there, there.products())
    return point, span, solutions


@pytest.mark.parametrize("d", [4, 60], ids=["n > d", "n < d"])
def test_it_minimises_over_the_combinations(d, make_problem):
    problem = make_problem(1, d=d)
    point, span, solutions = span_of(problem, [(1, 1, 1), (0.25, 1, 4), (4, 0.25, 1)])
    # One step more than the few that are enough for a start.
    for _ in range(20):
        span.place(point, WEIGHTS)

    def objective(shares):
        combined = LemllPoint(
            *(sum(s * part for s, part in zip(shares, parts, strict=True))
              for parts in zip(*(solution.point for solution in solutions), strict=True))
        )  # fmt: skip
        return duality_gap(*problem, combined, **WEIGHTS._asdict()).objective

    best = minimize(objective, np.ones(3) / 3, method="Nelder-Mead", options={"fatol": 1e-9})
    assert point.objective == pytest.approx(best.fun, rel=1e-6)
    assert point.objective < min(objective(row) for row in np.eye(3))


def test_where_room_ends_the_furthest_makes_place(make_problem, monkeypatch):
    monkeypatch.setattr(span_module, "MAX_KEPT", 2)
    problem = make_problem(3)
    near, far = (0.5, 0.7, 1.9), (64.0, 64.0, 1 / 64)
    point, span, solutions = span_of(problem, [far, (1, 1, 1), near])
    span.place(point, WEIGHTS)
    start = duality_gap(*problem, solutions[2].point, **WEIGHTS._asdict()).objective
    assert point.objective <= start * (1 + 1e-12)
    labels = {kept.tobytes() for kept in span._products[0]}
    assert solutions[0].numerical_labels.ravel().tobytes() not in labels
    assert solutions[2].numerical_labels.ravel().tobytes() in labels


def test_memory_limits_how_many_are_kept(make_problem, monkeypatch):
    problem = make_problem(3)
    point, _, _ = span_of(problem, [])
    monkeypatch.setattr(span_module, "MAX_BYTES", 3 * 8 * (3 * point.U.size + point.V.size))
    assert SolutionSpan(point)._products.shape[1] == 3
