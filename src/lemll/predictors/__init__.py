"""The multi-label classifiers, as scikit-learn estimators, with one file per method."""

from lemll.predictors.binary_relevance import BinaryRelevance
from lemll.predictors.clr import CLR
from lemll.predictors.ecc import ECC, LabelChain
from lemll.predictors.forest import GrownForest, MultilabelForest
from lemll.predictors.lemll import LEMLL
from lemll.predictors.lemll_cv import LEMLLCV
from lemll.predictors.ml2 import ML2
from lemll.predictors.mlfe import MLFE
from lemll.predictors.mlknn import MLkNN
from lemll.predictors.msvr import MSVR, MSVRClassifier
from lemll.predictors.msvr_cv import MSVRCV
from lemll.predictors.out_of_fold import default_lemll, out_of_fold_scores
from lemll.predictors.propagation import LabelPropagation
from lemll.predictors.reliab import RELIAB
from lemll.predictors.search.trials import SearchProgress
from lemll.predictors.tag_predictor import BlendProgress, TagPredictor
from lemll.predictors.two_stage import TwoStage

# Every learner, once: the conformance checks read this, and a test compares it with `__all__`.
PREDICTORS: tuple[type, ...] = (
    LEMLL,
    LEMLLCV,
    MSVR,
    MSVRClassifier,
    MSVRCV,
    MLkNN,
    BinaryRelevance,
    LabelPropagation,
    LabelChain,
    ECC,
    CLR,
    ML2,
    MLFE,
    RELIAB,
    TwoStage,
    MultilabelForest,
    TagPredictor,
)

__all__ = [
    "CLR",
    "ECC",
    "LEMLL",
    "LEMLLCV",
    "ML2",
    "MLFE",
    "MSVR",
    "MSVRCV",
    "PREDICTORS",
    "RELIAB",
    "BinaryRelevance",
    "BlendProgress",
    "GrownForest",
    "LabelChain",
    "LabelPropagation",
    "MLkNN",
    "MSVRClassifier",
    "MultilabelForest",
    "SearchProgress",
    "TagPredictor",
    "TwoStage",
    "default_lemll",
    "out_of_fold_scores",
]
