"""Sparse codes against the slow, obvious way: one dictionary a row."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Lasso

from lemll.rivals.sparse_coding import admm_codes, lasso_codes


def rows(n_rows, n_features, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, n_features))
    X[X < 0.2] = 0
    return X


def admm_of_one_row(X, i, rho=1.0, relaxation=0.5):
    others = np.delete(np.arange(len(X)), i)
    A, x = X[others].T, X[i]
    weight = 0.01 * np.abs(A.T @ x).max()
    z, v = np.zeros(len(others)), np.zeros(len(others))
    inverse = np.linalg.inv(A.T @ A + rho * np.eye(len(others)))
    step = 0
    while step < 1000:
        step += 1
        s = inverse @ (A.T @ x + rho * (z - v))
        mixed = relaxation * s + (1 - relaxation) * z
        old = z
        z = np.sign(mixed + v) * np.maximum(np.abs(mixed + v) - weight / rho, 0)
        v = v + mixed - z
        floor = np.sqrt(len(others)) * 1e-4
        if np.linalg.norm(s - z) < floor + 1e-2 * max(
            np.linalg.norm(s), np.linalg.norm(z)
        ) and rho * np.linalg.norm(z - old) < floor + 1e-2 * rho * np.linalg.norm(v):
            break
    code = np.zeros(len(X))
    code[others] = z
    return code, step


@pytest.mark.parametrize("shape", [(80, 5), (30, 50)])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_admm_is_that_of_single_rows(shape, as_sparse):
    X = rows(*shape)
    X[3] = X[4]
    X[5] = 0
    found = admm_codes(sparse.csr_array(X) if as_sparse else X)
    for i in range(len(X)):
        code, steps = admm_of_one_row(X, i)
        np.testing.assert_allclose(found.weights[i], code, atol=1e-9)
        assert found.n_iter[i] == steps
    assert not found.weights.diagonal().any()
    assert not found.weights[5].any()
    assert np.isinf(found.gap).all()


def objective(X, i, code, weight):
    residual = X[i] - code @ X
    return residual @ residual / 2 + weight * np.abs(code).sum()


@pytest.mark.parametrize("shape", [(60, 6), (40, 60)])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_lasso_is_optimal(shape, as_sparse):
    X = rows(*shape)
    found = lasso_codes(sparse.csr_array(X) if as_sparse else X, tol=1e-10)
    W = found.weights.toarray()
    assert found.gap.max() <= 1e-10
    assert not W.diagonal().any()
    for i in range(len(X)):
        others = np.delete(np.arange(len(X)), i)
        weight = 0.01 * np.abs(X[others] @ X[i]).max()
        oracle = Lasso(alpha=weight / X.shape[1], fit_intercept=False, tol=1e-10, max_iter=10**6)
        code = np.zeros(len(X))
        code[others] = oracle.fit(X[others].T, X[i]).coef_
        best, ours = objective(X, i, code, weight), objective(X, i, W[i], weight)
        assert ours <= best + 1e-9 * (X[i] @ X[i])
        # The optimality conditions, written down again.
        products = X[others] @ (X[i] - W[i] @ X)
        assert np.abs(products).max() <= weight * (1 + 1e-4)


def test_a_twin_is_all_that_a_row_needs():
    X = rows(30, 40)
    X[7] = X[8]
    W = lasso_codes(X).weights.toarray()
    assert np.flatnonzero(W[7]).tolist() == [8]
    assert W[7, 8] == pytest.approx(0.99)


def test_twins_and_dependent_rows_are_certified():
    X = rows(60, 3)
    X[20:40] = X[:20]
    X[45:] = 0
    found = lasso_codes(X)
    assert found.gap.max() <= 1e-8
    assert np.isfinite(found.weights.data).all()
    assert not found.weights.toarray()[45:].any()


def test_the_exact_codes_are_sparse_and_the_loose_ones_are_not():
    # The penalty is large beside such short rows, and ADMM slow.
    X = 0.01 * rows(50, 80)
    exact, loose = lasso_codes(X).weights, admm_codes(X).weights
    assert exact.nnz < 0.8 * np.count_nonzero(loose)


def test_a_cap_shows_in_the_gap():
    X = rows(60, 6)
    assert lasso_codes(X, max_iter=1).gap.max() > 1e-8
    assert admm_codes(X, max_iter=2).n_iter.max() == 2
