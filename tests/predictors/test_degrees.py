"""Labels that are relevant in part: who learns from degrees, and what they mean."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from lemll import LEMLL, LEMLLCV, BinaryRelevance, MSVRClassifier
from lemll._labels import DEGREE_LEARNERS
from lemll.datasets import load_digit_tags
from lemll.enhancers import ENHANCERS, LEMLLEnhancer
from lemll.metrics import average_precision
from lemll.predictors import PREDICTORS
from lemll.rivals import CLR, ECC, RIVAL_ENHANCERS, RIVALS, KMEnhancer, MLkNN
from lemll.solvers import solve_joint
from lemll.topology import reconstruction_weights

NAMES = list("abcdefgh")
ABLE = [
    LEMLL(),
    pytest.param(LEMLL(kernel="rbf"), marks=pytest.mark.slow),
    MSVRClassifier(),
    LEMLLEnhancer(),
]


@pytest.fixture(name="data", scope="module")
def _data():
    digits = load_digit_tags()
    X, Y = digits.X[:200], digits.Y[:200]
    rng = np.random.default_rng(0)
    return X, Y, np.round(np.clip(Y + 0.4 * (1 - 2 * Y) * rng.random(Y.shape), 0, 1), 2)


def outputs(model, X):
    return model.enhance(X) if isinstance(model, LEMLLEnhancer) else model.decision_function(X)


def test_the_list_is_true():
    able = {
        kind.__name__
        for kind in (*PREDICTORS, *RIVALS, *ENHANCERS, *RIVAL_ENHANCERS)
        if hasattr(kind, "fit_degrees")
    }
    assert able == set(DEGREE_LEARNERS.replace(" or ", ", ").split(", "))


@pytest.mark.parametrize("model", ABLE, ids=str)
def test_degrees_of_0_and_1_are_labels(model, data):
    X, Y, _ = data
    by_labels, by_degrees = clone(model).fit(X, Y), clone(model).fit_degrees(X, Y.astype(float))
    np.testing.assert_array_equal(outputs(by_degrees, X), outputs(by_labels, X))


def test_they_are_the_targets_of_eq_9(data):
    X, _, D = data
    weight = np.random.default_rng(2).random(D.shape)
    model = LEMLL(2.0, 0.5, 4.0, tol=1e-8).fit_degrees(X, D, label_weight=weight)
    W = reconstruction_weights(X, 10)
    expected = solve_joint(
        X, 2 * D - 1, W, alpha=2.0, beta=0.5, gamma=4.0, tol=1e-8, cell_weight=weight
    )
    assert model.objective_ == pytest.approx(expected.objective, rel=1e-7)
    np.testing.assert_allclose(model.numerical_labels_, expected.numerical_labels, atol=1e-3)
    np.testing.assert_array_equal(model.completed_labels_, D > 0.5)


def test_a_degree_is_the_probability_of_a_label(data):
    """A cell with the degree .75 is three votes for the label and one against it."""
    X, Y, _ = data
    D = np.where(Y == 1, 0.75, 0.25)
    model = MSVRClassifier(epsilon=0.0).fit_degrees(X, D)
    rows = np.repeat(np.arange(len(X)), 4)
    votes = np.tile([1, 1, 1, 0], len(X))[:, None] * np.ones((1, Y.shape[1]), dtype=int)
    votes = np.where(Y[rows] == 1, votes, 1 - votes)
    by_votes = MSVRClassifier(alpha=4.0, epsilon=0.0).fit(X[rows], votes)
    np.testing.assert_allclose(model.decision_function(X), by_votes.decision_function(X), atol=1e-6)


def test_frames_and_sparse_degrees(data):
    X, _, D = data
    frame = pd.DataFrame(D, columns=NAMES)
    rows = pd.DataFrame(X).rename(columns=str)
    model = LEMLL().fit_degrees(rows, frame)
    assert list(model.label_names_) == NAMES
    assert list(model.predict(rows).columns) == NAMES
    expected = LEMLL().fit_degrees(X, D)
    np.testing.assert_allclose(
        model.decision_function(rows), expected.decision_function(X), atol=1e-10
    )
    by_sparse = LEMLL().fit_degrees(X, sparse.csr_array(D))
    np.testing.assert_array_equal(by_sparse.decision_function(X), expected.decision_function(X))
    assert sparse.issparse(by_sparse.predict(X))
    with pytest.raises(ValueError, match="the index of y must be that of X"):
        LEMLL().fit_degrees(rows, frame[::-1])


@pytest.mark.parametrize(
    "model",
    [LEMLL(), MSVRClassifier(), LEMLLCV(), BinaryRelevance(), ECC(), CLR(), MLkNN(), KMEnhancer()],
    ids=lambda model: type(model).__name__,
)
def test_fit_refuses_degrees_and_names_the_method_for_them(model, data):
    X, _, D = data
    for options in ({}, {"label_weight": np.full(D.shape, 0.5)}):
        with pytest.raises(ValueError, match=r"only 0 and 1, got .* fit_degrees of LEMLL, MSVRCl"):
            model.fit(X, D, **options)


def test_a_metric_refuses_degrees(data):
    _, _, D = data
    with pytest.raises(ValueError, match=r"must hold only 0 and 1, got [^;]*; binarise it first"):
        average_precision(D, D)


@pytest.mark.parametrize(
    ("degrees", "message"),
    [
        (np.full((200, 8), 1.5), r"from 0 \(not relevant\) to 1 .* got 1.5 in row 0, label 0"),
        (np.full((200, 8), -1.0), "got -1.0 in row 0, label 0; degrees are no targets"),
        (np.full((200, 8), np.inf), "got inf in row 0"),
        (np.full((200, 8), "x"), "must hold numbers from 0 to 1, got dtype <U1"),
        (np.full(200, 0.5), r"must be 2-D \(rows x labels\) and not empty, got shape \(200,\)"),
        (np.full((100, 8), 0.5), "inconsistent numbers of samples"),
        (np.full((200, 8), np.nan), "no cell of y is observed"),
    ],
)
def test_refusals(degrees, message, data):
    X, *_ = data
    for model in (LEMLL(), LEMLLEnhancer()):
        with pytest.raises(ValueError, match=message):
            model.fit_degrees(X, degrees)


def test_thresholds_need_labels(data):
    X, _, D = data
    with pytest.raises(ValueError, match="thresholds='f1' is learned from labels 0/1, but degrees"):
        LEMLL(thresholds="f1").fit_degrees(X, D)


def test_a_failed_fit_keeps_the_model(data):
    X, Y, D = data
    for model in (LEMLL().fit(X, Y), LEMLLEnhancer().fit(X, Y)):
        before = outputs(model, X)
        with pytest.raises(ValueError, match="got 1.4"):
            model.fit_degrees(X[:, :3], D + 1.4 * (D < 0.01))
        np.testing.assert_array_equal(outputs(model, X), before)


def test_rows_without_a_degree_are_named_by_learners_that_cannot_use_them():
    rng = np.random.RandomState(0)
    X, D = rng.standard_normal((30, 4)), rng.uniform(size=(30, 3))
    D[:5] = np.nan
    with pytest.warns(UserWarning, match="MSVRClassifier does not learn from 5 of 30 rows"):
        MSVRClassifier().fit_degrees(X, D)
    LEMLL().fit_degrees(X, D)  # a warning would be an error in the tests
