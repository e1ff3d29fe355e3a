"""Run the audit experiment: one cell per data set, noise and seed; a stopped run continues.

``python -m benchmarks.audit_run --cleanlab PYTHON --sets emotions,yeast --seeds 0-9``
where PYTHON is the interpreter of an environment with cleanlab, which lemll never needs. Every
finished cell is one file in ``lemll-results/audit``; ``benchmarks.audit_report`` makes the tables.
Cells that the committed table has are not run again, except with ``--again``. The learners and
scores of the others do not change with lemll: ``--part theirs`` runs only them, and ``--part ours
--again`` runs lemll again on the same probabilities.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from csv import DictReader
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.audit_noise import NOISES, Noise, add_noise, load_clean
from lemll import BinaryRelevance, MultilabelForest
from lemll._files import write_output
from lemll.audit import audit_tags
from lemll.audit.auditing import noise_frame
from lemll.fitting.scaling import fit_scaling
from lemll.model_selection import IterativeStratifiedKFold

CELLS = Path("lemll-results/audit")
TABLE = Path(__file__).parents[1] / "results" / "audit" / "cells.csv"
N_FOLDS = 5
N_TREES = 100
# Inverse strengths of the penalty that the tuned logistic regressions try.
STRENGTHS = (0.01, 0.1, 1.0, 10.0)
# The learners whose probabilities cleanlab judges.
THEIRS = ("logistic", "tuned logistic", "forest")


def out_of_fold(X, Z, make):
    """Return probabilities by models that did not see the row."""
    p = np.zeros(Z.shape)
    for train, test in IterativeStratifiedKFold(N_FOLDS).split(X, Z):
        p[test] = make().fit(X[train], Z[train]).predict_proba(X[test])
    return p


def default_logistic(X, Z):
    """Return what a user of cleanlab has: scikit-learn's logistic regression, one per label."""
    p = np.zeros(Z.shape)
    for train, test in IterativeStratifiedKFold(N_FOLDS).split(X, Z):
        for j in range(Z.shape[1]):
            if 0 < Z[train, j].sum() < len(train):
                model = LogisticRegression(max_iter=1000).fit(X[train], Z[train, j])
                p[test, j] = model.predict_proba(X[test])[:, 1]
            else:
                p[test, j] = Z[train, j].mean()
    return p


def tuned_logistic(X, Z):
    """Return the probabilities of the strength with the smallest log loss of unseen rows."""
    tried = [out_of_fold(X, Z, lambda C=C: BinaryRelevance(C=C)) for C in STRENGTHS]
    losses = [-np.log(np.clip(np.where(Z == 1, p, 1 - p), 1e-9, 1)).mean() for p in tried]
    return tried[int(np.argmin(losses))]


def forest(X, Z):
    """Return the probabilities of extra trees."""
    return out_of_fold(X, Z, lambda: MultilabelForest(N_TREES, min_samples_leaf=2, random_state=0))


def measures(bad, doubt):
    """Return AUROC, AUPRC, precision at the number of mistakes, and lift at 100."""
    n_bad = int(bad.sum())
    order = np.argsort(-doubt, kind="stable")
    first = bad[order[:100]].mean()
    return {
        "auroc": roc_auc_score(bad, doubt),
        "auprc": average_precision_score(bad, doubt),
        "precision": bad[order[:n_bad]].mean(),
        "lift": first / bad.mean(),
    }


def judge(Y, Z, quality, rows):
    """Measure scores of cells, wrong and missing tags apart, and scores of rows."""
    found = {}
    mistakes = Y != Z
    for level, given in (("wrong", 1), ("missing", 0)):
        of = Z == given
        if quality is not None and mistakes[of].any():
            found[level] = measures(mistakes[of], -quality[of])
    bad_rows = mistakes.any(axis=1)
    if rows is not None and bad_rows.any() and not bad_rows.all():
        found["row"] = measures(bad_rows, -rows)
    return found


def noise_coverage(audit, Y, Z):
    """Compare the intervals of the shares with the shares that the noise has."""
    frame = noise_frame(audit)
    truth = {
        "wrong": ((Y == 0) & (Z == 1)).sum(axis=0) / np.maximum(Z.sum(axis=0), 1),
        "missing": ((Y == 1) & (Z == 0)).sum(axis=0) / Y.sum(axis=0),
    }
    found = {}
    for kind, share in truth.items():
        low, high = frame[f"{kind}_low"].to_numpy(), frame[f"{kind}_high"].to_numpy()
        found[kind] = {
            "labels": len(share),
            "covered": int(((low <= share) & (share <= high)).sum()),
            "told": int(frame[f"{kind}_told"].sum()),
            "covered_told": int(((share <= high) & frame[f"{kind}_told"].to_numpy()).sum()),
            "width": float((high - low).mean()),
            "error": float(np.abs(frame[kind].to_numpy() - share).mean()),
        }
    return found


def timed(seconds, name, function):
    """Return what a function returns, and note its CPU seconds."""
    begin = time.process_time()
    found = function()
    seconds[name] = round(time.process_time() - begin, 2)
    return found


