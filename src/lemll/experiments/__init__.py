"""Experiments: what is run, where results live, how they compare with what was published."""

from lemll.experiments.methods import Method, MethodSpec, get_method, list_methods, register
from lemll.experiments.prediction import paper_prediction
from lemll.experiments.protocol import Cell, Protocol, Splits, Tuning
from lemll.experiments.published import (
    PredictionCell,
    ReconstructionCell,
    published_prediction,
    published_reconstruction,
)
from lemll.experiments.reconstruction import paper_reconstruction
from lemll.experiments.runner import Progress, run
from lemll.experiments.store import Record, Store
from lemll.experiments.tables import ComparisonTable
from lemll.experiments.verification import verify

__all__ = [
    "Cell",
    "ComparisonTable",
    "Method",
    "MethodSpec",
    "PredictionCell",
    "Progress",
    "Protocol",
    "ReconstructionCell",
    "Record",
    "Splits",
    "Store",
    "Tuning",
    "get_method",
    "list_methods",
    "paper_prediction",
    "paper_reconstruction",
    "published_prediction",
    "published_reconstruction",
    "register",
    "run",
    "verify",
]
