"""Shared parts of LEMLL, MSVR and the enhancers: fits of Eq. (9), kernels and normalisation."""

from lemll.fitting.distances import (
    check_gamma,
    check_two_rows,
    choose_gamma,
    gamma_of_distance,
    mean_distance,
    squared_distances,
    upper_distances,
)
from lemll.fitting.equation9 import check_fits, fit_equation9, local_graph, make_graph
from lemll.fitting.kernels import (
    KERNELS,
    Kernel,
    choose_kernel,
    inverse_variance,
    model_outputs,
    settle_optimality,
    store_model,
)
from lemll.fitting.normalization import (
    NORMALIZATIONS,
    Normalization,
    check_normalization,
    normalize,
)
from lemll.fitting.scaling import SCALES, check_scale, fit_scaling, unit_rows, usual_scale

__all__ = [
    "KERNELS",
    "NORMALIZATIONS",
    "SCALES",
    "Kernel",
    "Normalization",
    "check_fits",
    "check_gamma",
    "check_normalization",
    "check_scale",
    "check_two_rows",
    "choose_gamma",
    "choose_kernel",
    "fit_equation9",
    "fit_scaling",
    "gamma_of_distance",
    "inverse_variance",
    "local_graph",
    "make_graph",
    "mean_distance",
    "model_outputs",
    "normalize",
    "settle_optimality",
    "squared_distances",
    "store_model",
    "unit_rows",
    "upper_distances",
    "usual_scale",
]
