"""Experiments: what is run, how it compares with what was published."""

from lemll.experiments.published import ReconstructionCell, published_reconstruction
from lemll.experiments.reconstruction import RecoveredCell, recover_with_lemll

__all__ = [
    "ReconstructionCell",
    "RecoveredCell",
    "published_reconstruction",
    "recover_with_lemll",
]
