"""What correction is worth: test figures of TagPredictor after 40 % of the tags were dropped.

``python -m benchmarks.audit_correct --sets emotions,yeast --seeds 0-2`` appends to
``results/audit/correct.csv``. The training half (`lemll.model_selection`) loses 40 % of its tags;
`lemll.audit.correct` changes the suggestions of kind "missing", or of both kinds, at precision 0.9.
The same learner is fitted to the noisy, the corrected and the clean half, and all are measured on
the clean test half.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from benchmarks.audit_noise import Noise, add_noise, load_clean
from lemll import TagPredictor
from lemll.audit import correct, find_tag_issues
from lemll.metrics import average_precision, macro_f1

OUTPUT = Path(__file__).parents[1] / "results" / "audit" / "correct.csv"
HEADER = (
    *("set", "seed", "labels", "average_precision", "macro_f1"),
    *("changed", "right", "mistakes"),
)
NOISE = Noise("drop", 0.40)
PRECISION = 0.9


def measured(X, Y, rows, test, labels):
    """Return the average precision and macro F1 of the learner on the clean test rows."""
    model = TagPredictor(n_estimators=150).fit(X[rows], labels)
    scores = model.decision_function(X[test])
    return average_precision(Y[test], scores), macro_f1(Y[test], model.predict(X[test]))


def main():
    """Run the halves that are not in the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", required=True)
    parser.add_argument("--seeds", default="0-2")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    done = set()
    if OUTPUT.exists():
        with OUTPUT.open(encoding="utf-8") as lines:
            done = {(row["set"], row["seed"]) for row in csv.DictReader(lines)}
    for seed in range(int(first), int(last or first) + 1):
        for name in options.sets.split(","):
            if (name, str(seed)) in done:
                continue
            X, Y = load_clean(name)
            order = np.random.RandomState(seed).permutation(len(Y))
            train, test = order[: len(Y) // 2], order[len(Y) // 2 :]
            noisy = add_noise(X[train], Y[train], NOISE, seed)
            issues = find_tag_issues(X[train], noisy, limit=None)
            mistakes = int((noisy != Y[train]).sum())
            lines = []
            for kind in ("noisy", "corrected", "corrected, missing only", "clean"):
                labels, changed, right = noisy, 0, 0
                if kind == "clean":
                    labels = Y[train]
                elif kind != "noisy":
                    chosen = issues if kind == "corrected" else issues[issues.kind == "missing"]
                    labels = correct(noisy, chosen, precision=PRECISION).Y
                    changed = int((labels != noisy).sum())
                    right = int(((labels != noisy) & (labels == Y[train])).sum())
                precision, f1 = measured(X, Y, train, test, labels)
                lines.append(
                    [name, seed, kind, f"{precision:.4f}", f"{f1:.4f}", changed, right, mistakes]
                )
                print(*lines[-1], flush=True)
            OUTPUT.parent.mkdir(parents=True, exist_ok=True)
            new = not OUTPUT.exists()
            with OUTPUT.open("a", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([HEADER] * new + lines)


if __name__ == "__main__":
    main()
