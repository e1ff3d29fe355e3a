"""Fits for many rows and labels: approximate kernels, blocks of labels, float32, parts of rows."""

import sys

import numpy as np
import pytest
from scipy import sparse
from support import Peak, in_process

from lemll import LEMLL, _validation
from lemll.exceptions import NotEnoughMemoryError
from lemll.fitting.equation9 import choose_kernel, fit_bytes
from lemll.fitting.kernels import approximate
from lemll.predictors import base as _base
from lemll.solvers import equation9 as blocks
from lemll.solvers.certificate import Weights
from lemll.solvers.equation9 import LemllPoint, duality_gap, duality_gap_by_blocks
from lemll.topology import reconstruction_weights
from lemll.topology.graphs import ReconstructionOperator

NYSTROEM = {"approximation": "nystroem"}
FLOAT32 = {"precision": "float32"}


def data(n=150, d=6, n_labels=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Y = (np.sin(2 * X[:, :n_labels]) + 0.3 * rng.standard_normal((n, n_labels)) > 0).astype(int)
    return X, Y


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "cosine"])
def test_all_rows_as_landmarks_give_the_exact_kernel(kernel, convert):
    X, Y = data()
    exact = LEMLL(kernel=kernel, tol=1e-8).fit(convert(X), Y)
    options = {"kernel_params": {"approximation": "nystroem", "n_components": 1000}}
    model = LEMLL(kernel=kernel, **options, tol=1e-8).fit(convert(X), Y)
    new = convert(data(seed=1)[0])
    scores = exact.decision_function(new)
    np.testing.assert_allclose(model.decision_function(new), scores, atol=2e-3)
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    assert model.kernel_gap_ < 1e-6


@pytest.mark.parametrize("bounded", [False, True], ids=["all kernel values", "diagonal only"])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_the_gap_to_the_exact_kernel_is_a_bound(kernel, bounded, monkeypatch):
    if bounded:
        monkeypatch.setattr("lemll.fitting.kernels.MOST_EXACT_GAP_ROWS", 10)
    X, Y = data()
    Y[:, 2] = 1  # a constant label has its own path
    exact = LEMLL(kernel=kernel, tol=1e-9).fit(X, Y)
    model = LEMLL(kernel=kernel, kernel_params=NYSTROEM | {"n_components": 30}, tol=1e-6).fit(X, Y)
    true = (model.objective_ - exact.objective_) / model.objective_
    assert model.optimality_ <= 1e-6
    assert true > 1e-3
    assert true <= model.kernel_gap_


