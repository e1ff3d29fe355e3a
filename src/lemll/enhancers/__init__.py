"""Label enhancement: methods that turn logical labels into a label distribution."""

from lemll.enhancers._base import BaseEnhancer, absent_labels
from lemll.enhancers._calibrate import choose_scale
from lemll.enhancers._rated import RatedBlend
from lemll.enhancers.blend import BlendEnhancer
from lemll.enhancers.fcm import FCMEnhancer
from lemll.enhancers.glle import GLLEEnhancer
from lemll.enhancers.km import KMEnhancer
from lemll.enhancers.label_graph import LabelGraphEnhancer
from lemll.enhancers.label_propagation import LabelPropagationEnhancer
from lemll.enhancers.lemll import LEMLLEnhancer
from lemll.enhancers.lesc import LESCEnhancer
from lemll.enhancers.logical import LogicalEnhancer
from lemll.enhancers.ml2 import ML2Enhancer
from lemll.enhancers.mlfe import MLFEEnhancer
from lemll.enhancers.uniform import UniformEnhancer
from lemll.fitting import normalize

# The list of all methods. The conformance checks and the tests read it.
ENHANCERS: tuple[type[BaseEnhancer], ...] = (
    LEMLLEnhancer,
    FCMEnhancer,
    KMEnhancer,
    LabelPropagationEnhancer,
    ML2Enhancer,
    MLFEEnhancer,
    GLLEEnhancer,
    LESCEnhancer,
    LabelGraphEnhancer,
    BlendEnhancer,
    UniformEnhancer,
    LogicalEnhancer,
)

__all__ = [
    "ENHANCERS",
    "BaseEnhancer",
    "BlendEnhancer",
    "FCMEnhancer",
    "GLLEEnhancer",
    "KMEnhancer",
    "LEMLLEnhancer",
    "LESCEnhancer",
    "LabelGraphEnhancer",
    "LabelPropagationEnhancer",
    "LogicalEnhancer",
    "ML2Enhancer",
    "MLFEEnhancer",
    "RatedBlend",
    "UniformEnhancer",
    "absent_labels",
    "choose_scale",
    "normalize",
]
