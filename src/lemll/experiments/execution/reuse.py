"""Caches of first stages and graphs, shared by cells and parameters that do not change them."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self

import joblib

from lemll._types import Estimator
from lemll.datasets import Dataset
from lemll.experiments.protocols.names import plain
from lemll.experiments.protocols.sources import features_sha256

__all__ = ["FirstStages", "Graphs"]


# Three enhancers of lemll use a graph.
_MOST_GRAPHS = 3


class FirstStages:
    """A cache in the memory of one process, for the parameter `memory` of an estimator.

    It implements the part of the interface of `joblib.Memory` that scikit-learn uses. It does not
    write files.

    Parameters
    ----------
    most : int
        Largest number of results to keep.

    Examples
    --------
    >>> calls = []
    >>> remembered = FirstStages(2).cache(lambda x: calls.append(x) or x + 1)
    >>> remembered(1), remembered(1), len(calls)
    (2, 2, 1)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, Any] = OrderedDict()

    def cache(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with a cache of its results.

        Parameters
        ----------
        function : callable
            A function whose arguments `joblib.hash` can distinguish.

        Returns
        -------
        callable
            A function with the same results.
        """

        def remembered(*arguments: Any) -> Any:
            key = str(joblib.hash((function.__qualname__, arguments)))
            if key in self._kept:
                return self._kept[key]
            result = function(*arguments)
            while len(self._kept) >= self._most:
                self._kept.popitem(last=False)
            self._kept[key] = result
            return result

        return remembered

    def at_least(self, most: int) -> Self:
        """Keep at least this many results.

        Parameters
        ----------
        most : int
            Number of results: one per subset of the rows that a search uses again.

        Returns
        -------
        self
            The same cache.
        """
        self._most = max(self._most, most)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # scikit-learn clones an estimator for each point of a grid. All clones share this cache.
        return self


class Graphs:
    """A cache of the graphs of enhancers, for further thresholds and for data sets with the same X.

    A graph depends only on the features. Fits give the same result with and without the cache, but
    some take a thousand times longer without it.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], Any] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, estimator: Estimator, dataset: Dataset) -> Any:
        """Return the value for the parameter `graph` of an estimator, or None if it has none."""
        if estimator.get_params().get("graph", dataset) is not None:
            return None
        n_labels = dataset.labels.shape[1]
        settings = json.dumps(plain(estimator.get_params()), sort_keys=True)
        key = (type(estimator).__name__, settings, str(n_labels), features_sha256(dataset.X))
        with self._lock:
            if key not in self._kept:
                while len(self._kept) >= _MOST_GRAPHS:
                    self._kept.popitem(last=False)
                self._kept[key] = estimator.make_graph(dataset.X, n_labels)
            return self._kept[key]
