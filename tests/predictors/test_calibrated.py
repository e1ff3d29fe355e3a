"""Probabilities of LEMLL and MSVR: calibrated on rows that a model has not seen."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import lemll
from lemll import LEMLL, LEMLLCV, MSVRCV, BinaryRelevance, MSVRClassifier, TagPredictor, rivals
from lemll.datasets import load_digit_tags
from lemll.metrics import brier_score, calibration_error, log_loss
from lemll.predictors.calibrated import calibrate
from lemll.topology import reconstruction_weights

FEW = {"alphas": (1.0,), "cv": 2}
LEARNERS = [
    LEMLL(probability=True),
    LEMLL(kernel="rbf", scale="auto", probability=True),
    MSVRClassifier(probability=True),
    LEMLLCV(**FEW, betas=(1.0,), gammas=(1.0,), estimator=LEMLL(probability=True, tol=1e-6)),
    MSVRCV(**FEW, estimator=MSVRClassifier(probability=True)),
]


def noisy(n=1200, seed=0):
    """Return rows and labels whose probabilities are known."""
    rng = np.random.RandomState(seed)
    X = rng.randn(n, 6)
    P = 1 / (1 + np.exp(-(X @ np.random.RandomState(1).randn(6, 4) - [0, 1, 2, 0.5])))
    return X, (rng.rand(n, 4) < P).astype(int), P


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_probabilities_are_calibrated_on_new_rows(learner):
    X, Y, P = noisy()
    model = clone(learner).fit(X[:600], Y[:600])
    p = model.predict_proba(X[600:])
    assert p.shape == (600, 4)
    assert ((p >= 0) & (p <= 1)).all()
    shares = np.tile(Y[:600].mean(axis=0), (600, 1))
    assert brier_score(Y[600:], p) < brier_score(Y[600:], shares) - 0.02
    # The true probabilities have an error, too, because the labels are drawn.
    assert calibration_error(Y[600:], p) < calibration_error(Y[600:], P[600:]) + 0.03
    order = np.argsort(model.decision_function(X[600:]), axis=0)
    assert (np.diff(np.take_along_axis(p, order, axis=0), axis=0) >= -1e-12).all()


def test_the_lines_come_from_rows_that_each_model_has_not_seen():
    X, Y, _ = noisy(200)
    model = LEMLL(probability=True).fit(X, Y)
    scores = np.empty(Y.shape)
    for seen, unseen in KFold(5, shuffle=True, random_state=0).split(X):
        scores[unseen] = LEMLL().fit(X[seen], Y[seen]).decision_function(X[unseen])
    lines = calibrate(scores, Y, None)
    final = LEMLL().fit(X, Y).decision_function(X)
    expected = 1 / (1 + np.exp(-(final * lines.slope + lines.intercept)))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-10)
    np.testing.assert_array_equal(model.decision_function(X), final)


def test_scores_as_probabilities_of_seen_rows_would_be_too_sure():
    """Rows that the model has seen would give steeper lines than unseen rows allow."""
    rng = np.random.RandomState(0)
    X, Y = rng.randn(80, 60), rng.randint(0, 2, (80, 3))  # noise that a model can learn by heart
    honest = LEMLL(alpha=0.01, probability=True).fit(X, Y)
    seen = calibrate(honest.decision_function(X), Y, None)
    new, truth = rng.randn(400, 60), rng.randint(0, 2, (400, 3))
    naive = 1 / (1 + np.exp(-seen.log_odds(honest.decision_function(new))))
    assert log_loss(truth, honest.predict_proba(new)) < 0.75 < log_loss(truth, naive)


def test_without_the_parameter_there_are_none():
    X, Y, _ = noisy(60)
    model = LEMLL().fit(X, Y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
        model.predict_proba(X)
    assert "fit it with probability=True" in str(caught.value.__cause__)
    with pytest.raises(NotFittedError, match="was fitted with probability=False; fit it again"):
        model.set_params(probability=True).predict_proba(X)
    model.fit(X, Y).set_params(probability=False).fit(X[:50], Y[:50])
    with pytest.raises(NotFittedError, match="was fitted with probability=False"):
        model.set_params(probability=True).predict_proba(X)


def test_refusals():
    X, Y, _ = noisy(40)
    with pytest.raises(ValueError, match="probability=True needs at least 10 rows, got 8"):
        LEMLL(probability=True).fit(X[:8], Y[:8])
    with pytest.raises(ValueError, match="probability=True needs fits of parts of the rows"):
        LEMLL(probability=True, graph=reconstruction_weights(X, 5)).fit(X, Y)
    with pytest.raises(ValueError, match="probability=True is learned from labels 0/1"):
        LEMLL(probability=True).fit_degrees(X, Y / 2)


@pytest.mark.filterwarnings("ignore:labels whose known cells are all relevant:UserWarning")
def test_constant_and_unknown_labels():
    X, Y, _ = noisy(150)
    partial = np.column_stack([Y, np.ones(150), np.zeros(150)]).astype(float)
    partial[np.random.RandomState(0).rand(*partial.shape) < 0.2] = np.nan
    p = LEMLL(probability=True).fit(X, partial).predict_proba(X)
    assert (p[:, 4] > 1 - 1e-9).all()
    assert (p[:, 5] < 1e-9).all()


def test_classes_of_a_target_sum_to_one():
    X, Y, _ = noisy(200)
    for y in (Y[:, 0], Y[:, 0] + Y[:, 1]):
        p = MSVRClassifier(probability=True).fit(X, y).predict_proba(X)
        assert p.shape == (200, len(np.unique(y)))
        np.testing.assert_allclose(p.sum(axis=1), 1)


def test_all_outputs_of_all_learners_have_one_shape():
    digits = load_digit_tags()
    X, Y, new = digits.X[:120], digits.Y[:120], sparse.csr_array(digits.X[120:150])
    for learner in (*LEARNERS, BinaryRelevance(), rivals.MLkNN(), rivals.ECC(random_state=0),
                    rivals.LabelChain(), lemll.MultilabelForest(5, random_state=0),
                    TagPredictor(n_estimators=5, cv=2)):  # fmt: skip
        model = clone(learner).fit(sparse.csr_array(X), Y)
        for output in ("predict", "predict_proba", "decision_function", "predict_distribution"):
            assert getattr(model, output)(new).shape == (30, 8), (learner, output)


def test_a_saved_model_has_the_same_probabilities(tmp_path):
    X, Y, _ = noisy(100)
    model = LEMLL(probability=True).fit(X, Y)
    lemll.save(model, tmp_path / "m.lemll")
    again = lemll.load(tmp_path / "m.lemll")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
