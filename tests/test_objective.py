"""The objective of Eq. (9), its gradient and the bounds that certify a solution."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from lemll.solvers.certificate import tube_loss, tube_weights
from lemll.solvers.equation9 import LemllPoint, duality_gap

PARAMETERS = {"alpha": 0.5, "beta": 0.25, "gamma": 2.0, "epsilon": 0.1}


def problem(seed=0, n=8, d=3, n_labels=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Y = np.where(rng.standard_normal((n, n_labels)) > 0, 1.0, -1.0)
    W = rng.random((n, n)) * (1 - np.eye(n))
    W = sparse.csr_array(W / W.sum(axis=1, keepdims=True))
    point = LemllPoint(
        rng.standard_normal((n, n_labels)),
        rng.standard_normal((n_labels, d)),
        rng.standard_normal(n_labels),
    )
    return X, Y, W, point


def test_tube_loss_is_zero_inside_and_quadratic_outside():
    norms = np.array([0.0, 0.1, 0.3, 1.1])
    np.testing.assert_allclose(tube_loss(norms, 0.1), [0.0, 0.0, 0.04, 1.0])
    np.testing.assert_array_equal(tube_loss(norms, 0.0), norms**2)


@settings(deadline=None)
@given(norm=st.floats(0, 1e6), epsilon=st.floats(0, 1e3))
def test_tube_weight_times_norm_is_half_the_slope(norm, epsilon):
    weight = tube_weights(np.array([norm]), epsilon)[0]
    assert 0 <= weight <= 1
    assert weight * norm == pytest.approx(max(0.0, norm - epsilon), rel=1e-9, abs=1e-9 * norm)


def test_the_objective_is_the_sum_written_out_in_loops():
    X, Y, W, point = problem()
    U, coef, intercept = point
    rebuilt = W.toarray() @ U
    expected = PARAMETERS["alpha"] * sum(v**2 for v in coef.ravel())
    for i in range(len(X)):
        norm = np.sqrt(sum((U[i] - coef @ X[i] - intercept) ** 2))
        expected += max(0.0, norm - PARAMETERS["epsilon"]) ** 2
        expected += PARAMETERS["beta"] * sum((U[i] - Y[i]) ** 2)
        expected += PARAMETERS["gamma"] * sum((U[i] - rebuilt[i]) ** 2)
    assert duality_gap(X, Y, W, point, **PARAMETERS).objective == pytest.approx(expected, rel=1e-13)


def test_sparse_and_single_precision_features_give_the_same_numbers():
    X, Y, W, point = problem()
    X = np.round(X, 1).astype(np.float32)
    dense = duality_gap(X.astype(np.float64), Y, W, point, **PARAMETERS)
    for other in (X, sparse.csr_array(X), sparse.csr_array(X.astype(np.float64))):
        np.testing.assert_allclose(duality_gap(other, Y, W, point, **PARAMETERS), dense, rtol=1e-12)


def test_the_gap_ignores_translations_of_the_features():
    X, Y, W, point = problem()
    shift = np.array([1e6, -1e6, 3e5])
    moved = point._replace(intercept=point.intercept - point.coef @ shift)
    expected = duality_gap(X, Y, W, point, **PARAMETERS)
    np.testing.assert_allclose(
        duality_gap(X + shift, Y, W, moved, **PARAMETERS), expected, rtol=1e-8
    )


def test_the_gap_at_an_optimum_of_zero_is_zero_and_beside_it_is_finite():
    X, _, W, point = problem()
    Y = np.zeros((8, 2))
    origin = LemllPoint(Y, np.zeros((2, 3)), np.zeros(2))
    assert duality_gap(X, Y, W, origin, **PARAMETERS) == (0.0, 0.0, 0.0)
    assert duality_gap(X, Y, W, point, **PARAMETERS).relative >= 1
    # With constant labels the optimum is 0 too, but the labels give a scale to measure by.
    Y = np.ones((8, 2))
    near = LemllPoint(Y + 1e-14, np.zeros((2, 3)), np.ones(2))
    assert duality_gap(X, Y, W, near, **PARAMETERS).relative < 1e-6
