"""Noise labels: whether the score that a command reports is that of fresh rows.

Labels are drawn without regard to the features, so nothing can be learned, and a command that
measures on rows that a choice has seen reports too much. Per seed: the reported value minus the
value of the same model on fresh rows of the same distribution.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

from benchmarks._measure import write_json
from lemll import LEMLL, LEMLLCV, TagPredictor
from lemll.metrics import average_precision
from lemll.model_selection import IterativeStratifiedKFold
from lemll.models import compare_learners, fit_table, make_learner
from lemll.tables import LabelSpec, Table

N_ROWS, N_FRESH, N_COLUMNS = 300, 3000, 6
LABELS = ("a", "b", "c", "d", "e")
# Different frequencies, so that predicting them is better than chance.
SHARES = (0.6, 0.5, 0.4, 0.3, 0.2)
SPEC = LabelSpec(labels=LABELS)


def noise(n: int, rng: np.random.RandomState) -> pd.DataFrame:
    """Return rows whose labels do not depend on their features."""
    frame = pd.DataFrame(rng.randn(n, N_COLUMNS), columns=[f"x{j}" for j in range(N_COLUMNS)])
    Y = (rng.rand(n, len(LABELS)) < SHARES).astype(int)
    for j, name in enumerate(LABELS):
        frame[name] = Y[:, j]
    return frame


def of_fit(frame: pd.DataFrame, fresh: pd.DataFrame) -> tuple[float, float, bool]:
    """Return the reported score, the fresh score, and whether it claims to have learned."""
    learner = TagPredictor(n_estimators=50, cv=3)
    model, found = fit_table(Table(frame, "noise"), SPEC, learner=learner)
    truth = fresh[list(LABELS)].to_numpy()
    scores = model.predict(Table(fresh, "fresh")).probabilities
    return found.scores[0].value, average_precision(truth, scores), found.learned


def of_tune(frame: pd.DataFrame, fresh: pd.DataFrame) -> tuple[float, float, float]:
    """Return the held-out score, the fresh score, and that of the folds that chose."""
    X, Y = frame.iloc[:, :N_COLUMNS].to_numpy(), frame[list(LABELS)].to_numpy()
    searched, held_out = next(IterativeStratifiedKFold(5).split(Y, Y))
    template = LEMLL(scale="auto", tol=1e-3)
    model = LEMLLCV(estimator=template, kernel="auto", normalize_rows="auto", search="coarse",
                    max_seconds=20)  # fmt: skip
    model.fit(X[searched], Y[searched])
    reported = average_precision(Y[held_out], model.decision_function(X[held_out]))
    new = fresh.iloc[:, :N_COLUMNS].to_numpy()
    truth = fresh[list(LABELS)].to_numpy()
    return reported, average_precision(truth, model.decision_function(new)), model.best_score_


def of_compare(frame: pd.DataFrame, fresh: pd.DataFrame) -> tuple[float, float]:
    """Return the reported and the fresh score of LEMLL."""
    found = compare_learners(Table(frame, "noise"), SPEC, ("LEMLL", "MultilabelForest"))
    reported = found.values[:, 0, found.measures.index("average_precision")].mean()
    truth = fresh[list(LABELS)].to_numpy()
    model = make_learner("LEMLL").fit(
        frame.iloc[:, :N_COLUMNS].to_numpy(), frame[list(LABELS)].to_numpy()
    )
    return reported, average_precision(
        truth, model.decision_function(fresh.iloc[:, :N_COLUMNS].to_numpy())
    )


def main(options: list[str] | None = None) -> int:
    """Print the differences; fail if one is more than two standard errors from 0."""
    n_seeds = int(options[1]) if options and options[0] == "--seeds" else 20
    differences: dict[str, list[float]] = {}
    learned = 0
    for seed in range(n_seeds):
        rng = np.random.RandomState(1000 + seed)
        frame, fresh = noise(N_ROWS, rng), noise(N_FRESH, rng)
        reported, true, says = of_fit(frame, fresh)
        learned += says
        differences.setdefault("lemll fit", []).append(reported - true)
        reported, true, chosen = of_tune(frame, fresh)
        differences.setdefault("search of LEMLL", []).append(reported - true)
        differences.setdefault("(the folds of the search, not reported)", []).append(chosen - true)
        reported, true = of_compare(frame, fresh)
        differences.setdefault("lemll compare", []).append(reported - true)
        print(f"seed {seed} done", file=sys.stderr, flush=True)
    failed = 0
    results = {}
    for name, values in differences.items():
        mean, error = np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values))
        honest = abs(mean) <= 2 * error
        failed += not honest and not name.startswith("(")
        results[name] = {"difference": mean, "standard_error": error, "seeds": len(values)}
        print(f"{name:36s} {mean:+.4f} ± {error:.4f}  {'honest' if honest else 'too good'}")
    print(f"lemll fit claims to have learned in {learned} of {n_seeds} seeds")
    write_json("honesty", {**results, "claims_to_have_learned": learned})
    return failed
