"""LEMLL, the estimator: what it promises beyond its solver."""

from __future__ import annotations

import hashlib
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import lemll._validation
from lemll import LEMLL
from lemll.datasets import load_digit_tags
from lemll.enhancers import LEMLLEnhancer
from lemll.exceptions import NotEnoughMemoryError
from lemll.lab.reference import solve_reference
from lemll.metrics import average_precision, get_scorer
from lemll.solvers import solve_joint
from lemll.solvers.equation9 import duality_gap
from lemll.topology import reconstruction_weights


@pytest.fixture(scope="module")
def digits():
    data = load_digit_tags()
    return data.X[:400] / 16, data.Y[:400]


# A certified relative gap g bounds the model's error too: alpha |dTheta|^2 <= g F.


def random_problem(seed=0, n=60, d=5, n_labels=4):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, d)
    Y = (X @ rng.randn(d, n_labels) + 0.5 * rng.randn(n, n_labels) > 0).astype(int)
    return X, Y


def test_fit_is_the_certified_optimum_of_equation_9(digits):
    X, Y = digits
    model = LEMLL(tol=1e-7).fit(X, Y)
    W = reconstruction_weights(X, 10, reg_policy="always")
    point = (model.numerical_labels_, model.coef_, model.intercept_)
    gap = duality_gap(X, 2.0 * Y - 1, W, point, alpha=1.0, beta=1.0, gamma=1.0, epsilon=0.1)
    assert gap.relative <= 1e-7
    assert model.objective_ == pytest.approx(gap.objective, rel=1e-12)
    assert model.optimality_ <= 1e-7
    assert len(model.objective_trace_) == model.n_iter_ + 1
    np.testing.assert_allclose(model.label_distribution_.sum(axis=1), 1)


def test_the_virtual_label_is_exactly_zero_so_the_threshold_is_zero():
    X, Y = random_problem()
    W = reconstruction_weights(X, 10, reg_policy="always")
    with_virtual = np.column_stack([np.zeros(len(Y)), 2.0 * Y - 1])
    options = {"alpha": 0.5, "beta": 0.25, "gamma": 2.0, "epsilon": 0.1, "tol": 1e-10}
    for solve in (solve_joint, solve_reference):
        solution = solve(X, with_virtual, W, **options)
        assert not solution.numerical_labels[:, 0].any()
        assert not solution.coef[0].any()
        assert solution.intercept[0] == 0
        without = solve(X, with_virtual[:, 1:], W, **options)
        np.testing.assert_allclose(solution.coef[1:], without.coef, atol=1e-4)
    model = LEMLL(0.5, 0.25, 2.0, tol=1e-10).fit(X, Y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))
    np.testing.assert_allclose(scores, X @ without.coef.T + without.intercept, atol=1e-3)


def test_constant_labels_are_handled_outside_the_solver():
    X, Y = random_problem()
    wide = np.column_stack([np.zeros(len(Y)), Y, np.ones(len(Y))]).astype(int)
    model, narrow = LEMLL().fit(X, wide), LEMLL().fit(X, Y)
    np.testing.assert_array_equal(model.coef_[1:-1], narrow.coef_)
    np.testing.assert_array_equal(model.decision_function(X)[:, [0, -1]], [[-1, 1]] * len(X))
    np.testing.assert_array_equal(model.numerical_labels_[:, [0, -1]], [[-1, 1]] * len(X))
    # The whole problem, constant labels included, has the same optimum.
    W = reconstruction_weights(X, 10, reg_policy="always")
    whole = solve_joint(X, 2.0 * wide - 1, W, alpha=1.0, beta=1.0, gamma=1.0, tol=1e-9)
    assert model.objective_ == pytest.approx(whole.objective, rel=1e-4)
    np.testing.assert_allclose(whole.intercept[[0, -1]], [-1, 1], atol=1e-4)


def test_all_labels_constant():
    X, _ = random_problem()
    model = LEMLL().fit(X, np.column_stack([np.zeros(60), np.ones(60)]).astype(int))
    assert (model.objective_, model.optimality_, model.n_iter_) == (0, 0, 0)
    np.testing.assert_array_equal(model.predict(X), [[0, 1]] * 60)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_sparse_equals_dense(container):
    X, Y = random_problem()
    X[np.abs(X) < 0.7] = 0
    dense = LEMLL(tol=1e-10).fit(X, Y)
    other = LEMLL(tol=1e-10).fit(container(X), container(Y))
    np.testing.assert_allclose(dense.coef_, other.coef_, atol=1e-4)
    predicted = other.predict(container(X))
    assert isinstance(predicted, sparse.csr_array)
    np.testing.assert_array_equal(predicted.toarray(), dense.predict(X))


