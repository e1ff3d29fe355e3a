"""Experiments: what is run, how it compares with what was published."""

from lemll.experiments.methods import Method, get_method, list_methods, register
from lemll.experiments.published import (
    PredictionCell,
    ReconstructionCell,
    published_prediction,
    published_reconstruction,
)
from lemll.experiments.reconstruction import RecoveredCell, recover_with_lemll

__all__ = [
    "Method",
    "PredictionCell",
    "ReconstructionCell",
    "RecoveredCell",
    "get_method",
    "list_methods",
    "published_prediction",
    "published_reconstruction",
    "recover_with_lemll",
    "register",
]
