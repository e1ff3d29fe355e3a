"""What the certificate proves: a bound of the distance from the optimum, with its constants."""

import numpy as np
import pytest
from scipy import sparse

from lemll.solvers import solve_joint
from lemll.solvers.certificate import GapParts, Weights, row_norms, smallest_objective, tube_weights
from lemll.solvers.equation9 import LemllPoint, duality_gap
from lemll.topology.graphs import ReconstructionOperator

ONES = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0, "epsilon": 0.1}
TIGHT = {"tol": 1e-13, "max_iter": 20_000}


def solved_centred(X, Y, W, parameters):
    """Solve for features far from the origin where nothing rounds them."""
    return solve_joint(X - X.mean(axis=0), Y, W, **parameters, **TIGHT)


@pytest.mark.nightly(when=lambda seed: seed >= 15)
@pytest.mark.parametrize("seed", range(50))
def test_the_gap_of_loose_iterates_covers_their_error(seed, make_problem, draw_parameters):
    rng = np.random.default_rng(seed)
    problem = make_problem(seed, n=int(rng.integers(3, 40)), d=int(rng.integers(1, 50)))
    parameters = draw_parameters(rng) | {"epsilon": float(rng.choice([0.0, 0.1, 1.0]))}
    optimum = solve_joint(*problem, **parameters, **TIGHT).objective
    for n_iter in (0, 1, 2, 4, 8):
        loose = solve_joint(*problem, **parameters, tol=1e-13, max_iter=n_iter)
        proof = duality_gap(*problem, loose.point, **parameters)
        rounding = 1e-12 * loose.objective
        assert loose.objective - optimum <= proof.objective - proof.lower_bound + rounding
        assert proof.lower_bound <= optimum + rounding


def dual_gap(problem, point, Z, *, alpha, beta, gamma, epsilon):
    """``F - D(Z)`` with the dual of Eq. (9) as it is derived, B inverted."""
    X, Y, W = problem
    difference = np.eye(len(Y)) - W.toarray()
    B = beta * np.eye(len(Y)) + gamma * difference.T @ difference
    lengths = np.linalg.norm(Z, axis=1)
    right = beta * Y - Z / 2
    dual = (
        beta * np.vdot(Y, Y)
        - (lengths**2 / 4 + epsilon * lengths).sum()
        - np.vdot(X.T @ Z, X.T @ Z) / (4 * alpha)
        - np.vdot(right, np.linalg.solve(B, right))
    )
    parameters = Weights(alpha, beta, gamma, epsilon)._asdict()
    return duality_gap(X, Y, W, point, **parameters).objective - dual, B


def both_duals(problem, point, *, beta, gamma, epsilon):
    """Return the two feasible Z: the centred pull of the tube, and the centred ``-2 C``."""
    X, Y, W = problem
    U, coef, intercept = point
    residuals = U - X @ coef.T - intercept
    weights = tube_weights(row_norms(residuals), epsilon)
    pull = weights[:, None] * residuals
    centred_pull = pull - np.outer(weights / weights.sum(), pull.sum(axis=0))
    C = beta * (U - Y) + gamma * (ReconstructionOperator(W) @ U)
    return residuals, C, 2 * centred_pull, -2 * (C - C.mean(axis=0))


@pytest.mark.parametrize("kind", ["rough", "any"])
@pytest.mark.parametrize("seed", range(20))
def test_the_gap_is_the_documented_bound_of_both_dual_values(
    kind, seed, make_problem, draw_parameters
):
    rng = np.random.default_rng(seed)
    problem = make_problem(seed, n=12, d=3)
    X, Y, _ = problem
    parameters = draw_parameters(rng)
    if kind == "any":
        U = Y + rng.standard_normal(Y.shape)
        point = LemllPoint(U, rng.standard_normal((3, 3)), rng.standard_normal(3))
    else:
        # Beside the optimum, by a rough change of the labels, which the pull of the tube is blind
        # to, and a shift of labels and intercept, which is all that the second dual misses.
        parameters |= {"beta": 1 / 64, "gamma": 64.0, "epsilon": 0.0}
        U, coef, intercept = solve_joint(*problem, **parameters, **TIGHT).point
        change = 1e-4 * rng.standard_normal(Y.shape)
        point = LemllPoint(U + change - change.mean(axis=0) + 0.1, coef, intercept + 0.1)
    alpha, beta, gamma, epsilon = parameters.values()
    residuals, C, *duals = both_duals(problem, point, beta=beta, gamma=gamma, epsilon=epsilon)
    bounds = []
    for Z in duals:
        exact, B = dual_gap(problem, point, Z, **parameters)
        E = -C - Z / 2
        correction = np.vdot(E, E) / beta - np.vdot(E, np.linalg.solve(B, E))
        assert correction >= -1e-9 * exact
        bounds.append(exact + correction)
        if Z is duals[1]:
            # Only constants are left in E, and of those M knows nothing.
            np.testing.assert_allclose(E, np.tile(E[0], (len(E), 1)), atol=1e-12)
            assert correction == pytest.approx(0, abs=1e-9 * exact)
    parts = GapParts(residuals, C, Weights(**parameters))
    gap = min(
        parts.gap(dual, float(np.square(alpha * point.coef.T - X.T @ dual).sum()))
        for dual in (parts.from_tube(), parts.from_labels())
    )
    assert gap == pytest.approx(min(bounds), rel=1e-8)
    assert kind == "any" or np.argmin(bounds) == 1
    found = duality_gap(*problem, point, **parameters)
    assert found.relative * found.objective == pytest.approx(gap, rel=1e-8)


