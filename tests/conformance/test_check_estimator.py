"""scikit-learn's own checks, with no failure expected."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from lemll import LEMLL, MSVR, MSVRClassifier
from lemll.enhancers import LEMLLEnhancer


@parametrize_with_checks([LEMLL(), LEMLLEnhancer(), MSVR(), MSVRClassifier()])
def test_check_estimator(estimator, check):
    check(estimator)
