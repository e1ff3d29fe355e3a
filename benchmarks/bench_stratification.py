"""Iterative stratification against the `iterative-stratification` package: time and fairness.

CPU seconds of one division into folds, the least of `SEEDS` runs; "unfairness" is the mean absolute
difference between a label's frequency in a fold and in the whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from iterstrat.ml_stratifiers import MultilabelStratifiedKFold

from benchmarks._measure import data_dir, write_json
from lemll.datasets import load_dataset
from lemll.model_selection import iterative_folds

SEEDS = 8


def ours(Y: Any, n_folds: int, seed: int) -> Any:
    """Divide by our function."""
    return iterative_folds(Y, n_folds, random_state=seed)


def theirs(Y: Any, n_folds: int, seed: int) -> Any:
    """Divide by the package."""
    folds = np.empty(len(Y), dtype=int)
    splitter = MultilabelStratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for fold, (_, test) in enumerate(splitter.split(Y, Y)):
        folds[test] = fold
    return folds


def measure(make: Callable[[Any, int, int], Any], Y: Any, n_folds: int) -> dict[str, float]:
    """Time, fairness and evenness, over the seeds."""
    seconds, unfair, uneven = [], [], []
    for seed in range(SEEDS):
        start = time.process_time()
        folds = make(Y, n_folds, seed)
        seconds.append(time.process_time() - start)
        parts = [Y[folds == fold].mean(axis=0) for fold in range(n_folds)]
        unfair.append(np.abs(np.array(parts) - Y.mean(axis=0)).mean())
        uneven.append(np.ptp(np.bincount(folds)))
    return {
        "cpu_s": min(seconds),
        "unfairness": float(np.mean(unfair)),
        "largest_difference_of_sizes": int(max(uneven)),
    }


def main() -> None:
    """Measure, print, and keep the figures."""
    data_dir()
    figures = []
    for name in ("bibtex", "yeast", "enron"):
        Y = np.asarray(load_dataset(name).Y)
        for n_folds in (2, 5, 10):
            mine, other = measure(ours, Y, n_folds), measure(theirs, Y, n_folds)
            ratio = other["cpu_s"] / mine["cpu_s"]
            print(
                f"{name:7s} {n_folds:2d} folds: {1e3 * mine['cpu_s']:6.1f} ms against "
                f"{1e3 * other['cpu_s']:6.1f} ms ({ratio:.1f}x); unfairness "
                f"{mine['unfairness']:.6f} against {other['unfairness']:.6f}; sizes differ by "
                f"{mine['largest_difference_of_sizes']} against "
                f"{other['largest_difference_of_sizes']}",
                flush=True,
            )
            figures.append(
                {"data": name, "n_folds": n_folds, "ours": mine, "theirs": other, "ratio": ratio}
            )
    write_json("stratification", figures)


if __name__ == "__main__":
    main()
