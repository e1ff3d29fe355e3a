"""The objective of LEMLL, Eq. (9): value, gradient, tube loss and the certifying duality gap."""

from lemll.objective.blocks import LARGE_LABEL_BYTES, duality_gap_by_blocks, proven_gap
from lemll.objective.certificate import (
    DualityGap,
    GapParts,
    LineSearch,
    best_share,
    exact_step,
    row_norms,
    smallest_objective,
    tube_loss,
    tube_weights,
    weighed,
)
from lemll.objective.equation9 import (
    LemllPoint,
    duality_gap,
    lemll_gradient,
    lemll_objective,
    objective_value,
)
from lemll.objective.features import CERTIFICATE_BLOCK_BYTES, CentredKernel, ShiftedFeatures

__all__ = [
    "CERTIFICATE_BLOCK_BYTES",
    "LARGE_LABEL_BYTES",
    "CentredKernel",
    "DualityGap",
    "GapParts",
    "LemllPoint",
    "LineSearch",
    "ShiftedFeatures",
    "best_share",
    "duality_gap",
    "duality_gap_by_blocks",
    "exact_step",
    "lemll_gradient",
    "lemll_objective",
    "objective_value",
    "proven_gap",
    "row_norms",
    "smallest_objective",
    "tube_loss",
    "tube_weights",
    "weighed",
]
