"""Label enhancement: methods that turn logical labels into a label distribution."""

from lemll.enhancers.base import BaseEnhancer
from lemll.enhancers.baselines import LogicalEnhancer, UniformEnhancer
from lemll.enhancers.blend import BlendEnhancer
from lemll.enhancers.label_graph import LabelGraphEnhancer
from lemll.enhancers.lemll import LEMLLEnhancer
from lemll.enhancers.order import OrderEstimate
from lemll.fitting.scaling import normalize

# Every enhancer of the product, once.
ENHANCERS = (LEMLLEnhancer, LabelGraphEnhancer, BlendEnhancer, UniformEnhancer, LogicalEnhancer)

__all__ = [
    "ENHANCERS",
    "BaseEnhancer",
    "BlendEnhancer",
    "LEMLLEnhancer",
    "LabelGraphEnhancer",
    "LogicalEnhancer",
    "OrderEstimate",
    "UniformEnhancer",
    "normalize",
]
