"""Average precision that each approximation loses against the exact computation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks._measure import data_dir
from lemll import LEMLL
from lemll.datasets import load_dataset
from lemll.metrics import average_precision

DATA = ("bibtex", "corel16k-s1", "tmc2007")
MOST_LOST = 0.002
SIZES: tuple[int | str, ...] = (1000, 4000, "auto")
BLOCKS = (1, 10, 20, 50)


class Halves(NamedTuple):
    """Training and test half of a data set, seed 0."""

    X: Any
    Y: Any
    T: Any
    V: Any

    def score(self, **options: Any) -> tuple[float, LEMLL]:
        """Return the average precision on the test half, and the model, with default weights."""
        model = LEMLL(**options).fit(self.X, self.Y)
        return average_precision(self.V, model.decision_function(self.T)), model


def halves(name: str) -> Halves:
    """Load a data set and divide it."""
    data = load_dataset(name)
    seen, unseen = np.split(np.random.RandomState(0).permutation(len(data)), [len(data) // 2])
    return Halves(data.X[seen], data.Y[seen], data.X[unseen], data.Y[unseen])


def cases(exact: float, kernel: float) -> list[tuple[str, float, dict[str, Any]]]:
    """Return each approximation: its title, the exact figure beside it, and its options."""
    found: list[tuple[str, float, dict[str, Any]]] = [
        ("approximate neighbours", exact, {"graph": {"neighbors": "approximate"}}),
        ("float32", exact, {"solver_params": {"precision": "float32"}}),
    ]
    found += [
        (f"blocks of {size} labels", exact, {"solver_params": {"label_block": size}})
        for size in BLOCKS
    ]
    for size in SIZES:
        options = {
            "kernel": "rbf",
            "kernel_params": {"approximation": "nystroem", "n_components": size},
            "solver_params": {"precision": "float32"},
        }
        found.append((f"nystroem {size}", kernel, options))
    return found


def losses() -> list[dict[str, Any]]:
    """Compare every approximation with the exact computation on every data set."""
    data_dir()
    rows: list[dict[str, Any]] = []
    for name in DATA:
        half = halves(name)
        frequency = np.tile(half.Y.mean(axis=0), (len(half.V), 1))
        print(f"{name}: labels by frequency {average_precision(half.V, frequency):.4f}")
        for title, exact, options in cases(half.score()[0], half.score(kernel="rbf")[0]):
            found, model = half.score(**options)
            gap = getattr(model, "kernel_gap_", None)
            recall = model.neighbor_search_["recall"]
            rows.append({"data": name, "approximation": title, "exact": exact, "found": found,
                         "lost": exact - found, "recall": recall, "kernel_gap": gap})  # fmt: skip
            verdict = "" if exact - found <= MOST_LOST else "  MORE THAN WANTED"
            of_kernel = "" if gap is None else f", certified gap to the kernel {gap:.2g}"
            print(
                f"{name:12s} {title:24s} exact {exact:.4f} found {found:.4f} lost "
                f"{exact - found:+.4f}, recall {recall:.3f}{of_kernel}{verdict}",
                flush=True,
            )
    return rows