def test_one_dimensional_targets():
    X, Y = random_problem()
    classes = np.array(["no", "yes"])
    binary = LEMLL().fit(X, classes[Y[:, 0]])
    scores = binary.decision_function(X)
    assert scores.shape == (60,)
    np.testing.assert_array_equal(binary.predict(X), classes[(scores > 0).astype(int)])
    three = LEMLL().fit(X, np.arange(60) % 3 + 7)
    np.testing.assert_array_equal(three.classes_, [7, 8, 9])
    assert three.decision_function(X).shape == (60, 3)
    np.testing.assert_array_equal(three.predict(X), three.decision_function(X).argmax(1) + 7)


def test_one_label_and_more_labels_than_rows():
    X, Y = random_problem(n=12, n_labels=30)
    assert LEMLL().fit(X, Y[:, :1]).predict(X).shape == (12, 1)
    assert LEMLL().fit(X, Y).predict(X).shape == (12, 30)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_fewer_rows_than_neighbours(n):
    X, _ = random_problem(n=n)
    Y = np.column_stack([np.arange(n) % 2, np.arange(n) == 0]).astype(int)
    model = LEMLL(tol=1e-8).fit(X, Y)
    assert np.isfinite(model.coef_).all()
    assert model.optimality_ <= 1e-8


def test_one_row_is_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"at least 2 rows.*n_samples=1"):
        LEMLL().fit([[1.0, 2.0]], [[1, 0]])


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_duplicated_rows(share):
    X, Y = random_problem(n=100)
    X[: int(100 * share)] = X[0]
    model = LEMLL(tol=1e-7).fit(X, Y)
    assert model.optimality_ <= 1e-7
    assert np.isfinite(model.numerical_labels_).all()


def test_odd_features_rows_and_labels():
    X, Y = random_problem()
    Y[3], Y[4] = 0, 1
    for constant in (0.0, 3.0):
        X[:, 0] = constant
        X[5:9, 1:] = 0.0
        model = LEMLL(tol=1e-8).fit(X, Y)
        assert model.optimality_ <= 1e-8
        np.testing.assert_allclose(model.coef_[:, 0], 0, atol=1e-6)


def test_a_tube_wider_than_every_residual_leaves_no_model():
    X, Y = random_problem()
    model = LEMLL(epsilon=100.0, tol=1e-6).fit(X, Y)
    np.testing.assert_allclose(model.coef_, 0, atol=1e-2)
    # What is left of Eq. (9) is closeness and smoothness, with a closed form.
    W = reconstruction_weights(X, 10, reg_policy="always").toarray()
    M = (np.eye(60) - W).T @ (np.eye(60) - W)
    U = np.linalg.solve(np.eye(60) + M, 2.0 * Y - 1)
    np.testing.assert_allclose(model.numerical_labels_, U, atol=1e-2)


