"""What the grid of the paper costs: against `cho_factor`, Algorithm 1, and GridSearchCV.

Training halves of seed 0, one thread, CPU times. The path solves all 343 points, each certified to
1e-3, its eigendecomposition included and the graph excluded, as for the reference. The reference is
Algorithm 1 at (1, 1, 1), best of three, until a round lowers the objective by less than 1e-6 of it;
that is no certificate, so it stops rather too early than too late.

End to end: `LEMLLCV` with 5 folds on the yeast half, graphs and final model included, against the
1715 fits that a grid search over Algorithm 1 would do. Of those a random 20 are run, each for
`CAP_SECONDS` at most and until a round lowers the objective by less than 1e-3 of it; a capped one
counts as the cap. Both make the total a lower bound.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
from scipy.linalg import cho_factor
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from benchmarks._measure import data_dir, write_json
from benchmarks._tuning import print_table, splits
from benchmarks.bench_lemll import training_half
from lemll import LEMLL, LEMLLCV
from lemll.lab.reference import solve_reference
from lemll.metrics import get_scorer
from lemll.model_selection import IterativeStratifiedKFold
from lemll.solvers import GridPoint, solve_path
from lemll.solvers.equation9 import Progress
from lemll.solvers.joint import JointProblem
from lemll.topology import reconstruction_weights

AXIS = [4.0**power for power in range(-3, 4)]
GRID = [GridPoint(*point) for point in itertools.product(AXIS, repeat=3)]
# How many reference fits the grid may take.
ALLOWED = {"yeast": 1, "scene": 1, "enron": 7}
FACTORS = 150
CAP_SECONDS = 60.0
SAMPLE = 20
ONES = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0}


def cpu(function: Any, repeats: int = 1) -> tuple[float, Any]:
    """Least CPU time of some calls, and the last result."""
    times = []
    for _ in range(repeats):
        clock = time.process_time()
        result = function()
        times.append(time.process_time() - clock)
    return min(times), result


def grid_cost(name: str) -> dict[str, Any]:
    """Measure the path, one factorisation of order n, and one fit of Algorithm 1."""
    X, Y, W = training_half(name)
    n = len(Y)
    A = np.random.default_rng(0).standard_normal((n, n))
    A = A @ A.T + n * np.eye(n)
    factor, _ = cpu(lambda: cho_factor(A), 5)
    reference, _ = cpu(lambda: solve_reference(X, Y, W, **ONES, epsilon=0.1, tol=1e-6), 3)
    found = {}
    for precision in ("float64", "float32"):
        seconds, steps = cpu(
            lambda precision=precision: [
                (s.solution.n_iter, s.solution.optimality)
                for s in solve_path(JointProblem(X, Y, W), GRID, precision=precision)
            ]
        )
        found[precision] = {
            "cpu_seconds": seconds,
            "iterations": sum(step[0] for step in steps),
            "largest_gap": max(step[1] for step in steps),
            "factors": seconds / factor,
            "references": seconds / reference,
        }
        print(name, precision, found[precision], flush=True)
    return {"data": name, "factor": factor, "reference": reference, "path": found}


class OutOfTimeError(Exception):
    """A fit of the reference took longer than its cap."""


def end_to_end() -> dict[str, Any]:
    """LEMLLCV against a sample of what GridSearchCV over Algorithm 1 would fit."""
    halves = next(splits("yeast", 1))
    ours, search = cpu(lambda: LEMLLCV(n_jobs=1).fit(halves.X, halves.Y))
    folds = list(IterativeStratifiedKFold(5).split(halves.X, halves.Y))
    tasks = list(itertools.product(range(5), range(len(GRID))))
    chosen = np.random.RandomState(0).choice(len(tasks), SAMPLE, replace=False)
    times = [reference_fit(halves, folds[tasks[i][0]][0], GRID[tasks[i][1]]) for i in chosen]
    total = float(np.mean(times)) * len(tasks)
    capped = sum(seconds >= CAP_SECONDS for seconds in times)
    print(
        f"LEMLLCV, 5 folds: {ours:.1f} s CPU; Algorithm 1: {np.mean(times):.2f} s a fit over "
        f"{SAMPLE} of {len(tasks)}, {capped} capped at {CAP_SECONDS:g} s and counted as that, "
        f"{total:.0f} s in all: {total / ours:.0f} times",
        flush=True,
    )
    return {"ours": ours, "best": str(search.best_params_), "reference": times, "capped": capped,
            "ratio": total / ours}  # fmt: skip


def reference_fit(halves: Any, rows: Any, point: GridPoint) -> float:
    """CPU seconds of one fit of Algorithm 1, graph included; no more than the cap."""
    clock = time.process_time()

    def watch(progress: Progress) -> None:
        if time.process_time() - clock > CAP_SECONDS:
            raise OutOfTimeError

    X, Y = halves.X[rows], 2.0 * halves.Y[rows] - 1
    try:
        W = reconstruction_weights(X, 10, reg_policy="always")
        solve_reference(X, Y, W, **point._asdict(), epsilon=0.1, tol=1e-3, callback=watch)
    except OutOfTimeError:
        return CAP_SECONDS
    return time.process_time() - clock


def against_grid_search(n_points: int = 12) -> dict[str, float]:
    """LEMLLCV beside GridSearchCV(LEMLL()), which shares nothing between its fits: CPU a point."""
    halves = next(splits("yeast", 1))
    chosen = np.random.RandomState(0).choice(len(GRID), n_points, replace=False)
    points = [{key: [value] for key, value in GRID[i]._asdict().items()} for i in chosen]
    cv, scoring = IterativeStratifiedKFold(5), get_scorer("average_precision")
    search = GridSearchCV(LEMLL(tol=1e-3), points, cv=cv, scoring=scoring, refit=False)
    theirs, _ = cpu(lambda: search.fit(halves.X, halves.Y))
    ours, _ = cpu(lambda: LEMLLCV(refit=False, n_jobs=1).fit(halves.X, halves.Y))
    ratio = (theirs / n_points) / (ours / len(GRID))
    print(f"a point of GridSearchCV(LEMLL()) costs {ratio:.1f} of LEMLLCV's", flush=True)
    return {"grid_search": theirs / n_points, "ours": ours / len(GRID), "ratio": ratio}


def main() -> None:
    """Measure, print, and keep the figures after every part."""
    data_dir()
    content: dict[str, Any] = {"grid": []}
    with threadpool_limits(1):
        for name in ALLOWED:
            content["grid"].append(grid_cost(name))
            write_json("tuning_speed", content)
        rows = [
            [g["data"], precision, f"{p['cpu_seconds']:.2f}", f"{p['factors']:.0f} of {FACTORS}",
             f"{p['references']:.2f} of {ALLOWED[g['data']]}", f"{p['largest_gap']:.1e}"]
            for g in content["grid"] for precision, p in g["path"].items()
        ]  # fmt: skip
        print_table(["data", "precision", "CPU s", "cho_factor", "references", "gap"], rows)
        for part in (against_grid_search, end_to_end):
            content[part.__name__] = part()
            write_json("tuning_speed", content)


if __name__ == "__main__":
    main()
