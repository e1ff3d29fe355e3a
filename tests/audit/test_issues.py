"""Issues, quality and noise of small data sets with known mistakes."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import average_precision_score, roc_auc_score

from lemll import BinaryRelevance, MultilabelForest
from lemll.audit import audit_tags, estimate_noise, find_label_issues, find_tag_issues, tag_quality
from lemll.audit.auditing import COLUMNS, issue_frame
from lemll.audit.scores import EVEN_ODDS, NoiseRates, error_probability
from lemll.datasets import load_digit_tags
from lemll.model_selection import IterativeStratifiedKFold
from lemll.predictors.tag_predictor import _QuickBlend
from lemll.topology import nearest_neighbors


def flipped(Y, share=0.05, seed=0):
    """Return tags with mistakes, and where they are."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(Y.shape) < share
    return np.where(wrong, 1 - Y, Y).astype(np.int8), wrong


@pytest.fixture(scope="module")
def digits():
    data = load_digit_tags()
    Z, wrong = flipped(data.Y[:400])
    return data.X[:400], data.Y[:400], Z, wrong


@pytest.fixture(scope="module")
def audit(digits):
    X, _, Z, _ = digits
    return audit_tags(X, Z)


@pytest.mark.slow
def test_mistakes_are_found(digits, audit):
    X, _, Z, wrong = digits
    given = Z == 1
    for of in (given, ~given):
        assert roc_auc_score(wrong[of], audit.error[of]) > 0.95
    assert average_precision_score(wrong.ravel(), audit.error.ravel()) > 0.6
    fast = 1 - tag_quality(X, Z, mode="fast")
    assert roc_auc_score(wrong.ravel(), fast.ravel()) > 0.9
    rows = wrong.any(axis=1)
    assert roc_auc_score(rows, -audit.row_quality) > 0.9


def test_the_members_of_an_audit_have_equal_weights_and_no_leaf_of_one_row(digits, monkeypatch):
    """Weights by the loss of the given tags give a member all of it if it repeats them best."""
    X, _, Z, _ = digits
    leaves = []

    def watched(self, *arguments):
        leaves.append((self.trees, self.min_samples_leaf))
        return learn(self, *arguments)

    learn = MultilabelForest._fit
    monkeypatch.setattr(MultilabelForest, "_fit", watched)
    blend = _QuickBlend("log_loss", n_estimators=10, cv=3).fit(X[:150], Z[:150])
    assert set(leaves) == {("random", 2), ("extra", 2)}
    names = {"logistic", "LEMLL", "random forest", "extra trees"}
    assert blend.contributions_ == dict.fromkeys(names, pytest.approx(0.25))


@pytest.mark.nightly
def test_the_mean_finds_more_wrong_tags_than_its_members():
    """Texts of 400 rows with thirty rare labels; each word tells a little of one label."""
    rng = np.random.default_rng(0)
    Y = (rng.random((400, 30)) < 0.04).astype(np.int8)
    words = (rng.random((400, 150)) < 0.03 + 0.35 * np.repeat(Y, 5, axis=1)).astype(float)
    Z = Y.copy()
    for j in range(30):
        gone = rng.choice(np.flatnonzero(Y[:, j]), 2, replace=False)
        Z[gone, j], Z[rng.choice(np.flatnonzero(Y[:, j] == 0), 2, replace=False), j] = 0, 1
    given = Z == 1

    def found(error):
        return average_precision_score((Z != Y)[given], error[given])

    blend = found(audit_tags(words, Z).error)
    for model in (BinaryRelevance(C=1), MultilabelForest(100, random_state=0)):
        p = np.zeros(Z.shape)
        for train, test in IterativeStratifiedKFold(5).split(words, Z):
            p[test] = model.fit(words[train], Z[train]).predict_proba(words[test])
        assert blend > found(audit_tags(None, Z, pred_probs=p).error)


@pytest.mark.slow
def test_there_is_one_definition_of_likely(digits, audit):
    _, _, Z, _ = digits
    even = audit_tags(None, Z, pred_probs=audit.out_of_fold)
    rows = find_label_issues(Z, audit.out_of_fold)
    np.testing.assert_array_equal(rows, even.likely.any(axis=1))
    np.testing.assert_array_equal(even.likely, even.error > EVEN_ODDS)


