"""Data far from the origin and parameters out of range: the same degrees, or a clear refusal."""

import numpy as np
import pytest
from scipy import sparse

from lemll import LEMLL, MSVR
from lemll.enhancers import LEMLLEnhancer
from lemll.fitting.kernels import inverse_variance
from lemll.rivals import (
    FCMEnhancer,
    GLLEEnhancer,
    KMEnhancer,
    LabelPropagationEnhancer,
    MLFEEnhancer,
)


def problem(seed=0, n=50):
    rng = np.random.default_rng(seed)
    # Multiples of a power of two: a shift by a larger one is exact.
    X = np.round(rng.standard_normal((n, 3)) * 64) / 64
    return X, (X + 0.3 * rng.standard_normal((n, 3)) > 0).astype(int)


@pytest.mark.parametrize("shift", [2.0**20, 2.0**30])
@pytest.mark.parametrize(
    "enhancer",
    [
        GLLEEnhancer(),
        LabelPropagationEnhancer(),
        FCMEnhancer(random_state=0),
        KMEnhancer(),
        LEMLLEnhancer(kernel="rbf", tol=1e-10),
    ],
    ids=lambda enhancer: type(enhancer).__name__,
)
def test_a_shift_of_the_features_changes_nothing(enhancer, shift):
    X, Y = problem()
    here = enhancer.fit_enhance(X, Y)
    np.testing.assert_allclose(enhancer.fit_enhance(X + shift, Y), here, atol=1e-6)


def test_a_kernel_model_predicts_the_same_far_from_the_origin():
    X, Y = problem()
    model = LEMLL(kernel="rbf", tol=1e-10).fit(X, Y)
    moved = LEMLL(kernel="rbf", tol=1e-10).fit(X + 2.0**30, Y)
    np.testing.assert_allclose(
        moved.decision_function(X + 2.0**30), model.decision_function(X), atol=1e-5
    )


def test_the_variance_of_sparse_rows_keeps_its_digits():
    X, _ = problem()
    X[X < 0] = 0
    for rows in (X, X + 2.0**24):
        dense = inverse_variance(rows)
        assert inverse_variance(sparse.csr_array(rows)) == pytest.approx(dense, rel=1e-9)
    weights = np.arange(50.0)
    dense = inverse_variance(X, weights)
    assert inverse_variance(sparse.csr_array(X), weights) == pytest.approx(dense, rel=1e-9)


def test_standardising_sparse_rows_keeps_its_digits():
    X, Y = problem()
    X[X < 0] = 0
    dense = GLLEEnhancer().fit(X + 2.0**20, Y)
    by_rows = GLLEEnhancer().fit(sparse.csr_array(X + 2.0**20), Y)
    np.testing.assert_allclose(by_rows.feature_scale_, dense.feature_scale_, rtol=1e-9)


@pytest.mark.parametrize(
    ("enhancer", "message"),
    [
        (GLLEEnhancer(smoothness=1e200), "GLLEEnhancer cannot be computed for these data"),
        (GLLEEnhancer(kernel_gamma=1e-300), "kernel_gamma must lie between 1e-200 and 1e"),
        (GLLEEnhancer(graph_gamma=1e300), "graph_gamma must lie between 1e-200 and 1e"),
        (LabelPropagationEnhancer(kernel_gamma=1e-300), "kernel_gamma must lie between 1e-200 and"),
        (GLLEEnhancer(kernel_gamma="width"), "must be 'distance' or a number > 0"),
    ],
)
def test_what_cannot_be_computed_is_refused(enhancer, message):
    X, Y = problem()
    with pytest.raises(ValueError, match=message):
        enhancer.fit(X, Y)


def test_more_clusters_than_memory_are_refused():
    X, Y = problem()
    with pytest.raises(MemoryError, match="1000000000000 clusters of 50 rows needs about"):
        FCMEnhancer(10**12).fit(X, Y)


def test_codes_of_rows_that_coincide_by_rounding_are_finite_or_refused():
    X, Y = problem()
    try:
        found = MLFEEnhancer().fit_enhance(X + 2.0**27, Y)
    except ValueError as error:
        assert "MLFEEnhancer cannot be computed" in str(error)  # noqa: PT017
    else:
        np.testing.assert_allclose(found.sum(axis=1), 1)


def test_a_complex_kernel_is_refused():
    X, Y = problem()
    with pytest.raises(ValueError, match="must return real numbers, got dtype complex128"):
        MSVR(kernel=lambda a, b: 1j * (a @ b.T)).fit(X, Y)


def test_a_precomputed_kernel_may_be_rounded_to_float32():
    X, Y = problem()
    K = (X @ X.T).astype(np.float32)
    assert LEMLL(kernel="precomputed").fit(K, Y).optimality_ <= 1e-4
