"""Shared parts of all solvers of linear models: centred features, model forms, factorisations."""

from lemll.solvers.linear.features import CentredFeatures, KernelFeatures, features_for
from lemll.solvers.linear.models import Model, model_for

__all__ = [
    "CentredFeatures",
    "KernelFeatures",
    "Model",
    "features_for",
    "model_for",
]