def test_a_score_of_even_odds_is_one_half_by_the_whole_rates():
    """Of the given tags that no row supports, as many are wrong as the rate of wrong tags says."""
    Y, p = np.zeros((1000, 1), dtype=np.int8), np.full((1000, 1), 1e-3)
    Y[:100] = 1
    p[:100] = 0.9
    found = []
    for share in (1.0, EVEN_ODDS / (1 - EVEN_ODDS)):
        rates = NoiseRates(missing=1e-3, added=0.01 * share)
        error = error_probability(p, Y, rates)[0, 0]
        found.append(error / (1 - error))
    assert found[1] / found[0] == pytest.approx(EVEN_ODDS / (1 - EVEN_ODDS), rel=0.2)


@pytest.mark.slow
def test_frame_has_the_promised_columns_and_order(digits, audit):
    X, _, Z, _ = digits
    frame = issue_frame(audit, limit=None)
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == Z.size
    assert frame["score"].is_monotonic_decreasing
    assert frame["score"].between(0, 1).all()
    assert frame["probability"].between(0, 1).all()
    assert (frame["given"] + frame["suggested"] == 1).all()
    assert set(frame["kind"]) == {"wrong", "missing"}
    assert ((frame["kind"] == "wrong") == (frame["given"] == 1)).all()
    labels = frame["label"].str[1:].astype(int)
    np.testing.assert_array_equal(Z[frame["row"], labels], frame["given"])
    short = issue_frame(audit, limit=25)
    pd.testing.assert_frame_equal(short, frame.head(25))
    near = nearest_neighbors((X - X.mean(axis=0)) / np.where(X.std(axis=0), X.std(axis=0), 1), 10)
    first = short.iloc[0]
    assert set(first["neighbours"]) == set(near[first["row"]])
    assert first["neighbour_share"] == Z[near[first["row"]], int(first["label"][1:])].mean()


@pytest.mark.slow
def test_same_data_same_result_and_inputs_stay(digits, audit):
    X, _, Z, _ = digits
    copies = X.copy(), Z.copy()
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - nothing may draw from it
    again = tag_quality(X, Z)
    np.testing.assert_array_equal(again, audit.quality)
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(Z, copies[1])
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_forms_of_features_and_tags_agree(digits):
    X, _, Z, _ = digits
    X, Z = X[:120], Z[:120]
    expected = tag_quality(X, Z, mode="fast")
    frame = pd.DataFrame(Z, columns=[f"t{j}" for j in range(8)], index=range(50, 170))
    np.testing.assert_allclose(
        tag_quality(pd.DataFrame(X, index=frame.index).add_prefix("x"), frame, mode="fast"),
        expected,
    )
    lists = [np.flatnonzero(row).tolist() for row in Z]
    np.testing.assert_allclose(tag_quality(X, lists, mode="fast"), expected)
    np.testing.assert_allclose(tag_quality(X, sparse.csr_array(Z), mode="fast"), expected)
    found = find_tag_issues(X, frame, mode="fast", limit=3)
    assert set(found["label"]) <= set(frame.columns)


@pytest.mark.parametrize("mode", [pytest.param("default", marks=pytest.mark.slow), "fast"])
def test_values_in_unknown_cells_have_no_influence(digits, mode):
    X, _, Z, wrong = digits
    X, Z, wrong = X[:150], Z[:150, :3], wrong[:150, :3]
    hidden = np.random.default_rng(3).random(Z.shape) < 0.2
    results = []
    for poison in (0, 1):
        values = np.where(hidden, poison, Z)
        results.append(tag_quality(X, np.ma.MaskedArray(values, mask=hidden), mode=mode))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(np.isnan(results[0]), hidden)
    assert roc_auc_score(wrong[~hidden], -results[0][~hidden]) > 0.8
    frame = find_tag_issues(X, np.where(hidden, np.nan, Z), mode=mode, limit=None)
    assert len(frame) == (~hidden).sum()


@pytest.mark.slow
def test_probabilities_of_the_user_are_used(digits):
    _, Y, Z, wrong = digits
    rng = np.random.default_rng(0)
    p = np.clip(0.8 * Y + 0.1 + 0.05 * rng.normal(size=Y.shape), 0.01, 0.99)
    quality = tag_quality(None, Z, pred_probs=p)
    assert roc_auc_score(wrong.ravel(), -quality.ravel()) > 0.99
    frame = find_tag_issues(None, Z, pred_probs=p, limit=5)
    assert frame["numerical_label"].isna().all()
    assert frame["neighbours"].map(len).eq(0).all()
    labels = frame["label"].str[1:].astype(int)
    np.testing.assert_array_equal(frame["out_of_fold"], p[frame["row"], labels])


