"""LEMLL's joint solver against Algorithm 1, against one Cholesky factor, and as n grows.

All times are of one thread (set before NumPy is loaded), the graph excluded on both sides unless
said otherwise. "Time to 1e-6" is the time until the objective is within that relative distance of
the optimum, which a joint solve certified to 1e-10 provides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg import cho_factor
from threadpoolctl import threadpool_limits

from benchmarks._measure import data_dir, run, write_json
from lemll.datasets import load_dataset
from lemll.lab.reference import solve_reference
from lemll.solvers import solve_joint
from lemll.solvers.equation9 import Progress
from lemll.topology import reconstruction_weights

ERROR = 1e-6
REFERENCE_CAP_SECONDS = 60.0
REPEATS = 7
SIZES = (2000, 4000, 8000, 16000, 28596)

FIT = """
model = LEMLL(tol=1e-4).fit(X, Y)
result = dict(optimality=model.optimality_, iterations=model.n_iter_)
"""
NEIGHBORS = """
NearestNeighbors(n_neighbors=10, algorithm="brute").fit(X).kneighbors()
result = None
"""
LOAD = """
import os
os.environ["LEMLL_DATA_DIR"] = {folder!r}
from lemll import LEMLL
from lemll.datasets import load_dataset
from sklearn.neighbors import NearestNeighbors
data = load_dataset("tmc2007")
X, Y = data.X, data.Y
"""


def training_half(name: str) -> tuple[Any, Any, Any]:
    """Return X, Y in -1/+1 without constant labels, and W of a training half (seed 0)."""
    data = load_dataset(name)
    rows = np.random.RandomState(0).permutation(len(data))[: len(data) // 2]
    X, Y = data.X[rows], 2.0 * data.Y[rows] - 1
    varies = Y.min(axis=0) < Y.max(axis=0)
    return X, np.ascontiguousarray(Y[:, varies]), reconstruction_weights(X, 10, reg_policy="always")


def seconds_to_error(solve: Callable[..., Any], optimum: float, arguments: Sequence[Any],
                     **options: Any) -> tuple[float, bool]:  # fmt: skip
    """Run a solver; return when its objective came within `ERROR` of the optimum, and whether."""
    reached: list[float] = []
    last: list[float] = [0.0]

    def watch(progress: Progress) -> None:
        last[0] = progress.elapsed
        if not reached and progress.objective <= optimum * (1 + ERROR):
            reached.append(progress.elapsed)

    solve(*arguments, callback=watch, **options)
    return (reached[0], True) if reached else (max(last[0], REFERENCE_CAP_SECONDS), False)


def cholesky_seconds(n: int) -> float:
    """Best time of one Cholesky factor of order n."""
    matrix = np.random.RandomState(0).rand(n, 2 * n)
    gram = matrix @ matrix.T + np.eye(n)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        cho_factor(gram, check_finite=False)
        times.append(time.perf_counter() - start)
    return min(times)


def compare(
    name: str, point: tuple[float, float, float], *, one_reweighting: bool
) -> dict[str, Any]:
    """Compare the solvers on one data set for one (alpha, beta, gamma)."""
    arrays = training_half(name)
    weights = dict(zip(("alpha", "beta", "gamma"), point, strict=True))
    optimum = solve_joint(*arrays, **weights, tol=1e-10, max_iter=20_000).objective
    joint = min(
        seconds_to_error(solve_joint, optimum, arrays, **weights, tol=1e-9)[0]
        for _ in range(REPEATS)
    )
    certified = min(_certified_seconds(arrays, weights) for _ in range(REPEATS))
    cholesky = cholesky_seconds(arrays[0].shape[0])
    options = {**weights, "time_limit": REFERENCE_CAP_SECONDS}
    nested, reached = seconds_to_error(solve_reference, optimum, arrays, **options, tol=1e-12)
    row = {
        "data": name,
        "rows": arrays[0].shape[0],
        "point": point,
        "joint_s": joint,
        "joint_certified_1e-6_s": certified,
        "cholesky_s": cholesky,
        "joint_over_cholesky": joint / cholesky,
        "nested_s": nested,
        "nested_reached": reached,
        "nested_over_joint": nested / joint,
    }
    if one_reweighting:
        single, single_reached = seconds_to_error(
            solve_reference, optimum, arrays, **options, tol=1e-13, one_reweighting=True
        )
        row |= {
            "one_reweighting_s": single,
            "one_reweighting_reached": single_reached,
            "one_reweighting_over_joint": single / joint,
        }
    return row


def _certified_seconds(arrays: Sequence[Any], weights: dict[str, float]) -> float:
    start = time.perf_counter()
    solve_joint(*arrays, **weights, tol=ERROR)
    return time.perf_counter() - start


def show(row: dict[str, Any]) -> None:
    """Print one comparison."""
    capped = "" if row["nested_reached"] else " (capped)"
    print(
        f"{row['data']:8s} {row['point']}: joint {1e3 * row['joint_s']:.1f} ms "
        f"(certified {1e3 * row['joint_certified_1e-6_s']:.1f} ms) = "
        f"{row['joint_over_cholesky']:.2f} Cholesky of order {row['rows']}; nested "
        f"{row['nested_s']:.2f} s{capped} = {row['nested_over_joint']:.0f}x",
        end="",
    )
    if "one_reweighting_s" in row:
        print(
            f"; one reweighting {row['one_reweighting_s']:.2f} s = "
            f"{row['one_reweighting_over_joint']:.0f}x",
            end="",
        )
    print(flush=True)


def growth() -> dict[str, Any]:
    """Fit the exponent with which the solve time grows with n, on rows of tmc2007."""
    data = load_dataset("tmc2007")
    order = np.random.RandomState(0).permutation(len(data))
    rows = []
    for n in SIZES:
        X, Y = data.X[order[:n]], 2.0 * data.Y[order[:n]] - 1
        W = reconstruction_weights(X, 10, reg_policy="always")
        times, iterations = [], 0
        for _ in range(3):
            start = time.perf_counter()
            iterations = solve_joint(X, Y, W, alpha=1.0, beta=1.0, gamma=1.0, tol=1e-4).n_iter
            times.append(time.perf_counter() - start)
        rows.append({"n": n, "seconds": min(times), "iterations": iterations})
        print(f"  n = {n}: {min(times):.2f} s, {iterations} iterations", flush=True)
    slope = np.polyfit(np.log([r["n"] for r in rows]), np.log([r["seconds"] for r in rows]), 1)[0]
    print(f"  exponent {slope:.2f}")
    return {"rows": rows, "exponent": float(slope)}


def hard_corner(n: int, tol: float) -> dict[str, Any]:
    """Solve the ill-conditioned corner of the grid on rows of tmc2007."""
    data = load_dataset("tmc2007")
    rows = np.random.RandomState(0).permutation(len(data))[:n]
    X, Y = data.X[rows], 2.0 * data.Y[rows] - 1
    W = reconstruction_weights(X, 10, reg_policy="always")
    start = time.perf_counter()
    solution = solve_joint(X, Y, W, alpha=1 / 64, beta=1 / 64, gamma=64.0, tol=tol, max_iter=5000)
    seconds = time.perf_counter() - start
    print(
        f"  (1/64, 1/64, 64), n = {n}: gap {solution.optimality:.1e} (wanted {tol:.0e}) in "
        f"{solution.n_iter} iterations, {seconds:.1f} s",
        flush=True,
    )
    return {"n": n, "tol": tol, "seconds": seconds, "gap": solution.optimality,
            "iterations": solution.n_iter}  # fmt: skip


def whole_fit(threads: int) -> dict[str, Any]:
    """One whole fit of tmc2007 against scikit-learn's neighbour search alone."""
    load = LOAD.format(folder=str(data_dir()))
    fit = run(load, FIT, threads=threads)
    csr = run(load, NEIGHBORS, threads=threads)
    dense = run(load + "X = X.toarray()\n", NEIGHBORS, threads=threads)
    faster = min(csr["seconds"], dense["seconds"])
    print(
        f"  {threads} threads: whole fit {fit['seconds']:.1f} s, gap "
        f"{fit['result']['optimality']:.1e}; kneighbors CSR {csr['seconds']:.1f} s, dense "
        f"{dense['seconds']:.1f} s: ratio {fit['seconds'] / faster:.2f}; peak "
        f"memory of the fitting process {fit['peak'] / 2**30:.2f} GiB",
        flush=True,
    )
    return {"threads": threads, "fit": fit, "csr": csr, "dense": dense,
            "ratio": fit["seconds"] / faster}  # fmt: skip


def main() -> None:
    """Measure all of it, print, and keep the figures."""
    data_dir()
    figures: dict[str, Any] = {}
    with threadpool_limits(1):
        figures["comparisons"] = []
        for name, point in (
            ("yeast", (1.0, 1.0, 1.0)), ("yeast", (1.0, 1 / 16, 1.0)),
            ("scene", (1.0, 1.0, 1.0)), ("scene", (1.0, 1 / 16, 1.0)),
            ("enron", (1.0, 1.0, 1.0)),
        ):  # fmt: skip
            row = compare(name, point, one_reweighting=name == "yeast")
            show(row)
            figures["comparisons"].append(row)
        print("growth of the solve with n (tmc2007, certified 1e-4):")
        figures["growth"] = growth()
        print("the ill-conditioned corner:")
        figures["corner"] = [hard_corner(8000, 1e-3), hard_corner(8000, 1e-6)]
    print("one whole fit of tmc2007, graph included:")
    figures["whole_fit"] = [whole_fit(1), whole_fit(2)]
    write_json("lemll", figures)


if __name__ == "__main__":
    main()
