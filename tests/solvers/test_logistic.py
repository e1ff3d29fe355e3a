"""Many logistic regressions: against scikit-learn's, the conditions of an optimum, and limits."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from lemll.rivals.logistic_subsets import solve_logistic_subsets
from lemll.solvers import solve_logistic


def problems(n_samples=80, n_features=6, n_problems=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) + 2.0
    X[np.abs(X) < 0.5] = 0
    scores = (X - 2) @ rng.normal(size=(n_features, n_problems)) - np.linspace(-1, 3, n_problems)
    return X, (scores + rng.logistic(size=scores.shape) > 0).astype(int)


def oracle(X, y, C, weights=None):
    # Its default solver stops short of the optimum where the penalty is weak.
    model = LogisticRegression(C=C, tol=1e-10, max_iter=1000, solver="newton-cholesky")
    model.fit(X, y, sample_weight=weights)
    return model.coef_[0], model.intercept_[0]


def gradient(X, y, weights, *, coef, intercept, C):
    residuals = weights * (expit(X @ coef + intercept) - y)
    return np.append(X.T @ residuals + coef / C, residuals.sum())


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("shape", [(80, 6), (30, 60)], ids=["tall", "wide"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_equals_scikit_learn(C, shape, form):
    X, Y = problems(*shape)
    solution = solve_logistic(form(X), Y, C=C, tol=1e-9)
    assert solution.converged.all()
    for t in range(Y.shape[1]):
        coef, intercept = oracle(X, Y[:, t], C)
        np.testing.assert_allclose(solution.coef[t], coef, atol=2e-5)
        np.testing.assert_allclose(solution.intercept[t], intercept, atol=5e-5)


def test_sparse_features_need_few_nonzeros_to_stay_sparse():
    rng = np.random.default_rng(1)
    X = sparse.csr_array(rng.uniform(size=(120, 40)) * (rng.uniform(size=(120, 40)) < 0.05))
    Y = (X.sum(axis=1)[:, None] + rng.normal(size=(120, 3)) > 1).astype(int)
    sparse_solution = solve_logistic(X, Y, tol=1e-9)
    dense_solution = solve_logistic(X.toarray() + 0.0, Y, tol=1e-9)
    np.testing.assert_allclose(sparse_solution.coef, dense_solution.coef, atol=1e-7)
    coef, intercept = oracle(X.toarray(), Y[:, 1], 1.0)
    np.testing.assert_allclose(sparse_solution.coef[1], coef, atol=1e-5)
    np.testing.assert_allclose(sparse_solution.intercept[1], intercept, atol=1e-5)


def test_the_gradient_vanishes_and_the_objective_is_the_stated_one():
    X, Y = problems()
    rng = np.random.default_rng(2)
    weights = rng.uniform(size=Y.shape)
    solution = solve_logistic(X, Y, C=3.0, sample_weight=weights, tol=1e-10)
    for t, (coef, intercept) in enumerate(zip(solution.coef, solution.intercept, strict=True)):
        slope = gradient(X, Y[:, t], weights[:, t], coef=coef, intercept=intercept, C=3.0)
        assert np.abs(slope).max() < 1e-7
        margins = (2 * Y[:, t] - 1) * (X @ coef + intercept)
        value = weights[:, t] @ np.logaddexp(0, -margins) + coef @ coef / 6
        np.testing.assert_allclose(solution.objective[t], value, rtol=1e-12)


def test_weights_are_repeated_rows_and_zero_is_none():
    X, Y = problems()
    counts = np.random.default_rng(3).integers(0, 4, size=len(X))
    repeated = np.repeat(np.arange(len(X)), counts)
    weighted = solve_logistic(X, Y, sample_weight=np.tile(counts[:, None], (1, 5)), tol=1e-10)
    plain = solve_logistic(X[repeated], Y[repeated], tol=1e-10)
    np.testing.assert_allclose(weighted.coef, plain.coef, atol=1e-7)
    np.testing.assert_allclose(weighted.intercept, plain.intercept, atol=1e-7)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_extra_features_only_where_allowed(form):
    rng = np.random.default_rng(4)
    X, Y = problems()
    X[rng.uniform(size=X.shape) < 0.95] = 0  # sparse enough to stay sparse
    extra = rng.integers(0, 2, size=(len(X), 3))
    allowed = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=bool)
    solution = solve_logistic(form(X), Y, extra=extra, allowed=allowed, tol=1e-9)
    for t in range(5):
        coef, intercept = oracle(np.column_stack([X, extra[:, allowed[t]]]), Y[:, t], 1.0)
        np.testing.assert_allclose(solution.coef[t], coef[:6], atol=1e-5)
        np.testing.assert_allclose(solution.extra_coef[t, allowed[t]], coef[6:], atol=1e-5)
        assert not solution.extra_coef[t, ~allowed[t]].any()
        np.testing.assert_allclose(solution.intercept[t], intercept, atol=1e-5)


def test_one_class_problems_are_constant():
    X, Y = problems()
    Y[:, 0], Y[:, 1] = 0, 1
    weights = np.ones(Y.shape)
    weights[Y[:, 2] == 1, 2] = 0
    solution = solve_logistic(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(solution.intercept[:3], [-np.inf, np.inf, -np.inf])
    assert not solution.coef[:3].any()
    assert solution.converged.all()


@pytest.mark.parametrize("shape", [(60, 4), (20, 40)])
def test_separable_data_without_a_penalty_to_speak_of_stay_finite(shape):
    X, _ = problems(*shape)
    Y = (X[:, :2] > 2).astype(int)
    solution = solve_logistic(X, Y, C=5e7, tol=1e-4)
    assert solution.converged.all()
    assert np.isfinite(solution.coef).all()
    np.testing.assert_array_equal(X @ solution.coef.T + solution.intercept > 0, Y == 1)


def test_exact_steps_find_the_same_as_conjugate_gradients(monkeypatch):
    X, Y = problems(200, 30)
    extra = Y[:, :3]
    allowed = np.eye(5, 3, dtype=bool)
    by_cg = solve_logistic(X, Y, C=1e4, extra=extra, allowed=allowed, tol=1e-9)
    # No step by conjugate gradients is cheap enough now.
    from lemll.solvers import logistic as newton

    def costly(*given, **options):
        found, _ = conjugate_gradients(*given, **options)
        return found, 10**6

    conjugate_gradients = newton.conjugate_gradients
    monkeypatch.setattr(newton, "conjugate_gradients", costly)
    exact = solve_logistic(X, Y, C=1e4, extra=extra, allowed=allowed, tol=1e-9)
    np.testing.assert_allclose(exact.coef, by_cg.coef, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(exact.extra_coef, by_cg.extra_coef, rtol=1e-5, atol=1e-6)


def test_blocks_and_threads_change_nothing(monkeypatch):
    X, Y = problems(n_problems=40)
    whole = solve_logistic(X, Y, tol=1e-8)
    from lemll.solvers import logistic as solve

    monkeypatch.setattr(solve, "BLOCK_BYTES", 1)
    monkeypatch.setattr(solve, "LEAST_PROBLEMS", 7)
    cut = solve_logistic(X, Y, tol=1e-8, n_jobs=2)
    np.testing.assert_allclose(cut.coef, whole.coef, atol=1e-6)


def test_says_when_it_has_not_converged():
    X, Y = problems()
    solution = solve_logistic(X, Y, max_iter=1, tol=1e-12)
    assert not solution.converged.any()
    assert (solution.gradient_norm > 1e-12).all()
    np.testing.assert_array_equal(solution.n_iter, 1)


def test_constant_features():
    X, Y = np.zeros((10, 2)), np.arange(10)[:, None] % 5 == 0
    solution = solve_logistic(X, Y)
    np.testing.assert_allclose(solution.intercept, np.log(0.2 / 0.8))
    assert not solution.coef.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": np.zeros((3, 2))}, r"labels must be \(80, n_problems\); got \(3, 2\)"),
        ({"labels": np.full((80, 1), 2)}, "labels must contain only 0 and 1"),
        ({"C": 0.0}, "C must be finite and > 0, got 0.0"),
        ({"C": 1e-45}, "C must be at least 1e-30, got 1e-45; raise it"),
        ({"sample_weight": np.ones((80, 1))}, "must have the shape of labels"),
        ({"sample_weight": -np.ones((80, 5))}, "finite and not negative"),
        ({"extra": np.ones((3, 1))}, r"extra must be \(80, n_extra\)"),
        ({"extra": np.ones((80, 1)), "allowed": np.ones((4, 1))}, r"allowed \(5, n_extra\)"),
    ],
)
def test_refusals(options, message):
    X, Y = problems()
    with pytest.raises(ValueError, match=message):
        solve_logistic(X, **({"labels": Y} | options))


def subsets(Y, sizes, seed=0):
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(len(Y))[:size] for size in sizes]
    return rows, [Y[mine, t % Y.shape[1]] for t, mine in enumerate(rows)]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("name", "value"), [("KERNEL_BYTES", 1 << 29), ("KERNEL_BYTES", 0), ("SHARED_COST", 0)]
)
def test_subsets_equal_scikit_learn(form, name, value, monkeypatch):
    from lemll.rivals import logistic_subsets as module

    # With the kernel of all rows, without it, and by products with all rows.
    monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "MASK_BYTES", 240)
    X, Y = problems(n_features=12)
    # Sizes on both sides of the number of features: both forms of the problem.
    rows, labels = subsets(Y, [5, 8, 9, 11, 12, 13, 30, 70, 80])
    solution = solve_logistic_subsets(form(X), rows, labels, C=2.0, tol=1e-9)
    assert solution.converged.all()
    for t, (mine, wanted) in enumerate(zip(rows, labels, strict=True)):
        if 0 < wanted.sum() < len(wanted):
            coef, intercept = oracle(X[mine], wanted, 2.0)
            np.testing.assert_allclose(solution.coef[t], coef, atol=1e-5)
            np.testing.assert_allclose(solution.intercept[t], intercept, atol=5e-5)
        else:
            assert np.isinf(solution.intercept[t])


@pytest.mark.parametrize("cost", [0, 33], ids=["all rows", "stacks"])
def test_weights_of_subsets_repeat_rows(cost, monkeypatch):
    from lemll.rivals import logistic_subsets as module

    monkeypatch.setattr(module, "SHARED_COST", cost)
    X, Y = problems(n_features=12)
    rows, labels = subsets(Y, [9, 30, 70])
    rng = np.random.default_rng(0)
    weights = [rng.integers(1, 4, len(mine)).astype(float) for mine in rows]
    solution = solve_logistic_subsets(X, rows, labels, C=2.0, weights=weights, tol=1e-9)
    assert solution.converged.all()
    for t, (mine, wanted) in enumerate(zip(rows, labels, strict=True)):
        if 0 < wanted.sum() < len(wanted):
            count = weights[t].astype(int)
            coef, intercept = oracle(X[np.repeat(mine, count)], np.repeat(wanted, count), 2.0)
            np.testing.assert_allclose(solution.coef[t], coef, atol=1e-5)
            np.testing.assert_allclose(solution.intercept[t], intercept, atol=5e-5)


def test_subsets_without_rows_or_with_one_class():
    X, _ = problems()
    none = np.zeros(0, dtype=int)
    rows = [none, np.arange(3), np.arange(3)]
    solution = solve_logistic_subsets(X, rows, [none, np.ones(3), np.zeros(3)])
    np.testing.assert_array_equal(solution.intercept, [np.nan, np.inf, -np.inf])
    assert not solution.coef.any()


@pytest.mark.parametrize("n_features", [3, 60])
def test_subsets_that_are_separable_stay_finite(n_features):
    X, _ = problems(40, n_features)
    rows, labels = subsets((X > 2).astype(int), [20, 30, 40])
    solution = solve_logistic_subsets(X, rows, labels, C=5e7, tol=1e-4)
    assert solution.converged.all()
    for t, mine in enumerate(rows):
        scores = X[mine] @ solution.coef[t] + solution.intercept[t]
        np.testing.assert_array_equal(scores > 0, labels[t] == 1)


@pytest.mark.parametrize("cost", [0, np.inf], ids=["all rows", "stacks"])
def test_subsets_far_from_the_origin_lose_nothing_by_rounding(cost, monkeypatch):
    from lemll.rivals import logistic_subsets as module

    monkeypatch.setattr(module, "SHARED_COST", cost)
    X, Y = problems()
    rows, labels = subsets(Y, [60, 80])
    near, far = (
        solve_logistic_subsets(X + shift, rows, labels, C=0.1, tol=1e-8) for shift in (0, 1e6)
    )
    scores = [(X + s) @ found.coef.T + found.intercept for s, found in ((0, near), (1e6, far))]
    np.testing.assert_allclose(*scores, atol=1e-5)


@pytest.mark.parametrize("C", [np.inf, 1e-45])
def test_subsets_refuse_impossible_penalties(C):
    with pytest.raises(ValueError, match=f"C must be .*, got {C}"):
        solve_logistic_subsets(problems()[0], [np.arange(2)], [[0, 1]], C=C)
