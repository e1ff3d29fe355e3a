"""Eq. (9) and Eq. (10) with a kernel: the same optimum as with the features behind it."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from lemll.solvers import solve_joint, solve_msvr
from lemll.solvers.certificate import CentredKernel
from lemll.solvers.equation9 import duality_gap

ONES = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0, "epsilon": 0.1}
TIGHT = {"tol": 1e-13, "max_iter": 20_000}


def draw_kernel(rng, X):
    if rng.random() < 0.5:
        return rbf_kernel(X, gamma=float(10.0 ** rng.uniform(-2, 1)))
    return polynomial_kernel(X, degree=int(rng.integers(2, 4)), gamma=0.5, coef0=1)


def features_of(K):
    """Features with these inner products."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


@pytest.mark.nightly(when=lambda seed: seed >= 30)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", range(100))
def test_an_interior_point_solver_agrees(
    seed, make_problem, draw_parameters, corners, solve_by_clarabel
):
    rng = np.random.default_rng(seed)
    X, Y, W = make_problem(
        seed,
        n=int(rng.integers(5, 25)),
        d=int(rng.integers(1, 6)),
        n_labels=int(rng.integers(1, 5)),
    )
    K = draw_kernel(rng, X)
    parameters = corners[seed] if seed < len(corners) else draw_parameters(rng)
    parameters = parameters | {"epsilon": float(rng.choice([0.0, 0.01, 0.1, 0.5]))}
    program, U = solve_by_clarabel(features_of(K), Y, W, **parameters)
    solution = solve_joint(CentredKernel(K), Y, W, **parameters, **TIGHT)
    assert solution.converged
    assert solution.optimality <= TIGHT["tol"]
    assert solution.objective == pytest.approx(program.value, rel=1e-6)
    error = np.linalg.norm(U - solution.numerical_labels)
    assert error <= 1e-6 * np.linalg.norm(solution.numerical_labels)


@pytest.mark.parametrize("d", [4, 50])
def test_the_linear_kernel_is_the_primal_form(d, corner, make_problem):
    X, Y, W = make_problem(1, d=d)
    primal = solve_joint(X + 5, Y, W, **corner, **TIGHT)
    kernel = solve_joint(CentredKernel((X + 5) @ (X + 5).T), Y, W, **corner, **TIGHT)
    assert kernel.converged
    assert kernel.objective == pytest.approx(primal.objective, rel=1e-10)
    for ours, theirs in (
        (kernel.numerical_labels, primal.numerical_labels),
        (kernel.coef @ (X + 5), primal.coef),
        (kernel.intercept, primal.intercept),
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)
    np.testing.assert_allclose(kernel.coef.sum(axis=1), 0, atol=1e-12)


def test_objective_and_certificate_are_those_of_the_features(make_problem):
    X, Y, W = make_problem(2, d=3)
    K = rbf_kernel(X, gamma=0.3)
    rough = solve_joint(CentredKernel(K), Y, W, **ONES, tol=1e-2)
    features = features_of(K)
    point = rough.point._replace(coef=rough.coef @ features)
    assert rough.objective == pytest.approx(duality_gap(features, Y, W, point, **ONES).objective)
    by_features = duality_gap(features, Y, W, point, **ONES)
    assert rough.optimality == pytest.approx(by_features.relative, rel=1e-6)
    assert duality_gap(CentredKernel(K), Y, W, rough.point, **ONES).objective == rough.objective
    best = solve_joint(CentredKernel(K), Y, W, **ONES, **TIGHT)
    assert rough.objective - best.objective <= rough.optimality * rough.objective


def test_single_precision_is_certified(make_problem):
    X, Y, W = make_problem(4)
    kernel = CentredKernel(rbf_kernel(X))
    solution = solve_joint(kernel, Y, W, **ONES, tol=1e-4, precision="float32")
    assert solution.converged
    exact = solve_joint(kernel, Y, W, **ONES, **TIGHT)
    assert solution.objective <= exact.objective * (1 + 1e-4)


def test_a_kernel_of_another_size_is_refused(make_problem):
    X, Y, W = make_problem(5)
    with pytest.raises(ValueError, match="X has 29 rows, so Y must be"):
        solve_joint(CentredKernel(rbf_kernel(X[:29])), Y, W, **ONES)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_msvr_with_a_kernel_is_msvr_with_its_features(seed, weighted, make_problem):
    rng = np.random.default_rng(seed)
    X, Y, _ = make_problem(seed, n=int(rng.integers(5, 40)))
    K = draw_kernel(rng, X)
    weights = rng.integers(0, 3, len(X)) + np.arange(len(X)) % 2 * 0.5 if weighted else None
    epsilon = float(rng.choice([0.0, 0.1, 0.5]))
    options = {"alpha": 0.5, "epsilon": epsilon, "sample_weight": weights}
    features = features_of(K)
    by_features = solve_msvr(features, Y, **options)
    by_kernel = solve_msvr(CentredKernel(K), Y, **options)
    assert by_kernel.converged
    assert by_kernel.objective == pytest.approx(by_features.objective, rel=1e-10)
    np.testing.assert_allclose(
        K @ by_kernel.coef.T + by_kernel.intercept,
        features @ by_features.coef.T + by_features.intercept,
        atol=1e-8,
    )
    if weighted:
        assert not by_kernel.coef[:, weights == 0].any()
