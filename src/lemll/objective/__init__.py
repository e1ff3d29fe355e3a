"""The objective of LEMLL, Eq. (9): value, gradient, tube loss and the certifying duality gap."""

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
    "CentredKernel",
    "DualityGap",
    "GapParts",
    "LemllPoint",
    "LineSearch",
    "ShiftedFeatures",
    "best_share",
    "duality_gap",
    "exact_step",
    "lemll_gradient",
    "lemll_objective",
    "objective_value",
    "row_norms",
    "smallest_objective",
    "tube_loss",
    "tube_weights",
    "weighed",
]