def test_scaled_features():
    X, Y = random_problem()
    small = LEMLL(alpha=1e-6, tol=1e-8).fit(X * 1e-3, Y)
    usual = LEMLL(alpha=1.0, tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(small.coef_ * 1e-3, usual.coef_, atol=1e-4)
    with pytest.raises(ValueError, match="leave the range of floating-point numbers; rescale"):
        LEMLL().fit(X * 1e300, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0}, "alpha must be finite and > 0, got 0"),
        ({"alpha": "1"}, "alpha must be a number > 0, got '1'"),
        ({"beta": -1.0}, "beta must be finite and > 0"),
        ({"beta": float("nan")}, "beta must be finite and > 0"),
        ({"gamma": -1.0}, "gamma must be finite and >= 0"),
        ({"gamma": float("inf")}, "gamma must be finite and >= 0"),
        ({"epsilon": -0.1}, "epsilon must be finite and >= 0"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number >= 1, got 0"),
        ({"n_neighbors": 2.5}, "n_neighbors must be a whole number >= 1, got 2.5"),
        ({"tol": 0}, "tol must be finite and > 0"),
        ({"max_iter": 0}, "max_iter must be a whole number >= 1"),
        ({"graph": {"reg_policy": "never"}}, "reg_policy"),
        (
            {"solver_params": {"precision": "half"}},
            "precision='half' in solver_params must be 'float64' or 'float32'",
        ),
    ],
)
@pytest.mark.parametrize("estimator", [LEMLL, LEMLLEnhancer])
def test_parameters_out_of_range(estimator, parameters, message):
    X, Y = random_problem()
    with pytest.raises(ValueError, match=re.escape(message)):
        estimator(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X, 2 * Y - 1), r"coded -1/\+1, logical labels must be 0/1"),
        (lambda X, Y: (X, 2 * Y), "must hold only 0 and 1, got 2"),
        (lambda X, Y: (X * np.nan, Y), "Input X contains NaN"),
        (lambda X, Y: (X[:-1], Y), "inconsistent numbers of samples"),
        (lambda X, _: (X, None), "requires y to be passed"),
        (
            lambda X, Y: (X, Y.astype(float) * np.nan),
            "no cell of y is observed|got an unknown cell",
        ),
        (lambda X, Y: (X, Y[:, :0]), "at least"),
    ],
)
@pytest.mark.parametrize("estimator", [LEMLL, LEMLLEnhancer])
def test_bad_data(estimator, change, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit(*change(*random_problem()))


def test_bad_graphs_and_a_good_one():
    X, Y = random_problem()
    W = reconstruction_weights(X, 10, reg_policy="always")
    given = LEMLL(graph=W).fit(X, Y)
    np.testing.assert_array_equal(given.coef_, LEMLL().fit(X, Y).coef_)
    with pytest.raises(ValueError, match="60"):
        LEMLL(graph=W[:10, :10]).fit(X, Y)


@pytest.mark.slow
def test_a_sparse_label_matrix_that_would_not_fit_is_refused_before_it_is_made_dense():
    X, Y = sparse.csr_array((10**6, 5)), sparse.csr_array((10**6, 10**7))
    with pytest.raises(NotEnoughMemoryError, match="A dense label matrix of shape"):
        LEMLL().fit(X, Y)


def test_labels_of_pandas_and_of_objects():
    pd = pytest.importorskip("pandas")
    X, Y = random_problem()
    expected = LEMLL().fit(X, Y).coef_
    frame = pd.DataFrame(Y, columns=list("abcd"))
    for labels in (frame, frame.astype("Int64"), frame.astype(bool), Y.astype(object), Y.tolist()):
        np.testing.assert_array_equal(LEMLL().fit(X, labels).coef_, expected)


def test_memory_that_would_not_fit_is_refused_first(monkeypatch):
    monkeypatch.setattr(lemll._validation, "available_bytes", lambda: 1000)
    monkeypatch.setattr(lemll._validation, "WORTH_CHECKING", 0)
    with pytest.raises(NotEnoughMemoryError, match="60 rows with 4 labels needs about .* GiB"):
        LEMLL().fit(*random_problem())


@pytest.mark.parametrize("estimator", [LEMLL, LEMLLEnhancer])
def test_not_converged_warns_with_both_figures_at_the_callers_line(estimator):
    X, Y = random_problem()
    message = r"after 1 iterations .* wanted tol=1.00e-12; raise max_iter"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = estimator(tol=1e-12, max_iter=1).fit(X, Y)
    assert model.optimality_ > 1e-12
    assert caught[0].filename == __file__


def test_verbose_shows_progress_and_what_was_reached(capsys):
    X, Y = random_problem()
    model = LEMLL(verbose=1).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == model.n_iter_ + 1
    assert re.match(r"LEMLL iteration 1: objective .* \(wanted 1.0e-04\), \d", lines[0])
    assert f"certified gap {model.optimality_:.1e} (wanted 1.0e-04), done" in lines[-1]
    assert not any("inf" in line for line in lines)
    LEMLL().fit(X, Y)
    assert capsys.readouterr().err == ""


def digest(*arrays):
    return [hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() for array in arrays]


@pytest.mark.parametrize("estimator", [LEMLL, LEMLLEnhancer])
def test_the_callers_arrays_are_read_only_memory_maps_and_stay_as_they_are(tmp_path, estimator):
    X, Y = random_problem()
    maps = []
    for name, array in (("X", X), ("Y", Y)):
        np.save(tmp_path / f"{name}.npy", array)
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    before = digest(*maps)
    model = estimator().fit(*maps)
    assert digest(*maps) == before
    np.testing.assert_array_equal(model.coef_, estimator().fit(X, Y).coef_)
    csr = sparse.csr_array(X)
    for part in (csr.data, csr.indices, csr.indptr):
        part.flags.writeable = False
    before = digest(csr.data, csr.indices, csr.indptr)
    estimator().fit(csr, sparse.csr_array(Y))
    assert digest(csr.data, csr.indices, csr.indptr) == before


def test_a_failed_refit_leaves_the_old_model():
    X, Y = random_problem()
    model = LEMLL().fit(X, Y)
    predicted = model.predict(X)
    with pytest.raises(ValueError, match="must hold only 0 and 1"):
        model.fit(X, Y[:, :2] * 3)
    np.testing.assert_array_equal(model.predict(X), predicted)


def test_one_and_two_threads_predict_the_same():
    # More rows than the neighbour search handles in one thread.
    rng = np.random.RandomState(0)
    X = rng.randn(6000, 60)
    Y = (X @ rng.randn(60, 5) > rng.randn(6000, 5)).astype(int)
    scores = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            scores.append(LEMLL().fit(X[:5000], Y[:5000]).decision_function(X[5000:]))
    np.testing.assert_array_equal(scores[0] > 0, scores[1] > 0)
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-10, atol=1e-10)


