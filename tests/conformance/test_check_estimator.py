"""scikit-learn's own checks, with no failure expected."""

from __future__ import annotations

from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from lemll import LEMLL, MSVR, MSVRClassifier
from lemll.enhancers import LEMLLEnhancer

ESTIMATORS = [LEMLL(), LEMLLEnhancer(), MSVR(), MSVRClassifier()]
WITH_KERNEL = [clone(estimator).set_params(kernel="rbf") for estimator in ESTIMATORS]


@parametrize_with_checks(ESTIMATORS + WITH_KERNEL)
def test_check_estimator(estimator, check):
    check(estimator)
