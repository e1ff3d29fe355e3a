"""Splitters for multi-label data, with the interface of ``sklearn.model_selection``."""

from lemll.model_selection.equal_rows import equal_row_groups
from lemll.model_selection.halves import RepeatedHalves
from lemll.model_selection.stratification import (
    IterativeStratifiedHalves,
    IterativeStratifiedKFold,
    iterative_folds,
)

__all__ = [
    "IterativeStratifiedHalves",
    "IterativeStratifiedKFold",
    "RepeatedHalves",
    "equal_row_groups",
    "iterative_folds",
]
