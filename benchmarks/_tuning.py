"""What the benchmarks of tuning share: halves, scores of one model, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import normalize

from lemll import LEMLL, MSVRClassifier
from lemll.datasets import load_dataset
from lemll.metrics import METRICS

MEASURES = ("average_precision", "hamming_loss", "ranking_loss", "one_error", "coverage")
# Within each training half; fewer than the default of 5, so that ten splits are affordable.
FOLDS = 3


class Halves(NamedTuple):
    """Training and test half of a data set."""

    seed: int
    X: Any
    Y: Any
    X_test: Any
    Y_test: Any


def splits(name: str, n_splits: int) -> Iterator[Halves]:
    """Yield halves of seeds 0, 1, ..."""
    data = load_dataset(name)
    for seed in range(n_splits):
        order = np.random.RandomState(seed).permutation(len(data))
        train, test = order[: len(data) // 2], order[len(data) // 2 :]
        yield Halves(seed, data.X[train], data.Y[train], data.X[test], data.Y[test])


def measure(name: str, Y: Any, scores: Any) -> float:
    """One measure of scores, labels being predicted where they are positive."""
    metric = METRICS[name]
    return float(metric(Y, (scores > 0).astype(int) if metric.prediction == "labels" else scores))


def chosen_by(search: Any, name: str) -> int:
    """Return the place in `cv_results_` that is best by one of the measures."""
    return int(search.cv_results_[f"mean_test_{name}"].argmax())


def test_scores(search: Any, index: int, halves: Halves, tol: float) -> Any:
    """Scores of the test half by the model of one place in `cv_results_`."""
    row = {
        key.removeprefix("param_"): column[index]
        for key, column in search.cv_results_.items()
        if key.startswith("param_")
    }
    scaled = row.pop("normalize_rows")
    X, X_test = (normalize(A) if scaled else A for A in (halves.X, halves.X_test))
    if np.isinf(row["beta"]):
        model: Any = MSVRClassifier(
            row["alpha"],
            kernel=row["kernel"],
            kernel_params={"gamma": row["kernel_gamma"]},
            tol=tol,
        )
    else:
        model = LEMLL(**row, tol=tol)
    return model.fit(X, halves.Y).decision_function(X_test)


def tuned_measures(search: Any, halves: Halves, *, tol: float = 1e-4) -> dict[str, float]:
    """Every measure on the test half, of the parameters that are best by it in `cv_results_`."""
    scores: dict[int, Any] = {}
    found = {}
    for name in MEASURES:
        index = chosen_by(search, name)
        if index not in scores:
            scores[index] = test_scores(search, index, halves, tol)
        found[name] = measure(name, halves.Y_test, scores[index])
    return found


def at_least_as_good(name: str, ours: float, theirs: float, slack: float = 0.0) -> bool:
    """Whether a mean is no worse than another, after rounding to the paper's three decimals."""
    sign = 1 if METRICS[name].greater_is_better else -1
    return bool(sign * (round(ours, 3) - theirs) >= -slack - 1e-9)


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a Markdown table."""
    for row in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(map(str, row)) + " |")
    print(flush=True)
