"""Neighbour graphs with a record of how they were made, and their files."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from scipy import sparse

from lemll._plain_files import open_plain
from lemll._types import Array, Features
from lemll._validation import is_sparse
from lemll.exceptions import GraphFileError
from lemll.topology.rows import check_features
from lemll.topology.search import find_neighbors
from lemll.topology.weights import check_graph, graph_of, local_weights

__all__ = ["NeighborGraph", "load_graph", "neighbor_graph", "save_graph"]

FORMAT = "lemll graph 1"
_MEMBERS = ("format", "data", "indices", "indptr", "rows", "search", "recall", "checked_rows")


class NeighborGraph(NamedTuple):
    """A graph, and how its neighbours were found.

    Attributes
    ----------
    W : csr_array of shape (n_samples, n_samples)
        LLE weights. Each row sums to one.
    search : {"exact", "approximate"}
        The search for the neighbours.
    recall : float
        Measured share of the true neighbours; 1 for an exact search.
    checked_rows : int
        Number of rows on which the recall was measured.
    rows : str
        A check sum of the rows of X, by which a graph of other rows is recognised.
    """

    W: Features
    search: str
    recall: float
    checked_rows: int
    rows: str


def neighbor_graph(
    X: Features, n_neighbors: int = 10, *, neighbors: str = "auto", reg_policy: str = "always"
) -> NeighborGraph:
    """Find neighbours and the weights that rebuild each row from them (Eq. 6).

    The weights minimise ``sum_i |x_i - sum_j W_ij x_j|^2`` subject to ``sum_j W_ij = 1``.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features.
    n_neighbors : int, default=10
        The number K of neighbours, smaller than `n_samples`.
    neighbors : {"auto", "exact", "approximate"}, default="auto"
        How neighbours are searched; see `find_neighbors`.
    reg_policy : {"auto", "always", "absolute"}, default="always"
        As in `reconstruction_weights`.

    Returns
    -------
    NeighborGraph
        The graph. ``LEMLL(graph=...)`` takes it, also for many fits.

    Examples
    --------
    >>> from lemll.topology import neighbor_graph
    >>> graph = neighbor_graph([[0.0], [1.0], [3.0], [4.0]], n_neighbors=1)
    >>> graph.search, graph.W.nnz
    ('exact', 4)
    """
    X = check_features(X)
    found = find_neighbors(X, n_neighbors, search=neighbors)
    W = graph_of(found.index, local_weights(X, found.index, reg_policy=reg_policy))
    return NeighborGraph(W, found.search, found.recall, found.checked_rows, rows_sha256(X))


def save_graph(graph: NeighborGraph, path: str | Path) -> None:
    """Write a graph to a file, so that later fits of the same rows need no search.

    Parameters
    ----------
    graph : NeighborGraph
        From `neighbor_graph`.
    path : str or Path
        The file, an uncompressed NPZ archive of plain arrays. If it exists, it is replaced when
        the new file is complete.

    Examples
    --------
    >>> import tempfile, os
    >>> from lemll.topology import load_graph, neighbor_graph, save_graph
    >>> X = [[0.0], [1.0], [3.0], [4.0]]
    >>> path = os.path.join(tempfile.mkdtemp(), "graph.npz")
    >>> save_graph(neighbor_graph(X, n_neighbors=1), path)
    >>> load_graph(path, X).search
    'exact'
    """
    if not isinstance(graph, NeighborGraph):
        raise ValueError(
            f"graph must be a NeighborGraph, got {type(graph).__name__}; make it with "
            "lemll.topology.neighbor_graph(X)."
        )
    W = sparse.csr_array(graph.W)
    target = Path(path)
    if not target.parent.is_dir():
        raise ValueError(f"there is no folder {target.parent} for {target.name}; create it first.")
    arrays = {
        "format": np.array(FORMAT),
        "data": W.data,
        "indices": W.indices,
        "indptr": W.indptr,
        "rows": np.array(graph.rows),
        "search": np.array(graph.search),
        "recall": np.array(graph.recall),
        "checked_rows": np.array(graph.checked_rows),
    }
    # A temporary name until the file is complete: an interrupted write leaves no broken graph.
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            # The stubs of NumPy take the names of the arrays for those of options.
            np.savez(file, **arrays)  # type: ignore[arg-type]
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load_graph(path: str | Path, X: Features = None) -> NeighborGraph:
    """Read a graph that `save_graph` wrote.

    Parameters
    ----------
    path : str or Path
        The file. Nothing in it is unpickled.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        The rows that the graph must belong to. If given, a graph of other rows is refused.

    Returns
    -------
    NeighborGraph
        The graph.
    """
    try:
        with os.fdopen(open_plain(path, follow=True), "rb") as file:
            stored = _arrays(file)
    except OSError as error:
        raise GraphFileError(
            f"{path} cannot be read: {error.strerror}; make it with lemll.topology.save_graph."
        ) from error
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise GraphFileError(
            f"{path} is not a graph file of lemll ({error}); make it with "
            "lemll.topology.save_graph."
        ) from error
    n_samples = len(stored["indptr"]) - 1
    parts = (stored["data"], stored["indices"], stored["indptr"])
    try:
        W = sparse.csr_array(parts, shape=(n_samples, n_samples))
        W.check_format()
        W = check_graph(W, n_samples)
    except ValueError as error:
        raise GraphFileError(f"{path} holds a damaged graph: {error}") from error
    graph = NeighborGraph(
        W,
        str(stored["search"]),
        float(stored["recall"]),
        int(stored["checked_rows"]),
        str(stored["rows"]),
    )
    if X is not None:
        check_rows(graph, X, str(path))
    return graph


def _arrays(file: BinaryIO) -> dict[str, Array]:
    # Stored members cannot be larger than the file, unlike compressed ones.
    if any(member.compress_type for member in zipfile.ZipFile(file).infolist()):
        raise ValueError("its members are compressed")
    file.seek(0)
    with np.load(file, allow_pickle=False) as archive:
        stored = {name: archive[name] for name in _MEMBERS}
    if str(stored["format"]) != FORMAT:
        raise ValueError(f"format {str(stored['format'])!r}, wanted {FORMAT!r}")
    return stored


def check_rows(graph: NeighborGraph, X: Features, name: str = "graph") -> None:
    """Refuse a graph that was made from other rows than `X`."""
    X = check_features(X)
    if graph.rows != rows_sha256(X):
        raise ValueError(
            f"{name} was made from other rows ({graph.W.shape[0]} of them) than X "
            f"({X.shape[0]} rows), or from the same rows in another order, precision or scaling, "
            "or dense instead of sparse; make it again with lemll.topology.neighbor_graph(X). A "
            "learner with scale= needs the graph of the scaled rows."
        )


def rows_sha256(X: Features) -> str:
    """Return a check sum of validated rows; sparse and dense rows have different ones."""
    check = hashlib.sha256(repr((X.shape, str(X.dtype), is_sparse(X))).encode())
    if is_sparse(X):
        for part in (X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)):
            check.update(np.ascontiguousarray(part).data)
    else:
        check.update(np.ascontiguousarray(X).data)
    return check.hexdigest()
