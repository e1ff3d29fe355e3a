"""Linear LEMLLCV on test halves, beside the figures that the paper prints for LEMLL.

Ten halves (seeds 0 to 9); in each training half the whole grid by cross-validation, every measure
being of the parameters that are best by that measure. A cell counts where our mean is at least as
good as the paper's, within the paper's standard deviation.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks._measure import data_dir, write_json
from benchmarks._tuning import (
    FOLDS,
    MEASURES,
    at_least_as_good,
    print_table,
    splits,
    tuned_measures,
)
from lemll import LEMLLCV
from lemll.lab import published_prediction

NAMES = ("yeast", "scene", "cal500", "medical", "enron")
N_SPLITS = 10


def measured(name: str, n_splits: int = N_SPLITS) -> dict[str, Any]:
    """Every measure on every test half."""
    clock = time.perf_counter()
    found = []
    for halves in splits(name, n_splits):
        search = LEMLLCV(scoring=MEASURES, cv=FOLDS, n_jobs=1).fit(halves.X, halves.Y)
        found.append(tuned_measures(search, halves))
        print(f"{name} seed {halves.seed}: {found[-1]}", flush=True)
    return {"data": name, "splits": found, "seconds": time.perf_counter() - clock}


def beside_the_paper(results: list[dict[str, Any]]) -> int:
    """Print our means beside the paper's; return how many are at least as good."""
    paper = {(c.dataset, c.metric): c for c in published_prediction() if c.method == "LEMLL"}
    rows, count = [], 0
    for result in results:
        for name in MEASURES:
            values = [split[name] for split in result["splits"]]
            cell = paper[result["data"], name]
            good = at_least_as_good(name, float(np.mean(values)), cell.mean, cell.std)
            count += good
            ours = f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"
            published = f"{cell.mean:.3f} ± {cell.std:.3f}"
            rows.append([result["data"], name, ours, published, "yes" if good else "no"])
    print_table(["data", "measure", "LEMLLCV, linear", "LEMLL, published", "as good"], rows)
    print(f"at least as good in {count} of {len(rows)} cells; wanted 23 of 25", flush=True)
    return count


def main() -> None:
    """Measure, print, and keep the figures after every data set."""
    data_dir()
    results: list[dict[str, Any]] = []
    for name in NAMES:
        results.append(measured(name))
        count = beside_the_paper(results)
        write_json("tuning_linear", {"folds": FOLDS, "results": results, "as_good": count})


if __name__ == "__main__":
    main()