@pytest.mark.parametrize("beta", [1e-8, 1e-4, 1.0, 1e4, 1e9, 1e12, 1e14])
@pytest.mark.parametrize("seed", range(3))
def test_the_claim_covers_the_error_whatever_beta(beta, seed, make_problem):
    problem = make_problem(seed)
    parameters = ONES | {"beta": beta}
    optimum = solve_joint(*problem, **parameters, tol=1e-12, max_iter=20_000).objective
    for n_iter in range(8):
        loose = solve_joint(*problem, **parameters, tol=1e-12, max_iter=n_iter)
        true = (loose.objective - optimum) / loose.objective
        assert loose.optimality >= true - 1e-12


def test_the_claim_covers_the_error_in_a_tube_that_holds_everything(make_problem):
    problem = make_problem(3)
    parameters = {"alpha": 1.0, "beta": 1e-11, "gamma": 1e-13, "epsilon": 50.0}
    optimum = solve_joint(*problem, **parameters, tol=1e-12).objective
    loose = solve_joint(*problem, **parameters, tol=1e-2, U0=0.5 * problem.Y)
    assert optimum < 1e-10 * np.vdot(problem.Y, problem.Y)
    assert loose.optimality >= (loose.objective - optimum) / loose.objective > 0


def test_only_what_rounding_makes_of_zero_counts_as_zero():
    Y = np.ones((4, 3))
    assert smallest_objective(Y, 1e14) == smallest_objective(Y, 1.0) == pytest.approx(12e-18)
    assert smallest_objective(Y, 1e-3) == pytest.approx(12e-21)
    assert smallest_objective(0 * Y, 1.0) > 0


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("distance", [1e6, 1e8, 1e10])
def test_the_lower_bound_holds_far_from_the_origin(distance, form, make_problem):
    for seed in range(5):
        X, Y, W = make_problem(seed)
        far = X + distance
        best = solved_centred(far, Y, W, ONES)
        for start in (best, solve_joint(X, Y, W, **ONES, max_iter=2)):
            intercept = start.intercept - start.coef @ far.mean(axis=0)
            point = start.point._replace(intercept=intercept)
            proof = duality_gap(form(far), Y, W, point, **ONES)
            assert proof.lower_bound <= best.objective * (1 + 1e-10)


def test_blocks_of_rows_change_nothing(make_problem, monkeypatch):
    X, Y, W = make_problem(1)
    point = solve_joint(X, Y, W, **ONES, max_iter=2).point
    whole = duality_gap(X, Y, W, point, **ONES)
    monkeypatch.setattr("lemll.solvers.certificate.CERTIFICATE_BLOCK_BYTES", 8 * 4 * 7)
    np.testing.assert_allclose(duality_gap(X, Y, W, point, **ONES), whole, rtol=1e-12)


def test_as_many_entries_as_rows_do_not_make_a_column_full(make_problem):
    X, Y, W = make_problem(2, n=3, d=1)
    X[2] = 0
    data = np.array([X[0, 0], X[1, 0] / 2, X[1, 0] / 2])
    twice = sparse.csr_array((data, [0, 0, 0], [0, 1, 3, 3]), shape=(3, 1))
    point = LemllPoint(Y, np.ones((3, 1)), np.zeros(3))
    np.testing.assert_allclose(
        duality_gap(twice, Y, W, point, **ONES), duality_gap(X, Y, W, point, **ONES), rtol=1e-12
    )
    assert not twice.has_canonical_format