@pytest.mark.slow
def test_noise_of_each_label(digits):
    X, Y, Z, _ = digits
    frame = estimate_noise(X, Z)
    assert list(frame["label"]) == [f"y{j}" for j in range(8)]
    wrong = ((Y == 0) & (Z == 1)).sum(axis=0) / (Z == 1).sum(axis=0)
    missing = ((Y == 1) & (Z == 0)).sum(axis=0) / Y.sum(axis=0)
    assert ((frame.wrong_low <= wrong) & (wrong <= frame.wrong_high)).mean() >= 0.85
    assert ((frame.missing_low <= missing) & (missing <= frame.missing_high)).mean() >= 0.85
    assert (frame.wrong <= frame.wrong_high).all()
    np.testing.assert_array_equal(frame.missing_told, frame.missing_high <= 0.5)
    few = estimate_noise(X[:30], Z[:30])
    assert not few.missing_told.all()


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        ("X", {"mode": "slow"}, "mode='slow' must be one of default, fast"),
        (None, {}, "X is None, so there is nothing to predict the tags from"),
        ("X", {"mode": "fast", "pred_probs": np.full((400, 8), 0.5)}, "does not use pred_probs"),
        ("short", {}, "the same rows, got 50 and 400"),
        ("X", {"limit": 0}, "limit must be a whole number >= 1"),
        ("X", {"n_neighbors": 0}, "n_neighbors must be a whole number >= 1"),
        ("X", {"cv": 1}, "cv must be a whole number >= 2"),
    ],
)
def test_refusals(digits, X, options, message):
    given = {"X": digits[0], "short": digits[0][:50], None: None}[X]
    with pytest.raises(ValueError, match=message):
        find_tag_issues(given, digits[2], **options)


def test_more_refusals(digits):
    X, _, Z, _ = digits
    with pytest.raises(ValueError, match="needs at least 10 rows to learn from, got 5"):
        tag_quality(X[:5], Z[:5])
    with pytest.raises(ValueError, match="per='cell' must be 'tag' or 'row'"):
        tag_quality(X, Z, per="cell")
    with pytest.raises(ValueError, match=r"confidence must be below 1, got 1.5"):
        estimate_noise(X, Z, confidence=1.5)
    with pytest.raises(ValueError, match="mode='fast' gives no probabilities"):
        estimate_noise(X, Z, mode="fast")
    turned = pd.DataFrame(Z).add_prefix("t").iloc[::-1]
    with pytest.raises(ValueError, match="the index of y must be that of X"):
        tag_quality(pd.DataFrame(X).add_prefix("x"), turned, mode="fast")


def test_text_is_refused_with_a_remedy(digits):
    _, _, Z, _ = digits
    frame = pd.DataFrame({"colour": ["red"] * len(Z)})
    with pytest.raises(ValueError, match="X holds text .* encode it with lemll.tables.TableEnc"):
        tag_quality(frame, Z)


def test_missing_features_are_refused_with_a_remedy(digits):
    X, _, Z, _ = digits
    holes = np.where(X > X.mean(), np.nan, X)
    for audited in (find_tag_issues, estimate_noise):
        with pytest.raises(ValueError, match=r"X holds missing values .*SimpleImputer.*TableEnc"):
            audited(holes, Z)


@pytest.mark.filterwarnings("ignore:labels whose known cells are all relevant:UserWarning")
@pytest.mark.parametrize("mode", [pytest.param("default", marks=pytest.mark.slow), "fast"])
def test_labels_that_are_constant_unknown_or_alone(digits, mode):
    X, _, Z, wrong = digits
    Y = Z[:100, :4].astype(float)
    Y[:, 1], Y[:, 2] = 0, 1
    Y[:5] = np.nan
    quality = tag_quality(X[:100], Y, mode=mode)
    assert np.isnan(quality[:5]).all()
    assert ((quality[5:] >= 0) & (quality[5:] <= 1)).all()
    assert np.isnan(tag_quality(X[:100], Y, mode=mode, per="row")[:5]).all()
    alone = tag_quality(X[:100], Z[:100, :1], mode=mode)
    assert alone.shape == (100, 1)
    assert roc_auc_score(wrong[:100, 0], -alone[:, 0]) > 0.8
