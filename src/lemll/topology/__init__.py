"""Neighbours of rows, and the weights that rebuild a row from its neighbours (Eq. 6-8)."""

from lemll.topology.graphs import (
    NeighborGraph,
    check_rows,
    load_graph,
    neighbor_graph,
    save_graph,
)
from lemll.topology.kernel import kernel_reconstruction_weights
from lemll.topology.neighbors import nearest_neighbors
from lemll.topology.operator import ReconstructionOperator
from lemll.topology.search import SEARCHES, FoundNeighbors, find_neighbors, neighbor_recall
from lemll.topology.sparse_coding import admm_codes, lasso_codes
from lemll.topology.weights import (
    check_graph,
    local_weights,
    reconstruction_weights,
)

__all__ = [
    "SEARCHES",
    "FoundNeighbors",
    "NeighborGraph",
    "ReconstructionOperator",
    "admm_codes",
    "check_graph",
    "check_rows",
    "find_neighbors",
    "kernel_reconstruction_weights",
    "lasso_codes",
    "load_graph",
    "local_weights",
    "nearest_neighbors",
    "neighbor_graph",
    "neighbor_recall",
    "reconstruction_weights",
    "save_graph",
]
