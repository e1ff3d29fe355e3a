"""scikit-learn's own checks, with no failure expected."""

from __future__ import annotations

from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from lemll import LEMLL, MSVR, MSVRClassifier
from lemll.enhancers import ENHANCERS, LEMLLEnhancer

PREDICTORS = [LEMLL(), MSVR(), MSVRClassifier()]
WITH_KERNEL = [clone(made).set_params(kernel="rbf") for made in (*PREDICTORS, LEMLLEnhancer())]


@parametrize_with_checks([*PREDICTORS, *(enhancer() for enhancer in ENHANCERS), *WITH_KERNEL])
def test_check_estimator(estimator, check):
    check(estimator)
