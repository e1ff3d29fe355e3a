"""The Newton solver of Eq. (10) against IRWLS, the model's half of Algorithm 1.

All times are of one thread. "Time to 1e-6" is the time until the objective is within that relative
distance of the optimum, which a Newton solve certified to 1e-12 provides. IRWLS cannot know that
it is there. The time of a whole Newton solve, which can, is given besides: certified to 1e-6, then
polished.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._measure import data_dir, write_json
from lemll.datasets import load_dataset
from lemll.lab.reference import MsvrBlock
from lemll.solvers import solve_msvr
from lemll.solvers.equation9 import Progress

ERROR = 1e-6
REPEATS = 20
MAX_REWEIGHTINGS = 1000


def training_half(name: str) -> tuple[Any, Any]:
    """Return X, and Y in -1/+1, of a training half (seed 0)."""
    data = load_dataset(name)
    rows = np.random.RandomState(0).permutation(len(data))[: len(data) // 2]
    return np.asarray(data.X[rows], dtype=np.float64), 2.0 * data.Y[rows] - 1


def irwls(X: Any, Y: Any, optimum: float, *, alpha: float, epsilon: float) -> tuple[float, int]:
    """Seconds until IRWLS comes within `ERROR` of the optimum, and its reweightings."""
    start = time.perf_counter()
    block = MsvrBlock(X, Y.shape[1], alpha=alpha, epsilon=epsilon)
    # Reweighting by reweighting, for `fit` would compute its first value anew at every call.
    value = block._value(Y, block.predictions)
    for reweighting in range(1, MAX_REWEIGHTINGS + 1):
        value = block._reweight(Y, value)
        if value <= optimum * (1 + ERROR):
            return time.perf_counter() - start, reweighting
    raise RuntimeError(f"IRWLS is not there after {MAX_REWEIGHTINGS} reweightings")


def newton(X: Any, Y: Any, optimum: float, *, alpha: float, epsilon: float) -> tuple[float, int]:
    """Seconds until the Newton solver comes within `ERROR` of the optimum, and its steps."""
    reached: list[tuple[float, int]] = []

    def watch(progress: Progress) -> None:
        if not reached and progress.objective <= optimum * (1 + ERROR):
            reached.append((progress.elapsed, progress.iteration))

    solve_msvr(X, Y, alpha=alpha, epsilon=epsilon, tol=ERROR, callback=watch)
    return reached[0]


def whole_solve(X: Any, Y: Any, *, alpha: float, epsilon: float) -> float:
    """Seconds of a whole solve, certified to `ERROR`."""
    start = time.perf_counter()
    solve_msvr(X, Y, alpha=alpha, epsilon=epsilon, tol=ERROR)
    return time.perf_counter() - start


def compare(name: str, epsilon: float) -> dict[str, Any]:
    """Compare the two on one data set, in turns, so that a busy machine slows down both."""
    X, Y = training_half(name)
    weights = {"alpha": 1.0, "epsilon": epsilon}
    optimum = solve_msvr(X, Y, **weights, tol=1e-12).objective
    runs = [
        (
            irwls(X, Y, optimum, **weights),
            newton(X, Y, optimum, **weights),
            whole_solve(X, Y, **weights),
        )
        for _ in range(REPEATS)
    ]
    (irwls_seconds, reweightings), (newton_seconds, steps), whole = map(
        min, zip(*runs, strict=True)
    )
    ratio = irwls_seconds / newton_seconds
    print(
        f"{name:6s} epsilon {epsilon}, {X.shape[0]} x {X.shape[1]}, {Y.shape[1]} labels: IRWLS "
        f"{1e3 * irwls_seconds:.1f} ms ({reweightings} reweightings), Newton "
        f"{1e3 * newton_seconds:.1f} ms ({steps} steps): {ratio:.2f}x; whole certified solve "
        f"{1e3 * whole:.1f} ms: {irwls_seconds / whole:.2f}x",
        flush=True,
    )
    return {
        "data": name,
        "epsilon": epsilon,
        "irwls_s": irwls_seconds,
        "reweightings": reweightings,
        "newton_s": newton_seconds,
        "steps": steps,
        "irwls_over_newton": ratio,
        "whole_certified_solve_s": whole,
    }


def main() -> None:
    """Measure, print, and keep the figures."""
    data_dir()
    with threadpool_limits(1):
        # The usual tube, for which two or three reweightings are enough; and a wide one.
        figures = [compare(name, epsilon) for name in ("yeast", "scene") for epsilon in (0.1, 1.0)]
    write_json("msvr", figures)


if __name__ == "__main__":
    main()