class Cell(NamedTuple):
    """A data set with noise, and the files of its results."""

    name: str
    noise: Noise
    seed: int

    @property
    def key(self):
        """How the table names the cell."""
        return (self.name, self.noise.kind, str(self.noise.amount), str(self.seed))

    @property
    def path(self):
        """The measures."""
        return CELLS / f"{self.name}_{self.noise.kind}{self.noise.amount:g}_{self.seed}.json"

    @property
    def probabilities(self):
        """The probabilities of the other learners, which both parts need."""
        return self.path.with_suffix(".npz")

    def load(self):
        """Return features, clean tags and noisy tags."""
        X, Y = load_clean(self.name)
        return X, Y, add_noise(X, Y, self.noise, self.seed)

    def read(self):
        """Return the parts that are done."""
        return json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}


def their_part(cell, cleanlab, folder):
    """Return the measures of cleanlab, and keep the probabilities that it judges."""
    X, Y, Z = cell.load()
    scaled = fit_scaling("auto", X)(X)
    seconds: dict[str, float] = {}
    p = {
        "logistic": timed(seconds, "logistic", lambda: default_logistic(scaled, Z)),
        "tuned logistic": timed(seconds, "tuned logistic", lambda: tuned_logistic(scaled, Z)),
        "forest": timed(seconds, "forest", lambda: forest(X, Z)),
    }
    target = folder / "out.npz"
    np.savez(cell.probabilities, Z=Z, **{f"p_{of}": values for of, values in p.items()})
    cleanlab.stdin.write(f"{cell.probabilities.resolve()} {target}\n")
    cleanlab.stdin.flush()
    if cleanlab.stdout.readline().strip() != "done":
        raise SystemExit("cleanlab stopped; run benchmarks/audit_cleanlab.py by hand to see why")
    found = {}
    with np.load(target) as scores:
        for key in scores.files:
            values = scores[key]
            per_cell = values if values.ndim == 2 else None
            found[f"cleanlab|{key}"] = judge(
                Y, Z, per_cell, None if per_cell is not None else values
            )
    return {
        "set": cell.name,
        "noise": cell.noise.kind,
        "amount": cell.noise.amount,
        "seed": cell.seed,
        "shape": [*X.shape, Y.shape[1]],
        "mistakes": int((Y != Z).sum()),
        "theirs": found,
        "their_seconds": seconds,
    }


def our_part(cell):
    """Return the measures of lemll, alone and on the probabilities of the other part."""
    X, Y, Z = cell.load()
    seconds: dict[str, float] = {}
    audits = {
        "lemll": timed(seconds, "lemll", lambda: audit_tags(X, Z)),
        "lemll fast": timed(seconds, "lemll fast", lambda: audit_tags(X, Z, mode="fast")),
    }
    with np.load(cell.probabilities) as kept:
        for of in THEIRS:
            p = kept[f"p_{of}"]
            audits[f"lemll|{of}"] = timed(
                seconds, f"lemll|{of}", lambda p=p: audit_tags(None, Z, pred_probs=p)
            )
    return {
        "ours": {
            key: judge(Y, Z, audit.quality, audit.row_quality) for key, audit in audits.items()
        },
        "coverage": noise_coverage(audits["lemll"], Y, Z),
        "our_seconds": seconds,
    }


def planned(options):
    """Return the cells that the options name, seed by seed."""
    first, _, last = options.seeds.partition("-")
    wanted = None if options.noises is None else options.noises.split(",")
    noises = [noise for noise in NOISES if wanted is None or str(noise) in wanted]
    for seed in range(int(first), int(last or first) + 1):
        for name in options.sets.split(","):
            for noise in noises:
                yield Cell(name, noise, seed)


def committed():
    """Return the cells of the table in ``results/audit``, which a new clone need not run again."""
    if not TABLE.exists():
        return set()
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return {(row["set"], row["noise"], row["amount"], row["seed"]) for row in DictReader(lines)}


def run(cell, options, cleanlab, folder):
    """Compute the parts of a cell that are wanted and not done."""
    found = cell.read()
    if options.part != "ours" and "theirs" not in found:
        found |= _kept(cell, found, lambda: their_part(cell, cleanlab, folder))
    if options.part != "theirs" and ("ours" not in found or options.again):
        if "theirs" in found:
            _kept(cell, found, lambda: our_part(cell))
        else:
            print(f"{cell.path.stem}: there are no probabilities; run --part theirs", flush=True)


def _kept(cell, found, compute):
    """Compute a part, and write it together with what was found before."""
    begin = time.perf_counter()
    part = compute()
    write_output(cell.path, json.dumps(found | part))
    print(f"{cell.path.stem}: {time.perf_counter() - begin:.0f} s", flush=True)
    return part


def main():
    """Run the cells that are not done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cleanlab", required=True, help="interpreter with cleanlab")
    parser.add_argument("--sets", required=True, help="names, separated by commas")
    parser.add_argument("--seeds", default="0-9", help="for example 0-9")
    parser.add_argument("--noises", default=None, help="for example 'flip 10%%,drop 40%%'")
    parser.add_argument("--part", default="all", choices=("all", "theirs", "ours"))
    parser.add_argument(
        "--again", action="store_true", help="run cells again, of one cell our part"
    )
    options = parser.parse_args()
    script = Path(__file__).with_name("audit_cleanlab.py")
    CELLS.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [options.cleanlab, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as cleanlab,
    ):
        done = set() if options.again else committed()
        for cell in planned(options):
            if cell.key not in done:
                run(cell, options, cleanlab, Path(folder))
        cleanlab.stdin.close()


if __name__ == "__main__":
    main()
