"""Neighbours, exact or approximate, and the weights that rebuild rows from them (Eq. 6-7)."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lemll._types import Array, Features, FloatArray, IndexArray, SparseMatrix
from lemll._validation import check_finite, is_sparse, warn_caller
from lemll.exceptions import import_extra
from lemll.topology.neighbors import (
    Rows,
    check_features,
    check_n_neighbors,
    nearest_among_all,
    nearest_neighbors,
    worker_threads,
)

SEARCHES = ("exact", "approximate", "auto")
# The time of the exact search grows like n^2. Up to this many rows it is not slower than the
# approximate one on sparse texts with 500 features.
MOST_EXACT_ROWS = 100_000
# The approximate search looks for this many times K neighbours and returns the nearest K. If their
# recall is below WANTED_RECALL, it continues from its result with the next factor.
CANDIDATES = (3, 5)
WANTED_RECALL = 0.95
# Rows whose neighbours are also searched exactly, to measure the recall. With 200 rows and K = 10,
# a recall of 0.95 has a standard error of about 0.01.
CHECKED_ROWS = 200


@dataclass(frozen=True)
class FoundNeighbors:
    """The neighbours of every row, and how they were found.

    Attributes
    ----------
    index : ndarray of shape (n_samples, n_neighbors), int
        Indices of the neighbours, nearest first.
    search : {"exact", "approximate"}
        The search that was used.
    recall : float
        The share of the true neighbours that was found, measured on `checked_rows` rows. 1 for
        an exact search.
    checked_rows : int
        Number of rows on which the recall was measured. 0 for an exact search.
    """

    index: IndexArray
    search: str
    recall: float
    checked_rows: int


def find_neighbors(X: Features, n_neighbors: int = 10, *, search: str = "auto") -> FoundNeighbors:
    """Return the K nearest rows of every row, exactly or approximately.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features. A sparse X is never converted to one dense array.
    n_neighbors : int, default=10
        The number K of neighbours, smaller than `n_samples`.
    search : {"auto", "exact", "approximate"}, default="auto"
        "exact" compares all pairs of rows, by `nearest_neighbors`. "approximate" descends along
        neighbours of neighbours (library pynndescent, extra ``ann``) and measures its recall.
        "auto" is "exact" up to 100,000 rows, and also for more rows if pynndescent is not
        installed.

    Returns
    -------
    FoundNeighbors
        The neighbours, the search that was used, and its recall.

    Notes
    -----
    The approximate search is that of [1]_. It uses a fixed seed. If less than 95 % of the true
    neighbours were found, it continues once with more candidates, and then warns if this was not
    enough. Data without local structure, such as random sparse rows, have a low recall. So have
    sparse rows far from the origin, because the search is in float32 and cannot centre them.

    References
    ----------
    .. [1] W. Dong, M. Charikar and K. Li, "Efficient k-nearest neighbor graph construction for
       generic similarity measures", WWW 2011.

    Examples
    --------
    >>> from lemll.topology import find_neighbors
    >>> found = find_neighbors([[0.0], [1.0], [1.0], [5.0]], n_neighbors=2)
    >>> found.search, found.recall
    ('exact', 1.0)
    """
    if not isinstance(search, str) or search not in SEARCHES:
        raise ValueError(f"neighbors={search!r} must be 'exact', 'approximate' or 'auto'.")
    X = check_features(X)
    n_neighbors = check_n_neighbors(n_neighbors, X.shape[0])
    if search == "auto":
        search = _usual_search(X.shape[0])
    # With so few rows, all of them would be candidates.
    if search == "exact" or X.shape[0] <= CANDIDATES[0] * n_neighbors + 1:
        return FoundNeighbors(nearest_neighbors(X, n_neighbors), "exact", 1.0, 0)
    return _approximate(X, n_neighbors)


def _usual_search(n_samples: int) -> str:
    if n_samples <= MOST_EXACT_ROWS:
        return "exact"
    if find_spec("pynndescent") is None:
        warn_caller(
            f"the exact search for the neighbours of {n_samples} rows takes long, because its time "
            "grows with the square of the rows; run: pip install 'lemll[ann]' for the "
            "approximate search, or ask for neighbors='exact'.",
            UserWarning,
        )
        return "exact"
    return "approximate"


def _approximate(X: Features, n_neighbors: int) -> FoundNeighbors:
    rows = _single_precision(X)
    graph: tuple[IndexArray, Array] | None = None
    checked = min(CHECKED_ROWS, X.shape[0])
    recall = 0.0
    for factor in CANDIDATES:
        width = min(factor * n_neighbors + 1, X.shape[0] - 1)
        graph = _descend(rows, width, graph)
        index = _without_self(graph[0], n_neighbors)
        recall = neighbor_recall(X, index, n_checked=checked)
        if recall >= WANTED_RECALL:
            break
    else:
        warn_caller(
            f"the approximate search found only {recall:.1%} of the neighbours of "
            f"{checked} checked rows; the rows have little local structure. Use "
            "neighbors='exact', or a smaller n_neighbors.",
            UserWarning,
        )
    return FoundNeighbors(index, "approximate", recall, checked)


def _single_precision(X: Features) -> Features:
    """Return the rows in float32, scaled and (if dense) centred so that nothing is lost in it."""
    if is_sparse(X):
        largest = float(np.abs(X.data).max(initial=0)) or 1.0
        data = (X.data / largest).astype(np.float32)
        # The compiled code of pynndescent knows only the class and the indices below.
        parts = (data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        return sparse.csr_matrix(parts, shape=X.shape)
    centre = X.mean(axis=0, dtype=np.float64)
    largest = float(max((X.max(axis=0) - centre).max(), (centre - X.min(axis=0)).max())) or 1.0
    rows = np.empty(X.shape, np.float32)
    for start in range(0, len(X), 10_000):
        rows[start : start + 10_000] = (X[start : start + 10_000] - centre) / largest
    return rows


def _descend(
    rows: Features, width: int, start: tuple[IndexArray, Array] | None
) -> tuple[IndexArray, Array]:
    """Return the nearest rows that pynndescent finds, the row itself among them, and distances."""
    pynndescent = import_extra("pynndescent", "ann", "The approximate search for neighbours")
    init_graph = init_dist = None
    if start is not None:
        # Continue from the last result: its columns, then repeated ones to fill the width.
        index, distance = start
        fill = np.arange(width) % index.shape[1]
        init_graph, init_dist = index[:, fill], distance[:, fill]
    with worker_threads() as workers, warnings.catch_warnings():
        # It warns about single rows that found fewer neighbours; the recall counts them.
        warnings.simplefilter("ignore")
        found = pynndescent.NNDescent(
            rows,
            metric="euclidean",
            n_neighbors=width,
            init_graph=init_graph,
            init_dist=init_dist,
            random_state=0,
            n_jobs=workers,
        )
    index, distance = found.neighbor_graph
    return index, distance


def _without_self(index: IndexArray, n_neighbors: int) -> IndexArray:
    """Return the first K candidates of each row that are another row, each once."""
    n_samples = len(index)
    own = np.arange(n_samples)[:, None]
    bad = (index == own) | (index < 0)
    order = np.argsort(bad, axis=1, kind="stable")[:, :n_neighbors]
    kept = np.take_along_axis(index, order, axis=1).astype(np.intp)
    # A row in a group of many twins may have found too few others. Fill with the rows after it.
    missing = np.take_along_axis(bad, order, axis=1)
    for i in np.flatnonzero(missing.any(axis=1)):
        others = (i + 1 + np.arange(2 * n_neighbors + 1)) % n_samples
        spare = others[(others != i) & ~np.isin(others, kept[i][~missing[i]])]
        spare = spare[np.sort(np.unique(spare, return_index=True)[1])]
        kept[i, missing[i]] = spare[: int(missing[i].sum())]
    return np.asarray(kept)


def neighbor_recall(
    X: Features, neighbors: IndexArray, *, n_checked: int = CHECKED_ROWS, seed: int = 0
) -> float:
    """Measure which share of the true neighbours was found, on a sample of rows.

    A neighbour counts as found if its distance is at most that of the true K-th neighbour. So
    another row at the same distance is as good.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features.
    neighbors : ndarray of shape (n_samples, n_neighbors), int
        Neighbours to check.
    n_checked : int, default=200
        Number of rows whose neighbours are searched exactly.
    seed : int, default=0
        Seed of the sample.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.topology import neighbor_recall
    >>> neighbor_recall([[0.0], [1.0], [3.0]], np.array([[1], [2], [1]]))
    0.6666666666666666
    """
    X = check_features(X)
    n_samples, width = neighbors.shape
    generator = np.random.default_rng(seed)
    which = np.sort(generator.choice(n_samples, min(n_checked, n_samples), replace=False))
    rows = Rows(X)
    _, distance = nearest_among_all(rows, which, width)
    got = rows.distances(np.repeat(which, width), neighbors[which].ravel()).reshape(-1, width)
    return float((got <= distance[:, -1:]).mean())


# A local Gram matrix with a higher condition number does not have enough digits for a solution.
CONDITION_LIMIT = 1e12
# Weights of usual size, stored in float32, sum to one up to a few rounding errors of float32.
SUM_TOLERANCE = 1e-6
# Large positive and negative weights cancel, so their sum has a rounding error proportional to the
# sum of their absolute values. An error above WORST_SUM is not accepted in any case.
SUM_ROUNDING, WORST_SUM = 1e-12, 1e-3


# Blocks of this size stay in the cache. Except for very wide X, no temporary array is larger.
CACHE_BYTES = 1 << 21
# Gram matrices are solved in groups of at most this size, one group per thread at a time.
GRAM_BYTES = 1 << 25
# A Gram matrix with a trace below this has lost digits to underflow.
UNDERFLOW = 2.0**-900


def reconstruction_weights(
    X: Features,
    n_neighbors: int = 10,
    *,
    reg: float = 1e-3,
    reg_policy: str = "always",
    neighbors: str = "exact",
) -> Features:
    r"""Return the weights that rebuild every row from its K nearest rows, Eq. 6.

    .. math:: \min_W \sum_i \Big\| x_i - \sum_{j \ne i} W_{ij} x_j \Big\|^2
        \quad \text{s.t.} \quad \sum_j W_{ij} = 1,

    with :math:`W_{ij} = 0` unless j is one of the K nearest rows of i.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features. A sparse X is never converted to one dense array.
    n_neighbors : int, default=10
        The number K of neighbours, smaller than `n_samples`.
    reg : float, default=1e-3
        Regularisation of a local Gram matrix, relative to its trace; see `local_weights`.
    reg_policy : {"auto", "always", "absolute"}, default="always"
        "auto" regularises only singular local Gram matrices, "always" all of them. "absolute" also
        regularises all of them, but by `reg` itself and not relative to the trace.
    neighbors : {"exact", "approximate", "auto"}, default="exact"
        How neighbours are searched; see `find_neighbors`.

    Returns
    -------
    csr_array of shape (n_samples, n_samples), float64
        W. It has K stored entries per row, sorted by index, and a zero diagonal. Each row sums to
        one.

    See Also
    --------
    nearest_neighbors : Only the neighbours.
    neighbor_graph : W together with how the neighbours were found.
    ReconstructionOperator : The matrix M of Eq. 8, from W.

    Notes
    -----
    The paper writes the constraint of Eq. 6 as a sum over i. However, its Eq. 7 and the invariance
    to translation, which it requires, need the sum over j. This code uses the sum over j.

    References
    ----------
    .. [1] R. Shao, N. Xu, X. Geng. Multi-label learning with label enhancement. ICDM 2018,
       pp. 437-446.
    .. [2] S. T. Roweis, L. K. Saul. Nonlinear dimensionality reduction by locally linear
       embedding. Science 290 (2000), pp. 2323-2326.

    Examples
    --------
    >>> from lemll.topology import reconstruction_weights
    >>> X = [[0.0, 0.0], [4.0, 0.0], [0.0, 3.0], [1.0, 1.5]]
    >>> W = reconstruction_weights(X, n_neighbors=2)
    >>> W.toarray()[3].round(3)
    array([0.5, 0. , 0.5, 0. ])
    """
    X = check_features(X)
    index = find_neighbors(X, n_neighbors, search=neighbors).index
    return graph_of(index, local_weights(X, index, reg=reg, reg_policy=reg_policy))


def graph_of(neighbors: IndexArray, weights: FloatArray) -> Features:
    """Return the weights of the neighbours as the sparse matrix W.

    Parameters
    ----------
    neighbors : ndarray of shape (n_samples, n_neighbors), int
        Indices of the neighbours of each row.
    weights : ndarray of shape (n_samples, n_neighbors)
        Their weights.

    Returns
    -------
    csr_array of shape (n_samples, n_samples), float64
        W, with the entries of each row sorted by index.
    """
    order = np.argsort(neighbors, axis=1)
    n_samples, width = neighbors.shape
    indices = np.take_along_axis(neighbors, order, axis=1).ravel()
    data = np.take_along_axis(weights, order, axis=1).ravel()
    indptr = np.arange(0, n_samples * width + 1, width)
    index = np.int32 if n_samples * width < 2**31 else np.int64
    parts = (data, indices.astype(index), indptr.astype(index))
    return sparse.csr_array(parts, shape=(n_samples, n_samples))


def local_weights(
    X: Features, neighbors: IndexArray, *, reg: float = 1e-3, reg_policy: str = "always"
) -> FloatArray:
    r"""Return the weights of given neighbours, the solutions of Eq. 7.

    For each row i, :math:`w = G^{-1} 1 / (1^T G^{-1} 1)` minimises :math:`w^T G w` subject to
    :math:`1^T w = 1`, where :math:`G_{jk} = (x_i - x_j)^T (x_i - x_k)`. If G is singular, w is not
    unique. This happens if there are more neighbours than features, if two neighbours are equal, or
    if a neighbour is equal to the row. Then :math:`G + \text{reg} \cdot \mathrm{tr}(G) I` replaces
    G. If all neighbours are equal to the row, :math:`\text{reg} \cdot I` replaces G, and all
    weights are equal.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features.
    neighbors : ndarray of shape (n_samples, n_neighbors), int
        Indices of the neighbours of each row.
    reg : float, default=1e-3
        Regularisation, positive. Relative to the trace, unless `reg_policy` is "absolute".
    reg_policy : {"auto", "always", "absolute"}, default="always"
        ``"auto"`` regularises if there are more neighbours than features, or if the condition
        number of G is above 1e12. ``"always"`` regularises every G. ``"absolute"`` uses
        :math:`G + \text{reg} \cdot I` for every G; then the weights depend on the units of X.

    Returns
    -------
    ndarray of shape (n_samples, n_neighbors)
        Weights in the order of `neighbors`. Each row sums to one. Weights may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.topology import local_weights
    >>> twins = np.zeros((3, 2))
    >>> local_weights(twins, np.array([[1, 2], [0, 2], [0, 1]]))
    array([[0.5, 0.5],
           [0.5, 0.5],
           [0.5, 0.5]])
    """
    X = check_features(X)
    # With more neighbours than features, the differences are linearly dependent and G is singular.
    if reg_policy == "auto" and neighbors.shape[1] > X.shape[1]:
        reg_policy = "always"
    weights = np.empty(neighbors.shape)

    def solve(part: slice) -> None:
        grams = local_grams(X, neighbors, rescale=reg_policy != "absolute", part=part)
        weights[part] = weights_of_grams(grams, reg=reg, reg_policy=reg_policy)

    # All Gram matrices together would need K times the memory of the graph.
    step = max(1, GRAM_BYTES // (8 * neighbors.shape[1] ** 2))
    parts = [slice(i, min(i + step, len(neighbors))) for i in range(0, len(neighbors), step)]
    if len(parts) <= 1:
        solve(slice(0, len(neighbors)))
        return weights
    with worker_threads() as workers, ThreadPoolExecutor(workers) as pool:
        list(pool.map(solve, parts))
    return weights


def weights_of_grams(grams: FloatArray, *, reg: float, reg_policy: str) -> FloatArray:
    """Return the solutions of Eq. 7 for given local Gram matrices.

    Parameters
    ----------
    grams : ndarray of shape (n_samples, n_neighbors, n_neighbors)
        The matrices G.
    reg, reg_policy
        As in `local_weights`.

    Returns
    -------
    ndarray of shape (n_samples, n_neighbors)
        Each row sums to one.
    """
    if not (np.isfinite(reg) and reg > 0):
        raise ValueError(f"reg must be a positive number, got {reg!r}; the usual value is 1e-3.")
    if reg_policy not in ("auto", "always", "absolute"):
        raise ValueError(f'reg_policy must be "auto", "always" or "absolute", got {reg_policy!r}.')
    if reg_policy == "absolute":
        w = _solve_with(grams, np.full(len(grams), reg))
    elif reg_policy == "auto":
        w, inverse_trace = solve_for_ones(grams)
        weak = np.flatnonzero(ill_conditioned(grams, inverse_trace, CONDITION_LIMIT))
        w[weak] = _regularized(grams[weak], reg)
    else:
        w = _regularized(grams, reg)
    w /= w.sum(axis=1, keepdims=True)
    return w


def _regularized(grams: FloatArray, reg: float) -> FloatArray:
    """Solve (G + reg tr(G) I) w = 1, or reg I w = 1 if the trace is zero."""
    trace = np.trace(grams, axis1=1, axis2=2)
    return _solve_with(grams, np.where(trace > 0, reg * trace, reg))


def _solve_with(grams: FloatArray, added: FloatArray) -> FloatArray:
    """Solve (G + added I) w = 1."""
    diagonal = np.arange(grams.shape[1])
    grams = grams.copy()
    grams[:, diagonal, diagonal] += added[:, None]
    return solve_for_ones(grams)[0]


def check_graph(W: SparseMatrix, n_samples: int, *, sum_to_one: bool = True) -> Features:
    """Return a precomputed graph as a CSR array, or raise a ValueError.

    Parameters
    ----------
    W : array-like or sparse matrix of shape (n_samples, n_samples)
        Weights as from `reconstruction_weights`: finite, with a zero diagonal, and each row sums
        to one.
    n_samples : int
        The number of rows of the data.
    sum_to_one : bool, default=True
        Whether each row must sum to one. The rows of sparse codes do not.

    Returns
    -------
    csr_array of shape (n_samples, n_samples), float64
        The weights, sorted by index, without stored zeros. `W` is never changed.

    Examples
    --------
    >>> from lemll.topology.weights import check_graph
    >>> check_graph([[0, 1], [1, 0]], n_samples=2).nnz
    2
    """
    graph = sparse.csr_array(W if is_sparse(W) else np.atleast_2d(np.asarray(W)))
    if graph.shape != (n_samples, n_samples):
        raise ValueError(
            f"the graph must have one row and one column for each of {n_samples} samples, "
            f"got shape {graph.shape}; build it from the same rows."
        )
    if graph.dtype.kind not in "biuf":
        raise ValueError(f"the graph must hold real numbers, got dtype {graph.dtype}.")
    # The next two calls work in place, so copy first: do not change arrays of the caller.
    graph = graph.astype(np.float64, copy=True)
    graph.sum_duplicates()
    graph.eliminate_zeros()
    check_finite(graph, name="the graph")
    loops = np.flatnonzero(graph.diagonal())
    if len(loops):
        raise ValueError(
            f"the graph must have a zero diagonal, got {graph.diagonal()[loops[0]]:.6g} in row "
            f"{loops[0]}; a row is not rebuilt from itself."
        )
    if not sum_to_one:
        return graph
    sums = np.asarray(graph.sum(axis=1))
    rounding = SUM_ROUNDING * np.asarray(abs(graph).sum(axis=1))
    off = np.abs(sums - 1) > np.clip(rounding, SUM_TOLERANCE, WORST_SUM)
    if off.any():
        row = int(np.argmax(off))
        raise ValueError(
            f"every row of the graph must sum to 1, got {sums[row]:.6g} in row {row}; "
            "divide each row by its sum."
        )
    return graph


def local_grams(
    X: Features, neighbors: IndexArray, *, rescale: bool = True, part: slice | None = None
) -> FloatArray:
    r"""Return the local Gram matrices of Eq. 7, each up to a factor.

    The entries are :math:`(G_i)_{jk} = (x_i - x_j)^T (x_i - x_k)` for the neighbours j, k of row i.
    They are computed from the differences, so that nothing cancels. If entries would overflow or
    underflow, the whole matrix is scaled by a power of two. This does not change the weights.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        From `check_features`.
    neighbors : ndarray of shape (n_samples, n_neighbors)
        The neighbours of each row.
    rescale : bool, default=True
        Whether to scale matrices that would underflow. If False, entries may underflow to 0.
        Features whose squares overflow are always scaled.
    part : slice, optional
        The rows whose matrices are wanted; by default all.

    Returns
    -------
    ndarray of shape (n_samples, n_neighbors, n_neighbors)
        The matrices G_i.
    """
    part = slice(0, len(neighbors)) if part is None else part
    around = np.column_stack([np.arange(part.start, part.stop), neighbors[part]])
    n_samples, n_neighbors = len(around), neighbors.shape[1]
    grams = np.empty((n_samples, n_neighbors, n_neighbors))
    values = X.data if is_sparse(X) else X
    huge = float(max(values.max(initial=0), -values.min(initial=0))) > 2.0**500
    width = X.shape[1]
    if is_sparse(X):
        width = min(width, 4 * (n_neighbors + 1) * (X.nnz // X.shape[0] + 1))
    step = max(1, CACHE_BYTES // (8 * width * n_neighbors))
    for start in range(0, n_samples, step):
        block = slice(start, min(start + step, n_samples))
        rows = _dense_rows(X, around[block])
        # Squares overflow above 2^512. The factor is a power of two, so it causes no rounding.
        if huge:
            rows *= 2.0**-530
        # In place: a new array of this size takes longer than the subtraction.
        difference = rows[:, 1:]
        difference -= rows[:, :1]
        np.matmul(difference, difference.transpose(0, 2, 1), out=grams[block])
        weak = np.flatnonzero(np.trace(grams[block], axis1=1, axis2=2) < UNDERFLOW)
        if rescale and len(weak):
            largest = np.abs(difference[weak]).max(axis=(1, 2), keepdims=True, initial=0)
            strong = np.ldexp(difference[weak], -np.frexp(largest)[1])
            grams[start + weak] = strong @ strong.transpose(0, 2, 1)
    return grams


def _dense_rows(X: Features, index: IndexArray) -> FloatArray:
    """Return some rows as a new dense array, without the features that are zero in all of them."""
    if not is_sparse(X):
        return np.asarray(X[index], dtype=np.float64)
    rows = X[index.ravel()]
    used = np.zeros(X.shape[1], bool)
    used[rows.indices] = True
    place = np.cumsum(used, dtype=rows.indices.dtype) - 1
    shape = (index.size, int(place[-1]) + 1)
    # Cast the few stored values, not the dense array.
    parts = (rows.data.astype(np.float64), place[rows.indices], rows.indptr)
    dense = sparse.csr_array(parts, shape=shape).toarray()
    return np.asarray(dense).reshape(*index.shape, shape[1])


def solve_for_ones(grams: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve G w = 1 for many small symmetric matrices G together.

    Elimination without pivoting is stable for positive definite G. It runs over all matrices of a
    block at the same time. For K = 10 this is many times faster than one LAPACK call per matrix.

    Parameters
    ----------
    grams : ndarray of shape (n_samples, n_neighbors, n_neighbors)
        The matrices.

    Returns
    -------
    w : ndarray of shape (n_samples, n_neighbors)
        The solutions. They have no meaning if `trace` is infinite.
    trace : ndarray of shape (n_samples,)
        Traces of the inverses. Infinite if a pivot is zero.
    """
    n_samples, n_neighbors, _ = grams.shape
    w = np.empty((n_samples, n_neighbors))
    trace = np.empty(n_samples)
    step = max(1, CACHE_BYTES // (8 * n_neighbors**2))
    for start in range(0, n_samples, step):
        part = slice(start, start + step)
        # The matrices go to the last axis, so every operation runs over contiguous memory.
        w[part], trace[part] = _eliminate(np.ascontiguousarray(grams[part].transpose(1, 2, 0)))
    return w, trace


def _eliminate(G: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve by the decomposition V G V' = D and G^-1 = V' D^-1 V; G (K x K x many) is changed."""
    n_neighbors = len(G)
    V = np.zeros_like(G)
    V[np.arange(n_neighbors), np.arange(n_neighbors)] = 1
    # A pivot is at least the smallest eigenvalue. So a pivot this small means that G is singular.
    least = np.einsum("jjb->b", G) * 2.0**-60
    regular = np.ones(G.shape[2], bool)
    for j in range(n_neighbors):
        regular &= G[j, j] > least
        pivot = np.where(regular, G[j, j], 1.0)
        factor = G[j + 1 :, j] * np.where(regular, 1 / pivot, 0.0)
        G[j + 1 :, j + 1 :] -= factor[:, None] * G[j, j + 1 :]
        V[j + 1 :, : j + 1] -= factor[:, None] * V[j, : j + 1]
        G[j, j] = pivot
    pivots = np.einsum("jjb->jb", G)
    ones = V.sum(axis=1) / pivots
    w = np.einsum("jkb,jb->bk", V, ones)
    trace = np.einsum("jkb,jkb,jb->b", V, V, 1 / pivots)
    return w, np.where(regular, trace, np.inf)


def ill_conditioned(
    grams: FloatArray, inverse_trace: FloatArray, limit: float
) -> npt.NDArray[np.bool_]:
    """Return which matrices are singular or have a condition number above `limit`.

    Parameters
    ----------
    grams : ndarray of shape (n_samples, n_neighbors, n_neighbors)
        Symmetric positive semidefinite matrices.
    inverse_trace : ndarray of shape (n_samples,)
        Traces of their inverses, from `solve_for_ones`.
    limit : float
        Largest accepted condition number, in the spectral norm.

    Returns
    -------
    ndarray of shape (n_samples,), bool
    """
    # The condition number is between tr(G) tr(G^-1) / K^2 and tr(G) tr(G^-1). Compute eigenvalues
    # only if these cheap bounds do not decide.
    ill: npt.NDArray[np.bool_] = np.isinf(inverse_trace)
    most = np.trace(grams, axis1=1, axis2=2) * np.where(ill, 0.0, inverse_trace)
    ill |= most > limit
    doubtful = np.flatnonzero((most > limit) & (most <= limit * grams.shape[1] ** 2))
    eigenvalues = np.linalg.eigvalsh(grams[doubtful])
    ill[doubtful] = eigenvalues[:, -1] > limit * eigenvalues[:, 0]
    return ill
