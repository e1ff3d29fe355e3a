"""Multi-label learning with label enhancement."""

from lemll.models import load, save
from lemll.predictors import (
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
    MultilabelForest,
    TagPredictor,
    TwoStage,
)

__version__ = "0.1.0.dev0"

__all__ = [
    "CLR",
    "ECC",
    "LEMLL",
    "LEMLLCV",
    "ML2",
    "MLFE",
    "MSVR",
    "MSVRCV",
    "RELIAB",
    "BinaryRelevance",
    "LabelChain",
    "MLkNN",
    "MSVRClassifier",
    "MultilabelForest",
    "TagPredictor",
    "TwoStage",
    "__version__",
    "load",
    "save",
]
