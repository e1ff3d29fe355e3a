"""TagPredictor: members, calibration, weights, thresholds, budget, leaks."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from lemll import LEMLL, LEMLLCV, MSVRClassifier, TagPredictor
from lemll.datasets import load_digit_tags
from lemll.metrics import average_precision
from lemll.predictors.blend import (
    BlendTask,
    ForestMember,
    LemllMember,
    LogisticMember,
    MsvrMember,
    blend_weights,
    content_order,
    expected_f1_threshold,
)
from lemll.predictors.calibrated import fit_calibration

pytestmark = pytest.mark.slow

FAST = {"n_estimators": 30, "cv": 3}


@pytest.fixture(name="digits", scope="module")
def _digits():
    digits = load_digit_tags()
    rows = np.random.RandomState(1).permutation(len(digits.X))
    X, Y = np.asarray(digits.X)[rows], np.asarray(digits.Y)[rows]
    return X[:250], Y[:250], X[250:], Y[250:]


@pytest.fixture(name="fitted", scope="module")
def _fitted(digits):
    X, Y, *_ = digits
    return TagPredictor(**FAST).fit(X, Y)


def random_members(seed, n_members=3, n_rows=80, n_labels=4):
    rng = np.random.RandomState(seed)
    truth = rng.randn(n_rows, n_labels)
    Y = (rng.rand(n_rows, n_labels) < expit(2 * truth)).astype(np.int8)
    members = np.stack([truth + (m + 0.5) * rng.randn(n_rows, n_labels) for m in range(n_members)])
    return members, Y


def log_loss(z, y):
    return np.log1p(np.exp(-np.where(y == 1, z, -z)))


@pytest.mark.parametrize("loss", ["log", "ranking"])
@pytest.mark.parametrize("seed", range(3))
def test_weights_minimise_the_stated_loss(loss, seed):
    members, Y = random_members(seed)

    def objective(w):
        z = np.tensordot(w, members, axes=1)
        total = 1.5 * ((w - 1 / 3) ** 2).sum()
        for row, y in zip(z, Y, strict=True):
            if loss == "log":
                total += log_loss(row, y).mean()
                continue
            pairs = [np.log1p(np.exp(q - p)) for p in row[y == 1] for q in row[y == 0]]
            total += np.mean(pairs) if pairs else 0.0
        return total

    found = blend_weights(members, Y, None, loss)
    best = minimize(objective, np.full(3, 1 / 3), bounds=[(0, None)] * 3, tol=1e-12)
    np.testing.assert_allclose(found, best.x, atol=2e-3)
    assert objective(found) <= best.fun + 1e-5


def test_unknown_cells_and_weights_count_as_stated():
    members, Y = random_members(0)
    hidden = np.random.RandomState(2).rand(*Y.shape) < 0.4
    weight = np.where(hidden, 0.0, 1.0)
    coded = np.where(hidden, -1, Y).astype(np.int8)
    poisoned = np.where(hidden, 50.0, members)
    for loss in ("log", "ranking"):
        expected = blend_weights(members, coded, weight, loss)
        np.testing.assert_allclose(blend_weights(poisoned, coded, weight, loss), expected)
    # Weights of 1 are the same as none.
    one = fit_calibration(members[0], Y, None)
    np.testing.assert_allclose(fit_calibration(members[0], Y, np.ones(Y.shape)).slope, one.slope)


def test_calibration_recovers_lines_and_pools_rare_labels():
    rng = np.random.RandomState(0)
    scores = rng.randn(20_000, 2)
    Y = (rng.rand(20_000, 2) < expit(scores * [1.0, 3.0] + [0.5, -1.0])).astype(np.int8)
    found = fit_calibration(scores, Y, None)
    np.testing.assert_allclose(found.slope, [1.0, 3.0], atol=0.12)
    np.testing.assert_allclose(found.intercept, [0.5, -1.0], atol=0.12)
    # With one relevant row, a label of its own would get an infinite slope.
    rare = np.zeros((200, 1), dtype=np.int8)
    rare[0] = 1
    few = fit_calibration(scores[:200], np.hstack([Y[:200, :1], rare]), None)
    assert np.isfinite(few.slope).all()
    assert (few.slope >= 0).all()


def test_calibration_never_turns_scores_around():
    rng = np.random.RandomState(0)
    scores = rng.randn(500, 1)
    Y = (scores < 0).astype(np.int8)
    assert fit_calibration(scores, Y, None).slope[0] == 0


def test_the_threshold_has_the_best_expected_f1():
    p = np.random.RandomState(0).beta(0.4, 2, 300)
    cut = expit(expected_f1_threshold(p))

    def expected_f1(threshold):
        chosen = p > threshold
        return 2 * p[chosen].sum() / (chosen.sum() + p.sum())

    assert expected_f1(cut) == pytest.approx(max(expected_f1(t) for t in [0, *p[:-1]]), abs=1e-12)


def test_it_is_better_than_its_members_and_says_who_contributed(digits, fitted):
    _, _, X_new, Y_new = digits
    assert sum(fitted.contributions_.values()) == pytest.approx(1)
    assert set(fitted.contributions_) == set(fitted.chosen_)
    alone = [average_precision(Y_new, part.score(X_new)) for part in fitted._parts]
    assert average_precision(Y_new, fitted.decision_function(X_new)) > max(alone) - 0.002


def test_probabilities_are_calibrated(digits, fitted):
    _, _, X_new, Y_new = digits
    p = fitted.predict_proba(X_new)
    groups = np.digitize(p.ravel(), np.linspace(0, 1, 6)[1:-1])
    for group in range(5):
        here = groups == group
        assert abs(p.ravel()[here].mean() - Y_new.ravel()[here].mean()) < 0.1


def test_fits_are_deterministic_and_survive_pickling(digits, fitted):
    X, Y, X_new, _ = digits
    again = TagPredictor(**FAST).fit(X, Y)
    np.testing.assert_array_equal(again.decision_function(X_new), fitted.decision_function(X_new))
    loaded = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    np.testing.assert_array_equal(loaded.decision_function(X_new), fitted.decision_function(X_new))


def test_units_of_the_columns_do_not_matter(digits, fitted):
    X, Y, X_new, Y_new = digits
    units = 10.0 ** np.random.RandomState(0).uniform(-4, 4, X.shape[1])
    spoiled = TagPredictor(**FAST).fit(X * units, Y)
    before = average_precision(Y_new, fitted.decision_function(X_new))
    assert average_precision(Y_new, spoiled.decision_function(X_new * units)) == pytest.approx(
        before, abs=0.005
    )


def test_shuffled_labels_give_chance_level_out_of_fold(digits):
    X, Y, *_ = digits
    found, chance = [], []
    for seed in range(3):
        shuffled = Y[np.random.RandomState(seed).permutation(len(Y))]
        model = TagPredictor(n_estimators=20, cv=3).fit(X, shuffled)
        found.append(average_precision(shuffled, model.out_of_fold_proba_))
        frequency = np.broadcast_to(shuffled.mean(axis=0), Y.shape)
        chance.append(average_precision(shuffled, frequency))
    assert np.mean(found) == pytest.approx(np.mean(chance), abs=0.02)


def test_f1_thresholds_predict_more_relevant_labels(digits, fitted):
    X, Y, X_new, _ = digits
    macro = TagPredictor("f1", **FAST).fit(X, Y)
    micro = TagPredictor("micro_f1", **FAST).fit(X, Y)
    assert macro.predict(X_new).sum() > fitted.predict(X_new).sum()
    assert len(set(micro.thresholds_)) == 1
    assert (fitted.thresholds_ == 0).all()


def test_a_used_up_budget_gives_a_usable_model(digits):
    X, Y, X_new, Y_new = digits
    steps = []
    model = TagPredictor(**FAST, max_seconds=1e-6, callback=steps.append).fit(X, Y)
    assert list(model.contributions_) == ["logistic"]
    assert average_precision(Y_new, model.decision_function(X_new)) > 0.8
    left_out = [
        f"{name}: left out, because the time is used up"
        for name in ("MSVR", "random forest", "extra trees", "LEMLL")
    ]
    assert [step.step for step in steps] == [
        "logistic: out-of-fold scores",
        *left_out,
        "logistic: final fit",
    ]


def test_unknown_cells_are_learned_from(digits):
    X, Y, X_new, Y_new = digits
    hidden = np.random.RandomState(0).rand(*Y.shape) < 0.5
    model = TagPredictor(n_estimators=20, cv=3).fit(X, np.where(hidden, np.nan, Y))
    assert "random forest" not in model.contributions_
    as_zero = TagPredictor(n_estimators=20, cv=3).fit(X, np.where(hidden, 0, Y))
    scores = [average_precision(Y_new, m.decision_function(X_new)) for m in (model, as_zero)]
    assert scores[0] > scores[1]


def test_the_storage_of_text_features_does_not_matter():
    rng = np.random.RandomState(0)
    X = sparse.random_array((150, 400), density=0.03, rng=rng, format="csr")
    Y = (X[:, :5].toarray() > 0).astype(int)
    Y[:3] = 1
    model = TagPredictor(n_estimators=10, cv=2).fit(X, Y)
    dense = TagPredictor(n_estimators=10, cv=2).fit(X.toarray(), Y)
    np.testing.assert_allclose(model.decision_function(X), dense.decision_function(X), atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"optimize": "accuracy"}, "optimize='accuracy' must be one of average_precision, ranking"),
        ({"cv": 1}, "cv must be a whole number >= 2, got 1"),
        ({"cv": 300}, "cv=300 folds need at least as many rows, got n_samples=250"),
        ({"n_estimators": 0}, "n_estimators must be a whole number >= 1, got 0"),
        ({"max_seconds": 0}, "max_seconds must be finite and > 0, got 0"),
    ],
)
def test_refusals(digits, wrong, text):
    X, Y, *_ = digits
    with pytest.raises(ValueError, match=text):
        TagPredictor(**wrong).fit(X, Y)


@pytest.mark.parametrize("tagged", ["5 rows", "one cell in ten", "nothing relevant"])
def test_few_observed_labels_are_enough_for_a_model(digits, tagged):
    X, Y, X_new, _ = digits
    y = Y[:60].astype(float)
    if tagged == "5 rows":
        y[5:] = np.nan
    elif tagged == "one cell in ten":
        y[np.random.RandomState(0).rand(*y.shape) < 0.9] = np.nan
    else:
        y[:] = 0
    with warnings.catch_warnings():
        # Without LEMLL in the blend, rows without an observed label are not used.
        warnings.filterwarnings("ignore", message="TagPredictor does not learn from")
        model = TagPredictor(n_estimators=5, cv=3).fit(X[:60], y)
    assert np.isfinite(model.decision_function(X_new)).all()


def test_a_memory_keeps_what_the_members_have_learned(digits, fitted, tmp_path, monkeypatch):
    X, Y, X_new, _ = digits
    first = TagPredictor(**FAST, memory=str(tmp_path)).fit(X, Y)
    np.testing.assert_array_equal(first.predict_proba(X_new), fitted.predict_proba(X_new))
    plain = TagPredictor("f1", **FAST).fit(X, Y)

    def refuse(*_):
        raise AssertionError("a member learned again")

    for member in (LogisticMember, LemllMember, ForestMember):
        monkeypatch.setattr(member, "learn", refuse)
    second = TagPredictor("f1", **FAST, memory=str(tmp_path)).fit(X, Y)
    np.testing.assert_array_equal(second.predict_proba(X_new), plain.predict_proba(X_new))
    np.testing.assert_array_equal(second.thresholds_, plain.thresholds_)
    with pytest.raises(AssertionError, match="learned again"):
        TagPredictor("f1", **FAST, memory=str(tmp_path)).fit(X[1:], Y[1:])


def test_a_memory_is_not_used_with_a_time_budget(digits, tmp_path):
    X, Y, *_ = digits
    TagPredictor(**FAST, memory=str(tmp_path), max_seconds=60).fit(X, Y)
    assert not list(tmp_path.iterdir())


def test_few_rows_of_which_the_first_folds_can_judge_none():
    # Only the last rows have a relevant label and another one.
    X = np.random.RandomState(0).standard_normal((6, 3))
    Y = np.array([[1, 1], [0, 0], [1, 1], [0, 0], [1, 0], [0, 1]])
    for seed in range(5):
        rows = np.random.RandomState(seed).permutation(6)
        model = TagPredictor(n_estimators=5, cv=3).fit(X[rows], Y[rows])
        assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.nightly(when=lambda is_sparse, hidden: is_sparse == hidden)
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("hidden", [False, True])
def test_the_order_of_rows_columns_and_labels_does_not_matter(is_sparse, hidden):
    rng = np.random.RandomState(0)
    X = rng.rand(80, 40) < 0.1 if is_sparse else rng.randn(80, 6)
    X = X.astype(float)
    Y = (X[:, :4] + 0.5 * rng.randn(80, 4) > 0.3).astype(float)
    if hidden:
        Y[rng.rand(80, 4) < 0.1] = np.nan
    rows, columns, labels = (rng.permutation(size) for size in (80, X.shape[1], 4))
    options = {"n_estimators": 10, "cv": 3, "optimize": "f1"}
    first = TagPredictor(**options).fit(X, Y)
    second = TagPredictor(**options).fit(X[rows][:, columns], Y[rows][:, labels])
    assert first.contributions_ == second.contributions_
    np.testing.assert_array_equal(first.thresholds_[labels], second.thresholds_)
    np.testing.assert_array_equal(
        first.out_of_fold_proba_[rows][:, labels], second.out_of_fold_proba_
    )
    new = rng.permutation(X.ravel()).reshape(X.shape)
    np.testing.assert_array_equal(
        first.predict_proba(new)[:, labels], second.predict_proba(new[:, columns])
    )


def test_columns_of_equal_sums_are_told_apart():
    rng = np.random.RandomState(0)
    X = np.array([rng.permutation([1.0] * 5 + [0.0] * 25) for _ in range(12)]).T
    Y = np.zeros((30, 2), dtype=np.int8)
    first, order = content_order(X, Y, None), rng.permutation(12)
    second = content_order(sparse.csr_array(X[:, order]), Y, None)
    np.testing.assert_array_equal(X[:, first.columns], X[:, order][:, second.columns])


def test_named_members_are_kept_whatever_the_time(digits):
    X, Y, *_ = digits
    steps = []
    model = TagPredictor(
        members=["LEMLL", "random forest"], max_seconds=1e-3, n_estimators=5, cv=3,
        callback=lambda progress: steps.append(progress.step),
    ).fit(X[:150], Y[:150])  # fmt: skip
    assert set(model.contributions_) == {"LEMLL", "random forest"}
    assert not any("left out" in step for step in steps)


def test_a_named_member_that_does_not_pay_has_a_small_share():
    """Without it, the final model could lack a member of the model that was measured."""
    rng = np.random.RandomState(1)
    X = rng.randn(300, 6)
    Y = (X[:, :3] > 0).astype(np.int8)
    free = TagPredictor("log_loss", n_estimators=1, cv=3).fit(X, Y)
    left_out = [name for name, share in free.contributions_.items() if share == 0]
    assert left_out
    model = TagPredictor("log_loss", members=list(free.contributions_), n_estimators=1, cv=3)
    model.fit(X, Y)
    assert all(0.02 < model.contributions_[name] < 0.04 for name in left_out)


@pytest.mark.parametrize("members", ["LEMLL", [], ["oak"], ["LEMLL", "LEMLL"]])
def test_unknown_members_are_refused(digits, members):
    X, Y, *_ = digits
    with pytest.raises(ValueError, match="must be a list of different names of logistic"):
        TagPredictor(members=members).fit(X[:50], Y[:50])


def test_a_member_that_needs_all_labels_is_refused_alone(digits):
    X, Y, *_ = digits
    Y = Y[:50].astype(float)
    Y[0, 0] = np.nan
    with pytest.raises(ValueError, match="cannot use unknown cells of y"):
        TagPredictor(members=["random forest"]).fit(X[:50], Y)


def test_thresholds_mean_what_they_mean_in_other_learners(digits):
    X, Y, *_ = digits
    options = {"members": ["logistic"], "cv": 3}
    by_name = {
        name: TagPredictor(thresholds=name, **options).fit(X[:200], Y[:200]).thresholds_
        for name in (None, "zero", "f1", "hamming")
    }
    for name in (None, "zero", "hamming"):
        assert (by_name[name] == 0).all()
    assert (by_name["f1"] < 0).any()
    optimized = TagPredictor("f1", **options).fit(X[:200], Y[:200])
    np.testing.assert_allclose(optimized.thresholds_, by_name["f1"], rtol=1e-6)
    zero = TagPredictor("f1", thresholds="zero", **options).fit(X[:200], Y[:200])
    assert (zero.thresholds_ == 0).all()
    with pytest.raises(ValueError, match="thresholds='best' must be 'zero', 'f1', 'hamming'"):
        TagPredictor(thresholds="best").fit(X, Y)


def test_a_notebook_shows_what_the_fit_chose_and_a_terminal_its_steps(digits, capsys):
    X, Y, *_ = digits
    model = TagPredictor(members=("logistic",), cv=2, verbose=1)
    assert "What the fit chose" not in model._repr_html_()
    model.fit(X[:80], Y[:80])
    assert f"<td style='text-align:left'>{model.chosen_['logistic']}</td>" in model._repr_html_()
    assert model.cut_short_ == []
    assert "TagPredictor, step 2 of 2" in capsys.readouterr().err
    for other in (LEMLL(), LEMLLCV(cv=2)):
        assert "What the fit chose" in other.fit(X[:80], Y[:80])._repr_mimebundle_()["text/html"]


def test_the_scores_of_msvr_are_those_of_refits(digits):
    """One decomposition of all rows gives what a fit to the other folds gives."""
    X, Y, *_ = digits
    X, Y = X[:60], Y[:60]
    folds = [(np.setdiff1d(np.arange(60), test), test) for test in np.array_split(np.arange(60), 3)]
    task = BlendTask(X, Y, None, folds, lambda: np.inf)
    found = MsvrMember().learn(task)
    space, alpha = found.recipe
    rows = space.fit(X)(X)
    for train, test in folds:
        model = MSVRClassifier(
            alpha=alpha, epsilon=0.0, kernel=space.kernel, kernel_params=space.kernel_params
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of labels that a fold has not observed
            model.fit(rows[train], Y[train])
        varied = Y[train].min(axis=0) < Y[train].max(axis=0)
        expected = model.decision_function(rows[test])
        np.testing.assert_allclose(found.scores[test][:, varied], expected[:, varied], atol=1e-6)


def test_a_label_that_no_row_has_is_unlikely_and_not_impossible(digits):
    X, Y, X_new, _ = digits
    y = Y[:80].copy()
    y[:, 2] = 0
    p = TagPredictor(n_estimators=5, cv=3).fit(X[:80], y).predict_proba(X_new)
    np.testing.assert_allclose(p[:, 2], 1 / (2 * 80 + 2))
