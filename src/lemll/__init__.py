"""Multi-label learning with label enhancement."""

from lemll.predictors import LEMLL, LEMLLCV, MSVR, MSVRCV, MSVRClassifier

__version__ = "0.1.0.dev0"

__all__ = ["LEMLL", "LEMLLCV", "MSVR", "MSVRCV", "MSVRClassifier", "__version__"]
