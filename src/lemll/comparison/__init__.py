"""Compare results: tables, ranks, tests over one or many data sets, published figures."""

from lemll.comparison.conclusions import Against, Conclusions, conclude, overlap_ratio
from lemll.comparison.pairwise import PairTest, holm, wilcoxon_holm
from lemll.comparison.panels import Entry, Panel
from lemll.comparison.published import (
    FieldCell,
    PredictionCell,
    ReconstructionCell,
    paper_name,
    published_field,
    published_prediction,
    published_reconstruction,
)
from lemll.comparison.significance import (
    Friedman,
    cliques,
    critical_difference,
    friedman_test,
    nemenyi_pvalues,
)
from lemll.comparison.splits import BestAgainst, best_of_splits
from lemll.comparison.statistics import (
    MARKS,
    Outcome,
    TTest,
    WinTieLoss,
    average_ranks,
    check_level,
    checked_table,
    checked_vector,
    paired_t_test,
    rank_rows,
    win_tie_loss,
)
from lemll.comparison.tables import ComparisonTable
from lemll.comparison.verification import Verification, verify

__all__ = [
    "MARKS",
    "Against",
    "BestAgainst",
    "ComparisonTable",
    "Conclusions",
    "Entry",
    "FieldCell",
    "Friedman",
    "Outcome",
    "PairTest",
    "Panel",
    "PredictionCell",
    "ReconstructionCell",
    "TTest",
    "Verification",
    "WinTieLoss",
    "average_ranks",
    "best_of_splits",
    "check_level",
    "checked_table",
    "checked_vector",
    "cliques",
    "conclude",
    "critical_difference",
    "friedman_test",
    "holm",
    "nemenyi_pvalues",
    "overlap_ratio",
    "paired_t_test",
    "paper_name",
    "published_field",
    "published_prediction",
    "published_reconstruction",
    "rank_rows",
    "verify",
    "wilcoxon_holm",
    "win_tie_loss",
]