def test_the_seed_decides():
    X, Y = data()
    options = NYSTROEM | {"n_components": 20}
    scores = [
        LEMLL(kernel="rbf", kernel_params=options | {"random_state": seed})
        .fit(X, Y)
        .decision_function(X)
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert np.abs(scores[0] - scores[2]).max() > 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"kernel_params": {"approximation": "random"}, "kernel": "rbf"},
            "must be None or 'nystroem'",
        ),
        ({"kernel_params": NYSTROEM}, "needs a kernel of rows, got kernel='linear'"),
        (
            {"kernel": "rbf", "kernel_params": NYSTROEM | {"n_components": 0}},
            "n_components in kernel_params must be",
        ),
        (
            {"kernel": "rbf", "kernel_params": NYSTROEM | {"n_components": "many"}},
            "n_components in kernel_params must be 'auto' or a whole number >= 2, got 'many'",
        ),
        (
            {"kernel": "rbf", "kernel_params": NYSTROEM | {"random_state": -1}},
            "random_state in kernel_params must",
        ),
        ({"kernel_params": NYSTROEM, "kernel": lambda a, b: -a @ b.T}, "positive semi-definite"),
        ({"solver_params": {"label_block": 0}}, "label_block in solver_params must be a whole"),
        ({"graph": {"neighbors": "near"}}, "neighbors='near' must be"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        LEMLL(**options).fit(*data())


def test_blocks_of_labels_without_a_tube_solve_the_same_problem():
    X, Y = data()
    Y[:, 3] = 0
    together = LEMLL(epsilon=0, tol=1e-9).fit(X, Y)
    apart = LEMLL(epsilon=0, tol=1e-9, solver_params={"label_block": 2}).fit(X, Y)
    np.testing.assert_allclose(apart.coef_, together.coef_, atol=1e-4)
    np.testing.assert_allclose(apart.numerical_labels_, together.numerical_labels_, atol=1e-4)
    assert apart.objective_ == pytest.approx(together.objective_, rel=1e-8)
    assert apart.optimality_ <= 1e-9
    assert apart.objective_trace_[-1] == pytest.approx(apart.objective_, rel=1e-6)


def test_blocks_of_labels_are_the_fits_of_their_labels():
    X, Y = data()
    apart = LEMLL(solver_params={"label_block": 3}, tol=1e-8, epsilon=0.2).fit(X, Y)
    for block, share in ((slice(0, 3), 0.6), (slice(3, 5), 0.4)):
        alone = LEMLL(tol=1e-8, epsilon=0.2 * np.sqrt(share)).fit(X, Y[:, block])
        np.testing.assert_allclose(apart.coef_[block], alone.coef_, atol=1e-10)


def test_blocks_of_labels_come_near_the_fit_of_all_labels():
    X, Y = data(n=300, n_labels=6)
    together = LEMLL(epsilon=0.3, tol=1e-8).fit(X, Y)
    apart = LEMLL(epsilon=0.3, tol=1e-8, solver_params={"label_block": 1}).fit(X, Y)
    same_radius = [LEMLL(epsilon=0.3, tol=1e-8).fit(X, Y[:, [j]]).coef_[0] for j in range(6)]
    error, error_with_it = (
        np.abs(coef - together.coef_).max() for coef in (apart.coef_, np.array(same_radius))
    )
    assert error < 0.5 * error_with_it


def test_float32_gives_float32_labels_and_the_same_certificate():
    X, Y = data()
    model = LEMLL(solver_params=FLOAT32).fit(X.astype(np.float32), Y)
    assert model.numerical_labels_.dtype == np.float32
    assert model.optimality_ <= 1e-4
    expected = LEMLL().fit(X, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=0.02)
    np.testing.assert_allclose(model.label_distribution_.sum(axis=1), 1)


@pytest.mark.parametrize("far", [0.0, 1e4])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_the_certificate_by_blocks_is_that_of_all_rows(convert, far, monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = data(n=97)
    X = convert(np.where(X > 0.3, X, 0.0) + far)
    W = reconstruction_weights(X, 5)
    Y = 2.0 * Y - 1
    point = LemllPoint(Y + rng.random(Y.shape), rng.random((5, 6)), rng.random(5))
    weights, half_dual = Weights(0.7, 0.3, 2.0, 0.1), rng.standard_normal(Y.shape)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 8 * 5 * 10)
    expected = duality_gap(X, Y, W, point, half_dual=half_dual, **weights._asdict())
    M = ReconstructionOperator(W)
    found = duality_gap_by_blocks(X, Y, M, point, weights, half_dual=half_dual)
    # The lower bound is the difference of two numbers as large as the objective.
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14 * expected.objective)


def test_a_search_that_is_certified_by_blocks_ends_at_the_same_point(monkeypatch):
    X, Y = data()
    expected = LEMLL(solver_params=FLOAT32).fit(X, Y)
    monkeypatch.setattr(blocks, "LARGE_LABEL_BYTES", 1)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 8 * 5 * 10)
    model = LEMLL(solver_params=FLOAT32).fit(X, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-12)
    assert model.optimality_ == pytest.approx(expected.optimality_, rel=1e-6)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_predictions_in_parts_are_the_same(convert, monkeypatch):
    X, Y = data()
    model = LEMLL().fit(X, convert(Y))
    labels, names = model.predict(X), model.predict_top_k(X, 2)
    monkeypatch.setattr(_base, "_SCORE_BYTES", 8 * 5 * 7)
    again = model.predict(X)
    assert type(again) is type(labels)
    assert again.dtype == labels.dtype
    np.testing.assert_array_equal(
        *(a.toarray() if sparse.issparse(a) else a for a in (again, labels))
    )
    np.testing.assert_array_equal(model.predict_top_k(X, 2), names)


