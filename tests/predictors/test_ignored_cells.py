"""Cells of y with the weight 0 never matter, whatever they hold."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import KFold

from lemll import LEMLL, LEMLLCV, MSVRCV, BinaryRelevance, MSVRClassifier
from lemll.enhancers import LEMLLEnhancer
from lemll.rivals import ECC, LabelPropagation, MLkNN

# Some rows of the random masks have no observed label; one test is about the note on them.
pytestmark = pytest.mark.filterwarnings("ignore:.* does not learn from:UserWarning")

POISONS = (np.inf, -np.inf, np.nan, 7.0, -1.0, 1e300, 0.5, None, "unknown", pd.NA)
FOLDS = KFold(2)
LEARNERS = [
    LEMLL(),
    MSVRClassifier(1.0),
    BinaryRelevance(C=1.0),
    MLkNN(n_neighbors=3),
    LabelPropagation(3),
    ECC(n_estimators=2, C=1.0, random_state=0),
    LEMLLCV([1.0], [1.0], [1.0], cv=FOLDS),
    MSVRCV([1.0], cv=FOLDS),
]


@pytest.fixture(name="data")
def _data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    Y = (X @ rng.standard_normal((4, 3)) > 0).astype(float)
    weight = (rng.random(Y.shape) > 0.3).astype(float)
    weight[:2] = 1
    return X, Y, weight


def poisoned(Y, weight, poison):
    if isinstance(poison, float):
        return np.where(weight > 0, Y, poison)
    cells = Y.astype(object)
    cells[weight == 0] = poison
    return cells


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_learners_do_not_read_them(learner, data):
    X, Y, weight = data
    expected = learner.fit(X, Y, label_weight=weight).decision_function(X)
    for poison in POISONS:
        found = learner.fit(X, poisoned(Y, weight, poison), label_weight=weight)
        np.testing.assert_array_equal(found.decision_function(X), expected, err_msg=repr(poison))


def test_the_enhancer_does_not_read_them(data):
    X, Y, weight = data
    expected = LEMLLEnhancer().fit(X, Y, label_weight=weight).numerical_labels_
    for poison in POISONS:
        found = LEMLLEnhancer().fit(X, poisoned(Y, weight, poison), label_weight=weight)
        np.testing.assert_array_equal(found.numerical_labels_, expected, err_msg=repr(poison))


@pytest.mark.parametrize("estimator", [LEMLL(), MSVRClassifier(1.0), LEMLLEnhancer()], ids=str)
def test_degrees_that_do_not_count_are_not_read(estimator, data):
    X, Y, weight = data
    degrees = 0.25 + Y / 2
    fitted = estimator.fit_degrees(X, degrees, label_weight=weight)
    expected = fitted.intercept_.copy()
    for poison in POISONS:
        fitted = estimator.fit_degrees(X, poisoned(degrees, weight, poison), label_weight=weight)
        np.testing.assert_array_equal(fitted.intercept_, expected, err_msg=repr(poison))
    masked = estimator.fit_degrees(X, np.ma.MaskedArray(degrees, weight == 0))
    np.testing.assert_array_equal(masked.intercept_, expected)


@pytest.mark.parametrize("poison", [np.inf, 7.0, np.nan])
def test_every_form_of_labels_and_weights(data, poison):
    X, Y, weight = data
    expected = MSVRClassifier(1.0).fit(X, Y, label_weight=weight).coef_
    cells = poisoned(Y, weight, poison)
    names = ["a", "b", "c"]
    forms = [
        (sparse.csr_array(cells), weight),
        (cells, sparse.csr_array(weight)),
        (cells, np.ma.MaskedArray(np.ones_like(weight), mask=weight == 0)),
        (np.ma.MaskedArray(cells, mask=weight == 0), None),
        (cells.tolist(), weight.tolist()),
        (pd.DataFrame(cells, columns=names), pd.DataFrame(weight, columns=names)),
    ]
    for y, label_weight in forms:
        before = y.copy()
        found = MSVRClassifier(1.0).fit(X, y, label_weight=label_weight).coef_
        np.testing.assert_array_equal(found, expected)
        assert type(y) is type(before)
    np.testing.assert_array_equal(cells, poisoned(Y, weight, poison))


def test_one_label_with_ignored_values_is_not_a_target_of_classes(data):
    X, Y, weight = data
    cells = poisoned(Y, weight, 7.0)[:, [0]]
    found = MSVRClassifier(1.0).fit(X, cells, label_weight=weight[:, [0]])
    assert found.predict(X).shape == (30, 1)


def test_values_that_count_are_still_refused(data):
    X, Y, weight = data
    row, label = np.argwhere(weight > 0)[5]
    cells = poisoned(Y, weight, np.inf)
    cells[row, label] = np.inf
    text = rf"Y must hold only 0 and 1, got inf in row {row}, label {label}"
    with pytest.raises(ValueError, match=text):
        MSVRClassifier(1.0).fit(X, cells, label_weight=weight)
    with pytest.raises(ValueError, match=r"degrees must be from 0 .* got inf"):
        MSVRClassifier(1.0).fit_degrees(X, cells, label_weight=weight)


def test_weights_of_the_wrong_shape_are_refused_with_their_own_text(data):
    X, Y, weight = data
    with pytest.raises(ValueError, match=r"label_weight must have the shape of y, \(30, 3\)"):
        MSVRClassifier(1.0).fit(X, Y, label_weight=weight[:, :2])
