"""Neighbour graphs with a record of how they were made, and their files."""

from __future__ import annotations

import hashlib
import os
import zipfile
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lemll._files import open_plain, whole_file
from lemll._types import Array, DType, Features, FloatArray, IndexArray, MatrixLike, SparseMatrix
from lemll._validation import check_finite, is_sparse
from lemll.exceptions import GraphFileError
from lemll.topology.neighbors import check_features, check_n_neighbors
from lemll.topology.weights import (
    check_graph,
    find_neighbors,
    graph_of,
    local_weights,
    weights_of_grams,
)


class ReconstructionOperator:
    r"""The matrix :math:`M = (I - W)^T (I - W)` of Eq. 8, as an operator.

    :math:`\mathrm{tr}(U^T M U) = \|U - W U\|_F^2` is the error if the weights that rebuild the
    features are used to rebuild the numerical labels U. M itself is never formed, because it has
    many more entries than W.

    Parameters
    ----------
    W : csr_array of shape (n_samples, n_samples)
        The weights, from `reconstruction_weights` or `check_graph`.
    dtype : dtype, default=float64
        Precision of the products.

    Attributes
    ----------
    shape : tuple of int
        (n_samples, n_samples).
    dtype : dtype
        Precision of the products.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.topology import reconstruction_weights
    >>> from lemll.topology.graphs import ReconstructionOperator
    >>> M = ReconstructionOperator(reconstruction_weights([[0.0], [1.0], [2.0]], n_neighbors=1))
    >>> M @ np.ones(3)
    array([0., 0., 0.])
    >>> M.value(np.array([[0.0], [1.0], [3.0]]))
    6.0
    """

    def __init__(self, W: SparseMatrix, dtype: npt.DTypeLike = np.float64) -> None:
        self.shape: tuple[int, int] = W.shape
        self.dtype: DType = np.dtype(dtype)
        eye = sparse.eye_array(W.shape[0], format="csr")
        self._residual: SparseMatrix = sparse.csr_array(eye - W, dtype=self.dtype)

    @classmethod
    def of(cls, W: SparseMatrix) -> ReconstructionOperator:
        """Return the operator of the weights W, or W itself if it is already an operator."""
        return W if isinstance(W, ReconstructionOperator) else cls(W)

    def astype(self, dtype: npt.DTypeLike) -> ReconstructionOperator:
        """Return the operator in another precision, or itself if the precision is the same."""
        if self.dtype == np.dtype(dtype):
            return self
        other = object.__new__(ReconstructionOperator)
        other.shape, other.dtype = self.shape, np.dtype(dtype)
        other._residual = self._residual.astype(dtype)
        return other

    @cached_property
    def _adjoint(self) -> Features:
        # Store the transpose by rows, so that its product is as fast as that of the matrix.
        return sparse.csr_array(self._residual.T)

    def residual(self, U: FloatArray) -> Features:
        """Return (I - W) U, the error of rebuilding U."""
        return self._residual @ U

    def adjoint(self, R: MatrixLike) -> Features:
        """Return (I - W)' R."""
        return self._adjoint @ R

    def adjoint_rows(self, rows: slice, R: MatrixLike) -> Features:
        """Return some rows of (I - W)' R."""
        return self._adjoint[rows] @ R

    def matmat(self, U: FloatArray) -> Features:
        """Return M U."""
        return self._adjoint @ (self._residual @ U)

    __matmul__ = matmat

    def value(self, U: FloatArray) -> float:
        """Return tr(U' M U), the regulariser R_3 of Eq. 8."""
        left = self.residual(U)
        return float(np.vdot(left, left))

    def diagonal(self) -> FloatArray:
        """Return the diagonal of M, in float64."""
        # M_jj is the squared length of column j of I - W, so M itself is not needed.
        squares = np.square(self._residual.data, dtype=np.float64)
        sums = np.bincount(self._residual.indices, weights=squares, minlength=self.shape[0])
        return np.asarray(sums, dtype=np.float64)

    def scaled_adjoint(self, scale: FloatArray) -> Features:
        """Return diag(scale) (I - W)' as a CSR array."""
        # Scale the stored values directly, which is faster than a product of sparse matrices.
        adjoint = self._adjoint
        repeated = np.repeat(scale.astype(self.dtype), np.diff(adjoint.indptr))
        pattern = (adjoint.data * repeated, adjoint.indices, adjoint.indptr)
        return sparse.csr_array(pattern, shape=self.shape)

    def tocsr(self) -> Features:
        """Return M itself as a CSR array. It has about K^2 entries per row."""
        return sparse.csr_array(self._adjoint @ self._residual)


