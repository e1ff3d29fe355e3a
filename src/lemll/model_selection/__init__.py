"""Splitters for multi-label data, with the interface of ``sklearn.model_selection``."""

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
    "iterative_folds",
]
