"""LEMLL, the estimator: what it promises beyond its solver."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from lemll import LEMLL
from lemll.datasets import load_digit_tags
from lemll.enhancers import LEMLLEnhancer
from lemll.exceptions import NotEnoughMemoryError
from lemll.lab.reference import solve_reference
from lemll.solvers import solve_joint
from lemll.solvers.equation9 import duality_gap
from lemll.topology import reconstruction_weights


@pytest.fixture(scope="module")
def digits():
    data = load_digit_tags()
    return data.X[:400] / 16, data.Y[:400]


# A certified relative gap g bounds the model's error too: alpha |dTheta|^2 <= g F.


def random_problem(seed=0, n=60, d=5, n_labels=4):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, d)
    Y = (X @ rng.randn(d, n_labels) + 0.5 * rng.randn(n, n_labels) > 0).astype(int)
    return X, Y


def test_fit_is_the_certified_optimum_of_equation_9(digits):
    X, Y = digits
    model = LEMLL(tol=1e-7).fit(X, Y)
    W = reconstruction_weights(X, 10, reg_policy="always")
    point = (model.numerical_labels_, model.coef_, model.intercept_)
    gap = duality_gap(X, 2.0 * Y - 1, W, point, alpha=1.0, beta=1.0, gamma=1.0, epsilon=0.1)
    assert gap.relative <= 1e-7
    assert model.objective_ == pytest.approx(gap.objective, rel=1e-12)
    assert model.optimality_ <= 1e-7
    assert len(model.objective_trace_) == model.n_iter_ + 1
    np.testing.assert_allclose(model.label_distribution_.sum(axis=1), 1)


def test_the_virtual_label_is_exactly_zero_so_the_threshold_is_zero():
    X, Y = random_problem()
    W = reconstruction_weights(X, 10, reg_policy="always")
    with_virtual = np.column_stack([np.zeros(len(Y)), 2.0 * Y - 1])
    options = {"alpha": 0.5, "beta": 0.25, "gamma": 2.0, "epsilon": 0.1, "tol": 1e-10}
    for solve in (solve_joint, solve_reference):
        solution = solve(X, with_virtual, W, **options)
        assert not solution.numerical_labels[:, 0].any()
        assert not solution.coef[0].any()
        assert solution.intercept[0] == 0
        without = solve(X, with_virtual[:, 1:], W, **options)
        np.testing.assert_allclose(solution.coef[1:], without.coef, atol=1e-4)
    model = LEMLL(0.5, 0.25, 2.0, tol=1e-10).fit(X, Y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))
    np.testing.assert_allclose(scores, X @ without.coef.T + without.intercept, atol=1e-3)


def test_one_dimensional_targets():
    X, Y = random_problem()
    classes = np.array(["no", "yes"])
    binary = LEMLL().fit(X, classes[Y[:, 0]])
    scores = binary.decision_function(X)
    assert scores.shape == (60,)
    np.testing.assert_array_equal(binary.predict(X), classes[(scores > 0).astype(int)])
    three = LEMLL().fit(X, np.arange(60) % 3 + 7)
    np.testing.assert_array_equal(three.classes_, [7, 8, 9])
    assert three.decision_function(X).shape == (60, 3)
    np.testing.assert_array_equal(three.predict(X), three.decision_function(X).argmax(1) + 7)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_fewer_rows_than_neighbours(n):
    X, _ = random_problem(n=n)
    Y = np.column_stack([np.arange(n) % 2, np.arange(n) == 0]).astype(int)
    model = LEMLL(tol=1e-8).fit(X, Y)
    assert np.isfinite(model.coef_).all()
    assert model.optimality_ <= 1e-8


def test_one_row_is_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"at least 2 rows.*n_samples=1"):
        LEMLL().fit([[1.0, 2.0]], [[1, 0]])


def test_scaled_features():
    X, Y = random_problem()
    small = LEMLL(alpha=1e-6, tol=1e-8).fit(X * 1e-3, Y)
    usual = LEMLL(alpha=1.0, tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(small.coef_ * 1e-3, usual.coef_, atol=1e-4)
    with pytest.raises(ValueError, match="leave the range of floating-point numbers; rescale"):
        LEMLL().fit(X * 1e300, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0}, "alpha must be finite and > 0, got 0"),
        ({"alpha": "1"}, "alpha must be a number > 0, got '1'"),
        ({"beta": -1.0}, "beta must be finite and > 0"),
        ({"beta": float("nan")}, "beta must be finite and > 0"),
        ({"gamma": -1.0}, "gamma must be finite and >= 0"),
        ({"gamma": float("inf")}, "gamma must be finite and >= 0"),
        ({"epsilon": -0.1}, "epsilon must be finite and >= 0"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number >= 1, got 0"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a whole number >= 1, got 2.5"),
        ({"tol": 0}, "tol must be finite and > 0"),
        ({"max_iter": 0}, "max_iter must be a whole number >= 1"),
        ({"graph": {"reg_policy": "never"}}, "reg_policy"),
        ({"solver_params": {"precision": "half"}}, "precision='half' in solver_params must be"),
    ],
)
@pytest.mark.parametrize("estimator", [LEMLL, LEMLLEnhancer])
def test_parameters_out_of_range(estimator, parameters, message):
    X, Y = random_problem()
    with pytest.raises(ValueError, match=re.escape(message)):
        estimator(**parameters).fit(X, Y)


@pytest.mark.slow
def test_a_sparse_label_matrix_that_would_not_fit_is_refused_before_it_is_made_dense():
    X, Y = sparse.csr_array((10**6, 5)), sparse.csr_array((10**6, 10**7))
    with pytest.raises(NotEnoughMemoryError, match="A dense label matrix of shape"):
        LEMLL().fit(X, Y)


@pytest.mark.parametrize("estimator", [LEMLL, LEMLLEnhancer])
def test_not_converged_warns_with_both_figures_at_the_callers_line(estimator):
    X, Y = random_problem()
    message = r"after 1 iterations .* wanted tol=1.00e-12; raise max_iter"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = estimator(tol=1e-12, max_iter=1).fit(X, Y)
    assert model.optimality_ > 1e-12
    assert caught[0].filename == __file__


def test_verbose_shows_progress_and_what_was_reached(capsys):
    X, Y = random_problem()
    model = LEMLL(verbose=1).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == model.n_iter_ + 1
    assert re.match(r"LEMLL iteration 1: objective .* \(wanted 1.0e-04\), \d", lines[0])
    assert f"certified gap {model.optimality_:.1e} (wanted 1.0e-04), done" in lines[-1]
    assert not any("inf" in line for line in lines)
    LEMLL().fit(X, Y)
    assert capsys.readouterr().err == ""


def test_the_whole_fit_is_invariant():
    X, Y = random_problem()
    rng = np.random.RandomState(1)
    fitted = LEMLL(0.5, 0.25, 2.0, tol=1e-11).fit(X, Y)
    scores = fitted.decision_function(X)

    rows = rng.permutation(len(X))
    permuted = LEMLL(0.5, 0.25, 2.0, tol=1e-11).fit(X[rows], Y[rows])
    np.testing.assert_allclose(permuted.decision_function(X), scores, atol=1e-5)
    np.testing.assert_allclose(
        permuted.numerical_labels_, fitted.numerical_labels_[rows], atol=1e-5
    )

    labels = rng.permutation(Y.shape[1])
    relabelled = LEMLL(0.5, 0.25, 2.0, tol=1e-11).fit(X, Y[:, labels])
    np.testing.assert_allclose(relabelled.decision_function(X), scores[:, labels], atol=1e-5)

    rotation, _ = np.linalg.qr(rng.randn(X.shape[1], X.shape[1]))
    moved = X @ rotation + 5.0
    rotated = LEMLL(0.5, 0.25, 2.0, tol=1e-11).fit(moved, Y)
    np.testing.assert_allclose(rotated.decision_function(moved), scores, atol=1e-5)
