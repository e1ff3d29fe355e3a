"""Eq. (10) with a weight per cell: the length of a residual counts the observed cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from lemll.solvers import solve_joint, solve_msvr
from lemll.solvers.certificate import CentredKernel
from lemll.solvers.msvr import solve_msvr_path

KINDS = ("hidden", "confidence", "heavy")
FORMS = {
    "n > d": (4, np.asarray),
    "n < d": (60, np.asarray),
    "sparse": (4, sparse.csr_array),
    "kernel": (4, lambda X: CentredKernel(rbf_kernel(X))),
}


class Drawn(NamedTuple):
    X: Any
    T: Any
    weights: Any
    alpha: float
    epsilon: float


def draw(seed, *, shape=None):
    rng = np.random.default_rng(seed)
    n, d = shape or (int(rng.integers(5, 40)), int(rng.integers(1, 40)))
    m = int(rng.integers(1, 5))
    X = 2 * rng.standard_normal((n, d)) + rng.normal()
    T = 0.3 * X @ rng.standard_normal((d, m)) + rng.standard_normal((n, m)) + 3 * rng.normal()
    weights, kind = rng.random((n, m)), KINDS[seed % 3]
    if kind == "hidden":
        weights = (weights > 0.6).astype(float)
    elif kind == "confidence":
        weights *= rng.random((n, m)) > 0.3
    else:
        weights = 10.0 ** rng.uniform(-3, 1, (n, m))
    weights[0, 0] = 1.0
    epsilon = float(rng.choice([0.0, 0.01, 0.1, 0.5, 2.0]))
    return Drawn(X, T, weights, float(4.0 ** rng.integers(-3, 4)), epsilon)


def solve(problem, X=None, **options):
    options = {"cell_weight": problem.weights, **options}
    return solve_msvr(
        problem.X if X is None else X,
        problem.T,
        alpha=problem.alpha,
        epsilon=problem.epsilon,
        **options,
    )


# For some problems it is asked for a digit more than it can promise; those it gives are enough.
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.nightly(when=lambda block: block > 0)
@pytest.mark.parametrize("block", range(4))
def test_an_interior_point_solver_agrees_on_a_hundred_problems(block, solve_msvr_by_clarabel):
    for seed in range(25 * block, 25 * block + 25):
        problem = draw(seed)
        X = problem.X
        if seed % 4 == 3:
            # Every fourth problem has a kernel. The other solver gets features with this kernel.
            kernel = rbf_kernel(X)
            problem, X = problem._replace(X=np.linalg.cholesky(kernel)), CentredKernel(kernel)
        features, T, weights, *parameters = problem
        best, _ = solve_msvr_by_clarabel(features, T, *parameters, cells=weights)
        found = solve(problem, X)
        assert found.converged
        # Some problems have the minimum 0, which the other solver reaches only roughly.
        assert found.objective == pytest.approx(best, rel=1e-6, abs=1e-8)
        # The certificate is never below the true gap, up to the accuracy of the other solver.
        true_gap = (found.objective - best) / max(found.objective, 1e-6)
        assert found.optimality >= true_gap - 1e-7


@pytest.mark.parametrize("form", FORMS)
def test_weights_of_one_change_nothing(form, make_problem):
    d, features = FORMS[form]
    X, Y, _ = make_problem(3, d=d)
    plain = solve_msvr(features(X), Y, alpha=0.25)
    weighted = solve_msvr(features(X), Y, alpha=0.25, cell_weight=np.ones(Y.shape))
    assert weighted.objective == pytest.approx(plain.objective, rel=1e-12)
    np.testing.assert_allclose(weighted.coef, plain.coef, atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_hidden_values_never_influence_anything(form, make_problem, arrays_of):
    d, features = FORMS[form]
    X, Y, _ = make_problem(1, d=d)
    weights = (np.random.default_rng(0).random(Y.shape) > 0.6).astype(float)
    weights[7] = 0
    first = solve_msvr(features(X), Y, alpha=1.0, cell_weight=weights)
    shuffled = np.random.default_rng(1).permutation(Y.ravel()).reshape(Y.shape)
    for poison in (np.inf, -np.inf, np.nan, 0.0, 1e300, shuffled):
        targets = np.where(weights > 0, Y, poison)
        other = solve_msvr(features(X), targets, alpha=1.0, cell_weight=weights)
        assert other.objective == first.objective
        for (name, one), (_, two) in zip(arrays_of(first), arrays_of(other), strict=True):
            np.testing.assert_array_equal(one, two, err_msg=name)


def test_weights_of_rows_and_cells_multiply():
    problem = draw(1, shape=(30, 5))
    rows = np.random.default_rng(0).integers(0, 3, 30).astype(float)
    by_weight = solve(problem, sample_weight=rows)
    kept = np.repeat(np.arange(30), rows.astype(int))
    repeated = problem._replace(X=problem.X[kept], T=problem.T[kept], weights=problem.weights[kept])
    by_rows = solve(repeated)
    assert by_weight.objective == pytest.approx(by_rows.objective, rel=1e-9)
    np.testing.assert_allclose(by_weight.coef, by_rows.coef, atol=1e-6)


def test_it_is_the_limit_of_eq_9_for_a_large_beta(make_problem):
    X, Y, W = make_problem(2)
    weights = (np.random.default_rng(2).random(Y.shape) > 0.5).astype(float)
    weights[0] = 1
    found = solve_msvr(X, Y, alpha=1.0, epsilon=0.2, cell_weight=weights)
    limit = solve_joint(
        X,
        Y,
        W,
        alpha=1.0,
        beta=1e5,
        gamma=0.0,
        epsilon=0.2,
        tol=1e-9,
        max_iter=20_000,
        cell_weight=weights,
    )
    assert limit.objective == pytest.approx(found.objective, rel=1e-4)
    np.testing.assert_allclose(limit.coef, found.coef, atol=1e-3)


def test_an_output_that_nobody_observed_is_zero(make_problem):
    X, Y, _ = make_problem(4)
    weights = np.ones(Y.shape)
    weights[:, 1] = 0
    found = solve_msvr(X, Y, alpha=1.0, cell_weight=weights)
    assert found.converged
    assert not found.coef[1].any()
    assert found.intercept[1] == 0
    alone = solve_msvr(X, Y[:, [0, 2]], alpha=1.0)
    assert found.objective == pytest.approx(alone.objective, rel=1e-10)
    np.testing.assert_allclose(found.coef[[0, 2]], alone.coef, atol=1e-7)


@pytest.mark.parametrize("form", FORMS)
def test_a_path_solves_what_single_searches_solve(form, make_problem):
    d, features = FORMS[form]
    X, Y, _ = make_problem(5, d=d)
    rng = np.random.default_rng(5)
    weights = rng.random(Y.shape) * (rng.random(Y.shape) > 0.4)
    weights[3] = 0
    alphas = [0.25, 4.0]
    for place, solution in solve_msvr_path(features(X), Y, alphas, cell_weight=weights):
        alone = solve_msvr(features(X), Y, alpha=alphas[place], cell_weight=weights)
        assert solution.converged
        assert solution.objective == pytest.approx(alone.objective, rel=1e-9)
        np.testing.assert_allclose(solution.coef, alone.coef, atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((2, 2)), r"cell_weight must have the shape of Y, \(30, 3\); got \(2, 2\)"),
        (np.full((30, 3), -1.0), "cell_weight must be finite and not negative, got -1.0"),
        (np.zeros((30, 3)), "label 0 has no cell with a positive weight; leave it out"),
    ],
)
def test_refusals(weights, message, make_problem):
    X, Y, _ = make_problem()
    with pytest.raises(ValueError, match=message):
        solve_msvr(X, Y, alpha=1.0, cell_weight=weights)
