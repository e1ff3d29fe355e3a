"""LEMLL on 1, 2 and 4 Dask workers, beside one machine with the same graph.

Workers are processes of this machine, each with one thread; they have imported lemll before the
clock starts, as the one machine has, which uses one thread for the solver and the search as well.
More workers than cores cannot be faster; the table shows what the exchange costs. The seconds of a
pass without work are a constant of the estimate in docs/how-to/dask.md.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks._measure import write_json
from benchmarks._text import text_like

WORKERS = (1, 2, 4)
N_ROWS, N_FEATURES, N_LABELS, BLOCKS = 100_000, 500, 50, 4
TOL = 1e-4
ROUND_TRIPS = 200


def main() -> bool:
    """Print the table; return whether a result differs from that of one machine."""
    from lemll import LEMLL
    from lemll.topology import reconstruction_weights

    X, Y = text_like(N_ROWS, N_FEATURES, N_LABELS, density=0.015)
    Y = Y.toarray()
    step = N_ROWS // BLOCKS
    with threadpool_limits(1):
        start = time.perf_counter()
        parts = [reconstruction_weights(X[i : i + step]) for i in range(0, N_ROWS, step)]
        graph_seconds = time.perf_counter() - start
        start = time.perf_counter()
        alone = LEMLL(graph=sparse.block_diag(parts, format="csr"), tol=TOL).fit(X, Y)
        alone_seconds = time.perf_counter() - start
    print(f"{N_ROWS} rows, {N_FEATURES} features, {N_LABELS} labels, {BLOCKS} blocks, gap {TOL}")
    print(f"one machine: graph {graph_seconds:.1f} s, fit {alone_seconds:.1f} s, "
          f"{alone.n_iter_} iterations")  # fmt: skip
    found = [_measured(X, Y, workers, alone) for workers in WORKERS]
    print("workers  whole fit s  iterations  objective, relative difference  pass without work ms")
    for row in found:
        print(f"{row['workers']:7d}  {row['seconds']:11.1f}  {row['iterations']:10d}  "
              f"{row['difference']:30.1e}  {1000 * row['pass_seconds']:20.2f}")  # fmt: skip
    write_json("dask", {"alone": alone_seconds, "graph": graph_seconds, "workers": found})
    return any(abs(row["difference"]) > TOL for row in found)


def _measured(X: Any, Y: Any, workers: int, alone: Any) -> dict[str, Any]:
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    from lemll.dask import LEMLL

    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    step = N_ROWS // BLOCKS
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        rows = da.concatenate(
            [da.from_delayed(_delayed(X[i : i + step]), (step, N_FEATURES), X.dtype)
             for i in range(0, N_ROWS, step)]
        )  # fmt: skip
        labels = da.from_array(Y, chunks=(step, -1))
        client.run(_import_lemll)
        start = time.perf_counter()
        model = LEMLL(tol=TOL, graph={"neighbors": "exact"}).fit(rows, labels)
        seconds = time.perf_counter() - start
        counter = client.submit(_Idle, actor=True).result()
        start = time.perf_counter()
        for _ in range(ROUND_TRIPS):
            counter.nothing().result()
        pass_seconds = (time.perf_counter() - start) / ROUND_TRIPS
    return {
        "workers": workers,
        "seconds": seconds,
        "iterations": model.n_iter_,
        "difference": float(model.objective_ / alone.objective_ - 1),
        "largest_difference_of_coefficients": float(np.abs(model.coef_ - alone.coef_).max()),
        "pass_seconds": pass_seconds,
    }


def _delayed(part: Any) -> Any:
    from dask import delayed

    return delayed(part)


def _import_lemll() -> None:
    import lemll.dask  # noqa: F401


class _Idle:
    def nothing(self) -> None:
        """Answer at once."""