# Distances are computed in blocks of this size.
BLOCK_BYTES = 1 << 25


def kernel_reconstruction_weights(
    K: MatrixLike, n_neighbors: int = 10, *, reg: float = 1e-3, reg_policy: str = "always"
) -> Features:
    r"""Return the weights that rebuild every row from its K nearest rows in a feature space.

    The result is the same as that of `reconstruction_weights` for features :math:`\varphi(x_i)`
    with :math:`k_{ij} = \varphi(x_i)^T \varphi(x_j)`. It minimises Eq. 6. The squared distances
    are :math:`k_{ii} + k_{jj} - 2 k_{ij}`, and the local Gram matrices are
    :math:`G_{jk} = k_{ii} - k_{ij} - k_{ik} + k_{jk}`.

    Parameters
    ----------
    K : array-like of shape (n_samples, n_samples)
        Symmetric positive semi-definite kernel matrix.
    n_neighbors : int, default=10
        The number of neighbours, smaller than `n_samples`.
    reg : float, default=1e-3
        Regularisation of a local Gram matrix, relative to its trace; see `local_weights`.
    reg_policy : {"auto", "always"}, default="always"
        Regularise only singular local Gram matrices ("auto") or all of them ("always").

    Returns
    -------
    csr_array of shape (n_samples, n_samples), float64
        W, in the same form as from `reconstruction_weights`.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.topology.graphs import kernel_reconstruction_weights
    >>> X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0], [1.0, 1.5]])
    >>> kernel_reconstruction_weights(X @ X.T, n_neighbors=2).toarray()[3].round(3)
    array([0.5, 0. , 0.5, 0. ])
    """
    K = K.toarray() if is_sparse(K) else np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"a kernel matrix must be square, got shape {K.shape}.")
    check_finite(K, name="the kernel")
    n_neighbors = check_n_neighbors(n_neighbors, len(K))
    neighbors = _nearest(K, n_neighbors)
    row = np.arange(len(K))[:, None]
    to_row = K[row, neighbors]
    # The features are not known, so G cannot be computed from differences as in `local_grams`.
    grams = K.diagonal()[:, None, None] - to_row[:, :, None] - to_row[:, None, :]
    grams = grams + K[neighbors[:, :, None], neighbors[:, None, :]]
    return graph_of(neighbors, weights_of_grams(grams, reg=reg, reg_policy=reg_policy))


def _nearest(K: FloatArray, n_neighbors: int) -> IndexArray:
    """Return the nearest rows of each row, nearest first; ties go to the lower index."""
    diagonal = K.diagonal()
    nearest = np.empty((len(K), n_neighbors), np.intp)
    step = max(1, BLOCK_BYTES // (8 * len(K)))
    for start in range(0, len(K), step):
        rows = np.arange(start, min(start + step, len(K)))
        # Omit k_ii of the row itself: it is the same for all candidates.
        distance = diagonal - 2 * K[rows]
        distance[rows - start, rows] = np.inf
        nearest[rows] = np.argsort(distance, axis=1, kind="stable")[:, :n_neighbors]
    return nearest


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
    with whole_file(target) as file:
        # The stubs of NumPy take the names of the arrays for those of options.
        np.savez(file, **arrays)  # type: ignore[arg-type]


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
