"""Methods of others: the learners and enhancers that lemll is compared with."""

from lemll.rivals.boxqp import BoxQpSolution, solve_box_qp
from lemll.rivals.clr import CLR
from lemll.rivals.ecc import ECC, LabelChain
from lemll.rivals.fcm import FCMEnhancer, FuzzyMeans, solve_fuzzy_means
from lemll.rivals.glle import GLLEEnhancer
from lemll.rivals.km import KMEnhancer
from lemll.rivals.lesc import LESCEnhancer
from lemll.rivals.maxent import MaxentBasis, MaxentSolution, solve_maxent
from lemll.rivals.ml2 import ML2, ML2Enhancer
from lemll.rivals.mlfe import MLFE, MLFEEnhancer
from lemll.rivals.mlknn import MLkNN
from lemll.rivals.propagation import LabelPropagation, SmoothingSolution, solve_smoothing
from lemll.rivals.reliab import RELIAB, LabelPropagationEnhancer
from lemll.rivals.sign_msvr import SignMsvrSolution, solve_sign_msvr
from lemll.rivals.sparse_coding import admm_codes, lasso_codes
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
    "BoxQpSolution",
    "FCMEnhancer",
    "FuzzyMeans",
    "GLLEEnhancer",
    "KMEnhancer",
    "LESCEnhancer",
    "LabelChain",
    "LabelPropagation",
    "LabelPropagationEnhancer",
    "ML2Enhancer",
    "MLFEEnhancer",
    "MLkNN",
    "MaxentBasis",
    "MaxentSolution",
    "SignMsvrSolution",
    "SmoothingSolution",
    "TwoStage",
    "admm_codes",
    "lasso_codes",
    "solve_box_qp",
    "solve_fuzzy_means",
    "solve_maxent",
    "solve_sign_msvr",
    "solve_smoothing",
]
