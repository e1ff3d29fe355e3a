"""What the solvers of linear models share: centred features, the model's form, its factors."""

from lemll.solvers.linear.features import CentredFeatures, KernelFeatures, features_for
from lemll.solvers.linear.models import Model, model_for

__all__ = [
    "CentredFeatures",
    "KernelFeatures",
    "Model",
    "features_for",
    "model_for",
]
