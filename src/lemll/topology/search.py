"""Find neighbours exactly or approximately, and measure what the approximation found."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from lemll._types import Features, IndexArray
from lemll._validation import is_sparse, warn_caller
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
    graph: tuple[Any, Any] | None = None
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


def _single_precision(X: Features) -> Any:
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


def _descend(rows: Any, width: int, start: tuple[Any, Any] | None) -> tuple[Any, Any]:
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


def _without_self(index: Any, n_neighbors: int) -> IndexArray:
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
