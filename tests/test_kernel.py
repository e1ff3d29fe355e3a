"""A kernel in the place of the features: its centre, and what is refused."""

import numpy as np
import pytest

from lemll.solvers import certificate
from lemll.solvers.certificate import CentredKernel


def random_kernel(seed=0, n=12, d=4):
    X = np.random.default_rng(seed).standard_normal((n, d)) + 3
    return X, X @ X.T


def test_the_centred_kernel_is_that_of_the_centred_features():
    X, K = random_kernel()
    centred = X - X.mean(axis=0)
    kernel = CentredKernel(K)
    np.testing.assert_allclose(kernel.matrix, centred @ centred.T, atol=1e-12)
    np.testing.assert_allclose(kernel.shift, X @ X.mean(axis=0))
    assert kernel.shape == K.shape


def test_the_callers_matrix_stays_as_it_is_unless_it_is_given_away():
    _, K = random_kernel()
    before = K.copy()
    K.flags.writeable = False
    CentredKernel(K)
    np.testing.assert_array_equal(K, before)
    given = before.copy()
    assert CentredKernel(given, overwrite=True).matrix is given


@pytest.mark.parametrize("K", [random_kernel(d=2)[1], np.zeros((4, 4))], ids=["rank 2", "zero"])
def test_a_positive_kernel_passes_also_without_full_rank(K):
    kernel = CentredKernel(K)
    before = kernel.matrix.copy()
    values = np.linalg.eigvalsh(kernel.matrix)
    # Most eigenvalues are zero but for rounding, of either sign.
    assert np.sum(np.abs(values) <= 1e-12 * max(values[-1], 1)) >= len(K) - 2
    kernel.check_positive()
    np.testing.assert_array_equal(kernel.matrix, before)


def test_a_negative_direction_that_the_intercept_takes_care_of_is_no_fault():
    # Minus the squared distance is negative on the ones alone.
    X, K = random_kernel()
    squares = np.square(X).sum(axis=1)
    kernel = CentredKernel(2 * K - squares - squares[:, None])
    np.testing.assert_allclose(kernel.matrix, CentredKernel(2 * K).matrix, atol=1e-11)
    kernel.check_positive()


def test_a_kernel_that_is_not_positive_is_refused_with_its_smallest_eigenvalue():
    _, K = random_kernel()
    K[0, 0] -= 50
    smallest = np.linalg.eigvalsh(CentredKernel(K).matrix)[0]
    assert smallest < -1
    with pytest.raises(ValueError, match=f"smallest eigenvalue \\(centred\\) is {smallest:.4g}"):
        CentredKernel(K).check_positive()


@pytest.mark.parametrize("seed", range(20))
def test_the_border_of_what_is_positive_is_where_rounding_is(seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((15, 15)))[0]
    basis -= basis.mean(axis=0)
    basis = np.linalg.qr(basis[:, :14])[0]
    values = 10.0 ** rng.uniform(-3, 0, 14)
    values[0] = 1.0
    for share, refused in ((-1e-10, False), (-1e-6, True)):
        values[-1] = share
        kernel = CentredKernel((basis * values) @ basis.T)
        if refused:
            with pytest.raises(ValueError, match="positive semi-definite"):
                kernel.check_positive()
        else:
            kernel.check_positive()


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones((2, 3)), r"must be square.*got shape \(2, 3\)"),
        (np.ones(4), r"must be square.*got shape \(4,\)"),
        (np.ones((0, 0)), r"must be square.*got shape \(0, 0\)"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "not contain NaN or infinity"),
        (np.array([[1, 2j], [2j, 1]]), "real numbers, got dtype complex128"),
    ],
)
def test_what_is_no_kernel_matrix_is_refused(K, message):
    with pytest.raises(ValueError, match=message):
        CentredKernel(K)


def test_a_matrix_that_is_not_symmetric_is_refused_with_the_place(monkeypatch):
    monkeypatch.setattr(certificate, "CERTIFICATE_BLOCK_BYTES", 8 * 12 * 5)
    _, K = random_kernel()
    K[9, 2] += 1
    place = f"got {K[2, 9]:.6g} in row 2, column 9 and {K[9, 2]:.6g} the other way round"
    with pytest.raises(ValueError, match=place):
        CentredKernel(K)
