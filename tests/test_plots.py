"""Pictures: what is drawn is what other libraries compute, and axes are reused."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import precision_recall_curve

from lemll import LEMLL, BinaryRelevance, TagPredictor
from lemll.audit import find_tag_issues
from lemll.exceptions import LemllError
from lemll.plots import (
    AuditDisplay,
    ContributionsDisplay,
    DegreesDisplay,
    LabelFiguresDisplay,
    ReliabilityDisplay,
    ThresholdDisplay,
)

NAMES = ["sea", "sky", "hill"]


@pytest.fixture(autouse=True)
def no_window():
    before = mpl.get_backend()
    mpl.use("Agg")
    yield
    mpl.pyplot.close("all")
    mpl.use(before)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    Y = (X[:, :3] + rng.normal(size=(120, 3)) > [0.2, 0.6, 1.0]).astype(int)
    return X, pd.DataFrame(Y, columns=NAMES)


@pytest.fixture(scope="module")
def model(data):
    return BinaryRelevance(thresholds="f1").fit(*data)


def test_reliability_is_the_curve_of_scikit_learn(data, model):
    X, Y = data
    shown = ReliabilityDisplay.from_estimator(model, X, Y, n_bins=5)
    share, probability = calibration_curve(
        Y.to_numpy().ravel(), model.predict_proba(X).ravel(), n_bins=5
    )
    np.testing.assert_allclose(shown.share, share)
    np.testing.assert_allclose(shown.probability, probability)
    assert shown.cells.sum() == Y.size
    assert shown.ax_.get_xlabel() == "predicted probability"


def test_unknown_cells_are_not_drawn(data, model):
    X, Y = data
    hidden = Y.astype(float).mask(np.arange(Y.size).reshape(Y.shape) % 3 == 0)
    shown = ReliabilityDisplay.from_estimator(model, X, hidden)
    assert shown.cells.sum() == hidden.count().sum()


def test_thresholds_are_the_curve_of_scikit_learn(data, model):
    X, Y = data
    shown = ThresholdDisplay.from_estimator(model, X, Y, label="hill")
    probability = model.predict_proba(X)[:, 2]
    precision, recall, thresholds = precision_recall_curve(Y["hill"], probability)
    assert shown.scale == "probability"
    np.testing.assert_allclose(shown.precision, precision[:-1])
    np.testing.assert_allclose(shown.recall, recall[:-1])
    np.testing.assert_allclose(shown.thresholds, thresholds)
    # Above the threshold of the model are the rows that it predicts.
    assert ((probability > shown.chosen) == (np.asarray(model.predict(X))[:, 2] == 1)).all()
    assert shown.label == "hill"
    assert len(shown.ax_.lines) == 4


def test_scores_that_are_not_log_odds_stay_scores(data):
    X, Y = data
    shown = ThresholdDisplay.from_estimator(LEMLL().fit(X, Y), X, Y, label=1)
    assert shown.scale == "score"
    assert shown.label == "sky"


def test_figures_of_labels_come_in_the_order_of_their_frequency(data, model):
    X, Y = data
    ax = mpl.pyplot.figure().subplots()
    shown = LabelFiguresDisplay.from_estimator(model, X, Y, measure="recall", most=2, ax=ax)
    counts = Y.sum().sort_values(ascending=False)
    assert list(shown.label_names) == list(counts.index[:2])
    hits = (Y & model.predict(X)).sum()
    np.testing.assert_allclose(shown.values, (hits / counts)[counts.index[:2]])
    assert shown.ax_ is ax
    assert shown.figure_ is ax.figure


def test_degrees_are_those_of_the_model(data):
    X, Y = data
    model = LEMLL().fit(X, Y)
    shown = DegreesDisplay.from_estimator(model, rows=[3, 5, 999])
    assert shown.rows == (3, 5)
    np.testing.assert_allclose(shown.degrees, np.asarray(model.label_distribution_)[[3, 5]])
    widths = [bar.get_width() for bar in shown.ax_.patches]
    assert sum(widths) == pytest.approx(2)
    other = DegreesDisplay.from_estimator(model, X[:4] + 1)
    assert other.degrees.shape == (4, 3)


def test_many_labels_leave_a_rest():
    degrees = np.full((2, 20), 0.05)
    shown = DegreesDisplay.from_predictions(degrees)
    assert shown.degrees.shape == (2, 9)
    assert shown.ax_.get_legend().get_texts()[-1].get_text() == "other labels"


def test_the_audit_list(data):
    X, Y = data
    issues = find_tag_issues(X, Y, mode="fast")
    shown = AuditDisplay.from_issues(issues, most=7)
    np.testing.assert_allclose(shown.scores, issues["score"][:7])
    assert shown.cells[0] == f"{issues['label'][0]}, row {issues['row'][0]}"
    assert len(shown.ax_.patches) == 7


def test_the_audit_of_given_probabilities(data, model):
    X, Y = data
    shown = AuditDisplay.from_predictions(Y, model.predict_proba(X), most=3)
    assert len(shown.cells) == 3


def test_contributions(data):
    X, Y = data
    model = TagPredictor(cv=2, n_estimators=5, random_state=0).fit(X, Y)
    shown = ContributionsDisplay.from_estimator(model)
    assert shown.contributions == model.contributions_
    assert sum(bar.get_width() for bar in shown.ax_.patches) == pytest.approx(100)


def test_refusals(data, model):
    X, Y = data
    lemll = LEMLL().fit(X, Y)
    with pytest.raises(LemllError, match="LEMLL has no predict_proba here; fit it with prob"):
        ReliabilityDisplay.from_estimator(lemll, X, Y)
    with pytest.raises(LemllError, match="BinaryRelevance has no contributions_; give a fitted"):
        ContributionsDisplay.from_estimator(model)
    with pytest.raises(LemllError, match="BinaryRelevance has no label_distribution_; fit LEMLL"):
        DegreesDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="unknown label 'see'; did you mean 'sea'"):
        ThresholdDisplay.from_estimator(model, X, Y, label="see")
    with pytest.raises(ValueError, match="label must be a name or below 3, got 3"):
        ThresholdDisplay.from_estimator(model, X, Y, label=3)
    with pytest.raises(ValueError, match="unknown measure 'F'"):
        LabelFiguresDisplay.from_estimator(model, X, Y, measure="F")
    with pytest.raises(ValueError, match="has 2 names, but there are 3 labels"):
        LabelFiguresDisplay.from_predictions(Y, Y, label_names=NAMES[:2])
    with pytest.raises(ValueError, match="names none of the 120 rows"):
        DegreesDisplay.from_estimator(lemll, rows=[500])
    with pytest.raises(ValueError, match="label 'sea' has no relevant row"):
        ThresholdDisplay.from_predictions(Y * 0, np.zeros(Y.shape), label="sea")
    with pytest.raises(ValueError, match="issues lists no cell"):
        AuditDisplay.from_issues(find_tag_issues(X, Y, mode="fast").iloc[:0])
