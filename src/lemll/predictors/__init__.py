"""Multi-label learning: scikit-learn estimators, one file each."""

from lemll.predictors.lemll import LEMLL

__all__ = ["LEMLL"]
