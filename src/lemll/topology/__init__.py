"""Neighbours of rows, and the weights that rebuild a row from its neighbours (Eq. 6-8)."""

from lemll.topology.graphs import (
    NeighborGraph,
    ReconstructionOperator,
    load_graph,
    neighbor_graph,
    save_graph,
)
from lemll.topology.neighbors import nearest_neighbors
from lemll.topology.weights import (
    check_graph,
    find_neighbors,
    local_weights,
    neighbor_recall,
    reconstruction_weights,
)

__all__ = [
    "NeighborGraph",
    "ReconstructionOperator",
    "check_graph",
    "find_neighbors",
    "load_graph",
    "local_weights",
    "nearest_neighbors",
    "neighbor_graph",
    "neighbor_recall",
    "reconstruction_weights",
    "save_graph",
]
