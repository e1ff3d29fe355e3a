"""MSVR for many alphas: each as if it were alone."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from lemll.solvers import solve_msvr
from lemll.solvers.certificate import CentredKernel
from lemll.solvers.msvr import solve_msvr_path

ALPHAS = [1.0, 1 / 64, 64.0, 4.0]
FORMS = {
    "n > d": (3, np.asarray),
    "n < d": (50, np.asarray),
    "sparse": (3, sparse.csr_array),
    "kernel": (3, lambda X: CentredKernel(rbf_kernel(X))),
}


@pytest.mark.parametrize("spectrum_pays", [1, 1000])
@pytest.mark.parametrize("form", FORMS)
def test_every_alpha_is_the_optimum_that_a_solve_of_its_own_finds(
    form, spectrum_pays, make_problem, monkeypatch
):
    monkeypatch.setattr("lemll.solvers.linear.SPECTRUM_PAYS", spectrum_pays)
    d, features = FORMS[form]
    X, Y, _ = make_problem(0, d=d)
    steps = list(solve_msvr_path(features(X), Y, ALPHAS, epsilon=0.2))
    assert [place for place, _ in steps] == [2, 3, 0, 1]
    for place, solution in steps:
        alone = solve_msvr(features(X), Y, alpha=ALPHAS[place], epsilon=0.2)
        assert solution.converged
        assert solution.optimality <= 1e-10
        assert solution.objective == pytest.approx(alone.objective, rel=1e-9)
        np.testing.assert_allclose(solution.coef, alone.coef, atol=1e-6)
        np.testing.assert_allclose(solution.intercept, alone.intercept, atol=1e-6)


@pytest.mark.parametrize("n_labels", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_what_a_user_writes_into_a_solution_does_not_reach_the_next(
    form, n_labels, make_problem, arrays_of
):
    d, features = FORMS[form]
    X, Y, _ = make_problem(2, d=d, n_labels=n_labels)
    untouched = [s.objective for _, s in solve_msvr_path(features(X), Y, ALPHAS)]
    objectives = []
    for _, solution in solve_msvr_path(features(X), Y, ALPHAS):
        objectives.append(solution.objective)
        for _, array in arrays_of(solution):
            array[...] = np.nan
    assert objectives == untouched


def test_warm_starts_save_newton_steps(make_problem):
    X, Y, _ = make_problem(1, n=100)
    alphas = [4.0**k for k in range(-3, 4)]
    warm = sum(solution.n_iter for _, solution in solve_msvr_path(X, Y, alphas, tol=1e-3))
    cold = sum(solve_msvr(X, Y, alpha=alpha, tol=1e-3).n_iter for alpha in alphas)
    assert warm < cold


def test_what_is_not_solved_in_time_says_so(make_problem):
    X, Y, _ = make_problem(2)
    [(_, solution)] = solve_msvr_path(X, Y, [0.01], epsilon=1.0, max_iter=1)
    assert solution.status == "max_iter"


def test_no_alphas_no_solutions(make_problem):
    X, Y, _ = make_problem(3)
    assert list(solve_msvr_path(X, Y, [])) == []


@pytest.mark.parametrize(
    ("alphas", "options", "message"),
    [
        ([0.0], {}, "alpha must be finite and > 0"),
        ([1.0], {"tol": 0.0}, "tol must be finite"),
    ],
)
def test_bad_settings_are_named(alphas, options, message, make_problem):
    X, Y, _ = make_problem(4)
    with pytest.raises(ValueError, match=message):
        list(solve_msvr_path(X, Y, alphas, **options))