def test_the_whole_fit_is_invariant():
    X, Y = random_problem()
    rng = np.random.RandomState(1)
    fitted = LEMLL(0.5, 0.25, 2.0, tol=1e-11).fit(X, Y)
    scores = fitted.decision_function(X)

    rows = rng.permutation(len(X))
    permuted = LEMLL(0.5, 0.25, 2.0, tol=1e-11).fit(X[rows], Y[rows])
    np.testing.assert_allclose(permuted.decision_function(X), scores, atol=1e-5)
    np.testing.assert_allclose(
        permuted.numerical_labels_, fitted.numerical_labels_[rows], atol=1e-5
    )

    labels = rng.permutation(Y.shape[1])
    relabelled = LEMLL(0.5, 0.25, 2.0, tol=1e-11).fit(X, Y[:, labels])
    np.testing.assert_allclose(relabelled.decision_function(X), scores[:, labels], atol=1e-5)

    rotation, _ = np.linalg.qr(rng.randn(X.shape[1], X.shape[1]))
    moved = X @ rotation + 5.0
    rotated = LEMLL(0.5, 0.25, 2.0, tol=1e-11).fit(moved, Y)
    np.testing.assert_allclose(rotated.decision_function(moved), scores, atol=1e-5)


def test_float32_precision_keeps_the_certificate(digits):
    X, Y = digits
    model = LEMLL(solver_params={"precision": "float32"}, tol=1e-4).fit(X.astype(np.float32), Y)
    assert model.optimality_ <= 1e-4


def test_scikit_learn_habits(digits):
    X, Y = digits
    model = LEMLL(alpha=2.0)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.predict(X)
    pipeline = make_pipeline(StandardScaler(), LEMLL())
    search = GridSearchCV(
        pipeline,
        {"lemll__alpha": [1.0, 100.0]},
        scoring=get_scorer("average_precision"),
        cv=2,
    ).fit(X, Y)
    assert search.best_score_ > 0.8
    for n_labels in (1, 2, 8):
        for method in ("predict", "decision_function"):
            out_of_fold = cross_val_predict(LEMLL(), X, Y[:, :n_labels], cv=2, method=method)
            assert out_of_fold.shape == (len(X), n_labels)
    assert cross_val_predict(LEMLL(), X, Y, cv=2, n_jobs=2).shape == Y.shape
    assert 0 < LEMLL().fit(X, Y).score(X, Y) < 1


def test_better_than_the_trivial_predictor(digits):
    data = load_digit_tags()
    X, Y = data.X / 16, data.Y
    model = LEMLL().fit(X[:900], Y[:900])
    scorer = get_scorer("average_precision")
    frequencies = np.tile(Y[:900].mean(axis=0), (len(X) - 900, 1))
    assert scorer(model, X[900:], Y[900:]) > average_precision(Y[900:], frequencies) + 0.1
