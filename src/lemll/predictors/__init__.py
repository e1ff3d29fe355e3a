"""The multi-label classifiers, as scikit-learn estimators, with one file per method."""

from lemll.predictors.binary_relevance import BinaryRelevance
from lemll.predictors.folds import SearchProgress
from lemll.predictors.forest import GrownForest, MultilabelForest
from lemll.predictors.lemll import LEMLL, LEMLLCV
from lemll.predictors.msvr import MSVR, MSVRClassifier
from lemll.predictors.msvr_cv import MSVRCV
from lemll.predictors.tag_predictor import (
    BlendProgress,
    TagPredictor,
    default_lemll,
    out_of_fold_scores,
)

# Every learner of the product, once.
PREDICTORS = (
    LEMLL,
    LEMLLCV,
    MSVR,
    MSVRClassifier,
    MSVRCV,
    BinaryRelevance,
    MultilabelForest,
    TagPredictor,
)

__all__ = [
    "LEMLL",
    "LEMLLCV",
    "MSVR",
    "MSVRCV",
    "PREDICTORS",
    "BinaryRelevance",
    "BlendProgress",
    "GrownForest",
    "MSVRClassifier",
    "MultilabelForest",
    "SearchProgress",
    "TagPredictor",
    "default_lemll",
    "out_of_fold_scores",
]
