"""ML2, MLFE and GLLE: the problems they say they solve, solved another way."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from lemll.datasets import binarize_distribution, make_artificial
from lemll.metrics import chebyshev
from lemll.rivals import GLLEEnhancer, ML2Enhancer, MLFEEnhancer
from lemll.rivals.sparse_coding import admm_codes, lasso_codes
from lemll.topology import nearest_neighbors, reconstruction_weights

# The oldest libraries are tested without it.
cp = pytest.importorskip("cvxpy")


@pytest.fixture(scope="module")
def data():
    artificial = make_artificial(50, random_state=0)
    return artificial.X, binarize_distribution(artificial.D, 0.5)


def boxed_by_clarabel(W, Y, lower, upper, ridge):
    signs = 2.0 * Y - 1
    U = cp.Variable(Y.shape)
    bounds = [cp.multiply(signs, U) >= lower]
    if np.isfinite(upper):
        bounds.append(cp.multiply(signs, U) <= upper)
    objective = cp.sum_squares(U - W @ U) + ridge * cp.sum_squares(U)
    cp.Problem(cp.Minimize(objective), bounds).solve(solver=cp.CLARABEL)
    return U.value


def test_ml2_solves_its_programs(data):
    X, Y = data
    enhancer = ML2Enhancer(ridge=0.01).fit(X, Y)
    W = reconstruction_weights(X, 4, reg=1e-5, reg_policy="absolute").toarray()
    expected = boxed_by_clarabel(W, Y, 1, np.inf, 0.01)
    np.testing.assert_allclose(enhancer.numerical_labels_, expected, atol=1e-4)
    assert enhancer.kkt_residual_ <= 1e-8
    given = ML2Enhancer(ridge=0.01, graph=W).fit(X, Y)
    np.testing.assert_allclose(given.numerical_labels_, expected, atol=1e-4)


def test_ml2_with_a_cap_and_other_neighbours(data):
    X, Y = data
    capped = ML2Enhancer(8, upper=1.5, graph={"reg": 1e-3, "reg_policy": "always"}).fit(X, Y)
    W = reconstruction_weights(X, 8).toarray()
    expected = boxed_by_clarabel(W, Y, 1, 1.5, 1e-5)
    np.testing.assert_allclose(capped.numerical_labels_, expected, atol=1e-4)


@pytest.mark.parametrize("coding", ["admm", "lasso"])
def test_mlfe_solves_its_programs(data, coding):
    X, Y = data
    codes = admm_codes(X).weights if coding == "admm" else lasso_codes(X).weights.toarray()
    enhancer = MLFEEnhancer(coding=coding, ridge=0.01).fit(X, Y)
    expected = boxed_by_clarabel(codes, Y, 1, 2, 0.01)
    np.testing.assert_allclose(enhancer.numerical_labels_, expected, atol=1e-4)
    signs = 2 * Y - 1
    assert (signs * enhancer.numerical_labels_ >= 1).all()
    assert (signs * enhancer.numerical_labels_ <= 2).all()
    shared = MLFEEnhancer(graph=sparse.csr_array(codes), ridge=0.01).fit(X, Y)
    np.testing.assert_allclose(shared.numerical_labels_, enhancer.numerical_labels_, atol=1e-7)


def test_unsolved_labels_are_told(data):
    with pytest.warns(ConvergenceWarning, match=r"ML2Enhancer left \d of 3 labels unsolved"):
        ML2Enhancer(max_iter=1).fit(*data)


def glle_objective(X, Y, enhancer, B, b):
    """Write down the objective of the docstring again, with loops for the graph."""
    Z = X / X.std(axis=0)
    squared = ((Z[:, None] - Z) ** 2).sum(axis=2)
    K = np.exp(-enhancer.kernel_gamma_ * squared)
    A = np.zeros_like(K)
    for i, near in enumerate(nearest_neighbors(Z, 5)):
        for j in near:
            A[i, j] = A[j, i] = np.exp(-squared[i, j] / 200)
    D = K @ B + b
    rough = sum(
        A[i, j] * ((D[i] - D[j]) ** 2).sum() / 2 for i in range(len(X)) for j in range(len(X))
    )
    return ((D - Y) ** 2).sum() + 0.3 * rough + 0.2 * np.trace(B.T @ K @ B)


@pytest.mark.parametrize("block", [128, 7])
def test_glle_is_at_its_minimum(data, block, monkeypatch):
    monkeypatch.setattr("lemll.rivals.glle.BLOCK", block)
    X, Y = data
    enhancer = GLLEEnhancer(0.3, n_neighbors=5, ridge=0.2).fit(X, Y)
    B, b = enhancer.dual_coef_, enhancer.intercept_
    least = glle_objective(X, Y, enhancer, B, b)
    rng = np.random.default_rng(0)
    for _ in range(5):
        move, shift = rng.normal(size=B.shape), rng.normal(size=b.shape)
        up = glle_objective(X, Y, enhancer, B + 1e-4 * move, b + 1e-4 * shift)
        down = glle_objective(X, Y, enhancer, B - 1e-4 * move, b - 1e-4 * shift)
        assert min(up, down) > least
        # The slope is the difference; at a minimum it vanishes beside the curvature.
        assert abs(up - down) <= 1e-3 * (up + down - 2 * least)


def test_glle_gives_new_rows_what_it_gives_the_same_rows_in_training(data):
    X, Y = data
    enhancer = GLLEEnhancer().fit(X, Y)
    np.testing.assert_allclose(enhancer.enhance(X), enhancer.label_distribution_, atol=1e-9)
    np.testing.assert_allclose(
        enhancer.enhance(sparse.csr_array(X)), enhancer.label_distribution_, atol=1e-9
    )


def test_glle_recovers_something_of_new_rows():
    artificial = make_artificial(300, random_state=0)
    Y = binarize_distribution(artificial.D, 0.5)
    enhancer = GLLEEnhancer().fit(artificial.X[:200], Y[:200])
    found, true = enhancer.enhance(artificial.X[200:]), artificial.D[200:]
    assert chebyshev(true, found) < 0.8 * chebyshev(true, np.full_like(true, 1 / 3))


def test_without_standardising_the_units_matter(data):
    X, Y = data
    units = np.array([1.0, 7.0, 0.2][: X.shape[1]])
    for standardize, same in ((True, True), (False, False)):
        one, other = (
            GLLEEnhancer(standardize=standardize).fit_enhance(features, Y)
            for features in (X, X * units)
        )
        assert np.allclose(one, other, atol=1e-8) is same


@pytest.mark.parametrize(
    ("enhancer", "message"),
    [
        (ML2Enhancer(0), "n_neighbors must be a whole number >= 1"),
        (ML2Enhancer(lower=0.0), "lower must be finite and > 0"),
        (ML2Enhancer(upper=0.5), "upper must be finite and >= 1"),
        (ML2Enhancer(graph={"reg_policy": "never"}), 'reg_policy must be "auto", "always" or'),
        (MLFEEnhancer(upper=0.5), "upper must be finite and >= 1"),
        (MLFEEnhancer(coding="exact"), "coding='exact' must be one of admm, lasso"),
        (MLFEEnhancer(share=0.0), "share must be finite and > 0"),
        (MLFEEnhancer(relaxation=3.0), "relaxation must lie between 0 and 2"),
        (MLFEEnhancer(graph=np.eye(50)), "the graph must have a zero diagonal"),
        (GLLEEnhancer(ridge=0.0), "ridge must be finite and > 0"),
        (GLLEEnhancer(-1.0), "smoothness must be finite and >= 0"),
        (GLLEEnhancer(n_neighbors=0), "n_neighbors must be a whole number >= 1"),
    ],
)
def test_errors(data, enhancer, message):
    with pytest.raises(ValueError, match=message):
        enhancer.fit(*data)


@pytest.mark.parametrize("method", [ML2Enhancer, MLFEEnhancer, GLLEEnhancer])
def test_one_row_is_too_few(method):
    with pytest.raises(ValueError, match="needs at least 2 rows, .* got n_samples=1"):
        method().fit([[1.0, 2.0]], [[0, 1]])
