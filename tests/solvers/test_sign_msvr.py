"""The regression that keeps signs: against a cone solver, limits, certificate, refusals."""

import cvxpy
import numpy as np
import pytest
from scipy import sparse

from lemll.rivals.sign_msvr import solve_sign_msvr
from lemll.solvers import solve_msvr
from lemll.solvers.certificate import CentredKernel


def random_problem(seed, n=40, d=5, m=3):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, d)
    targets = np.sign(X @ rng.randn(d, m) + 2 * rng.randn(n, m)) * (1 + rng.rand(n, m))
    gain = np.sign(targets) * rng.rand(n, m)
    return X, targets, gain


def objective(X, targets, coef, intercept, *, C1, C2, gain, epsilon):
    outputs = X @ coef.T + intercept
    lengths = np.linalg.norm(targets - outputs, axis=1)
    return (
        0.5 * (coef**2).sum()
        + C1 * (np.maximum(0, lengths - epsilon) ** 2).sum()
        + C2 * np.maximum(0, -np.sign(targets) * outputs).sum()
        - (gain * outputs).sum()
    )


def solve_by_clarabel(X, targets, *, C1, C2, gain, epsilon):
    n, m = targets.shape
    theta, intercept = cvxpy.Variable((X.shape[1], m)), cvxpy.Variable((1, m))
    inside = cvxpy.Variable((n, m))
    outputs = X @ theta + np.ones((n, 1)) @ intercept
    # A ball of radius 0 has no interior for an interior point method to walk in.
    tube = [cvxpy.norm(inside, 2, axis=1) <= epsilon] if epsilon else [inside == 0]
    violated = cvxpy.pos(-cvxpy.multiply(np.sign(targets), outputs))
    value = (
        0.5 * cvxpy.sum_squares(theta)
        + C1 * cvxpy.sum_squares(targets - outputs - inside)
        + C2 * cvxpy.sum(violated)
        - cvxpy.sum(cvxpy.multiply(gain, outputs))
    )
    program = cvxpy.Problem(cvxpy.Minimize(value), tube)
    tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9)
    program.solve(solver="CLARABEL", **tolerances)
    return program.value, X @ theta.value + intercept.value


@pytest.mark.parametrize("shape", [(40, 5, 3), (25, 40, 4)])
@pytest.mark.parametrize(
    ("C1", "C2", "epsilon", "with_gain"),
    [(1.0, 1.0, 0.001, True), (0.3, 10.0, 0.0, False), (10.0, 1.0, 0.5, True),
     (1.0, 20.0, 0.5, True)],
)  # fmt: skip
def test_it_agrees_with_a_cone_solver(shape, C1, C2, epsilon, with_gain):
    X, targets, gain = random_problem(0, *shape)
    weights = {"C1": C1, "C2": C2, "gain": gain if with_gain else 0 * gain, "epsilon": epsilon}
    value, outputs = solve_by_clarabel(X, targets, **weights)
    found = solve_sign_msvr(X, targets, **weights)
    assert found.converged
    assert found.optimality <= 1e-10
    assert found.objective == pytest.approx(value, rel=1e-6)
    assert found.objective == pytest.approx(
        objective(X, targets, found.coef, found.intercept, **weights), rel=1e-9
    )
    np.testing.assert_allclose(X @ found.coef.T + found.intercept, outputs, atol=2e-4)


