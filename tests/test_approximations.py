"""The first-order part of the Gaussian kernel and its remainder, against the exact kernel."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from lemll import LEMLL
from lemll.fitting import kernels
from lemll.fitting.equation9 import choose_kernel
from lemll.fitting.kernels import (
    FirstOrderKernel,
    approximate,
    cluster_means,
    kernel_excess,
)

NYSTROEM = {"approximation": "nystroem"}
FORMS = pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])


def rows(n=80, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, d)) < 0.5, rng.standard_normal((n, d)), 0.0) + 0.1


def exact_kernel(X, others, gamma):
    return np.exp(-gamma * cdist(X, others, "sqeuclidean"))


def nystroem(X, n_components=20, **options):
    kernel = choose_kernel("rbf", None, X)
    settings = {"n_labels": 3, "seed": 0, "precision": "float64"} | options
    mapped = approximate(kernel, X, approximation="nystroem", n_components=n_components, **settings)
    return kernel, mapped


@FORMS
def test_first_order_part_and_remainder_add_up_to_the_kernel(convert):
    X = rows()
    split = FirstOrderKernel(0.3, X.mean(axis=0))
    values = split.values(convert(X), convert(X))
    first, remainder = values[:, :7], values[:, 7:]
    np.testing.assert_allclose(first @ first.T + remainder, exact_kernel(X, X, 0.3), atol=1e-14)
    assert np.linalg.eigvalsh(remainder)[0] > -1e-13
    z = X - X.mean(axis=0)
    series = sum((0.6 * z @ z.T) ** k / np.prod(np.arange(1.0, k + 1)) for k in range(2, 60))
    heights = np.exp(-0.3 * np.square(z).sum(axis=1))
    np.testing.assert_allclose(remainder, series * np.outer(heights, heights), atol=1e-13)


def test_rows_far_from_the_mean_have_finite_values():
    split = FirstOrderKernel(1.0, np.zeros(2))
    far = np.array([[1e3, 0.0], [1e3, 1e-3]])
    np.testing.assert_allclose(split.values(far, far)[:, 3:], exact_kernel(far, far, 1.0))


@FORMS
@pytest.mark.parametrize("split", [True, False])
def test_the_error_of_the_kernel_is_positive_semi_definite(convert, split, monkeypatch):
    if not split:
        monkeypatch.setattr(kernels, "COLUMNS_PER_COMPONENT", 0)
    X = rows()
    kernel, mapped = nystroem(convert(X))
    assert isinstance(mapped.kernel, FirstOrderKernel) is split
    assert mapped.features.shape[1] == (27 if split else 20)
    K = exact_kernel(X, X, kernel.gamma)
    E = K - mapped.features @ mapped.features.T
    assert np.linalg.eigvalsh(E)[0] > -1e-10
    assert 0.01 < np.trace(E) / len(X) < 0.5
    # The value of the excess is that of all kernel values.
    H = np.random.default_rng(1).standard_normal((len(X), 3))
    assert kernel_excess(mapped, convert(X), H) == pytest.approx(np.vdot(H, E @ H), rel=1e-8)


def test_the_first_order_part_lowers_the_error(monkeypatch):
    X = rows(n=300, d=20)
    errors = []
    for columns in (0, 2):
        monkeypatch.setattr(kernels, "COLUMNS_PER_COMPONENT", columns)
        _, mapped = nystroem(X, 40)
        errors.append(1 - np.square(mapped.features).sum(axis=1).mean())
    assert errors[1] < 0.95 * errors[0]


@FORMS
def test_a_model_predicts_what_its_features_say(convert):
    X = rows()
    kernel, mapped = nystroem(convert(X))
    coef = np.random.default_rng(2).standard_normal((3, mapped.features.shape[1]))
    values = mapped.kernel.values(convert(X), mapped.landmarks)
    np.testing.assert_allclose(
        values @ mapped.coefficients(coef).T, mapped.features @ coef.T, atol=1e-8
    )
    # The penalty |Theta|^2 is the norm in the space of the exact kernel: outputs on new rows are
    # at most that norm, because k(x, x) = 1.
    new = mapped.kernel.values(rows(seed=3), mapped.landmarks) @ mapped.coefficients(coef).T
    assert (np.abs(new) <= np.sqrt(np.square(coef).sum(axis=1)) + 1e-9).all()
    assert kernel.name == "rbf"


@FORMS
def test_a_shift_of_the_rows_changes_nothing(convert):
    X = rows(n=100)
    Y = (X[:, :3] > 0.2).astype(int)
    options = {"kernel": "rbf", "kernel_params": NYSTROEM | {"n_components": 15}, "tol": 1e-8}
    model = LEMLL(**options).fit(convert(X), Y)
    moved = LEMLL(**options).fit(convert(X + 3.0), Y)
    np.testing.assert_allclose(
        moved.decision_function(convert(X + 3.0)), model.decision_function(convert(X)), atol=1e-3
    )
    assert moved.kernel_gap_ == pytest.approx(model.kernel_gap_, rel=1e-3)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(again.predict(convert(X)), model.predict(convert(X)))


def test_equal_rows_leave_no_remainder():
    X = np.ones((30, 4))
    Y = np.tile([0, 1], 15).reshape(-1, 1)
    model = LEMLL(kernel="rbf", kernel_params=NYSTROEM | {"n_components": 5}).fit(X, Y)
    assert np.isfinite(model.decision_function(X)).all()


@FORMS
def test_a_step_moves_each_mean_to_the_mean_of_its_nearest_rows(convert, monkeypatch):
    monkeypatch.setattr(kernels, "STEPS", 1)
    X = rows(n=200)
    order = np.random.default_rng(0).permutation(200)
    start = X[order[:10]]
    nearest = cdist(X, start).argmin(axis=1)
    expected = [X[nearest == j].mean(axis=0) for j in range(10)]
    found = cluster_means(convert(X), 10, np.random.default_rng(0))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_cluster_without_rows_keeps_its_mean():
    X = np.repeat([[0.0, 1.0], [2.0, 3.0]], 20, axis=0)
    means = cluster_means(X, 15, np.random.default_rng(0))
    np.testing.assert_array_equal(np.unique(means.round(12), axis=0), [[0, 1], [2, 3]])


def test_landmarks_of_wide_rows_stay_sparse():
    X = sparse.random_array((60, 1_000_000), density=2e-5, format="csr", rng=0)
    Y = (np.random.RandomState(0).rand(60, 3) < 0.4).astype(int)
    model = LEMLL(kernel="rbf", kernel_params=NYSTROEM | {"n_components": 20}).fit(X, Y)
    # As dense rows, the landmarks would take 160 MB.
    assert sparse.issparse(model.X_fit_)
    assert model.X_fit_.shape == (20, 1_000_000)
