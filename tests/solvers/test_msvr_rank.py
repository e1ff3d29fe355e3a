"""Eq. (10) with kernels that do not have full rank: repeated rows, text, few dimensions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from lemll.rivals.sign_msvr import solve_sign_msvr
from lemll.solvers import solve_msvr
from lemll.solvers.certificate import CentredKernel
from lemll.solvers.msvr import solve_msvr_path


class Drawn(NamedTuple):
    X: Any
    features: Any  # with the same kernel as X, for the other solver
    T: Any
    weights: Any
    alpha: float
    epsilon: float


def root(kernel):
    values, vectors = np.linalg.eigh(kernel)
    return vectors * np.sqrt(np.maximum(values, 0))


def draw(seed, *, weighted):
    rng = np.random.default_rng(seed)
    n, m, kind = int(rng.integers(6, 40)), int(rng.integers(1, 6)), seed % 4
    if kind == 0:  # repeated rows
        rows = rng.standard_normal((max(2, n // 2), int(rng.integers(1, 6))))
        X = rows[rng.integers(0, len(rows), n)]
    elif kind == 1:  # short texts, many of them equal or empty
        X = (rng.random((n, int(rng.integers(4, 60)))) < 0.15).astype(float)
    elif kind == 2:  # fewer dimensions than rows
        X = rng.standard_normal((n, int(rng.integers(1, 5))))
    else:  # more features than rows, but few dimensions
        rank = int(rng.integers(1, 5))
        X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, n + 5))
    T = np.where(rng.random((n, m)) < 0.3, 1.0, -1.0)
    if seed % 3 == 0:
        T = rng.standard_normal((n, m))
    alpha = float(2.0 ** rng.integers(-16, 2))
    epsilon = float(rng.choice([0.0, 0.01, 0.1, 0.5, 1.0]))
    features = X
    if kind in (0, 1):
        kernel = rbf_kernel(X, gamma=float(2.0 ** rng.integers(-6, 1)))
        X, features = CentredKernel(kernel), root(kernel)
    elif kind == 2:
        X = CentredKernel(X @ X.T)
    weights = None
    if weighted:
        weights = (rng.random((n, m)) > 0.6).astype(float)
        if seed % 2 == 0:
            weights = rng.random((n, m)) * (rng.random((n, m)) > 0.3)
        weights[0] = 1.0
    return Drawn(X, features, T, weights, alpha, epsilon)


def solve(problem, **options):
    return solve_msvr(
        problem.X,
        problem.T,
        alpha=problem.alpha,
        epsilon=problem.epsilon,
        cell_weight=problem.weights,
        **options,
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.nightly(when=lambda block: block > 0)
@pytest.mark.parametrize("block", range(4))
def test_two_hundred_searches_reach_their_gap(block, weighted):
    for seed in range(50 * block, 50 * block + 50):
        found = solve(draw(seed, weighted=weighted), tol=1e-6)
        assert found.status == "converged", seed
        assert found.optimality <= 1e-6, seed


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("weighted", [False, True])
def test_an_interior_point_solver_agrees(weighted, solve_msvr_by_clarabel):
    # Among these are problems that stopped early before coefficients were confined.
    for seed in (35, 38, 44, 54, 79, 88, 93, 186, 195, 230, 242, 326):
        problem = draw(seed, weighted=weighted)
        best, _ = solve_msvr_by_clarabel(
            problem.features, problem.T, problem.alpha, problem.epsilon, cells=problem.weights
        )
        found = solve(problem, tol=1e-8)
        assert found.converged, seed
        assert found.objective == pytest.approx(best, rel=1e-5, abs=1e-7), seed
        # The certificate is never below the true gap, up to the accuracy of the other solver.
        true_gap = (found.objective - best) / max(found.objective, 1e-5)
        assert found.optimality >= true_gap - 1e-6, seed


def test_a_path_reaches_its_gap():
    for seed in range(40):
        problem = draw(seed, weighted=True)
        alphas = [2.0**-12, 2.0**-6, 1.0]
        for _, found in solve_msvr_path(
            problem.X,
            problem.T,
            alphas,
            epsilon=problem.epsilon,
            cell_weight=problem.weights,
            tol=1e-6,
        ):
            assert found.converged, seed


@pytest.mark.parametrize("seed", [54, 195])
def test_the_regression_with_signs_is_confined_too(seed):
    problem = draw(seed, weighted=False)
    found = solve_sign_msvr(
        problem.X, problem.T, C1=1 / (2 * problem.alpha), C2=1.0, epsilon=problem.epsilon, tol=1e-6
    )
    assert found.converged
