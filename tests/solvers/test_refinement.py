"""Systems that are factorised in float32 and refined: a factor in float64 as oracle."""

import numpy as np
import pytest
from scipy import linalg

from lemll.rivals.glle import solve_refined


def system(condition, n=60, seed=0):
    """Return a symmetric positive definite array with a given condition number."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    A = (Q * np.geomspace(1, 1 / condition, n)) @ Q.T
    return (A + A.T) / 2, rng.normal(size=(n, 3))


def backward_error(A, b, x):
    size = np.linalg.norm(A) * np.linalg.norm(x) + np.linalg.norm(b)
    return np.linalg.norm(b - A @ x) / size


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e5, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_refined_until_rounding_errors_are_left(condition, seed):
    A, b = system(condition, seed=seed)
    found = solve_refined(A.astype, A.__matmul__, b)
    assert found.precision == "float32"
    assert found.backward_error == pytest.approx(backward_error(A, b, found.x), rel=1e-6)
    assert found.backward_error <= 2.0**-53
    expected = linalg.solve(A, b, assume_a="pos")
    bound = 4 * 2.0**-52 * condition * np.linalg.norm(expected)
    assert np.linalg.norm(found.x - expected) <= bound


# Float32 cannot factorise the last two. It factorises the first, but its refinement stops early.
@pytest.mark.parametrize("condition", [1e8, 1e9, 1e13])
def test_an_ill_conditioned_system_is_factorised_in_float64(condition):
    A, b = system(condition)
    found = solve_refined(A.astype, A.__matmul__, b)
    assert found.precision == "float64"
    assert backward_error(A, b, found.x) <= 2.0**-52


def test_a_step_that_shrinks_the_residual_too_little_is_the_last_one():
    A, b = system(1e3)
    calls = []

    def poor(dtype):
        calls.append(dtype)
        # A factor of another system: each step shrinks the residual to one half or more.
        return (2 * A if dtype == np.float32 else A).astype(dtype)

    steps = []
    found = solve_refined(poor, lambda x: steps.append(0) or A @ x, b)
    assert found.precision == "float64"
    assert calls == [np.float32, np.float64]
    assert len(steps) <= 1 + 3


def test_entries_outside_the_range_of_float32_are_not_lost():
    A, b = system(10.0)
    found = solve_refined((1e60 * A).astype, (1e60 * A).__matmul__, b)
    assert found.precision == "float64"
    np.testing.assert_allclose(1e60 * found.x, linalg.solve(A, b), rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-35, 1e39])
def test_right_hand_sides_outside_the_range_of_float32_are_scaled(unit):
    A, b = system(10.0)
    found = solve_refined(A.astype, A.__matmul__, unit * b)
    assert found.precision == "float32"
    np.testing.assert_allclose(found.x / unit, linalg.solve(A, b), rtol=1e-12)


def test_a_system_that_is_not_positive_definite_is_refused():
    A, b = system(10.0)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        solve_refined((-A).astype, (-A).__matmul__, b)


def test_a_system_without_a_finite_size_is_refused():
    A, b = system(10.0)
    A[0, 0] = np.inf
    with pytest.raises(np.linalg.LinAlgError, match="too large for float64"):
        solve_refined(A.astype, A.__matmul__, b)


def test_zero_right_hand_sides_have_the_solution_zero():
    A, _ = system(10.0)
    found = solve_refined(A.astype, A.__matmul__, np.zeros((60, 2)))
    assert found.backward_error == 0
    np.testing.assert_array_equal(found.x, np.zeros((60, 2)))
