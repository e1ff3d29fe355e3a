"""scikit-learn's own checks. Only weights of rows in random samples are expected to fail."""

import inspect

import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from lemll import (
    LEMLL,
    LEMLLCV,
    MSVR,
    MSVRCV,
    BinaryRelevance,
    MSVRClassifier,
    MultilabelForest,
    TagPredictor,
    enhancers,
    predictors,
    rivals,
)
from lemll.enhancers import ENHANCERS, LEMLLEnhancer
from lemll.predictors import PREDICTORS
from lemll.rivals import (
    CLR,
    ECC,
    ML2,
    MLFE,
    RELIAB,
    RIVAL_ENHANCERS,
    RIVALS,
    LabelChain,
    LabelPropagation,
    MLkNN,
    TwoStage,
)

pytestmark = pytest.mark.slow

LINEAR = [LEMLL(), MSVR(), MSVRClassifier()]
CLASSICAL = [
    MLkNN(),
    LabelPropagation(),
    BinaryRelevance(tol=1e-10),
    BinaryRelevance(GaussianNB()),
    LabelChain(),
    ECC(n_estimators=5),
    CLR(),
    CLR(voting="soft"),
    MultilabelForest(10),
    MultilabelForest(10, trees="random", per_label=True),
    TagPredictor(n_estimators=5, cv=2),
]
WITH_KERNEL = [clone(made).set_params(kernel="rbf") for made in (*LINEAR, LEMLLEnhancer())]
SEARCHES = [
    LEMLLCV((0.25, 4.0), (1.0,), (1.0,), cv=2, search="coarse"),
    MSVRCV((0.25, 4.0), cv=2),
]
TWO_STAGE = [ML2(), MLFE(), RELIAB(), TwoStage()]


ESTIMATORS = [
    *LINEAR,
    *CLASSICAL,
    *(enhancer() for enhancer in (*ENHANCERS, *RIVAL_ENHANCERS)),
    *WITH_KERNEL,
    *SEARCHES,
    *TWO_STAGE,
]
# What these checks look at is done by the base classes: reading and refusing what is given.
OF_THE_BASE = {
    f"check_{name}"
    for name in (
        "classifier_data_not_an_array",
        "classifiers_multilabel_representation_invariance",
        "complex_data",
        "dtype_object",
        "estimator_sparse_array",
        "estimator_sparse_matrix",
        "estimators_dtypes",
        "estimators_empty_data_messages",
        "estimators_nan_inf",
        "estimators_unfitted",
        "f_contiguous_array_estimator",
        "fit1d",
        "fit2d_predict1d",
        "n_features_in_after_fitting",
        "pipeline_consistency",
        "readonly_memmap_input",
        "requires_y_none",
        "supervised_y_2d",
        "supervised_y_no_nan",
    )
}


def name_of(check):
    """Return the name of a check, with or without arguments."""
    return getattr(check, "func", check).__name__


# What other parameters of a learner can change.
OF_PARAMETERS = {
    f"check_{name}"
    for name in (
        "classifiers_train",
        "fit_idempotent",
        "methods_sample_order_invariance",
        "methods_subset_invariance",
        "sample_weight_equivalence_on_dense_data",
    )
}


def is_checked_elsewhere(estimator, check):
    """Tell whether an estimator of the same class or base classes stands for this one."""
    alike = [one for one in ESTIMATORS if type(one) is type(estimator)]
    first = next(one for one in ESTIMATORS if type(one).__bases__ == type(estimator).__bases__)
    if estimator is not alike[0]:
        return name_of(check) not in OF_PARAMETERS
    return estimator is not first and name_of(check) in OF_THE_BASE


def expected_failures(estimator):
    """Return the checks that a learner cannot pass by its nature."""
    random = isinstance(estimator, MultilabelForest) and estimator.trees == "random"
    if not random and not isinstance(estimator, TagPredictor):
        return {}
    checks = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    return dict.fromkeys(checks, "random samples and folds draw a repeated row more often")


@pytest.mark.nightly(when=is_checked_elsewhere)
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_check_estimator(estimator, check):
    check(estimator)


def test_every_check_of_the_base_exists():
    checks = {name_of(check) for one in ESTIMATORS for _, check in estimator_checks_generator(one)}
    assert checks > OF_THE_BASE | OF_PARAMETERS


def test_the_lists_of_all_methods_are_complete():
    for module, listed in (
        (predictors, PREDICTORS),
        (enhancers, ENHANCERS),
        (rivals, (*RIVALS, *RIVAL_ENHANCERS)),
    ):
        public = {getattr(module, name) for name in module.__all__}
        kinds = {kind for kind in public if isinstance(kind, type) and hasattr(kind, "get_params")}
        assert {kind for kind in kinds if not inspect.isabstract(kind)} == set(listed)
        assert len(set(listed)) == len(listed)


def test_no_predictor_is_forgotten():
    checked = {type(one) for one in (*LINEAR, *CLASSICAL, *SEARCHES, *TWO_STAGE)}
    assert checked == {*PREDICTORS, *RIVALS}
