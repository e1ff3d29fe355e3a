"""Label propagation against the dense linear system and the limits of its objective."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from lemll.datasets import load_digit_tags
from lemll.metrics import average_precision
from lemll.rivals import LabelPropagation
from lemll.rivals.propagation import solve_smoothing


def problem(n_samples=40, n_labels=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, 4))
    Y = (X @ rng.standard_normal((4, n_labels)) > 0).astype(float)
    weight = rng.random(Y.shape) * (rng.random(Y.shape) < 0.4)
    weight[:2] = 1
    return X, Y, weight


def by_definition(X, Y, weight, *, k, mu, prior):
    """Solve the normal equations of each label with dense matrices."""
    near = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(return_distance=False)
    A = np.zeros((len(X), len(X)))
    for i, row in enumerate(near):
        A[i, row] += 0.5 / k
        A[row, i] += 0.5 / k
    L = np.diag(A.sum(axis=1)) - A
    F = np.empty(Y.shape)
    for j in range(Y.shape[1]):
        w = weight[:, j]
        frequency = (w * Y[:, j]).sum() / w.sum()
        system = np.diag(w + prior) + mu * L
        F[:, j] = np.linalg.solve(system, w * Y[:, j] + prior * frequency)
    return F


@pytest.mark.parametrize("mu", [0.0, 0.3, 20.0])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_labels_solve_the_normal_equations(mu, kind):
    X, Y, weight = problem()
    model = LabelPropagation(4, mu, prior=0.05, scale="none", tol=1e-12)
    model.fit(kind(X), np.where(weight > 0, Y, np.nan), label_weight=weight)
    expected = by_definition(X, Y, weight, k=4, mu=mu, prior=0.05)
    np.testing.assert_allclose(model.numerical_labels_, expected, atol=1e-10)
    assert model.gradient_norm_ <= 1e-12
    completed = np.where(weight > 0, Y, expected >= 0.5)
    np.testing.assert_array_equal(model.completed_labels_, completed)


def test_a_new_row_has_the_mean_of_its_neighbours():
    X, Y, weight = problem()
    model = LabelPropagation(5, scale="auto").fit(X, np.where(weight > 0, Y, np.nan))
    new = np.random.default_rng(1).standard_normal((7, 4))
    scaler = StandardScaler().fit(X)
    search = NearestNeighbors(n_neighbors=5).fit(scaler.transform(X))
    near = search.kneighbors(scaler.transform(new), return_distance=False)
    expected = model.numerical_labels_[near].mean(axis=1)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-12)
    np.testing.assert_allclose(expit(model.decision_function(new)), expected, atol=1e-12)
    np.testing.assert_array_equal(model.predict(new), expected >= 0.5)


def test_the_solver_against_many_random_problems():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        n, n_labels = rng.integers(2, 30), rng.integers(1, 5)
        A = sparse.random_array((n, n), density=0.3, rng=rng).toarray()
        A = A + A.T
        np.fill_diagonal(A, 0)
        weight = 10.0 ** rng.uniform(-4, 2, (n, n_labels))
        target = rng.random((n, n_labels))
        mu = 10.0 ** rng.uniform(-2, 2)
        found = solve_smoothing(sparse.csr_array(A), target, weight, smoothness=mu, tol=1e-11)
        L = np.diag(A.sum(axis=1)) - A
        for j in range(n_labels):
            exact = np.linalg.solve(np.diag(weight[:, j]) + mu * L, weight[:, j] * target[:, j])
            np.testing.assert_allclose(found.labels[:, j], exact, atol=1e-6)


def test_labels_pass_through_rows_that_nobody_tagged():
    digits = load_digit_tags()
    Y = digits.Y[:900].astype(float)
    Y[60:] = np.nan
    scores = {}
    for mu in (0.0, 10.0):
        model = LabelPropagation(10, mu).fit(digits.X[:900], Y)
        scores[mu] = average_precision(digits.Y[900:], model.decision_function(digits.X[900:]))
    assert scores[10.0] > scores[0.0] + 0.05
    with pytest.warns(ConvergenceWarning, match="stopped after max_iter=2 steps with a relative"):
        LabelPropagation(max_iter=2).fit(digits.X[:900], Y)


@pytest.mark.parametrize("prior", [1e-6, 1e-3])
def test_rows_far_from_all_observed_labels_have_the_frequency(prior):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((600, 2)), rng.standard_normal((20, 2)) + 1e3])
    Y = np.full((620, 1), np.nan)
    Y[:600, 0] = rng.random(600) < 0.6
    frequency = np.nanmean(Y)
    model = LabelPropagation(5, prior=prior).fit(X, np.column_stack([Y, Y]))
    np.testing.assert_allclose(model.numerical_labels_[600:, 0], frequency, atol=1e-3)


@pytest.mark.parametrize("k", range(1, 12))
def test_a_mean_of_one_half_is_a_tie(k):
    X = np.arange(24.0)[:, None]
    Y = np.column_stack([np.full(24, np.nan)] * 2)
    Y[[0, 1], 0], Y[[0, 1], 1] = [0, 1], [1, 0]
    model = LabelPropagation(k, 0.0, prior=1.0).fit(X, Y)
    np.testing.assert_array_equal(model.numerical_labels_[2:], 0.5)
    assert model.predict(X[20:]).all()


def test_the_gradient_is_that_of_the_returned_labels():
    X, Y, weight = problem(200)
    model = LabelPropagation(5, 1e4, tol=1e-9).fit(X, np.where(weight > 0, Y, np.nan))
    assert model.gradient_norm_ <= 1e-9


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (LabelPropagation(0), "n_neighbors must be a whole number >= 1, got 0"),
        (LabelPropagation(smoothness=-1.0), "smoothness must be"),
        (LabelPropagation(prior=0.0), "prior must be"),
        (LabelPropagation(prior=1e-9), "prior must be at least 1e-06, got 1e-09; below that"),
        (LabelPropagation(scale="minmax"), "scale='minmax' must be one of"),
        (LabelPropagation(tol=0.0), "tol must be"),
        (LabelPropagation(tol="x"), "tol must be"),
        (LabelPropagation(max_iter=0), "max_iter must be"),
    ],
)
def test_refusals(model, match):
    X, Y, _ = problem()
    with pytest.raises(ValueError, match=match):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="needs a row and a neighbour of it, got n_samples=1"):
        LabelPropagation().fit(X[:1], Y[:1])
