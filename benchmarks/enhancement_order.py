"""How well enhancers order the labels of a row: without truth, with ratings, with comparisons.

    python -m benchmarks.enhancement_order [order | generated | planted | speed] ...

The measure is `lemll.metrics.pair_order`: the share of pairs of labels that a row has (given), or
has not (others), in the right order. "order" runs the data sets with true degrees, the first 1000
rows of a fixed permutation, at thresholds at which at least 100 rows have two given labels; it
writes ``results/enhancement/order.csv`` after each data set. "generated" compares distances and
order on generated rows of other habits, with seeds that no choice has seen. "planted" makes 1000
rows with 50 tags and counts how often the most important tag comes first. "speed" measures CPU
seconds. ``order.md`` is made of these files.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from benchmarks import enhancement_made
from benchmarks._measure import data_dir
from lemll import metrics
from lemll._files import csv_text, write_texts
from lemll.datasets import binarize_distribution, load_dataset
from lemll.enhancers import BlendEnhancer, LabelGraphEnhancer, LEMLLEnhancer, UniformEnhancer
from lemll.enhancers.order import SURE
from lemll.lab.studies.enhancement import enhancement_protocol
from lemll.lab.studies.enhancement_report import DEVELOPED_ON
from lemll.metrics import pair_order

FOLDER = Path(__file__).parents[1] / "results" / "enhancement"
COLUMNS = {
    "order": ("dataset", "threshold", "method", "regime", "given", "others", "rows"),
    "sure": ("dataset", "threshold", "expected", "right", "sure", "sure_right"),
    "generated": ("data", "threshold", "rated", "method", *(
        "chebyshev", "clark", "canberra", "kl_divergence", "cosine", "intersection"), "given"),
    "planted": ("data", "method", "first"),
    "speed": ("method", "cpu_s"),
}  # fmt: skip
N_ROWS, FEWEST_ROWS, FEWEST_LABELS = 1000, 100, 2
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5)
N_RATED, N_COMPARED = (5, 10, 20), (10, 20, 50)
N_DRAWS, FIRST_SEED = 5, 7000
# Seeds of generated rows that the method was not developed with.
UNSEEN_SEED = 500
PLANTED = (
    ("ordered", enhancement_made.ordered, (50, 4.0)),
    ("one peak", enhancement_made.one_peak, (50,)),
    ("20 votes", enhancement_made.votes, (50, 20)),
    ("flat", enhancement_made.flat, (50, 0.15)),
    ("unequal", enhancement_made.unequal, (50,)),
    ("topics", enhancement_made.topics, (50, 8)),
)


class _Frequency(UniformEnhancer):
    """The frequencies of the labels, the same in all rows."""

    def _numerical_labels(self, X: Any, Y: Any) -> Any:
        return np.tile(Y.mean(axis=0) + 1e-6, (len(Y), 1))


def read_rows(dataset: str) -> tuple[Any, Any]:
    """Return features and degrees of the first rows of a fixed permutation."""
    data = load_dataset(dataset)
    rows = np.random.RandomState(0).permutation(len(data))[:N_ROWS]
    return data.X[rows], np.asarray(data.D)[rows]


def places(datasets: list[str]) -> Iterator[tuple[str, float, Any, Any, Any]]:
    """Yield data set, threshold, features, degrees and labels where there is an order."""
    for dataset in datasets:
        X, D = read_rows(dataset)
        for threshold in THRESHOLDS:
            Y = np.asarray(binarize_distribution(D, threshold))
            if (Y.sum(axis=1) >= FEWEST_LABELS).sum() >= FEWEST_ROWS:
                yield dataset, threshold, X, D, Y


def both_parts(D: Any, degrees: Any, Y: Any) -> tuple[float, float]:
    """Return the order within the given labels and within the others."""
    found = []
    for part in ("given", "others"):
        shares = pair_order(D, degrees, Y, part=part, average=False)
        found.append(float(np.nanmean(shares)) if np.isfinite(shares).any() else np.nan)
    return found[0], found[1]


def answered(D: Any, pairs: Any) -> list[tuple[int, int, int]]:
    """Answer questions with the true degrees."""
    return [(i, j, k) if D[i, j] >= D[i, k] else (i, k, j) for i, j, k in pairs]


def numbered(enhancer: Any, pairs: Any) -> list[tuple[int, int, int]]:
    """Return labels by their numbers."""
    names = list(enhancer.label_names_)
    return [(i, names.index(first), names.index(second)) for i, first, second in pairs]


def regimes(X: Any, D: Any, Y: Any) -> Iterator[tuple[str, float, float]]:
    """Yield the order of Blend with ratings and comparisons, on rows without an answer."""
    enhancer = BlendEnhancer().fit(X, Y)
    for number in N_RATED:
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + N_DRAWS):
            rated = np.random.RandomState(seed).choice(len(D), number, replace=False)
            rest = np.setdiff1d(np.arange(len(D)), rated)
            enhancer.calibrate(rated, D[rated])
            found.append(both_parts(D[rest], enhancer.label_distribution_[rest], Y[rest]))
        yield f"{number} rated rows", *map(float, np.nanmean(found, axis=0))
    for number in N_COMPARED:
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + N_DRAWS):
            rng = np.random.RandomState(seed)
            rows = rng.permutation(np.flatnonzero(Y.sum(axis=1) > 1))[:number]
            pairs = [
                (i, *rng.permutation(np.flatnonzero(Y[i]))[:2].tolist()) for i in rows.tolist()
            ]
            found.append(_compared(enhancer, D, Y, answered(D, pairs)))
        yield f"{number} random comparisons", *map(float, np.nanmean(found, axis=0))
    enhancer, pairs = BlendEnhancer().fit(X, Y), []
    for number in N_COMPARED:
        pairs += answered(D, numbered(enhancer, enhancer.next_pairs(number - len(pairs))))
        yield f"{number} chosen comparisons", *_compared(enhancer, D, Y, pairs)


def _compared(enhancer: Any, D: Any, Y: Any, pairs: Any) -> tuple[float, float]:
    rest = np.setdiff1d(np.arange(len(D)), [row for row, _, _ in pairs])
    enhancer.calibrate(pairs=pairs)
    return both_parts(D[rest], enhancer.label_distribution_[rest], Y[rest])


def sure_pairs(X: Any, D: Any, Y: Any) -> list[float]:
    """Return the shares of right pairs (expected, true), of sure ones, and of right sure ones."""
    enhancer = BlendEnhancer().fit(X, Y)
    values = enhancer.order_.values(enhancer.evidence_)
    right, sure = [], []
    for j, k in itertools.combinations(range(D.shape[1]), 2):
        both = (Y[:, j] == 1) & (Y[:, k] == 1) & (D[:, j] != D[:, k])
        off = values[both, j] - values[both, k]
        right.append(np.sign(off) == np.sign(D[both, j] - D[both, k]))
        sure.append(expit(np.abs(off)) >= SURE)
    is_right, is_sure = np.concatenate(right), np.concatenate(sure)
    expected = enhancer.order_estimate_.expected
    true = pair_order(D, enhancer.label_distribution_, Y)
    return [expected, true, is_sure.mean(), is_right[is_sure].mean() if is_sure.any() else np.nan]


def run_order() -> None:
    """Run all methods at all places that the file lacks."""
    protocol = enhancement_protocol(FOLDER)
    rows, sure = read_csv("order"), read_csv("sure")
    done = {row[0] for row in sure}
    for source in protocol.datasets:
        if source.name in done:
            continue
        for dataset, threshold, X, D, Y in places([source.name]):
            count = int((Y.sum(axis=1) >= FEWEST_LABELS).sum())
            makers: dict[str, Callable[[], Any]] = {
                spec.label: lambda spec=spec: protocol.estimator(spec) for spec in protocol.methods
            }
            makers["label frequency"] = _Frequency
            for label, make in makers.items():
                degrees = make().fit(X, Y).label_distribution_
                found = both_parts(D, degrees, Y)
                rows.append([dataset, threshold, label, "none", *map(_short, found), count])
            for regime, *found in regimes(X, D, Y):
                rows.append([dataset, threshold, "Blend", regime, *map(_short, found), count])
            sure.append([dataset, threshold, *map(_short, sure_pairs(X, D, Y))])
            print(dataset, threshold, flush=True)
        keep("order", rows)
        keep("sure", sure)


def run_generated() -> None:
    """Compare Blend with single sources on generated rows of other habits."""
    singles = {
        "LabelGraph": LabelGraphEnhancer,
        "LEMLL, scaled": lambda: LEMLLEnhancer(feature_scale="auto"),
        "label frequency": _Frequency,
        "Blend": BlendEnhancer,
    }
    rows = []
    names = COLUMNS["generated"][4:-1]
    for name, X, D in enhancement_made.habits(first_seed=UNSEEN_SEED):
        for threshold in (0.3, 0.5):
            Y = np.asarray(binarize_distribution(D, threshold))
            for label, make in singles.items():
                enhancer = make().fit(X, Y)
                for number in N_RATED:
                    found = []
                    for seed in range(FIRST_SEED, FIRST_SEED + N_DRAWS):
                        rated = np.random.RandomState(seed).choice(len(D), number, replace=False)
                        rest = np.setdiff1d(np.arange(len(D)), rated)
                        enhancer.calibrate(rated, D[rated])
                        degrees = enhancer.label_distribution_[rest]
                        one = [float(metrics.METRICS[m](D[rest], degrees)) for m in names]
                        given = pair_order(D[rest], degrees, Y[rest], average=False)
                        found.append(
                            [*one, np.nanmean(given) if np.isfinite(given).any() else np.nan]
                        )
                    rows.append(
                        [name, threshold, number, label, *map(_short, np.mean(found, axis=0))]
                    )
        print(name, flush=True)
    keep("generated", rows)


def run_planted() -> None:
    """Count the rows whose most important given tag comes first."""
    rows = []
    for name, make, options in PLANTED:
        found: dict[str, list[float]] = {}
        for seed in range(UNSEEN_SEED, UNSEEN_SEED + 3):
            X, D = make(seed, N_ROWS, *options)
            Y = np.asarray(binarize_distribution(D / D.sum(axis=1, keepdims=True), 0.5))
            several = Y.sum(axis=1) > 1
            best = np.where(Y == 1, D, -1)[several].argmax(axis=1)
            found.setdefault("chance", []).append(float((1 / Y[several].sum(axis=1)).mean()))
            for label, enhancer in (
                ("label frequency", _Frequency()),
                ("LabelGraph", LabelGraphEnhancer()),
                ("LEMLL, scaled", LEMLLEnhancer(feature_scale="auto")),
                ("Blend", BlendEnhancer()),
            ):
                degrees = enhancer.fit(X, Y).label_distribution_
                first = np.where(Y == 1, degrees, -1)[several].argmax(axis=1)
                found.setdefault(label, []).append(float((first == best).mean()))
        rows += [[name, label, _short(fmean(shares))] for label, shares in found.items()]
        print(name, flush=True)
    keep("planted", rows)


def run_speed() -> None:
    """Measure fits of 2,000 rows, 50 features and 57 labels; the least of three."""
    rng = np.random.RandomState(0)
    X = rng.randn(2000, 50)
    Y = (X @ rng.randn(50, 57) + 3 * rng.randn(2000, 57) > 9).astype(int)
    rows: list[list[Any]] = []
    for label, run in (
        ("LEMLL, scaled", lambda: LEMLLEnhancer(feature_scale="auto").fit(X, Y)),
        ("Blend", lambda: BlendEnhancer().fit(X, Y)),
        ("Blend with its sources", lambda: BlendEnhancer().fit(X, Y).sources_),
    ):
        taken = []
        for _ in range(3):
            start = time.process_time()
            run()
            taken.append(time.process_time() - start)
        rows.append([label, f"{min(taken):.2f}"])
    keep("speed", rows)


def _short(value: float) -> str:
    return f"{value:.4f}"


def _path(name: str) -> Path:
    return FOLDER / ("order.csv" if name == "order" else f"order_{name}.csv")


def read_csv(name: str) -> list[list[Any]]:
    """Return the rows of a file without its head; none if there is no file."""
    if not _path(name).exists():
        return []
    with _path(name).open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))[1:]


def keep(name: str, rows: list[list[Any]]) -> None:
    """Write the rows of a file."""
    write_texts(FOLDER, {_path(name).name: csv_text([list(COLUMNS[name]), *rows])})


def _mean(rows: list[list[Any]], column: int) -> float:
    values = np.array([row[column] for row in rows], dtype=float)
    return float(np.nanmean(values)) if np.isfinite(values).any() else np.nan


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)] + [""]


def groups(rows: list[list[Any]]) -> list[tuple[str, list[list[Any]]]]:
    """Part rows by whether the method was developed on their data set."""
    return [
        ("developed on", [row for row in rows if row[0] in DEVELOPED_ON]),
        ("others", [row for row in rows if row[0] not in DEVELOPED_ON]),
    ]


def summary() -> str:
    """Return the tables as Markdown."""
    lines = [
        "# The order of the labels of a row",
        "",
        "Made by `python -m benchmarks.enhancement_order`; its docstring says what is measured. "
        f"Chance is 0.5. The method was developed on {', '.join(DEVELOPED_ON)} and on generated "
        "rows; the figures of single sources on the other data sets were known. Methods with a "
        "scale have the same order with and without rated rows.",
        "",
    ]
    rows = read_csv("order")
    for title, own in groups(rows):
        lines += [f"## Data sets {title}: means over places (given / others)", ""]
        head = ["method", "regime", "thresholds .3 and .5", "all thresholds", "given below .5"]
        lines += table(head, _means(own))
    shown = list(dict.fromkeys(row[2] for row in rows if row[3] == "none"))
    lines += ["## Every place, without ratings (given / others)", ""]
    lines += table(["data set, threshold", *shown], _places(rows, shown))
    lines += ["## Sure pairs", ""]
    lines += [
        f"A pair of given labels is sure if one order has the probability {SURE} or more.",
        "",
    ]
    head = ["data sets", "expected right", "right", "called sure", "sure and right"]
    cells = [[t, *(f"{_mean(own, k):.3f}" for k in range(2, 6))]
             for t, own in groups(read_csv("sure"))]  # fmt: skip
    lines += table(head, cells)
    lines += ["## Planted importance: rows whose most important given tag comes first", ""]
    planted = read_csv("planted")
    methods = list(dict.fromkeys(row[1] for row in planted))
    names = dict.fromkeys(row[0] for row in planted)
    cells = [
        [name, *(f"{float(row[2]):.2f}" for row in planted if row[0] == name)] for name in names
    ]
    lines += table(["habit", *methods], cells)
    lines += [
        "## Generated rows: distances of Blend, divided by those of the best single source",
        "",
    ]
    lines += ["Label graph, LEMLL (scaled) and frequencies, each with its scale; unseen seeds.", ""]
    head = ["rated rows", "mean ratio of the six distances", "largest", "places above 1.05"]
    lines += table(head, [_ratios(number) for number in map(str, N_RATED)])
    lines += ["## CPU seconds, 2,000 rows x 50 features x 57 labels", ""]
    lines += table(["fit", "CPU s"], read_csv("speed"))
    return "\n".join(lines)


def _means(rows: list[list[Any]]) -> list[list[str]]:
    cells = []
    for method, regime in dict.fromkeys((row[2], row[3]) for row in rows):
        own = [row for row in rows if (row[2], row[3]) == (method, regime)]
        main = [row for row in own if float(row[1]) in (0.3, 0.5)]
        below = sum(float(row[4]) < 0.5 for row in own)
        both = [f"{_mean(part, 4):.3f} / {_mean(part, 5):.3f}" for part in (main, own)]
        cells.append([method, regime, *both, f"{below} of {len(own)}"])
    return cells


def _places(rows: list[list[Any]], methods: list[str]) -> list[list[str]]:
    cells = []
    for place in dict.fromkeys((row[0], row[1]) for row in rows):
        own = {row[2]: row for row in rows if (row[0], row[1]) == place and row[3] == "none"}
        shown = [f"{float(own[m][4]):.2f} / {float(own[m][5]):.2f}" for m in methods]
        cells.append([" ".join(place), *shown])
    return cells


def _ratios(number: str) -> list[str]:
    """Return how far Blend is from the best single source, by all six distances."""
    ratios = []
    rows = [row for row in read_csv("generated") if row[2] == number]
    for place in dict.fromkeys((row[0], row[1]) for row in rows):
        own = {row[3]: np.array(row[4:10], float) for row in rows if (row[0], row[1]) == place}
        # Cosine and intersection are similarities.
        off = {label: np.concatenate([v[:4], 1 - v[4:]]) for label, v in own.items()}
        best = np.min([v for label, v in off.items() if label != "Blend"], axis=0)
        ratios.append(off["Blend"] / np.maximum(best, 1e-12))
    if not ratios:
        return [number, "", "", ""]
    means = ", ".join(f"{mean:.3f}" for mean in np.mean(ratios, axis=0))
    above = int((np.max(ratios, axis=1) > 1.05).sum())
    return [number, means, f"{np.max(ratios):.3f}", f"{above} of {len(ratios)}"]


def main() -> None:
    """Run what is asked, and write the summary."""
    parts = {"order": run_order, "generated": run_generated, "planted": run_planted}
    parts["speed"] = run_speed
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="by default all")
    asked = parser.parse_args().parts or list(parts)
    data_dir()
    with threadpool_limits(1), warnings.catch_warnings():
        # Scales at the end of the range are results here.
        warnings.simplefilter("ignore", UserWarning)
        for part in asked:
            parts[part]()
    write_texts(FOLDER, {"order.md": summary()})


if __name__ == "__main__":
    main()
