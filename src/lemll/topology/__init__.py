"""Neighbours of rows, and the weights that rebuild a row from its neighbours (Eq. 6-8)."""

from lemll.topology.kernel import kernel_reconstruction_weights
from lemll.topology.neighbors import nearest_neighbors
from lemll.topology.operator import ReconstructionOperator
from lemll.topology.sparse_coding import admm_codes, lasso_codes
from lemll.topology.weights import (
    check_graph,
    local_weights,
    reconstruction_weights,
)

__all__ = [
    "ReconstructionOperator",
    "admm_codes",
    "check_graph",
    "kernel_reconstruction_weights",
    "lasso_codes",
    "local_weights",
    "nearest_neighbors",
    "reconstruction_weights",
]
