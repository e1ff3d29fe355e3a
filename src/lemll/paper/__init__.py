"""The paper's two experiments, and how close our figures are to the printed ones."""

from lemll.paper.best import BestReport, make_best_report
from lemll.paper.enhancement import run_enhancement
from lemll.paper.enhancement_report import EnhancementReport, make_enhancement_report
from lemll.paper.prediction import (
    N_SPLITS,
    QUICK_PREDICTION,
    PredictionAgreement,
    paper_prediction,
    printed_prediction,
)
from lemll.paper.prediction_cells import read_protocols
from lemll.paper.prediction_report import (
    PredictionReport,
    make_cells_report,
    make_prediction_report,
)
from lemll.paper.prediction_runs import Repetition, choices, collect, lacking, repeat
from lemll.paper.ranks import Ranks
from lemll.paper.reconstruction import (
    QUICK_RECONSTRUCTION,
    ReconstructionAgreement,
    paper_reconstruction,
)
from lemll.paper.reconstruction_report import ReconstructionReport, make_reconstruction_report
from lemll.paper.unobserved import UnobservedReport, make_unobserved_report

__all__ = [
    "N_SPLITS",
    "QUICK_PREDICTION",
    "QUICK_RECONSTRUCTION",
    "BestReport",
    "EnhancementReport",
    "PredictionAgreement",
    "PredictionReport",
    "Ranks",
    "ReconstructionAgreement",
    "ReconstructionReport",
    "Repetition",
    "UnobservedReport",
    "choices",
    "collect",
    "lacking",
    "make_best_report",
    "make_cells_report",
    "make_enhancement_report",
    "make_prediction_report",
    "make_reconstruction_report",
    "make_unobserved_report",
    "paper_prediction",
    "paper_reconstruction",
    "printed_prediction",
    "read_protocols",
    "repeat",
    "run_enhancement",
]
