"""Fuzzy c-means against its steps written as loops, without momentum."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lemll.rivals.fcm import solve_fuzzy_means


def _start(n_samples, n_clusters, seed=0):
    drawn = np.random.RandomState(seed).uniform(size=(n_samples, n_clusters))
    return drawn / drawn.sum(axis=1, keepdims=True)


def _objective(X, m, fuzzifier):
    weights = m**fuzzifier
    centres = (weights.T @ X) / weights.sum(axis=0)[:, None]
    return float((weights * cdist(X, centres, "sqeuclidean")).sum())


def _plain(X, m, fuzzifier, tol=1e-7, max_iter=100000):
    """Take the published steps; return the memberships and the number of steps."""
    for n_steps in range(1, max_iter + 1):
        weights = m**fuzzifier
        centres = (weights.T @ X) / weights.sum(axis=0)[:, None]
        closeness = cdist(X, centres) ** (-2 / (fuzzifier - 1))
        before, m = m, closeness / closeness.sum(axis=1, keepdims=True)
        if np.abs(m - before).max() < tol:
            return m, n_steps
    return m, max_iter


@pytest.mark.parametrize("fuzzifier", [1.6, 2.0, 2.5])
@pytest.mark.parametrize("shape", [(80, 4), (20, 40)], ids=["rows", "products of rows"])
def test_clusters_are_those_of_the_plain_steps(shape, fuzzifier):
    rng = np.random.RandomState(1)
    X = rng.randn(*shape) + 6 * rng.randint(0, 3, size=shape[0])[:, None]
    X -= X.mean(axis=0)
    start = _start(shape[0], 3)
    expected, _ = _plain(X, start, fuzzifier, tol=1e-12)
    found = solve_fuzzy_means(X, start, fuzzifier=fuzzifier, tol=1e-12)
    np.testing.assert_allclose(found.memberships, expected, atol=1e-9)
    assert found.change < 1e-12
    assert found.objective == pytest.approx(_objective(X, expected, fuzzifier), rel=1e-9)


def test_momentum_saves_steps_and_does_not_raise_the_objective():
    # No clusters are in these rows, so the plain steps are short and many.
    X = np.random.RandomState(0).uniform(size=(120, 6))
    X -= X.mean(axis=0)
    start = _start(120, 8)
    plain, n_steps = _plain(X, start, 1.5)
    found = solve_fuzzy_means(X, start, fuzzifier=1.5)
    assert found.n_iter < n_steps / 3
    assert _objective(X, found.memberships, 1.5) <= found.objective * (1 + 1e-9)
    assert found.objective <= 1.001 * _objective(X, plain, 1.5)


def test_a_point_with_a_higher_objective_is_not_used():
    X = np.random.RandomState(2).uniform(size=(60, 3))
    X -= X.mean(axis=0)
    for seed in range(3):
        runs = [
            solve_fuzzy_means(X, _start(60, 5, seed), fuzzifier=1.5, tol=1e-300, max_iter=n_steps)
            for n_steps in range(1, 80)
        ]
        values = np.array([run.objective for run in runs])
        assert (np.diff(values) <= 1e-11 * values[1:]).all()
        for run in runs:
            assert _objective(X, run.memberships, 1.5) <= run.objective * (1 + 1e-9)
            np.testing.assert_allclose(run.memberships.sum(axis=1), 1)


def test_large_steps_have_no_momentum():
    # From this start, momentum in the first steps leads to a minimum that is higher by half.
    rng = np.random.RandomState(386)
    X = rng.randn(30, 2) + 6 * rng.randint(0, 3, size=30)[:, None]
    X -= X.mean(axis=0)
    start = rng.uniform(size=(30, 4))
    start /= start.sum(axis=1, keepdims=True)
    plain, _ = _plain(X, start, 1.2)
    found = solve_fuzzy_means(X, start, fuzzifier=1.2)
    np.testing.assert_allclose(found.memberships, plain, atol=1e-4)


def test_it_stops_by_the_largest_change():
    X = np.random.RandomState(0).uniform(size=(120, 6))
    X -= X.mean(axis=0)
    found = solve_fuzzy_means(X, _start(120, 8), fuzzifier=1.5, tol=1e-6)
    again, _ = _plain(X, found.memberships, 1.5, tol=0.0, max_iter=1)
    assert np.abs(again - found.memberships).max() < 1e-6
    assert found.change < 1e-6


def test_a_given_tolerance_of_the_objective_takes_the_plain_steps():
    X = np.random.RandomState(3).randn(40, 3)
    X -= X.mean(axis=0)
    start = _start(40, 3)
    for n_steps in (1, 2, 7):
        expected, _ = _plain(X, start, 2.0, tol=0.0, max_iter=n_steps)
        found = solve_fuzzy_means(X, start, objective_tol=1e-300, max_iter=n_steps)
        np.testing.assert_allclose(found.memberships, expected, atol=1e-12)
        assert found.n_iter == n_steps
    early = solve_fuzzy_means(X, start, objective_tol=1.0)
    late = solve_fuzzy_means(X, start, objective_tol=1e-6)
    assert early.n_iter < late.n_iter


def test_rows_on_centres_and_the_start_stay_as_they_are():
    X = np.array([[-4.0], [-4.0], [8.0]])
    start = _start(3, 2)
    before = start.copy()
    found = solve_fuzzy_means(X, start)
    np.testing.assert_array_equal(start, before)
    np.testing.assert_allclose(np.sort(found.memberships, axis=1), [[0, 1]] * 3, atol=1e-7)
    assert found.objective == pytest.approx(0, abs=1e-12)
