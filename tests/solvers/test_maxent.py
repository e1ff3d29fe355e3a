"""The maximum entropy model: gradients, optimality, losses by hand, refusals."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from scipy.special import softmax

from lemll.rivals import maxent
from lemll.rivals.maxent import MaxentBasis, empirical_loss, solve_maxent


def random_problem(seed=0, n=50, d=4, n_labels=3):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, d) * [1, 10, 0.1, 1] + [0, 5, 0, -3]
    Y = (rng.rand(n, n_labels) < 0.4).astype(int)
    Y[0], Y[1] = 0, 1
    degrees = np.column_stack([np.full(n, 0.3), Y + 0.2 * rng.rand(n, n_labels)])
    return X, degrees / degrees.sum(axis=1, keepdims=True), Y


def objective(X, degrees, Y, coef, intercept, *, beta, emp, clip, ridge):
    f = softmax(X @ coef.T + intercept, axis=1)
    terms = np.where(degrees > 0, degrees * np.log(np.where(degrees > 0, degrees, 1) / f), 0)
    return (
        terms.sum() + beta * empirical_loss(f, Y, emp=emp, clip=clip)[0] + ridge * (coef**2).sum()
    )


@pytest.mark.parametrize("emp", ["virtual", "pairwise"])
@pytest.mark.parametrize("clip", [False, True])
def test_derivatives_of_the_empirical_loss_are_finite_differences(emp, clip):
    _, degrees, Y = random_problem(n=6)
    _, by_f = empirical_loss(degrees, Y, emp=emp, clip=clip)
    numeric = approx_fprime(
        degrees.ravel(),
        lambda f: empirical_loss(f.reshape(degrees.shape), Y, emp=emp, clip=clip)[0],
        1e-7,
    )
    np.testing.assert_allclose(by_f.ravel(), numeric, atol=1e-5)


def test_empirical_losses_by_hand():
    f = np.array([[0.2, 0.5, 0.25, 0.05]])
    Y = np.array([[1, 0, 0]])
    # (f0 - f1) + 1/2 ((f2 - f0) + (f3 - f0)), and its positive parts.
    assert empirical_loss(f, Y)[0] == pytest.approx(-0.3 + (0.05 - 0.15) / 2)
    assert empirical_loss(f, Y, clip=True)[0] == pytest.approx(0.05 / 2)
    assert empirical_loss(f, Y, emp="pairwise")[0] == pytest.approx((-0.25 - 0.45) / 2)
    assert empirical_loss(f, 1 - Y, emp="pairwise", clip=True)[0] == pytest.approx(0.35)
    for none in (np.zeros_like(Y), np.ones_like(Y)):
        assert empirical_loss(f, none, emp="pairwise")[0] == 0
    assert empirical_loss(f, np.zeros_like(Y))[0] == 0
    assert empirical_loss(f, np.ones_like(Y))[0] == pytest.approx(3 * 0.2 - 0.8)


@pytest.mark.parametrize("emp", ["virtual", "pairwise"])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_the_solution_is_stationary_by_finite_differences(emp, beta):
    X, degrees, Y = random_problem()
    options = {"beta": beta, "emp": emp, "clip": False, "ridge": 0.1}
    found = solve_maxent(X, degrees, Y, **options, tol=1e-9)
    assert found.converged
    assert found.objective == pytest.approx(
        objective(X, degrees, Y, found.coef, found.intercept, **options), rel=1e-9
    )

    def value(flat):
        coef = flat.reshape(4, 5)
        return objective(X, degrees, Y, coef[:, :4], coef[:, 4], **options)

    at = np.column_stack([found.coef, found.intercept]).ravel()
    np.testing.assert_allclose(approx_fprime(at, value, 1e-6), 0, atol=5e-3)
    rng = np.random.RandomState(0)
    for _ in range(20):
        assert value(at + 0.01 * rng.randn(len(at))) > found.objective


def test_clipped_losses_only_ever_help_the_objective_down():
    X, degrees, Y = random_problem()
    found = solve_maxent(X, degrees, Y, beta=0.5, clip=True, tol=1e-3)
    start = objective(
        X, degrees, Y, np.zeros((4, 4)), np.zeros(4), beta=0.5, emp="virtual", clip=True, ridge=0.1
    )
    assert found.objective < start


def test_sparse_features_give_the_same_model():
    X, degrees, Y = random_problem()
    X[np.abs(X) < 1] = 0
    dense = solve_maxent(X, degrees, Y, tol=1e-8)
    few = solve_maxent(sparse.csr_array(X), degrees, Y, tol=1e-8)
    np.testing.assert_allclose(few.coef - few.coef[0], dense.coef - dense.coef[0], atol=1e-4)
    assert few.objective == pytest.approx(dense.objective, rel=1e-8)


def test_a_feature_that_does_not_vary_does_no_harm():
    X, degrees, Y = random_problem()
    wide = np.column_stack([X, np.full(len(X), 0.1)])
    plain, padded = (solve_maxent(A, degrees, Y, tol=1e-8) for A in (X, wide))
    assert padded.objective == pytest.approx(plain.objective, rel=1e-8)


def test_a_search_cut_short_says_so():
    X, degrees, Y = random_problem()
    cut = solve_maxent(X, degrees, Y, max_iter=2)
    assert (cut.status, cut.converged) == ("max_iter", False)
    assert solve_maxent(X, degrees, Y, tol=1e-60).status == "stalled"


def test_a_start_and_a_basis_give_the_same_minimum_in_fewer_steps():
    X, degrees, Y = random_problem(n=200)
    basis = MaxentBasis(X)
    first = solve_maxent(basis, degrees, Y, beta=0, ridge=0.1, tol=1e-7)
    alone = solve_maxent(X, degrees, Y, beta=0, ridge=0.2, tol=1e-7)
    warm = solve_maxent(basis, degrees, Y, beta=0, ridge=0.2, tol=1e-7, start=first)
    assert warm.objective == pytest.approx(alone.objective, rel=1e-9)
    assert warm.n_iter < alone.n_iter


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_many_rows_and_features_stay_in_their_own_features(as_rows, monkeypatch):
    X, degrees, Y = random_problem()
    rotated = solve_maxent(as_rows(X), degrees, Y, tol=1e-7)
    monkeypatch.setattr(maxent, "LARGEST_ROTATION", 2)
    plain = solve_maxent(as_rows(X), degrees, Y, tol=1e-7)
    assert plain.objective == pytest.approx(rotated.objective, rel=1e-8)
    np.testing.assert_allclose(plain.coef, rotated.coef, atol=1e-4)
