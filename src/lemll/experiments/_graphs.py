"""Graphs of features, kept for the cells that can use them again."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import Any

from lemll.datasets import Dataset
from lemll.experiments._plain import plain
from lemll.experiments._sources import features_sha256

__all__ = ["Graphs"]

# As many enhancers use a graph.
_MOST_GRAPHS = 3


class Graphs:
    """What enhancers know of features alone, kept for the next thresholds, or sets with the same X.

    Fits are the same with it and without; some take a thousand times longer without.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], Any] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, estimator: Any, dataset: Dataset) -> Any:
        """Return the graph for an estimator's parameter `graph`, or None if it has none."""
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
