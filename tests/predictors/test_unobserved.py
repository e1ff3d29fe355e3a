"""Labels with unknown cells and confidences: who accepts them, and what they change."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from lemll import (
    LEMLL,
    LEMLLCV,
    MSVR,
    MSVRCV,
    BinaryRelevance,
    MSVRClassifier,
    MultilabelForest,
    TagPredictor,
)
from lemll.datasets import load_digit_tags
from lemll.enhancers import LEMLLEnhancer
from lemll.metrics import average_precision
from lemll.model_selection import IterativeStratifiedKFold
from lemll.predictors import PREDICTORS
from lemll.predictors.base import PARTIAL_LEARNERS
from lemll.rivals import (
    CLR,
    ECC,
    ML2,
    MLFE,
    RELIAB,
    RIVALS,
    KMEnhancer,
    LabelChain,
    LabelPropagation,
    MLkNN,
    TwoStage,
)

# Some rows of the random masks have no observed label, and some labels only relevant cells; two
# tests are about the notes on them.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.* does not learn from:UserWarning"),
    pytest.mark.filterwarnings("ignore:labels whose known cells are all relevant:UserWarning"),
]

NAMES = list("abcdefgh")
SEARCH = {
    "alphas": (1.0, 16.0),
    "betas": (1.0,),
    "gammas": (1.0,),
    "cv": 3,
    "estimator": LEMLL(tol=1e-4),
}
QUICK = [LEMLL(16.0), BinaryRelevance(C=0.01), MSVRClassifier(16.0)]
LONG = [
    MSVRCV((1.0, 16.0), cv=3),
    LEMLLCV(**SEARCH),
    CLR(C=0.01),
    MLkNN(),
    ECC(n_estimators=5, C=0.01, random_state=0),
    LabelChain(C=0.01, random_state=0),
    LabelPropagation(5),
    TwoStage(LEMLLEnhancer(16.0), Ridge(10.0)),
    MultilabelForest(40, per_label=True, random_state=0),
]
# The same learners with other parameters.
VARIANTS = [
    MSVRClassifier(kernel="rbf"),
    MSVRClassifier(16.0, thresholds="hamming"),
    MSVRCV((1.0, 16.0), cv=3, kernel="rbf"),
    LEMLL(kernel="rbf"),
    LEMLL(thresholds="f1"),
    BinaryRelevance(GaussianNB()),
    CLR(GaussianNB()),
    ECC(GaussianNB(), 3, sampling="subset", random_state=0),
    MLkNN(scale="minmax"),
    TwoStage(LEMLLEnhancer(), MSVR(16.0)),
]
LEARNERS = [
    *QUICK,
    *(pytest.param(model, marks=pytest.mark.slow) for model in LONG),
    *(pytest.param(model, marks=pytest.mark.nightly) for model in VARIANTS),
]


@pytest.fixture(name="data", scope="module")
def _data():
    digits = load_digit_tags()
    X, Y = digits.X[:300], digits.Y[:300]
    hidden = np.random.default_rng(0).random(Y.shape) < 0.6
    return X, Y, hidden, digits.X[900:], digits.Y[900:]


def partial(Y, hidden):
    return np.where(hidden, np.nan, Y)


@pytest.mark.slow
def test_the_list_of_learners_is_true(data):
    X, Y, hidden, *_ = data
    able = set()
    for kind in (*PREDICTORS, *RIVALS):
        if not is_classifier(kind()):
            continue
        options = {
            LEMLLCV: SEARCH,
            MultilabelForest: {"per_label": True, "n_estimators": 10},
            TagPredictor: {"n_estimators": 5, "cv": 2},
            ECC: {"n_estimators": 3},
        }.get(kind, {})
        try:
            kind().set_params(**options).fit(X[:40], partial(Y, hidden)[:40])
        except ValueError as error:
            assert "needs all labels, but" in str(error), kind  # noqa: PT017
        else:
            able.add(kind.__name__)
    assert able == {name.partition("(")[0] for name in PARTIAL_LEARNERS}


@pytest.mark.parametrize("model", LEARNERS, ids=str)
def test_unknown_is_better_than_wrong(model, data):
    X, Y, hidden, X_new, Y_new = data
    known = average_precision(Y_new, model.fit(X, partial(Y, hidden)).decision_function(X_new))
    as_zero = np.where(hidden, 0, Y)
    wrong = average_precision(Y_new, model.fit(X, as_zero).decision_function(X_new))
    assert known > wrong


def test_every_form_of_unknown_cells_is_the_same(data):
    X, Y, hidden, X_new, _ = data
    cells = partial(Y, hidden)
    columns = {
        name: [None if unknown else int(value) for value, unknown in zip(y, h, strict=True)]
        for name, y, h in zip(NAMES, Y.T, hidden.T, strict=True)
    }
    forms = [
        cells.tolist(),
        cells.astype(object),
        np.where(hidden, None, Y),
        np.ma.MaskedArray(Y, hidden),
        pd.DataFrame(cells, columns=NAMES),
        pd.DataFrame(cells, columns=NAMES).astype("Int64"),
        pd.DataFrame(columns, dtype="boolean"),
        pl.DataFrame(columns),
    ]
    expected = LEMLL().fit(X, cells).decision_function(X_new)
    for form in forms:
        np.testing.assert_array_equal(LEMLL().fit(X, form).decision_function(X_new), expected)
    by_weight = LEMLL().fit(
        X, sparse.csr_array(Y), label_weight=sparse.csr_array((~hidden).astype(float))
    )
    np.testing.assert_array_equal(by_weight.decision_function(X_new), expected)


def test_all_observed_is_the_ordinary_fit(data):
    X, Y, _, X_new, _ = data
    for model in (LEMLL(), BinaryRelevance(), MSVRClassifier()):
        plain = model.fit(X, Y).decision_function(X_new)
        weighted = model.fit(X, Y, label_weight=np.ones(Y.shape)).decision_function(X_new)
        np.testing.assert_array_equal(weighted, plain)


def test_unknown_labels_are_completed(data):
    X, Y, hidden, *_ = data
    model = LEMLL(4.0).fit(X, partial(Y, hidden))
    np.testing.assert_array_equal(model.completed_labels_[~hidden], Y[~hidden])
    share = (model.completed_labels_[hidden] == Y[hidden]).mean()
    assert share > max(Y[hidden].mean(), 1 - Y[hidden].mean()) + 0.1
    np.testing.assert_array_equal(LEMLL().fit(X, Y).completed_labels_, Y)
    assert model.optimality_ <= 1e-4


@pytest.mark.slow
def test_rows_without_tags_help(data):
    X, Y, _, X_new, Y_new = data
    few = np.ones(Y.shape, dtype=bool)
    few[:40] = False
    settings = {"alpha": 16.0, "gamma": 64.0}
    with_rest = LEMLL(**settings).fit(X, partial(Y, few))
    assert with_rest.label_distribution_.shape == Y.shape
    found = average_precision(Y_new, with_rest.decision_function(X_new))
    alone = LEMLL(**settings).fit(X[:40], Y[:40]).decision_function(X_new)
    assert found > average_precision(Y_new, alone) - 0.01


def test_each_label_of_br_sees_its_observed_rows(data):
    X, Y, hidden, X_new, _ = data
    model = BinaryRelevance(C=0.1, tol=1e-8).fit(X, partial(Y, hidden))
    for j in range(3):
        rows = ~hidden[:, j]
        alone = BinaryRelevance(C=0.1, tol=1e-8).fit(X[rows], Y[rows][:, [j]])
        np.testing.assert_allclose(
            model.decision_function(X_new)[:, j],
            np.ravel(alone.decision_function(X_new)),
            atol=1e-4,
        )


@pytest.mark.parametrize(
    "estimator",
    [
        None,
        pytest.param(LogisticRegression(C=0.1, tol=1e-8, max_iter=1000), marks=pytest.mark.slow),
    ],
)
def test_a_link_of_a_chain_sees_its_observed_rows_and_guesses_of_earlier_labels(estimator, data):
    X, Y, hidden, *_ = data
    X = X / 16  # other logistic regressions are slow if features are not scaled
    Y, hidden = Y[:, :3], hidden[:, :3]
    chain = LabelChain(estimator, order=[2, 0, 1], C=0.1, tol=1e-8).fit(X, partial(Y, hidden))
    alone = BinaryRelevance(C=0.1, tol=1e-8).fit(X, partial(Y, hidden))
    given = np.where(hidden, alone.predict(X), Y)
    # The scores of the last link in the training rows, by decisions of the two links before it.
    scores = chain.decision_function(X)
    rows = ~hidden[:, 1]
    link = LogisticRegression(C=0.1, tol=1e-8, max_iter=1000)
    link.fit(np.column_stack([X, given[:, [2, 0]]])[rows], Y[rows, 1])
    decided = np.column_stack([X, scores[:, [2, 0]] >= 0])
    np.testing.assert_allclose(scores[:, 1], link.decision_function(decided), atol=1e-3)


@pytest.mark.slow
def test_confidences_reach_the_chains(data):
    X, Y, hidden, X_new, _ = data
    X, X_new = X / 16, X_new / 16
    weight = np.where(hidden, 0.25, 1.0)
    own = LabelChain(order=range(8), C=0.1, tol=1e-8).fit(X, Y, label_weight=weight)
    member = LogisticRegression(C=0.1, tol=1e-8, max_iter=1000)
    other = LabelChain(member, order=range(8)).fit(X, Y, label_weight=weight)
    found, expected = own.decision_function(X_new), other.decision_function(X_new)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.slow
def test_confidences_reach_the_members_of_br(data):
    X, Y, hidden, X_new, _ = data
    weight = np.where(hidden, 0.25, 1.0)
    model = BinaryRelevance(LogisticRegression(C=0.01)).fit(X, Y, label_weight=weight)
    alone = LogisticRegression(C=0.01).fit(X, Y[:, 0], sample_weight=weight[:, 0])
    np.testing.assert_allclose(
        model.decision_function(X_new)[:, 0], alone.decision_function(X_new), atol=1e-6
    )


def test_a_label_that_nobody_observed_is_named_and_never_predicted(data):
    X, Y, hidden, X_new, _ = data
    hidden = hidden.copy()
    hidden[:, 2] = True
    frame = pd.DataFrame(partial(Y, hidden), columns=NAMES)
    able = [
        LEMLL(),
        MSVRClassifier(),
        BinaryRelevance(),
        MLkNN(),
        LabelPropagation(),
        MultilabelForest(5, per_label=True),
        CLR(),
        CLR(GaussianNB()),
        ECC(n_estimators=3),
        ECC(GaussianNB(), 3),
        TwoStage(regressor=Ridge()),
    ]
    for model in able:
        with pytest.warns(UserWarning, match="without an observed cell are never predicted: c "):
            model.fit(X, frame)
        assert not model.predict(X_new)[:, 2].any()


@pytest.mark.slow
def test_rows_without_an_observed_label_are_used_or_named(data):
    X, Y, *_ = data
    cells = Y.astype(float)
    cells[:12] = np.nan
    for model in (
        LEMLL(),
        LEMLLCV(**SEARCH),
        LabelPropagation(),
        TwoStage(LEMLLEnhancer(), Ridge()),
        TagPredictor(n_estimators=5, cv=2),
    ):
        model.fit(X, cells)  # a warning would be an error in the tests
    for model in (
        MSVRClassifier(),
        MSVRCV((1.0,), cv=3),
        BinaryRelevance(),
        CLR(),
        ECC(n_estimators=2),
        MLkNN(),
        MultilabelForest(5, per_label=True),
    ):
        # The model inside a search speaks for it.
        name = type(model).__name__.replace("MSVRCV", "MSVRClassifier")
        text = f"{name} does not learn from 12 of 300 rows, in which no label was observed; leave"
        with pytest.warns(UserWarning, match=text):
            model.fit(X, cells)
    with pytest.raises(ValueError, match="needs all labels"):  # a refusal needs no note
        ML2().fit(X, cells)


def test_a_blend_without_lemll_names_the_rows_it_does_not_use(data, monkeypatch):
    X, Y, *_ = data
    cells = Y.astype(float)
    cells[:12] = np.nan
    members = TagPredictor._members

    def others(self, n_rows, partial):
        return {name: m for name, m in members(self, n_rows, partial).items() if name != "LEMLL"}

    monkeypatch.setattr(TagPredictor, "_members", others)
    with pytest.warns(UserWarning, match="TagPredictor does not learn from 12 of 300 rows"):
        TagPredictor(n_estimators=5, cv=2).fit(X, cells)


@pytest.mark.slow
def test_folds_of_searches_and_blends_balance_known_zeros(data, monkeypatch):
    X, Y, hidden, *_ = data
    cells = partial(Y, hidden)
    cells[:, 2] = np.nan
    cells[:12, 2] = [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    used = []
    split = IterativeStratifiedKFold.split

    def watched(self, X, y, groups=None):
        for train, test in split(self, X, y, groups):
            used.append(np.ma.filled(y[test].astype(float), np.nan))
            yield train, test

    monkeypatch.setattr(IterativeStratifiedKFold, "split", watched)
    for model in (LEMLLCV(**SEARCH), MSVRCV((1.0,), cv=3), TagPredictor(n_estimators=5, cv=3)):
        used.clear()
        model.fit(X, cells)
        few = [j for j in range(8) if sum(np.isfinite(fold[:, j]).sum() for fold in used[:3]) == 12]
        (label,) = few  # TagPredictor sorts the labels
        for value in (0, 1):
            assert [int((fold[:, label] == value).sum()) for fold in used[:3]] == [2, 2, 2]


@pytest.mark.parametrize("learner", [LEMLL(), BinaryRelevance(), LEMLLEnhancer()], ids=str)
def test_labels_that_are_only_known_to_be_relevant_are_named(data, learner):
    X, Y, *_ = data
    tagged = pd.DataFrame(np.where(Y == 1, 1.0, np.nan), columns=NAMES)
    tagged["a"] = Y[:, 0]
    text = r"labels whose known cells are all relevant: b, c, d, e, f \(7 of 8\); nothing tells"
    with pytest.warns(UserWarning, match=text):
        clone(learner).fit(X, tagged)
    with pytest.warns(UserWarning, match=r"all relevant: y1, y2, y3, y4, y5 \(7 of 8\)"):
        clone(learner).fit(X, Y, label_weight=(tagged == 1).to_numpy() | (np.arange(8) == 0))


def test_confidences_may_lack_names_and_values_of_unknown_cells(data):
    X, Y, hidden, *_ = data
    weight = np.where(hidden, np.nan, 0.5)
    frame = pd.DataFrame(weight, columns=NAMES)
    expected = LEMLL().fit(X, Y, label_weight=np.nan_to_num(weight)).decision_function(X)
    for y, given in (
        (partial(Y, hidden), weight),
        (partial(Y, hidden), frame),
        (pd.DataFrame(partial(Y, hidden), columns=NAMES), frame),
    ):
        found = LEMLL().fit(X, y, label_weight=given).decision_function(X)
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="label_weight must hold confidences from 0"):
        LEMLL().fit(X, Y, label_weight=weight)
    named = pd.DataFrame(partial(Y, hidden), columns=[f"y{j}" for j in range(8)])
    with pytest.raises(ValueError, match="columns of label_weight must be the labels"):
        LEMLL().fit(X, named, label_weight=frame.set_axis(named.columns[::-1], axis=1))
    rows = pd.DataFrame(X)
    with pytest.raises(ValueError, match="the index of label_weight must be that of X, but row 0"):
        LEMLL().fit(rows, Y, label_weight=frame.set_axis(frame.index + 1))


@pytest.mark.slow
def test_scores_of_a_search_skip_unknown_cells(data):
    X, Y, hidden, *_ = data
    cells = partial(Y, hidden)
    folds = [(np.arange(150), np.arange(150, 300))]
    tight = {"tol_search": 1e-6, "estimator": LEMLL(tol=1e-6)}
    search = LEMLLCV(**SEARCH | tight | {"cv": folds})
    search.fit(X, cells)
    for place in range(2):
        alpha = search.cv_results_["param_alpha"][place]
        model = LEMLL(alpha, tol=1e-8).fit(X[:150], cells[:150])
        expected = average_precision(cells[150:], model.decision_function(X[150:]))
        found = search.cv_results_["mean_test_average_precision"][place]
        assert found == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label_weight": np.ones((2, 2))}, r"label_weight must have the shape of y, \(300, 8\)"),
        ({"label_weight": np.full((300, 8), 2.0)}, "confidences from 0 .* got 2.0"),
        ({"label_weight": np.full((300, 8), 1e-12)}, "none between 0 and 1e-09; got 1e-12"),
        ({"label_weight": np.full((300, 8), "x")}, "confidences from 0 .* got x"),
        ({"label_weight": np.full((300, 8), np.nan)}, "confidences from 0 .* got nan"),
        ({"label_weight": np.zeros((300, 8))}, "no cell of y is observed"),
    ],
)
def test_refusals(options, message, data):
    X, Y, *_ = data
    with pytest.raises(ValueError, match=message):
        LEMLL().fit(X, Y, **options)


@pytest.mark.parametrize("model", [ML2(), MLFE(), RELIAB()])
def test_a_learner_that_cannot_names_those_that_can(model, data):
    X, Y, hidden, *_ = data
    message = f"{type(model).__name__} needs all labels, but .* \\(LEMLL, LEMLLCV, MSVR"
    with pytest.raises(ValueError, match=message):
        model.fit(X, partial(Y, hidden))


def test_two_stages_can_if_the_first_can(data):
    X, Y, hidden, X_new, _ = data
    with pytest.raises(ValueError, match=r"KMEnhancer needs .* an enhancer .* \(LEMLLEnhancer, "):
        TwoStage(KMEnhancer()).fit(X, partial(Y, hidden))
    model = TwoStage(regressor=Ridge()).fit(X, partial(Y, hidden))
    U = LEMLLEnhancer().fit(X, partial(Y, hidden)).numerical_labels_
    np.testing.assert_array_equal(model.numerical_labels_, U)
    # A single label has its complement as a second one, and both are unknown together.
    column = TwoStage(regressor=Ridge()).fit(X, partial(Y, hidden)[:, :1])
    assert np.isfinite(column.decision_function(X_new)).all()
    other = np.where(hidden, 1 - Y, Y)[:, :1]
    again = clone(column).fit(X, other, label_weight=~hidden[:, :1])
    np.testing.assert_array_equal(again.decision_function(X_new), column.decision_function(X_new))


@pytest.mark.parametrize("model", LEARNERS, ids=str)
@pytest.mark.parametrize("value", [0, 1])
def test_a_label_is_constant_if_its_observed_cells_are_equal(value, model, data):
    X, Y, hidden, X_new, _ = data
    for seen in (slice(7, 8), slice(0, 40)):
        tags = partial(Y, hidden)
        tags[:, 2] = np.nan
        tags[seen, 2] = value
        assert (clone(model).fit(X, tags).predict(X_new)[:, 2] == value).all()


def test_pairs_of_clr_expect_the_unknown_label(data):
    X, Y, hidden, X_new, _ = data
    X, X_new = X / 16, X_new / 16
    Y, hidden = Y[:, :2], hidden[:, :2]
    model = CLR(C=0.1, tol=1e-8).fit(X, partial(Y, hidden))
    alone = BinaryRelevance(C=0.1, tol=1e-8).fit(X, partial(Y, hidden))
    P = np.where(hidden, alone.predict_proba(X), Y)
    weight = np.column_stack([P[:, 0] * (1 - P[:, 1]), P[:, 1] * (1 - P[:, 0])])
    weight[hidden.all(axis=1)] = 0
    # Every row is given twice, once for each of the two labels, with its probabilities as weights.
    pair = LogisticRegression(C=0.1, tol=1e-8, max_iter=1000)
    pair.fit(np.vstack([X, X]), np.repeat([1, 0], len(X)), sample_weight=weight.T.ravel())
    found, _ = model.pairs_.log_odds(X_new, 0, False)
    np.testing.assert_allclose(found[:, 0], pair.decision_function(X_new), atol=1e-3)
    by_member = CLR(LogisticRegression(C=0.1, tol=1e-8, max_iter=1000), voting="soft")
    by_member.fit(X, partial(Y, hidden))
    np.testing.assert_allclose(
        by_member.decision_function(X_new),
        CLR(C=0.1, tol=1e-8, voting="soft").fit(X, partial(Y, hidden)).decision_function(X_new),
        atol=1e-4,
    )
    # A member without weights learns from the rows in which both labels are known.
    neighbours = CLR(KNeighborsClassifier()).fit(X, partial(Y, hidden))
    both = ~hidden.any(axis=1) & (Y.sum(axis=1) == 1)
    expected = KNeighborsClassifier().fit(X[both], Y[both, 0]).predict_proba(X_new)[:, 1]
    scores, _ = neighbours.pairs_.log_odds(X_new, 0, False)
    np.testing.assert_array_equal(scores[:, 0] >= 0, expected >= 0.5)


def test_mlknn_counts_the_neighbours_in_which_a_label_was_observed(data):
    X, Y, hidden, X_new, _ = data
    model = MLkNN(5).fit(X, partial(Y, hidden))
    for j in range(3):
        rows = ~hidden[:, j]
        alone = MLkNN(5).fit(X[rows], Y[rows][:, [j]]).decision_function(X_new)
        np.testing.assert_array_equal(model.decision_function(X_new)[:, j], np.ravel(alone))


def test_a_forest_that_labels_share_names_the_other(data):
    X, Y, hidden, *_ = data
    with pytest.raises(ValueError, match=r"trees that all labels share .*\(per_label=True\)"):
        MultilabelForest(5).fit(X, partial(Y, hidden))


@pytest.mark.parametrize("model", [MLkNN(), CLR()])
def test_counting_learners_refuse_confidences(model, data):
    X, Y, *_ = data
    with pytest.raises(ValueError, match="cannot use confidences between 0 and 1"):
        model.fit(X, Y, label_weight=np.full(Y.shape, 0.5))


def test_a_masked_column_and_masked_weights_keep_their_masks(data):
    X, Y, hidden, X_new, _ = data
    rows = ~hidden[:, 0]
    alone = BinaryRelevance(tol=1e-8).fit(X[rows], Y[rows][:, [0]]).decision_function(X_new)
    column = np.ma.MaskedArray(Y[:, :1], hidden[:, :1])
    found = BinaryRelevance(tol=1e-8).fit(X, column).decision_function(X_new)
    np.testing.assert_allclose(np.ravel(found), np.ravel(alone), atol=1e-4)
    expected = LEMLL().fit(X, partial(Y, hidden)).decision_function(X_new)
    weight = np.ma.MaskedArray(np.ones(Y.shape), hidden)
    found = LEMLL().fit(X, Y, label_weight=weight).decision_function(X_new)
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="a 1-D target must not have masked cells"):
        LEMLL().fit(X, np.ma.MaskedArray(Y[:, 0], hidden[:, 0]))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_rows_without_tags_have_no_influence_on_msvr(kernel, data):
    X, Y, hidden, X_new, _ = data
    hidden = hidden.copy()
    hidden[100:] = True
    # The cells of a row are shuffled, so that the rows without tags are between the others.
    order = np.random.default_rng(1).permutation(len(X))
    X, Y, hidden = X[order], Y[order], hidden[order]
    seen = ~hidden.all(axis=1)
    if kernel == "precomputed":
        every, few, new, few_new = X @ X.T, X[seen] @ X[seen].T, X_new @ X.T, X_new @ X[seen].T
    else:
        every, few, new, few_new = X, X[seen], X_new, X_new
    model = MSVRClassifier(kernel=kernel)
    found = model.fit(every, partial(Y, hidden)).decision_function(new)
    assert model.optimality_ <= 1e-10
    alone = model.fit(few, partial(Y, hidden)[seen]).decision_function(few_new)
    np.testing.assert_allclose(found, alone, atol=1e-7)


@pytest.mark.slow
def test_a_search_of_msvr_skips_unknown_cells(data):
    X, Y, hidden, *_ = data
    cells = partial(Y, hidden)
    folds = [(np.arange(150), np.arange(150, 300))]
    search = MSVRCV((1.0, 16.0), cv=folds, kernel="rbf").fit(X, cells)
    for place, alpha in enumerate(search.cv_results_["param_alpha"]):
        model = MSVRClassifier(alpha, kernel="rbf").fit(X[:150], cells[:150])
        expected = average_precision(cells[150:], model.decision_function(X[150:]))
        found = search.cv_results_["mean_test_average_precision"][place]
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_a_constant_observed_label_keeps_the_certificate(data):
    X, Y, *_ = data
    Y = Y.copy()
    Y[:, 0] = 1
    for seed in range(5):
        unknown = np.random.default_rng(seed).random(Y.shape) < 0.5
        model = LEMLL(0.25, 0.25, 4.0).fit(X, partial(Y, unknown))
        assert model.optimality_ <= 1e-4


def test_a_member_without_weights_refuses_confidences(data):
    X, Y, hidden, *_ = data
    members = BinaryRelevance(KNeighborsClassifier())
    members.fit(X, partial(Y, hidden))
    with pytest.raises(ValueError, match="KNeighborsClassifier.fit does not accept sample_weight"):
        members.fit(X, Y, label_weight=np.where(hidden, 0.5, 1.0))


# --- scikit-learn's tools -----------------------------------------------------------------------


@pytest.fixture(name="hidden", scope="module")
def _hidden():
    rng = np.random.RandomState(0)
    X = rng.randn(80, 5)
    Y = (X[:, :3] + 0.3 * rng.randn(80, 3) > 0).astype(float)
    Y[rng.rand(80, 3) < 0.1] = np.nan
    return X, Y


@pytest.mark.slow
def test_searches_of_scikit_learn_take_unknown_cells(hidden):
    X, Y = hidden
    masked = np.ma.MaskedArray(np.nan_to_num(Y).astype(int), mask=np.isnan(Y))
    model = TagPredictor(members=["logistic"], cv=3)
    grid = {"C": [0.1, 1.0]}
    # With its default folds, scikit-learn refuses NaN before a learner sees it.
    given = ((Y, IterativeStratifiedKFold(3)), (Y, KFold(3)), (masked, None))
    for y, folds in (*given, (Y.astype(object), None)):
        assert np.isfinite(cross_val_score(model, X, y, cv=folds, error_score="raise")).all()
        search = GridSearchCV(BinaryRelevance(), grid, cv=folds, error_score="raise").fit(X, y)
        assert search.best_score_ > 0.5


def test_cross_val_predict_says_what_to_use_for_unknown_cells(hidden):
    X, Y = hidden
    folds = IterativeStratifiedKFold(3)
    with pytest.raises(ValueError, match="out_of_fold_proba_ of TagPredictor, or a loop over"):
        cross_val_predict(BinaryRelevance(), X, Y, cv=folds, method="predict_proba")
    known = np.nan_to_num(Y).astype(int)
    found = cross_val_predict(BinaryRelevance(), X, known, method="predict_proba")
    assert found.shape == Y.shape


def test_a_score_skips_unknown_cells(hidden):
    X, Y = hidden
    model = BinaryRelevance().fit(X, Y)
    by_hand = [
        all(p == y for p, y in zip(row, truth, strict=True) if not np.isnan(y))
        for row, truth in zip(model.predict(X), Y, strict=True)
    ]
    assert model.score(X, Y) == pytest.approx(np.mean(by_hand))
    known = np.nan_to_num(Y)
    assert model.score(X, known) == (model.predict(X) == known).all(axis=1).mean()


# --- Weights of rows ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        BinaryRelevance(tol=1e-8),
        MSVRClassifier(),
        MSVRClassifier(kernel="rbf", kernel_params={"gamma": 0.1}, thresholds="zero"),
        MultilabelForest(10, max_features=None, random_state=0),
    ],
)
def test_a_weight_of_two_is_a_second_row(labelled, model):
    X, Y = labelled
    weight = np.random.RandomState(0).randint(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), weight)
    weighted = clone(model).fit(X, Y, sample_weight=weight)
    repeated = clone(model).fit(X[rows], Y[rows])
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-6
    )


def test_tag_predictor_follows_the_rows_with_a_weight(labelled):
    X, Y = labelled
    turned = np.vstack([Y, 1 - Y])
    weight = np.repeat([1.0, 0.01], len(X))
    model = TagPredictor(n_estimators=20, cv=3).fit(np.vstack([X, X]), turned, weight)
    assert set(model.contributions_) == {
        "logistic",
        "MSVR",
        "random forest",
        "extra trees",
        "LEMLL",
    }
    assert average_precision(Y, model.decision_function(X)) > 0.9


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LEMLL(), r"LEMLL.fit\(\) does not take sample_weight: a row is also a node of the graph"),
        (LEMLLCV(), r"LEMLLCV.fit\(\) does not take sample_weight: .*use TagPredictor"),
        (MLkNN(), r"MLkNN.fit\(\) does not take sample_weight: .*use TagPredictor"),
    ],
)
def test_weights_of_rows_are_refused_with_the_reason(labelled, model, message):
    X, Y = labelled
    with pytest.raises(TypeError, match=message):
        model.fit(X, Y, sample_weight=np.ones(len(X)))
    with pytest.raises(TypeError, match=message):
        model.fit(X, Y, np.ones(len(X)))


def test_errors_name_the_class_that_was_called(labelled):
    X, Y = labelled
    with pytest.raises(TypeError, match=r"^TagPredictor.fit\(\) does not take weights"):
        TagPredictor().fit(X, Y, weights=1)
    for call in (lambda: LEMLL().fit(X), lambda: LEMLL().predict(X, Y), lambda: ECC().fit(X)):
        with pytest.raises(TypeError, match=r"^(fit|predict)\(\) (missing|takes)"):
            call()
    with pytest.raises(TypeError, match=r"^fit\(\) takes from 3 to 4"):
        TagPredictor().fit(X, Y, None, None)


@pytest.mark.parametrize(
    ("weight", "message"), [(0.0, "at least one"), (1e300, "from 1e-09"), (1e-30, "got 1e-30; div")]
)
def test_impossible_weights_of_rows_are_refused(labelled, weight, message):
    X, Y = labelled
    with pytest.raises(ValueError, match=message):
        BinaryRelevance().fit(X, Y, sample_weight=np.full(len(X), weight))
