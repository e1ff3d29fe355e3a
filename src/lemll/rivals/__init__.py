"""Methods of others: the learners and enhancers that lemll is compared with."""

from lemll.rivals.clr import CLR
from lemll.rivals.ecc import ECC, LabelChain
from lemll.rivals.fcm import FCMEnhancer
from lemll.rivals.glle import GLLEEnhancer
from lemll.rivals.km import KMEnhancer
from lemll.rivals.lesc import LESCEnhancer
from lemll.rivals.ml2 import ML2, ML2Enhancer
from lemll.rivals.mlfe import MLFE, MLFEEnhancer
from lemll.rivals.mlknn import MLkNN
from lemll.rivals.propagation import LabelPropagation
from lemll.rivals.reliab import RELIAB, LabelPropagationEnhancer
from lemll.rivals.two_stage import TwoStage

# Every learner and every enhancer of others, once.
RIVALS = (MLkNN, CLR, ECC, LabelChain, LabelPropagation, ML2, MLFE, RELIAB, TwoStage)
RIVAL_ENHANCERS = (
    FCMEnhancer,
    KMEnhancer,
    LabelPropagationEnhancer,
    ML2Enhancer,
    MLFEEnhancer,
    GLLEEnhancer,
    LESCEnhancer,
)

__all__ = [
    "CLR",
    "ECC",
    "ML2",
    "MLFE",
    "RELIAB",
    "RIVALS",
    "RIVAL_ENHANCERS",
    "FCMEnhancer",
    "GLLEEnhancer",
    "KMEnhancer",
    "LESCEnhancer",
    "LabelChain",
    "LabelPropagation",
    "LabelPropagationEnhancer",
    "ML2Enhancer",
    "MLFEEnhancer",
    "MLkNN",
    "TwoStage",
]
