"""The laboratory: protocols, runs, stores, comparisons and the studies."""

from lemll.lab.cells import THRESHOLDS, Cell, Hide, Splits, Tuning, load_source
from lemll.lab.execute import Outcome, measure, run_cell
from lemll.lab.methods import Method, MethodSpec, get_method, list_methods, register
from lemll.lab.protocol import Protocol
from lemll.lab.published import (
    FieldCell,
    PredictionCell,
    ReconstructionCell,
    published_field,
    published_prediction,
    published_reconstruction,
)
from lemll.lab.records import Record, Status
from lemll.lab.report import write_comparison, write_table
from lemll.lab.runner import RunProgress, run
from lemll.lab.significance import (
    Against,
    Conclusions,
    Friedman,
    cliques,
    conclude,
    critical_difference,
    friedman_test,
    nemenyi_pvalues,
    overlap_ratio,
)
from lemll.lab.statistics import PairTest, WinTieLoss, rank_rows, wilcoxon_holm, win_tie_loss
from lemll.lab.store import Store
from lemll.lab.studies.enhancement_report import average_ranks
from lemll.lab.tables import ComparisonTable, Entry, Panel
from lemll.lab.verification import Verification, verify
from lemll.lab.workers import dask_client
from lemll.models.pairwise import TTest, holm, paired_t_test

__all__ = [
    "THRESHOLDS",
    "Against",
    "Cell",
    "ComparisonTable",
    "Conclusions",
    "Entry",
    "FieldCell",
    "Friedman",
    "Hide",
    "Method",
    "MethodSpec",
    "Outcome",
    "PairTest",
    "Panel",
    "PredictionCell",
    "Protocol",
    "ReconstructionCell",
    "Record",
    "RunProgress",
    "Splits",
    "Status",
    "Store",
    "TTest",
    "Tuning",
    "Verification",
    "WinTieLoss",
    "average_ranks",
    "cliques",
    "conclude",
    "critical_difference",
    "dask_client",
    "friedman_test",
    "get_method",
    "holm",
    "list_methods",
    "load_source",
    "measure",
    "nemenyi_pvalues",
    "overlap_ratio",
    "paired_t_test",
    "published_field",
    "published_prediction",
    "published_reconstruction",
    "rank_rows",
    "register",
    "run",
    "run_cell",
    "verify",
    "wilcoxon_holm",
    "win_tie_loss",
    "write_comparison",
    "write_table",
]
