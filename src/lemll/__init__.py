"""Multi-label learning with label enhancement."""

from lemll.predictors import LEMLL, MSVR, MSVRClassifier

__version__ = "0.1.0.dev0"

__all__ = ["LEMLL", "MSVR", "MSVRClassifier", "__version__"]
