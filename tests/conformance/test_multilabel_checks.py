"""Our own checks, on every classifier; and on classifiers that must not pass them."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier

from lemll import (
    LEMLL,
    LEMLLCV,
    MSVRCV,
    BinaryRelevance,
    MSVRClassifier,
    MultilabelForest,
    TagPredictor,
)
from lemll.lab.testing import MULTILABEL_CHECKS, check_multilabel_estimator
from lemll.predictors import PREDICTORS
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

CLASSIFIERS = [
    LEMLL(),
    LEMLL(thresholds="f1"),
    LEMLL(probability=True),
    LEMLL(solver_params={"precision": "float32"}),
    LEMLL(kernel="rbf"),
    MSVRClassifier(),
    MSVRClassifier(kernel="poly"),
    MSVRClassifier(probability=True),
    LEMLLCV((0.25, 4.0), (1.0,), (1.0,), cv=2, search="coarse"),
    MSVRCV((0.25, 4.0), cv=2),
    MLkNN(),
    MLkNN(scale="minmax"),
    LabelPropagation(3),
    BinaryRelevance(),
    BinaryRelevance("weka"),
    BinaryRelevance(LogisticRegression()),
    LabelChain(random_state=0),
    LabelChain(LogisticRegression(), random_state=0),
    ECC(n_estimators=5, random_state=0),
    ECC("weka", n_estimators=5, sampling="subset", combine="votes", random_state=0),
    CLR(),
    CLR(voting="soft"),
    CLR("weka"),
    CLR(LogisticRegression()),
    MultilabelForest(10, random_state=0),
    MultilabelForest(10, trees="random", per_label=True, random_state=0),
    TagPredictor(n_estimators=5, cv=2),
    ML2(),
    ML2(kernel="rbf"),
    MLFE(),
    MLFE(kernel="linear", coding="lasso"),
    RELIAB(),
    RELIAB(emp="pairwise"),
    TwoStage(),
    TwoStage(KMEnhancer(), Ridge()),
]


# What these checks look at is done by the base classes: reading, refusing, the form of labels.
OF_THE_BASE = {
    f"check_{name}"
    for name in (
        "failed_refit_keeps_the_model",
        "frames",
        "inputs_and_parameters_stay",
        "label_types",
        "memory_layout",
        "minus_plus_one_is_refused",
        "missing_and_infinite_are_refused",
        "model_selection",
        "more_labels_than_rows",
        "not_fitted",
        "sparse_labels",
        "unequal_lengths_are_refused",
        "unsorted_sparse_features",
        "wrong_number_of_features_is_refused",
    )
}


def first_is_quick(estimators):
    """Leave all but the first to the long run."""
    first, *others = estimators
    return [first, *(pytest.param(other, marks=pytest.mark.slow) for other in others)]


# What other parameters of a learner can change.
OF_PARAMETERS = {
    f"check_{name}"
    for name in (
        "constant_labels",
        "duplicated_rows",
        "label_permutation",
        "learns_something",
        "rows_are_independent",
        "shapes_and_types",
        "sparse_features",
        "unknown_cells",
    )
}


def is_checked_elsewhere(estimator, check):
    """Tell whether an estimator of the same class or base classes stands for this one."""
    alike = [one for one in CLASSIFIERS if type(one) is type(estimator)]
    first = next(one for one in CLASSIFIERS if type(one).__bases__ == type(estimator).__bases__)
    if estimator is not alike[0]:
        return check.__name__ not in OF_PARAMETERS
    return estimator is not first and check.__name__ in OF_THE_BASE


def test_no_classifier_is_forgotten():
    classifiers = {kind for kind in (*PREDICTORS, *RIVALS) if is_classifier(kind())}
    assert {type(one) for one in CLASSIFIERS} == classifiers


@pytest.mark.nightly(when=is_checked_elsewhere)
@pytest.mark.parametrize("check", MULTILABEL_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", first_is_quick(CLASSIFIERS), ids=str)
def test_multilabel_check(estimator, check):
    check(clone(estimator))


def test_every_check_of_the_base_exists():
    assert {check.__name__ for check in MULTILABEL_CHECKS} > OF_THE_BASE | OF_PARAMETERS


def test_the_checks_find_fault():
    # scikit-learn's own wrapper takes -1/+1 without a word.
    with pytest.raises(AssertionError, match="fails check_"):
        check_multilabel_estimator(OneVsRestClassifier(RidgeClassifier()))


class Forgetful(LEMLL):
    def predict(self, X):
        return np.roll(super().predict(X), 1, axis=1)


def test_a_broken_estimator_is_named_with_the_check_it_fails():
    with pytest.raises(AssertionError, match="Forgetful fails check_constant_labels"):
        check_multilabel_estimator(Forgetful())
