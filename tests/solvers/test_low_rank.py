"""Low-rank representation: closed forms, a convex solver as oracle, and the certificate."""

import numpy as np
import pytest

from lemll.rivals.lesc import solve_low_rank


def basis(n_rows=25, n_features=4, seed=0):
    X = np.random.RandomState(seed).randn(n_rows, n_features) * [10.0, 3.0, 1.0, 0.3][:n_features]
    Q, S, _ = np.linalg.svd(X, full_matrices=False)
    return Q, S


def objective(Q, S, beta, Z):
    errors = np.linalg.norm(S[:, None] * (Q.T - Z), axis=0)
    return np.linalg.svd(Z, compute_uv=False).sum() + beta * errors.sum()


@pytest.mark.parametrize("beta", [0.02, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_gap_is_never_below_the_distance_to_the_optimum(beta, seed):
    cvxpy = pytest.importorskip("cvxpy")
    Q, S = basis(seed=seed)
    Z = cvxpy.Variable(Q.T.shape)
    errors = cvxpy.multiply(S[:, None], Q.T - Z)
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.normNuc(Z) + beta * cvxpy.sum(cvxpy.norm(errors, 2, axis=0)))
    )
    best = problem.solve(solver=cvxpy.SCS, eps=1e-7, max_iters=20_000)
    found = solve_low_rank(Q, S, beta, tol=1e-4)
    assert found.converged
    assert found.gap <= 1e-4
    assert found.objective == pytest.approx(objective(Q, S, beta, found.Z), rel=1e-9)
    assert found.objective - best <= (found.gap + 1e-5) * found.objective


def test_a_large_weight_represents_all_rows_and_a_small_one_none():
    Q, S = basis()
    limit = np.linalg.norm(Q / S, axis=1).max()
    full = solve_low_rank(Q, S, 1.001 * limit)
    np.testing.assert_array_equal(full.Z, Q.T)
    assert (full.objective, full.n_iter) == (pytest.approx(len(S)), 0)
    rows = Q * S
    directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    nothing = solve_low_rank(Q, S, 0.999 / np.linalg.norm(directions * S, 2))
    assert not nothing.Z.any()
    # Just inside both limits the iterations find nearly the same.
    inside = solve_low_rank(Q, S, 0.97 * limit, tol=1e-5)
    assert inside.n_iter > 0
    assert inside.objective == pytest.approx(len(S), rel=1e-2)


def test_more_rows_than_columns_and_the_reverse():
    for shape in ((6, 9), (40, 3)):
        Q, S, _ = np.linalg.svd(np.random.RandomState(1).randn(*shape), full_matrices=False)
        assert solve_low_rank(Q, S, 0.3, tol=1e-4).converged


def test_too_few_iterations_are_reported_with_a_true_gap():
    Q, S = basis()
    few, exact = solve_low_rank(Q, S, 0.1, max_iter=3), solve_low_rank(Q, S, 0.1, tol=1e-6)
    assert few.status == "max_iter"
    assert few.objective - exact.objective <= (few.gap + 1e-6) * few.objective


def test_refusals():
    Q, S = basis()
    with pytest.raises(ValueError, match="beta"):
        solve_low_rank(Q, S, 0.0)
    with pytest.raises(ValueError, match="tol must be finite and > 0"):
        solve_low_rank(Q, S, 1.0, tol=0.0)
