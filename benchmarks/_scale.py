"""What the benchmark of scale runs in processes of their own: data, one job, its times."""

from __future__ import annotations

from typing import Any

from benchmarks._measure import run

# Rows that are generated with the others and scored, but not fitted.
HELD_OUT = 5_000

_SETUP = """
import time
import numpy as np
from benchmarks._text import text_like
from lemll import LEMLL
from lemll.metrics import average_precision
from lemll.solvers import solver_bytes
from lemll.topology import neighbor_graph
X, Y = text_like({rows} + {held}, {features}, {labels}, density={density})
X, T, Y, V = X[:{rows}], X[{rows}:], Y[:{rows}], Y[{rows}:].toarray()
# Load the compiled code of the search and import what fits import, which would count as memory.
FAST = {{"precision": "float32"}}
LEMLL(graph={{"neighbors": "approximate"}}, tol=1e-3, solver_params=FAST).fit(X[:2000], Y[:2000])
def clock():
    return np.array([time.perf_counter(), time.process_time()])
"""
_JOB = """
times = [clock()]
graph = neighbor_graph(X, neighbors={neighbors!r})
times.append(clock())
print("graph", (times[1] - times[0]).round(1), graph.recall, file=sys.stderr, flush=True)
FAST["label_block"] = {block}
model = LEMLL(graph=graph, tol=1e-3, solver_params=FAST).fit(X, Y)
times.append(clock())
predicted = model.predict(X)
times.append(clock())
result = dict(
    times=np.diff(times, axis=0).round(2).tolist(),
    search=graph.search, recall=graph.recall, optimality=model.optimality_, n_iter=model.n_iter_,
    estimate=solver_bytes(X, {block} or {labels}, precision="float32"),
    average_precision=average_precision(V, model.decision_function(T)),
    by_frequency=average_precision(V, np.tile(np.asarray(Y.mean(axis=0)).ravel(), (len(V), 1))),
)
"""


def fit_text(
    rows: int,
    *,
    features: int = 500,
    labels: int = 50,
    density: float = 0.015,
    neighbors: str = "approximate",
    block: int | None = None,
) -> dict[str, Any]:
    """Build the graph, fit to a certified gap of 1e-3 and predict all rows, with two threads."""
    sizes = {"rows": rows, "features": features, "labels": labels, "density": density}
    setup = _SETUP.format(held=HELD_OUT, **sizes)
    measured = run(setup, _JOB.format(neighbors=neighbors, block=block, **sizes), threads=2)
    return sizes | measured
