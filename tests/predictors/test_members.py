"""Binary relevance, chains and pairs: against scikit-learn's and by definition."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from lemll import BinaryRelevance
from lemll.rivals import CLR, ECC, LabelChain
from lemll.solvers import solve_logistic


def data(n_samples=120, n_labels=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 6)) + 1
    scores = (X - 1) @ rng.normal(size=(6, n_labels)) + rng.logistic(size=(n_samples, n_labels))
    return X, (scores > np.linspace(-1, 2, n_labels)).astype(int)


def logistic(C=1.0):
    return LogisticRegression(C=C, tol=1e-10, solver="newton-cholesky")


LEARNERS = [
    BinaryRelevance,
    lambda *given, **options: LabelChain(*given, random_state=0, **options),
    lambda *given, **options: ECC(*given, n_estimators=4, random_state=0, **options),
    CLR,
]
NAMES = ["BinaryRelevance", "LabelChain", "ECC", "CLR"]


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_binary_relevance_is_one_vs_rest(C):
    X, Y = data()
    theirs = OneVsRestClassifier(logistic(C)).fit(X, Y)
    ours = BinaryRelevance(C=C, tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(
        ours.coef_, np.vstack([m.coef_ for m in theirs.estimators_]), atol=1e-5
    )


def test_a_chain_is_scikit_learns():
    X, Y = data()
    order = [3, 0, 4, 1, 2]
    theirs = ClassifierChain(logistic(), order=order).fit(X, Y)
    ours = LabelChain(order=order, tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("make", LEARNERS, ids=NAMES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_built_in_model_is_the_users(make, form):
    X, Y = data()
    X[np.abs(X) < 0.8] = 0
    ours = make(tol=1e-8).fit(form(X), Y)
    theirs = make(logistic()).fit(form(X), Y)
    np.testing.assert_allclose(
        ours.decision_function(form(X)), theirs.decision_function(form(X)), atol=2e-5
    )


@pytest.mark.parametrize("make", LEARNERS, ids=NAMES)
def test_weka_is_a_ridge_of_1e_8_on_standardised_features(make):
    X, Y = data()
    X = X * [1e-3, 1.0, 1e3, 5.0, 0.2, 1.0]
    ours = make("weka", tol=1e-8).fit(X, Y)
    # ddof = 1, as Weka divides.
    Z = StandardScaler().fit_transform(X) * np.sqrt(1 - 1 / len(X))
    theirs = make(logistic(5e7)).fit(Z, Y)
    expected = theirs.decision_function(Z)
    np.testing.assert_allclose(ours.decision_function(X), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make", LEARNERS, ids=NAMES)
def test_weka_stays_finite_on_separable_data(make):
    X, _ = data()
    Y = (X[:, :4] > 1).astype(int)
    model = make("weka").fit(X, Y)
    assert np.isfinite(model.decision_function(X)).all()
    np.testing.assert_array_equal(model.predict(X), Y)


@pytest.mark.parametrize("make", LEARNERS, ids=NAMES)
@pytest.mark.parametrize(
    "estimator", [GaussianNB(), RidgeClassifier(), DecisionTreeClassifier(max_depth=2)], ids=str
)
def test_any_classifier(make, estimator):
    X, Y = data()
    Y[:, 0], Y[:, 1] = 0, 1
    model = make(estimator).fit(X, Y)
    predicted = model.predict(X)
    assert not predicted[:, 0].any()
    assert predicted[:, 1].all()
    assert (predicted[:, 2:] == Y[:, 2:]).mean() > 0.7


def test_members_that_only_predict():
    class Plain(GaussianNB):
        predict_proba = property()

    X, Y = data()
    model = BinaryRelevance(Plain()).fit(X, Y)
    np.testing.assert_array_equal(
        model.predict(X), OneVsRestClassifier(GaussianNB()).fit(X, Y).predict(X)
    )


@pytest.mark.parametrize("sampling", ["bootstrap", "subset"])
@pytest.mark.parametrize("combine", ["confidences", "votes"])
def test_an_ensemble_averages_its_chains(sampling, combine):
    X, Y = data()
    model = ECC(n_estimators=6, sampling=sampling, combine=combine, random_state=3).fit(X, Y)
    chains = [chain.log_odds(X) for chain in model.chains_]
    mean = np.mean([expit(f) if combine == "confidences" else f >= 0 for f in chains], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), mean, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), mean >= 0.5)
    assert len({tuple(chain.order) for chain in model.chains_}) > 1


def test_samples():
    random = np.random.RandomState(0)
    drawn = ECC(sampling="bootstrap")._sample(random, 1000)
    assert drawn.sum() == 1000
    assert 600 < np.count_nonzero(drawn) < 660
    drawn = ECC(sampling="subset")._sample(random, 1000)
    assert drawn.sum() == np.count_nonzero(drawn) == 670


def test_long_chains_feed_all_labels_forward():
    # More labels than are decided in one block; each repeats the one before it.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    Y = np.repeat((X[:, :1] > 0).astype(int), 70, axis=1)
    model = LabelChain(order=range(70)).fit(X, Y)
    by_hand = LabelChain(logistic(), order=range(70)).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(X), atol=1e-3)


def votes_by_definition(X, Y, soft):
    n_labels = Y.shape[1]
    votes, virtual = np.zeros((len(X), n_labels)), np.zeros(len(X))

    def give(y, rows):
        if y.all() or not y.any():
            p = np.full(len(X), float(y.all()))
        else:
            p = logistic().fit(X[rows], y).predict_proba(X)[:, 1]
        return p if soft else (p >= 0.5).astype(float)

    for p in range(n_labels):
        wins = give(Y[:, p], slice(None))
        votes[:, p] += wins
        virtual += 1 - wins
        for q in range(p + 1, n_labels):
            rows = Y[:, p] != Y[:, q]
            if rows.any():
                wins = give(Y[rows, p], rows)
                votes[:, p] += wins
                votes[:, q] += 1 - wins
    return votes, virtual


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_votes(voting):
    X, Y = data(n_labels=6)
    Y[:, 1] = Y[:, 0]  # a pair that no row distinguishes
    Y[:, 2] = np.maximum(Y[:, 3], Y[:, 2])  # a pair with one class
    Y[:, 4] = 0
    model = CLR(voting=voting, tol=1e-8).fit(X, Y)
    votes, virtual = votes_by_definition(X, Y, voting == "soft")
    expected = (votes - virtual[:, None]) / 6
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), expected >= -1e-12)


@pytest.mark.parametrize("estimator", [None, logistic()], ids=str)
def test_mulan_skips_all_pairs_after_an_empty_one(estimator):
    X, Y = data(n_labels=4)
    Y[:, 2] = Y[:, 0]  # the second pair, (0, 2)
    model = CLR(estimator, mulan_compat=True).fit(X, Y)
    relevant = BinaryRelevance(estimator).fit(X, Y).predict(X)
    votes = relevant.astype(float)
    rows = Y[:, 0] != Y[:, 1]
    first = logistic().fit(X[rows], Y[rows, 0]).predict(X)
    votes[:, 0] += first
    votes[:, 1] += 1 - first
    expected = (votes - (1 - relevant).sum(axis=1, keepdims=True)) / 4
    np.testing.assert_allclose(model.decision_function(X), expected)
    Y[:, 2] = 1 - Y[:, 1]  # no pair is empty now
    same = [CLR(estimator, mulan_compat=on).fit(X, Y).decision_function(X) for on in (True, False)]
    np.testing.assert_array_equal(*same)


@pytest.mark.parametrize("estimator", [None, logistic()], ids=str)
def test_a_cache_serves_all_ways_to_vote(estimator, tmp_path, monkeypatch):
    X, Y = data(n_labels=4)
    Y[:, 2] = Y[:, 0]
    variants = [{"voting": "hard"}, {"voting": "soft"}, {"mulan_compat": True}]
    expected = [CLR(estimator, **way).fit(X, Y).decision_function(X) for way in variants]
    first = CLR(estimator, memory=str(tmp_path), **variants[0]).fit(X, Y)
    np.testing.assert_array_equal(first.decision_function(X), expected[0])
    for kind in ("LinearPairs", "MemberPairs"):
        monkeypatch.setattr(f"lemll.rivals.clr.{kind}.fit", None)
    for way, scores in zip(variants[1:], expected[1:], strict=True):
        model = CLR(estimator, memory=str(tmp_path), **way).fit(X, Y)
        np.testing.assert_array_equal(model.decision_function(X), scores)
    with pytest.raises(TypeError):  # other labels need other models
        CLR(estimator, memory=str(tmp_path)).fit(X, Y[:, [1, 0, 2, 3]])


def test_pairs_in_chunks_are_the_same(monkeypatch):
    from lemll.rivals import clr as pairs

    X, Y = data(n_labels=6)
    whole = CLR(voting="soft", tol=1e-8).fit(X, Y).decision_function(X)
    monkeypatch.setattr(pairs, "CHUNK_ROWS", 100)
    np.testing.assert_allclose(
        CLR(voting="soft", tol=1e-8).fit(X, Y).decision_function(X), whole, atol=1e-6
    )


def test_a_chain_leaves_the_order_it_was_given_alone():
    X, Y = data()
    order = np.arange(5)
    assert not np.shares_memory(LabelChain(order=order).fit(X, Y).order_, order)


@pytest.mark.parametrize("change", [lambda X: X + 1e6, lambda X: 1e-45 * X], ids=["far", "small"])
@pytest.mark.parametrize("make", LEARNERS, ids=NAMES)
def test_weka_depends_neither_on_where_features_lie_nor_on_their_size(make, change):
    X, Y = data()
    options = {"voting": "soft"} if make is CLR else {}
    here, there = (
        make("weka", tol=1e-8, **options).fit(given, Y).decision_function(given)
        for given in (X, change(X))
    )
    np.testing.assert_allclose(there, here, atol=1e-5)


@pytest.mark.parametrize("make", LEARNERS, ids=NAMES)
def test_weka_refuses_features_that_cannot_be_squared(make):
    X, Y = data()
    with pytest.raises(ValueError, match="rescale the features first"):
        make("weka").fit(1e200 * X, Y)


def test_an_ensemble_keeps_its_samples_in_bytes(monkeypatch):
    from lemll.rivals import ecc as chains

    given = []

    def recording(*arrays, **options):
        given.append(options["sample_weight"])
        return solve_logistic(*arrays, **options)

    monkeypatch.setattr(chains, "solve_logistic", recording)
    ECC(n_estimators=3, random_state=0).fit(*data())
    assert given[0].dtype == np.uint8
    assert (given[0].sum(axis=0) == 120).all()


@pytest.mark.parametrize("make", LEARNERS, ids=NAMES)
def test_jobs_change_nothing(make):
    X, Y = data()
    np.testing.assert_allclose(
        make(n_jobs=2).fit(X, Y).decision_function(X), make().fit(X, Y).decision_function(X)
    )


@pytest.mark.parametrize("make", LEARNERS, ids=NAMES)
def test_warns_where_the_search_was_cut_short(make):
    X, Y = data()
    with pytest.warns(ConvergenceWarning, match="wanted tol=1.00e-12; raise max_iter") as caught:
        make(max_iter=1, tol=1e-12).fit(X, Y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("make", LEARNERS, ids=NAMES)
def test_a_refit_with_another_kind_of_model(make):
    X, Y = data()
    model = make(GaussianNB()).fit(X, Y).set_params(estimator=None).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), make().fit(X, Y).decision_function(X))


def test_probabilities_of_classes_sum_to_one():
    X, Y = data()
    y = Y[:, 0] + Y[:, 1]
    p = BinaryRelevance().fit(X, y).predict_proba(X)
    assert p.shape == (len(X), 3)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(p.argmax(axis=1), BinaryRelevance().fit(X, y).predict(X))
    np.testing.assert_array_equal(
        BinaryRelevance().fit(X, np.ones(len(X))).predict_proba(X), np.ones((len(X), 1))
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BinaryRelevance("logistic"), "estimator='logistic' must be a scikit-learn classifier"),
        (BinaryRelevance(3), "estimator=3 must be a scikit-learn classifier"),
        (CLR(LinearRegression()), r"estimator=LinearRegression\(\) must be a scikit-learn classif"),
        (BinaryRelevance(C=1e-200), "C must be at least 1e-30, got 1e-200"),
        (BinaryRelevance(C=0), "C must be finite and > 0, got 0"),
        (BinaryRelevance(tol=-1), "tol must be finite and > 0, got -1"),
        (BinaryRelevance(max_iter=0), "max_iter must be a whole number >= 1, got 0"),
        *(
            (LabelChain(order=order), "must be 'random' or hold each label's number, 0 to 4, once")
            for order in ([0, 1, 1, 2, 3], [0.0, 1, 2, 3, 4], [range(5)], [[0, 1], [2]], None)
        ),
        (ECC(n_estimators=0), "n_estimators must be a whole number >= 1, got 0"),
        (ECC(sampling="half"), "sampling='half' must be one of bootstrap, subset"),
        (ECC(combine="max"), "combine='max' must be one of confidences, votes"),
        (CLR(voting="loud"), "voting='loud' must be one of hard, soft"),
    ],
)
def test_refusals(model, message):
    X, Y = data()
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