@pytest.mark.parametrize("seed", range(4))
def test_multipliers_are_those_of_the_optimality_conditions(seed):
    X, targets, gain = random_problem(seed)
    found = solve_sign_msvr(X, targets, C1=1.0, C2=5.0, gain=gain, epsilon=0.0, tol=1e-12)
    outputs = X @ found.coef.T + found.intercept
    signs = np.sign(targets)
    assert found.multipliers.min() >= 0
    assert found.multipliers.max() <= 5.0
    # Free signs are not held, violated ones as hard as can be; some output is exactly between.
    kept, violated = signs * outputs > 1e-5, signs * outputs < -1e-5
    np.testing.assert_allclose(found.multipliers[kept], 0, atol=1e-6)
    np.testing.assert_allclose(found.multipliers[violated], 5, atol=1e-6)
    assert (~kept & ~violated).any()
    force = 2 * (targets - outputs) + signs * found.multipliers + gain
    np.testing.assert_allclose(found.coef.T, X.T @ force, atol=1e-4)
    np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-4)


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_without_signs_and_gain_it_is_support_vector_regression(epsilon):
    X, targets, _ = random_problem(1)
    found = solve_sign_msvr(X, targets, C1=2.0, C2=0.0, epsilon=epsilon)
    plain = solve_msvr(X, targets, alpha=0.25, epsilon=epsilon)
    np.testing.assert_allclose(found.coef, plain.coef, atol=1e-4)
    assert found.objective == pytest.approx(2 * plain.objective, rel=1e-8)


@pytest.mark.parametrize("shape", [(40, 5, 3), (25, 40, 4)])
def test_a_kernel_of_the_same_features_gives_the_same_outputs(shape):
    X, targets, gain = random_problem(2, *shape)
    direct = solve_sign_msvr(X, targets, C2=10.0, gain=gain)
    by_kernel = solve_sign_msvr(CentredKernel(X @ X.T), targets, C2=10.0, gain=gain)
    np.testing.assert_allclose(
        X @ X.T @ by_kernel.coef.T + by_kernel.intercept,
        X @ direct.coef.T + direct.intercept,
        atol=1e-4,
    )
    assert by_kernel.objective == pytest.approx(direct.objective, rel=1e-8)


def test_sparse_features_give_the_same():
    X, targets, gain = random_problem(3)
    X[np.abs(X) < 0.5] = 0
    dense = solve_sign_msvr(X, targets, gain=gain)
    few = solve_sign_msvr(sparse.csr_array(X), targets, gain=gain)
    np.testing.assert_allclose(few.coef, dense.coef, atol=1e-5)


def test_the_objective_falls_where_more_weight_on_signs_is_for_them():
    X, targets, _ = random_problem(4)
    violated = [
        np.maximum(0, -np.sign(targets) * (X @ s.coef.T + s.intercept)).sum()
        for s in (solve_sign_msvr(X, targets, C2=C2) for C2 in (0.0, 1.0, 10.0))
    ]
    assert violated[0] > violated[1] > violated[2]


def test_targets_that_do_not_vary_and_targets_of_zero():
    X = np.random.RandomState(0).randn(20, 3)
    constant = solve_sign_msvr(X, np.tile([1.0, -2.0, 0.0], (20, 1)), C2=3.0)
    assert constant.converged
    np.testing.assert_allclose(constant.coef, 0, atol=1e-6)
    np.testing.assert_allclose(constant.intercept, [1, -2, 0], atol=2e-3)


def test_a_search_cut_short_says_so_with_a_valid_bound():
    X, targets, gain = random_problem(6)
    exact = solve_sign_msvr(X, targets, C2=10.0, gain=gain).objective
    cut = solve_sign_msvr(X, targets, C2=10.0, gain=gain, max_iter=2)
    assert (cut.status, cut.converged, cut.n_iter) == ("max_iter", False, 2)
    assert cut.objective > exact
    assert cut.optimality > 1e-10
    assert solve_sign_msvr(X, targets, C2=10.0, tol=1e-40).status == "stalled"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"targets": np.zeros((39, 3))}, r"X has 40 rows, so targets must be \(40, n_outputs\)"),
        ({"targets": np.full((40, 3), "x")}, "targets must hold real numbers"),
    ],
)
def test_what_cannot_be_solved_is_refused(change, message):
    X, targets, _ = random_problem(7)
    arguments = {"targets": targets} | change
    with pytest.raises(ValueError, match=message):
        solve_sign_msvr(X, arguments.pop("targets"), **arguments)
