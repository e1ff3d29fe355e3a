"""Multi-label learning: scikit-learn estimators, one file each."""

from lemll.predictors._trials import SearchProgress
from lemll.predictors.lemll import LEMLL
from lemll.predictors.lemll_cv import LEMLLCV
from lemll.predictors.msvr import MSVR, MSVRClassifier
from lemll.predictors.msvr_cv import MSVRCV

__all__ = ["LEMLL", "LEMLLCV", "MSVR", "MSVRCV", "MSVRClassifier", "SearchProgress"]
