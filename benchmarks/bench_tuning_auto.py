"""`LEMLLCV(kernel="auto")` against logistic regressions, the paper's LEMLL, and no enhancement.

Three halves (seeds 0 to 2). The search is for average precision, coarse to fine, over the linear
and three RBF kernels, rows scaled or not; each measure is of the parameters that are best by it
among those tried. Beside it: `OneVsRestClassifier(LogisticRegressionCV)` on features scaled to at
most 1, labels with fewer positives than folds being scored by their frequency; labels by frequency
alone, which every model must beat; and `MSVRCV` with the same kernels, which is LEMLL with its
labels fixed: the difference is what label enhancement adds. A cell counts where LEMLLCV is no worse
than the logistic regressions and than the paper's LEMLL, after rounding to three decimals.

A set of `BUDGETED` is tuned on as many of its training rows as given, and fitted to all of them.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from benchmarks._measure import data_dir, write_json
from benchmarks._tuning import (
    FOLDS,
    MEASURES,
    Halves,
    at_least_as_good,
    measure,
    print_table,
    splits,
    tuned_measures,
)
from lemll import LEMLLCV, MSVRCV
from lemll.lab import published_prediction

NAMES = ("yeast", "scene", "medical", "cal500", "enron", "bibtex")
N_SPLITS = {"bibtex": 1}
BUDGETED = {"bibtex": 1000}
SHOWN = ("LEMLLCV", "MSVRCV", "logistic", "frequency")
SETTINGS: dict[str, Any] = {
    "kernel": "auto",
    "normalize_rows": "auto",
    "scoring": MEASURES,
    "cv": FOLDS,
    "n_jobs": 1,
}


def logistic(halves: Halves) -> dict[str, float]:
    """One logistic regression a label, its C chosen by the same number of folds."""
    one = LogisticRegressionCV(Cs=10, cv=FOLDS, max_iter=200)
    model = make_pipeline(MaxAbsScaler(), OneVsRestClassifier(one))
    with warnings.catch_warnings():
        # Labels of one class, or of fewer positives than folds, and fits that take longer.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", FutureWarning)
        scores = one_vs_rest_scores(model, halves)
    return {name: measure(name, halves.Y_test, scores) for name in MEASURES}


def one_vs_rest_scores(model: Any, halves: Halves) -> Any:
    """Scores of all labels; those with fewer positives than folds by their frequency."""
    positives = halves.Y.sum(axis=0)
    enough = (positives >= FOLDS) & (len(halves.Y) - positives >= FOLDS)
    share = np.clip(positives / len(halves.Y), 1e-6, 1 - 1e-6)
    scores = np.tile(np.log(share / (1 - share)), (len(halves.Y_test), 1))
    # In int8, scikit-learn 1.9 mixes up the columns of more than 127 labels.
    model.fit(halves.X, halves.Y[:, enough].astype(np.int64))
    scores[:, enough] = model.decision_function(halves.X_test)
    return scores


def by_frequency(halves: Halves) -> dict[str, float]:
    """Every row alike: a model below this has something wrong with it."""
    scores = np.tile(halves.Y.mean(axis=0) - 0.5, (len(halves.Y_test), 1))
    return {name: measure(name, halves.Y_test, scores) for name in MEASURES}


def compared(name: str) -> dict[str, Any]:
    """Every measure on every test half, of the three models."""
    found: dict[str, list[dict[str, float]]] = {}
    seconds: dict[str, float] = {}
    for halves in splits(name, N_SPLITS.get(name, 3)):
        tune = slice(BUDGETED.get(name))
        for title, model in {
            "LEMLLCV": LEMLLCV(search="coarse", **SETTINGS),
            "MSVRCV": MSVRCV(**SETTINGS),
        }.items():
            clock = time.process_time()
            search = model.fit(halves.X[tune], halves.Y[tune])
            found.setdefault(title, []).append(tuned_measures(search, halves))
            seconds[title] = seconds.get(title, 0.0) + time.process_time() - clock
        clock = time.process_time()
        found.setdefault("logistic", []).append(logistic(halves))
        found.setdefault("frequency", []).append(by_frequency(halves))
        seconds["logistic"] = seconds.get("logistic", 0.0) + time.process_time() - clock
        for title, values in found.items():
            print(f"{name} seed {halves.seed} {title}: {values[-1]}", flush=True)
    return {"data": name, "found": found, "cpu_seconds": seconds, "rows": BUDGETED.get(name)}


def table(results: list[dict[str, Any]]) -> int:
    """Print all means; return the number of cells where LEMLLCV is ahead."""
    paper = {(c.dataset, c.metric): c.mean for c in published_prediction() if c.method == "LEMLL"}
    rows, count = [], 0
    for result in results:
        for name in MEASURES:
            means = {
                title: float(np.mean([split[name] for split in values]))
                for title, values in result["found"].items()
            }
            theirs = paper[result["data"], name]
            ahead = at_least_as_good(name, means["LEMLLCV"], theirs) and at_least_as_good(
                name, means["LEMLLCV"], round(means["logistic"], 3)
            )
            count += ahead
            figures = [f"{means[title]:.3f}" for title in SHOWN]
            rows.append([result["data"], name, *figures, theirs, "yes" if ahead else "no"])
    print_table(["data", "measure", *SHOWN, "published", "ahead"], rows)
    print(f"ahead of both in {count} of {len(rows)} cells; wanted 25 of 30", flush=True)
    return count


def main() -> None:
    """Measure, print, and keep the figures after every data set."""
    data_dir()
    results: list[dict[str, Any]] = []
    for name in NAMES:
        results.append(compared(name))
        write_json("tuning_auto", {"folds": FOLDS, "results": results, "ahead": table(results)})


if __name__ == "__main__":
    main()
