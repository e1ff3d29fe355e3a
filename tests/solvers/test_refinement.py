"""Systems that are factorised in float32 and refined: a factor in float64 as oracle."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from lemll.solvers import solve_refined


def system(condition, n=60, seed=0):
    """Return a symmetric positive definite array with a given condition number."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    A = (Q * np.geomspace(1, 1 / condition, n)) @ Q.T
    return (A + A.T) / 2, rng.normal(size=(n, 3))


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e5])
def test_it_is_as_accurate_as_a_factor_in_float64(condition):
    A, b = system(condition)
    found = solve_refined(A.astype, A.__matmul__, b)
    assert found.precision == "float32"
    expected = linalg.solve(A, b, assume_a="pos")
    bound = 1e-14 * condition * np.abs(expected).max()
    np.testing.assert_allclose(found.x, expected, rtol=0, atol=bound)
    size = np.linalg.norm(A) * np.linalg.norm(found.x) + np.linalg.norm(b)
    assert np.linalg.norm(b - A @ found.x) == pytest.approx(found.backward_error * size, rel=1e-6)
    assert found.backward_error <= 1e-14


@pytest.mark.parametrize("condition", [1e9, 1e13])
def test_an_ill_conditioned_system_is_factorised_in_float64(condition):
    A, b = system(condition)
    found = solve_refined(A.astype, A.__matmul__, b)
    assert found.precision == "float64"
    assert found.backward_error <= 1e-14
    # The residual, not the solution, is what an ill-conditioned system determines.
    size = np.linalg.norm(A) * np.linalg.norm(found.x) + np.linalg.norm(b)
    assert np.linalg.norm(b - A @ found.x) <= 1e-14 * size


def test_entries_outside_the_range_of_float32_are_not_lost():
    A, b = system(10.0)
    found = solve_refined((1e60 * A).astype, (1e60 * A).__matmul__, b)
    assert found.precision == "float64"
    np.testing.assert_allclose(1e60 * found.x, linalg.solve(A, b), rtol=1e-12)


def test_a_system_that_is_not_positive_definite_is_refused():
    A, b = system(10.0)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        solve_refined((-A).astype, (-A).__matmul__, b)


def test_a_system_that_is_not_finite_is_refused():
    A, b = system(10.0)
    A[0, 0] = np.inf
    with pytest.raises(np.linalg.LinAlgError, match="not finite in float64"):
        solve_refined(A.astype, A.__matmul__, b)


def test_zero_right_hand_sides_have_the_solution_zero():
    A, _ = system(10.0)
    found = solve_refined(A.astype, A.__matmul__, np.zeros((60, 2)))
    assert found.backward_error == 0
    np.testing.assert_array_equal(found.x, np.zeros((60, 2)))