def test_mapped_files_are_fitted_without_being_changed(tmp_path):
    X, Y = data()
    expected = LEMLL().fit(X, Y)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(LEMLL().fit(mapped, Y).coef_, expected.coef_)
    rows = sparse.csr_array(np.where(X > 0.5, X, 0.0))
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(rows, name))
    parts = [np.load(tmp_path / f"{n}.npy", mmap_mode="r") for n in ("data", "indices", "indptr")]
    model = LEMLL(solver_params=FLOAT32).fit(sparse.csr_array(tuple(parts), shape=rows.shape), Y)
    np.testing.assert_array_equal(model.coef_, LEMLL(solver_params=FLOAT32).fit(rows, Y).coef_)


def test_too_little_memory_is_refused_with_what_to_change(monkeypatch):
    X, Y = data()
    monkeypatch.setattr(_validation, "WORTH_CHECKING", 0)
    monkeypatch.setattr(_validation, "available_bytes", lambda: 1000)
    with pytest.raises(NotEnoughMemoryError, match="GiB and 0.0 GiB.*label_block in .* below 5"):
        LEMLL().fit(X, Y)
    with pytest.raises(NotEnoughMemoryError, match="lower n_components"):
        LEMLL(kernel="rbf", kernel_params=NYSTROEM).fit(X, Y)


@pytest.mark.parametrize(
    ("n_rows", "n_features"), [(100_000, 4_000), (250_000, 2_000), (10**7, 1_000)]
)
def test_many_rows_have_fewer_landmarks(monkeypatch, n_rows, n_features):
    monkeypatch.setattr(_validation, "available_bytes", lambda: 1000)
    X = sparse.csr_array((n_rows, 3))
    kernel = choose_kernel("rbf", {"gamma": 1.0}, X)
    # The first-order part adds one feature per column and one for the constant.
    with pytest.raises(NotEnoughMemoryError, match=f"{n_features + 4} features of a kernel"):
        approximate(
            kernel,
            X,
            approximation="nystroem",
            n_components="auto",
            n_labels=2,
            seed=0,
            precision="float32",
        )


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_the_estimate_for_blocks_of_labels_is_near_the_peak(precision):
    rng = np.random.default_rng(0)
    X = sparse.random_array((1500, 200), density=0.02, format="csr", rng=rng).astype(precision)
    Y = sparse.random_array((1500, 400), density=0.05, format="csr", rng=rng) > 0
    graph = reconstruction_weights(X, 5)
    solver = {"label_block": 20, "precision": precision}
    options = {"solver_params": solver, "graph": graph, "tol": 0.1}
    LEMLL(**options).fit(X, Y[:, :20])  # imports and caches what is not of the fit
    with Peak() as peak:
        LEMLL(**options).fit(X, Y)
    estimate = fit_bytes(X, 20, kept_labels=400, precision=precision)
    labels = 1500 * 400  # int8, made before the estimate
    assert peak.bytes - labels <= estimate <= 1.5 * peak.bytes


_LIMITED = """
import resource
import numpy as np
from lemll import LEMLL
from lemll._validation import available_bytes
X = np.zeros((200_000, 5))
X[:, 0] = np.arange(200_000)
Y = np.zeros((200_000, 100), np.int8)
Y[::2] = 1
import psutil
used = psutil.Process().memory_info().vms
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, used + 2**30))
try:
    LEMLL().fit(X, Y)
except MemoryError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux enforces RLIMIT_AS")
def test_the_limit_of_the_process_counts():
    done = in_process(_LIMITED)
    assert done.stdout.startswith("NotEnoughMemoryError Fitting 200000 rows with 100 labels needs")
