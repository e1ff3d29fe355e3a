"""What unknown cells cost: the joint solver with weights per cell, beside complete labels.

CPU time of one thread, the graph excluded. 60 % of the cells are hidden at random. On the training
half of yeast both problems are solved to a certified gap of 1e-6; as n grows (tmc2007), to 1e-4.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._measure import data_dir, write_json
from benchmarks.bench_lemll import training_half
from lemll.datasets import load_dataset
from lemll.solvers import solve_joint
from lemll.topology import reconstruction_weights

HIDDEN = 0.6
POINTS = ((1.0, 1.0, 1.0), (1.0, 1 / 16, 1.0), (1 / 16, 1.0, 16.0), (16.0, 1.0, 1 / 16))
SIZES = (2000, 4000, 8000, 16000, 28596)
REPEATS = 5


def solved(arrays: tuple[Any, Any, Any], weight: Any, point: tuple[float, float, float],
           tol: float) -> tuple[float, int]:  # fmt: skip
    """Return the least CPU seconds of several solutions, and the number of iterations."""
    names = dict(zip(("alpha", "beta", "gamma"), point, strict=True))
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        found = solve_joint(*arrays, **names, cell_weight=weight, tol=tol, max_iter=5000)
        times.append(time.process_time() - start)
    return min(times), found.n_iter


def compared(arrays: tuple[Any, Any, Any], point: tuple[float, float, float], tol: float
             ) -> dict[str, Any]:  # fmt: skip
    """Solve the complete and the incomplete problem."""
    X, Y, W = arrays
    known = (np.random.RandomState(1).random_sample(Y.shape) >= HIDDEN).astype(np.float64)
    complete, steps = solved(arrays, None, point, tol)
    partial, partial_steps = solved((X, Y, W), known, point, tol)
    return {
        "rows": len(Y),
        "point": point,
        "complete_s": complete,
        "unknown_s": partial,
        "ratio": partial / complete,
        "complete_iterations": steps,
        "unknown_iterations": partial_steps,
    }


def main() -> None:
    """Print both tables and write them."""
    data_dir()
    with threadpool_limits(1):
        half = training_half("yeast")
        yeast = [compared(half, point, 1e-6) for point in POINTS]
        for row in yeast:
            show("yeast half", row)
        data = load_dataset("tmc2007")
        growth = []
        for size in SIZES:
            X, Y = data.X[:size], 2.0 * data.Y[:size] - 1
            W = reconstruction_weights(X, 10, reg_policy="always")
            growth.append(compared((X, Y, W), POINTS[0], 1e-4))
            show("tmc2007", growth[-1])
    rows = np.log([row["rows"] for row in growth])
    slopes = {
        kind: float(np.polyfit(rows, np.log([row[kind] for row in growth]), 1)[0])
        for kind in ("complete_s", "unknown_s")
    }
    print(
        f"growth with the number of rows: n^{slopes['complete_s']:.2f} with complete labels, "
        f"n^{slopes['unknown_s']:.2f} with unknown cells"
    )
    write_json("unobserved", {"yeast": yeast, "growth": growth, "slopes": slopes})


def show(name: str, row: dict[str, Any]) -> None:
    """Print one comparison."""
    print(
        f"{name}, {row['rows']} rows, {row['point']}: complete {1e3 * row['complete_s']:.1f} ms, "
        f"{row['complete_iterations']} iterations; 60 % hidden {1e3 * row['unknown_s']:.1f} ms, "
        f"{row['unknown_iterations']} iterations; ratio {row['ratio']:.2f}",
        flush=True,
    )
