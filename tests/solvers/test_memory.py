"""The memory of the joint solver: bounded, and known beforehand."""

import gc
import weakref

import numpy as np
import pytest
from scipy import sparse
from support import Peak

from lemll.solvers import GridPoint, solve_joint, solve_path
from lemll.solvers.certificate import CentredKernel
from lemll.solvers.joint import JointProblem, kernel_bytes, solver_bytes
from lemll.solvers.linear import CentredFeatures

ONES = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0, "epsilon": 0.1}


def ring(n, n_neighbors=10):
    row = np.repeat(np.arange(n), n_neighbors)
    column = (row + np.tile(np.arange(1, n_neighbors + 1), n)) % n
    return sparse.csr_array((np.full(len(row), 1 / n_neighbors), (row, column)), shape=(n, n))


def thin(n, d, density):
    rng = np.random.default_rng(0)
    place = (rng.integers(0, n, int(n * d * density)), rng.integers(0, d, int(n * d * density)))
    return sparse.csr_array(sparse.coo_array((rng.random(len(place[0])), place), shape=(n, d)))


def peak_of_a_solve(X, n_labels, features=lambda X: X):
    n = X.shape[0]
    Y = np.where(np.random.default_rng(1).random((n, n_labels)) < 0.5, 1.0, -1.0)
    W = ring(n)
    # The first call imports and caches what is not its own.
    solve_joint(X[:20], Y[:20], ring(20), **ONES, max_iter=1)
    with Peak() as peak:
        solve_joint(features(X), Y, W, **ONES, tol=1e-12, max_iter=3)
    return peak.bytes


@pytest.mark.parametrize(
    ("X", "n_labels"),
    [
        (np.random.default_rng(0).standard_normal((2000, 100)), 14),
        (np.random.default_rng(0).standard_normal((1000, 600)), 3),
        (np.random.default_rng(0).standard_normal((5000, 5)), 30),
        (np.random.default_rng(0).standard_normal((300, 2000)), 5),
        (thin(4000, 300, 0.02), 10),
        (thin(9000, 12000, 0.001), 4),
        (thin(400, 20_000, 0.01), 5),
    ],
    ids=["dense", "wide", "many labels", "n<d", "sparse", "sparse, huge", "sparse, n<d"],
)
def test_the_estimate_is_above_the_peak_but_not_far(X, n_labels):
    peak = peak_of_a_solve(X, n_labels)
    assert peak <= solver_bytes(X, n_labels) <= 1.5 * peak


def test_sparse_features_wider_than_long_are_not_made_dense(monkeypatch):
    monkeypatch.setattr("lemll.solvers.linear.BLOCK_BYTES", 1 << 20)
    X = thin(100, 50_000, 0.002)
    dense = 8 * X.shape[0] * X.shape[1]
    assert peak_of_a_solve(X, 2) < dense / 3


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_blocks_of_columns_and_of_rows_change_nothing(form, precision, make_problem, monkeypatch):
    X, _, _ = make_problem(3, d=50)
    X[:, 3] += 100
    monkeypatch.setattr("lemll.solvers.linear.BLOCK_BYTES", 8 * 30 * 7)
    features = CentredFeatures(form(X), precision)
    centred = X - X.mean(axis=0)
    atol = 1e-11 if precision == "float64" else 1e-2
    np.testing.assert_allclose(features.kernel, centred @ centred.T, atol=atol)
    np.testing.assert_allclose(features.gram(1e-9), centred.T @ centred, atol=atol)
    np.testing.assert_allclose(features.gram_diagonal, np.square(centred).sum(axis=0), atol=atol)


@pytest.mark.parametrize(("n", "n_labels"), [(600, 3), (2500, 10), (800, 100)])
def test_the_estimate_of_a_kernel_is_above_the_peak_but_not_far(n, n_labels):
    X = np.random.default_rng(0).standard_normal((n, 5))
    peak = peak_of_a_solve(X, n_labels, lambda X: CentredKernel(X @ X.T, overwrite=True))
    assert peak <= kernel_bytes(n, n_labels) <= 1.5 * peak


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("path", [False, True])
def test_nothing_stays_in_memory_without_the_garbage_collector(path, precision, make_problem):
    # A cycle of references would keep the arrays of one block of labels while the next is solved.
    problem = JointProblem(*make_problem())
    operators = weakref.ref(problem.operators(precision))
    gc.disable()
    try:
        if path:
            points = [GridPoint(1.0, 1.0, 1.0), GridPoint(2.0, 1.0, 1.0)]
            for _ in solve_path(problem, points, precision=precision):
                pass
            del _
        else:
            problem.solve(**ONES, precision=precision)
        del problem
        assert operators() is None
    finally:
        gc.enable()
