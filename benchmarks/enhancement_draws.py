"""The blend beside the other enhancers with more draws of rated rows than the main table has.

    python -m benchmarks.enhancement_draws [DATA_SET ...] [--draws N]

The main table (``results/enhancement``) has ten draws of rated rows per place, so a mean still
varies by some per cent with few rated rows. This script uses other draws (seeds from 1000), with
the enhancers that are best somewhere in the main table, and measures the Chebyshev distance alone.
It writes ``results/enhancement/draws.csv`` after each data set, runs only the methods that this
file lacks, and prints how often each method is within 1 % of the best one. If the code of a method
changes, remove its rows first.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._measure import data_dir
from lemll._files import csv_text, write_texts
from lemll.datasets import binarize_distribution
from lemll.lab import Protocol, load_source
from lemll.lab.studies.enhancement import N_RATED, calibrated, enhancement_protocol
from lemll.metrics import chebyshev

FOLDER = Path(__file__).parents[1] / "results" / "enhancement"
FILE = "draws.csv"
COLUMNS = ("dataset", "threshold", "method", "rated", "draws", "chebyshev", "deviation")
METHODS = ("Logical", "LEMLL", "LEMLL, scaled", "RELIAB", "LESC", "LabelGraph", "Blend")
# A fit on Movie takes four minutes, and there are five.
LEFT_OUT = {("Movie", "LEMLL, scaled")}
FIRST_SEED = 1000
WITHIN = 1.01


def distances(
    enhancer: Any, D: Any, number: int, n_draws: int, first_seed: int = FIRST_SEED
) -> list[float]:
    """Return the Chebyshev distance of the rows that are not rated, for each draw."""
    found = []
    for seed in range(first_seed, first_seed + n_draws):
        rated = np.random.RandomState(seed).choice(len(D), number, replace=False)
        others = np.setdiff1d(np.arange(len(D)), rated)
        found.append(float(chebyshev(D[others], calibrated(enhancer, rated, D)[others])))
    return found


def measured(
    protocol: Protocol, dataset: str, methods: Collection[str], n_draws: int
) -> Iterator[list[object]]:
    """Fit the methods at every threshold of a data set; yield the rows of the table."""
    part = protocol.on_datasets([dataset])
    assert part is not None
    graphs: dict[str, Any] = {}
    for cell in part.cells():
        label, threshold = cell.method.label, float(cell.setting.threshold or 0.0)
        if label not in methods:
            continue
        data = load_source(cell.source)[0]
        D = np.asarray(data.D)
        enhancer = protocol.estimator(cell.method)
        if "graph" in enhancer.get_params():
            if label not in graphs:
                graphs[label] = enhancer.make_graph(data.X, D.shape[1])
            enhancer.set_params(graph=graphs[label])
        enhancer.fit(data.X, binarize_distribution(D, threshold))
        for number in N_RATED:
            found = distances(enhancer, D, number, n_draws)
            shown = [f"{np.mean(found):.6f}", f"{np.std(found):.6f}"]
            yield [dataset, threshold, label, number, n_draws, *shown]


def show(rows: Sequence[Sequence[object]]) -> None:
    """Print in how many places each method is within 1 % of the best one."""
    places: dict[tuple[str, str, str], dict[str, float]] = {}
    for dataset, threshold, method, number, _, distance, _ in rows:
        place = str(number), str(dataset), str(threshold)
        places.setdefault(place, {})[str(method)] = float(str(distance))
    for number in map(str, N_RATED):
        of_number = {place: found for place, found in places.items() if place[0] == number}
        for method in METHODS:
            ratios = [
                found[method] / min(found.values())
                for found in of_number.values()
                if method in found
            ]
            if not ratios:
                continue
            near = sum(ratio <= WITHIN for ratio in ratios)
            print(
                f"{number:>3} rated rows, {method:14s} within 1 % in {near} of {len(ratios)}, "
                f"worst {max(ratios):.3f}"
            )
        blend = {
            place[1:]: found["Blend"] / min(found.values())
            for place, found in of_number.items()
            if "Blend" in found
        }
        print("    Blend is farther in", {k: round(v, 3) for k, v in blend.items() if v > WITHIN})


def main() -> None:
    """Run the data sets that the file lacks, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", help="by default all")
    parser.add_argument("--draws", type=int, default=20)
    given = parser.parse_args()
    data_dir()
    protocol = enhancement_protocol(FOLDER)
    path = FOLDER / FILE
    rows: list[list[object]] = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as stream:
            rows = [list(row) for row in csv.reader(stream)][1:]
    if any(str(row[4]) != str(given.draws) for row in rows):
        parser.error(f"{path} has another number of draws; give that one, or remove the file.")
    done = {(str(row[0]), str(row[2])) for row in rows} | LEFT_OUT
    for dataset in given.datasets or [source.name for source in protocol.datasets]:
        missing = [method for method in METHODS if (dataset, method) not in done]
        if not missing:
            continue
        with threadpool_limits(1), warnings.catch_warnings():
            # Scales at the end of the range are results here.
            warnings.simplefilter("ignore", UserWarning)
            rows += measured(protocol, dataset, missing, given.draws)
        rows.sort(key=lambda row: (*map(str, row[:3]), int(str(row[3]))))
        write_texts(FOLDER, {FILE: csv_text([list(COLUMNS), *rows])})
        print(f"{dataset} done", flush=True)
    show(rows)


if __name__ == "__main__":
    main()
