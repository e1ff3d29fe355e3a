"""Kernels of features far from the origin: digits are kept, and what is lost is said."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from lemll import LEMLL, MSVR, MSVRClassifier
from lemll.fitting.kernels import cosine, polynomial
from lemll.topology import reconstruction_weights


def far_problem(offset, *, n=40, d=3):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    Y = (X @ rng.standard_normal((d, 2)) + rng.standard_normal((n, 2)) > 0).astype(int)
    # Rounded once, so that the near rows are the far ones moved without any loss.
    X = (X + offset) - offset
    return X, X + offset, Y


@pytest.mark.parametrize("degree", [1, 2, 3, 7])
@pytest.mark.parametrize("coef0", [0.0, 1.0])
@pytest.mark.parametrize("offset", [0.0, 1.0, 100.0, 1e6])
def test_polynomial_about_a_row_by_rational_numbers(degree, coef0, offset):
    _, X, _ = far_problem(offset, n=6)
    centre, gamma = X.mean(axis=0), 0.25

    def kernel(x, y):
        inner = sum(Fraction(a) * Fraction(b) for a, b in zip(x, y, strict=True))
        return (Fraction(gamma) * inner + Fraction(coef0)) ** degree

    m = kernel(centre, centre)
    exact = np.array(
        [[float(kernel(x, y) - kernel(x, centre) - kernel(centre, y) + m) for y in X] for x in X]
    )
    values = polynomial(X, X, centre, gamma=gamma, coef0=coef0, degree=degree)
    np.testing.assert_allclose(values, exact, rtol=0, atol=1e-12 * np.abs(exact).max())


def test_cosine_about_a_row_by_rational_numbers():
    X = np.array([[3.0, 4.0], [6.0, 8.0], [0.0, 2.0], [0.0, 0.0]])
    unit = np.array([[0.6, 0.8], [0.6, 0.8], [0.0, 1.0], [0.0, 0.0]])
    about = unit - unit.mean(axis=0)
    np.testing.assert_allclose(cosine(X, X, unit.mean(axis=0)), about @ about.T, atol=1e-15)


@pytest.mark.parametrize("estimator", [LEMLL, MSVRClassifier])
@pytest.mark.parametrize("kernel", ["poly", "cosine", "rbf"])
def test_scores_do_not_depend_on_how_many_rows_are_scored_at_once(estimator, kernel):
    _, X, Y = far_problem(1e4)
    model = estimator(alpha=1e12 if kernel == "poly" else 1.0, kernel=kernel, tol=1e-6).fit(X, Y)
    together = model.decision_function(X)
    alone = np.vstack([model.decision_function(row[None, :]) for row in X])
    np.testing.assert_allclose(alone, together, atol=1e-8)


def test_the_certificate_holds_for_the_kernel_and_not_only_for_its_rounded_values():
    _, X, Y = far_problem(1e4)
    model = LEMLL(alpha=1e10, kernel="poly", kernel_params={"gamma": 0.25}, tol=1e-8).fit(X, Y)
    rows = [[Fraction(value) for value in row] for row in X]
    base = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in rows] for x in rows]
    K = [[(Fraction(0.25) * value + 1) ** 3 for value in line] for line in base]
    n = len(K)
    means = [sum(line) / n for line in K]
    mean = sum(means) / n
    centred = np.array(
        [[float(K[i][j] - means[i] - means[j] + mean) for j in range(n)] for i in range(n)]
    )
    exact = LEMLL(alpha=1e10, kernel="precomputed", graph=reconstruction_weights(X), tol=1e-8).fit(
        centred, Y
    )
    assert model.objective_ == pytest.approx(exact.objective_, rel=2e-8)
    scores = exact.decision_function(centred)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-3 * np.ptp(scores))


@pytest.mark.parametrize("estimator", [LEMLL, MSVR])
def test_a_kernel_that_is_not_calculated_exactly_is_said(estimator):
    X, _, Y = far_problem(0.0)

    def rough(rows, others):
        # Noise that differs from block to block, as rounding does.
        values = np.exp(-((rows[:, None] - others) ** 2).sum(axis=2))
        noise = np.cos(1e6 * np.arange(values.size)).reshape(values.shape)
        return values + 1e-6 * noise if len(rows) < len(X) else values

    with pytest.warns(ConvergenceWarning, match=r"rounding raises it to about .*StandardScaler"):
        model = estimator(alpha=1e-3, kernel=rough, tol=1e-10).fit(X, Y)
    assert model.optimality_ > 1e-10


def test_sparse_rows_far_from_the_origin_are_said():
    _, X, Y = far_problem(1e6)
    with pytest.warns(ConvergenceWarning, match="rounding raises it to about"):
        LEMLL(alpha=1e-3, kernel="rbf", kernel_params={"gamma": 0.1}, tol=1e-5).fit(
            sparse.csr_array(X), Y
        )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("degree", "alpha"), [(2, 1.0), (3, 1e6)])
def test_the_certificate_covers_the_rounding_of_the_objective(degree, alpha):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3)) + 1000
    Y = (rng.random((30, 2)) < 0.5).astype(int)
    model = MSVRClassifier(
        kernel="poly", kernel_params={"degree": degree}, alpha=alpha, tol=1e-6, max_iter=3000
    )
    model.fit(X, Y)
    # The kernel by fractions, which do not round.
    kernel = model.kernel_
    rows = [[Fraction(value) for value in row] for row in X.tolist()]
    centre = [Fraction(value) for value in kernel.centre.tolist()]
    gamma, coef0 = Fraction(kernel.gamma), Fraction(kernel.coef0)

    def value(first, second):
        product = sum(a * b for a, b in zip(first, second, strict=True))
        return (gamma * product + coef0) ** degree

    to_centre = [value(row, centre) for row in rows]
    own = value(centre, centre)
    K = np.array(
        [
            [float(value(a, b) - to_centre[i] - to_centre[j] + own) for j, b in enumerate(rows)]
            for i, a in enumerate(rows)
        ]
    )
    residuals = 2.0 * Y - 1 - (K @ model.dual_coef_.T + model.intercept_)
    loss = np.square(np.maximum(0, np.linalg.norm(residuals, axis=1) - model.epsilon)).sum()
    exact = loss + alpha * np.einsum("li,ij,lj", model.dual_coef_, K, model.dual_coef_)
    assert abs(model.objective_ - exact) <= model.optimality_ * exact
