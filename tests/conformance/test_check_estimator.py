"""scikit-learn's own checks, with no failure expected."""

from __future__ import annotations

from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from lemll import (
    CLR,
    ECC,
    LEMLL,
    LEMLLCV,
    ML2,
    MLFE,
    MSVR,
    MSVRCV,
    RELIAB,
    BinaryRelevance,
    LabelChain,
    MLkNN,
    MSVRClassifier,
    TwoStage,
)
from lemll.enhancers import ENHANCERS, LEMLLEnhancer

PREDICTORS = [LEMLL(), MSVR(), MSVRClassifier()]
CLASSICAL = [
    MLkNN(),
    BinaryRelevance(),
    BinaryRelevance(GaussianNB()),
    LabelChain(),
    ECC(n_estimators=5),
    CLR(),
    CLR(voting="soft"),
]
WITH_KERNEL = [clone(made).set_params(kernel="rbf") for made in (*PREDICTORS, LEMLLEnhancer())]
SEARCHES = [
    LEMLLCV((0.25, 4.0), (1.0,), (1.0,), cv=2, search="coarse"),
    MSVRCV((0.25, 4.0), cv=2),
]
TWO_STAGE = [ML2(), MLFE(), RELIAB(), TwoStage()]


@parametrize_with_checks(
    [
        *PREDICTORS,
        *CLASSICAL,
        *(enhancer() for enhancer in ENHANCERS),
        *WITH_KERNEL,
        *SEARCHES,
        *TWO_STAGE,
    ]
)
def test_check_estimator(estimator, check):
    check(estimator)
