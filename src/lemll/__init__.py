"""Multi-label learning with label enhancement."""

from lemll.predictors import (
    CLR,
    ECC,
    LEMLL,
    LEMLLCV,
    MSVR,
    MSVRCV,
    BinaryRelevance,
    LabelChain,
    MLkNN,
    MSVRClassifier,
)

__version__ = "0.1.0.dev0"

__all__ = [
    "CLR",
    "ECC",
    "LEMLL",
    "LEMLLCV",
    "MSVR",
    "MSVRCV",
    "BinaryRelevance",
    "LabelChain",
    "MLkNN",
    "MSVRClassifier",
    "__version__",
]
