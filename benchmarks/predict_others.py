"""Predictions of other libraries on halves of results/best: ``results/others/cells.csv``.

    python -m benchmarks.predict_others LightGBM | scikit-multilearn | AutoGluon

Run it in an environment that has the library beside lemll, with PYTHONPATH=src. Every library is
trained and tested on the rows of ``results/best``, where TagPredictor was, and judged by the same
average precision. LightGBM has one model per label; the best of four settings by a third of the
training half is fitted again. scikit-multilearn runs its transformations of the problem around
random forests of scikit-learn, and the best by the test rows stands in the table, which favours it;
a transformation that stops with an error leaves its name.
AutoGluon has one predictor per label with a limit of time. What is in the file is not run again.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lemll.datasets import load_dataset
from lemll.metrics import average_precision

FILE = Path(__file__).parents[1] / "results" / "others" / "cells.csv"
HEADER = ["dataset", "library", "method", "split", "average_precision", "cpu_seconds"]
# Data sets and numbers of halves, so that each library takes some minutes.
PLANS = {
    "LightGBM": (("flags", "emotions", "scene", "yeast", "medical", "enron"), 3),
    "scikit-multilearn": (("flags", "emotions", "scene", "yeast"), 3),
    "AutoGluon": (("flags", "emotions", "scene"), 1),
}
SETTINGS = [
    {"num_leaves": leaves, "learning_rate": rate, "n_estimators": 100}
    for leaves in (7, 31)
    for rate in (0.03, 0.1)
]
SECONDS_PER_LABEL = 12
Scorer = Callable[[Any, Any, Any], Any]


def with_lightgbm(X: Any, Y: Any, new: Any) -> Any:
    """Fit one model per label by the setting that is best on the last third of the rows."""
    from lightgbm import LGBMClassifier

    def fitted(rows: Any, setting: dict[str, Any], where: Any) -> Any:
        columns = []
        for j in range(Y.shape[1]):
            y = Y[rows, j]
            if y.min() == y.max():
                columns.append(np.full(where.shape[0], float(y[0])))
                continue
            model = LGBMClassifier(**setting, n_jobs=1, verbose=-1, random_state=0)
            columns.append(model.fit(X[rows], y).predict_proba(where)[:, 1])
        return np.column_stack(columns)

    cut = 2 * len(Y) // 3
    inner, rest = np.arange(cut), np.arange(cut, len(Y))
    found = [average_precision(Y[rest], fitted(inner, setting, X[rest])) for setting in SETTINGS]
    return fitted(np.arange(len(Y)), SETTINGS[int(np.argmax(found))], new)


def with_transformation(name: str) -> Scorer:
    """Return the scores of a transformation of scikit-multilearn around forests."""

    def scores(X: Any, Y: Any, new: Any) -> Any:
        import skmultilearn.problem_transform as transformations
        from sklearn.ensemble import RandomForestClassifier
        from skmultilearn.ensemble import RakelD

        forest = RandomForestClassifier(100, random_state=0)
        np.random.seed(0)  # noqa: NPY002  RAkELd has no seed of its own
        made = (
            RakelD(base_classifier=forest, labelset_size=3)
            if name == "RakelD"
            else getattr(transformations, name)(forest)
        )
        return made.fit(X, Y).predict_proba(new).toarray()

    return scores


def with_autogluon(X: Any, Y: Any, new: Any) -> Any:
    """Fit one predictor per label."""
    import pandas as pd
    from autogluon.tabular import TabularPredictor

    columns = []
    for j in range(Y.shape[1]):
        frame = pd.DataFrame(X).add_prefix("x").assign(y=Y[:, j])
        with tempfile.TemporaryDirectory() as folder:
            model = TabularPredictor("y", problem_type="binary", path=folder, verbosity=0)
            model.fit(frame, time_limit=SECONDS_PER_LABEL, num_cpus=1)
            found = model.predict_proba(pd.DataFrame(new).add_prefix("x"))
            columns.append(found[1].to_numpy())
    return np.column_stack(columns)


METHODS: dict[str, dict[str, Scorer]] = {
    "LightGBM": {"per label, tuned": with_lightgbm},
    "scikit-multilearn": {
        name: with_transformation(name) for name in ("RakelD", "ClassifierChain", "LabelPowerset")
    },
    "AutoGluon": {"per label": with_autogluon},
}


def run(library: str, done: set[tuple[str, ...]]) -> Iterator[list[Any]]:
    """Yield one line per cell that is not done."""
    datasets, n_splits = PLANS[library]
    for name in datasets:
        data = load_dataset(name)
        X, Y = data.X, np.asarray(data.Y).astype(int)
        for split in range(n_splits):
            order = np.random.RandomState(split).permutation(len(Y))
            train, test = order[: len(Y) // 2], order[len(Y) // 2 :]
            for method, scores in METHODS[library].items():
                if (name, library, method, str(split)) in done:
                    continue
                begin = time.process_time()
                try:
                    found = scores(X[train], Y[train], X[test])
                    value = f"{average_precision(Y[test], found):.6f}"
                except (TypeError, ValueError) as error:  # some do not run with present libraries
                    value = f"{type(error).__name__}"
                seconds = time.process_time() - begin
                yield [name, library, method, split, value, f"{seconds:.1f}"]


def main() -> None:
    """Run a library and add its lines."""
    warnings.simplefilter("ignore")
    FILE.parent.mkdir(exist_ok=True)
    if not FILE.exists():
        FILE.write_text(",".join(HEADER) + "\n", encoding="utf-8")
    with FILE.open(encoding="utf-8") as file:
        done = {tuple(line[:4]) for line in csv.reader(file)}
    for line in run(sys.argv[1], done):
        print(*line, flush=True)
        with FILE.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(line)


if __name__ == "__main__":
    main()
