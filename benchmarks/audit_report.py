"""Collect the cells of the audit experiment, and write its tables to ``results/audit``.

``python -m benchmarks.audit_report`` adds the finished cells of ``lemll-results/audit`` to
``results/audit/cells.csv`` and ``coverage.csv``, and writes ``summary.md`` from these files alone.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd

from benchmarks.audit_noise import NOISES, Noise
from benchmarks.audit_run import CELLS, THEIRS
from lemll._files import csv_text, write_output

FOLDER = Path(__file__).parents[1] / "results" / "audit"
KEY = ("set", "noise", "amount", "seed")
MEASURES = ("auroc", "auprc", "precision", "lift")
COVERAGE = ("labels", "covered", "told", "covered_told", "width", "error")
OURS = {
    "lemll": "lemll",
    "lemll fast": "lemll fast",
    "lemll|logistic": "lemll, their logistic",
    "lemll|tuned logistic": "lemll, their tuned logistic",
    "lemll|forest": "lemll, their forest",
}
# A block may be lower than the best of cleanlab by this much.
MARGIN = 0.01


def collect():
    """Add the cells that are done to the two tables; later results replace earlier ones."""
    cells, coverage = _read("cells.csv"), _read("coverage.csv")
    for path in sorted(CELLS.glob("*.json")):
        cell = json.loads(path.read_text(encoding="utf-8"))
        if "ours" not in cell:
            continue
        key = tuple(str(cell[name]) for name in KEY)
        for contestant, levels in (cell["ours"] | cell["theirs"]).items():
            for level, found in levels.items():
                figures = [f"{found[name]:.4f}" for name in MEASURES]
                cells[*key, contestant, level] = figures
        for kind, found in cell["coverage"].items():
            coverage[*key, kind] = [
                f"{found[name]:.4f}" if isinstance(found[name], float) else str(found[name])
                for name in COVERAGE
            ]
    for name, rows, header in (
        ("cells.csv", cells, [*KEY, "contestant", "level", *MEASURES]),
        ("coverage.csv", coverage, [*KEY, "kind", *COVERAGE]),
    ):
        lines = [[*key, *figures] for key, figures in sorted(rows.items())]
        write_output(FOLDER / name, csv_text([header, *lines]))


def _read(name):
    path = FOLDER / name
    if not path.exists():
        return {}
    width = 6 if name == "cells.csv" else 5
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))[1:]
    return {tuple(row[:width]): row[width:] for row in rows}


def blocks(cells, measure):
    """Return the mean over the seeds per set, noise, level and contestant."""
    frame = cells.assign(
        block=[str(Noise(k, a)) for k, a in zip(cells.noise, cells.amount, strict=True)]
    )
    return frame.groupby(["set", "block", "level", "contestant"])[measure].mean().unstack()


def best_of_cleanlab(table, of, rows=""):
    """Return the best scorer of cleanlab on these probabilities, block by block."""
    names = [name for name in table.columns if name.startswith(f"cleanlab|{of}|")]
    names = [name for name in names if name.count("|") == (3 if rows else 2)]
    if rows:
        names = [name for name in names if name.endswith(rows)]
    return table[names].max(axis=1)


def comparison(table):
    """Return our contestants beside the best scorer of cleanlab on each kind of probabilities."""
    found = {title: table[name] for name, title in OURS.items()}
    for of in THEIRS:
        found[f"cleanlab, {of}"] = best_of_cleanlab(table, of)
    return pd.DataFrame(found)


def row_comparison(table):
    """Return the row scores beside those of cleanlab."""
    found = {"lemll": table["lemll"], "lemll fast": table["lemll fast"]}
    for of in THEIRS:
        for rows in ("softmin", "ema"):
            found[f"cleanlab, {of}, {rows}"] = best_of_cleanlab(table, of, rows)
    return pd.DataFrame(found)


def markdown(frame, digits=3):
    """Return a frame as a table; the best figure of a line is bold."""
    lines = [
        f"| {' | '.join([*frame.index.names, *frame.columns])} |",
        "|---" * (len(frame.index.names) + len(frame.columns)) + "|",
    ]
    for key, row in frame.iterrows():
        best = row.max()
        shown = [
            f"**{value:.{digits}f}**" if value == best else f"{value:.{digits}f}" for value in row
        ]
        lines.append(f"| {' | '.join([*(key if isinstance(key, tuple) else (key,)), *shown])} |")
    return lines


def claims(table):
    """Return sentences about the claims, with all misses."""
    lines = []
    mean = table.mean()
    for of in THEIRS:
        other = f"cleanlab, {of}"
        gain = mean["lemll"] / mean[other] - 1
        lines.append(
            f"- Mean AUPRC over {len(table)} blocks: lemll {mean['lemll']:.3f}, cleanlab's best "
            f"scorer of each block on {of} probabilities {mean[other]:.3f} ({gain:+.0%})."
        )
        same = f"lemll, their {of}"
        lines.append(
            f"- On these probabilities (pred_probs): lemll {mean[same]:.3f} "
            f"({mean[same] / mean[other] - 1:+.0%})."
        )
    theirs = table[[f"cleanlab, {of}" for of in THEIRS]].max(axis=1)
    lower = table["lemll"] - theirs
    worse = lower[lower < 0]
    lines.append(
        "- Blocks in which lemll is below the best of all of cleanlab's scorers on all three kinds "
        f"of probabilities: {len(worse)} of {len(table)}; by more than {MARGIN:g}: "
        f"{int((worse < -MARGIN).sum())}."
    )
    lines += [f"  - {' '.join(key)}: {value:+.3f}" for key, value in worse.items()]
    return lines


def coverage_lines(coverage):
    """Return how often the intervals of the noise cover the truth."""
    frame = coverage.assign(
        block=[str(Noise(k, a)) for k, a in zip(coverage.noise, coverage.amount, strict=True)]
    )
    total = frame[["labels", "covered", "told", "covered_told"]].sum()
    lines = [
        f"The 90 % intervals cover the truth in {total.covered / total.labels:.1%} of "
        f"{total.labels} cells (label, kind, noise, seed). In {total.told / total.labels:.0%} the "
        "interval ends below one half, which `estimate_noise` calls told; of these, "
        f"{total.covered_told / max(1, total.told):.1%} cover the truth.",
        "",
        "| set | noise | kind | covered | told | mean width | mean error of the estimate |",
        "|---|---|---|---|---|---|---|",
    ]
    for (name, block, kind), group in frame.groupby(["set", "block", "kind"]):
        n_labels = group.labels.sum()
        lines.append(
            f"| {name} | {block} | {kind} | {group.covered.sum() / n_labels:.1%} "
            f"| {group.told.sum() / n_labels:.0%} | {group.width.mean():.2f} "
            f"| {group.error.mean():.3f} |"
        )
    return lines


def correction_lines(path):
    """Return what correction is worth."""
    frame = pd.read_csv(path)
    lines = [
        "| set | halves | training labels | average precision | macro F1 | changed | right |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, of_set in frame.groupby("set"):
        for kind in ("noisy", "corrected", "corrected, missing only", "clean"):
            group = of_set[of_set.labels == kind]
            changed = int(group.changed.sum())
            right = f"{group.right.sum() / changed:.0%}" if changed else ""
            lines.append(
                f"| {name} | {group.seed.nunique()} | {kind} "
                f"| {group.average_precision.mean():.3f} | {group.macro_f1.mean():.3f} "
                f"| {changed or ''} | {right} |"
            )
    return lines


def summary():
    """Return the text of ``summary.md``."""
    cells, coverage = pd.read_csv(FOLDER / "cells.csv"), pd.read_csv(FOLDER / "coverage.csv")
    done = cells[list(KEY)].drop_duplicates()
    table = blocks(cells, "auprc")
    of_cells = table[table.index.get_level_values("level") != "row"]
    of_rows = table[table.index.get_level_values("level") == "row"]
    compared = comparison(of_cells)
    by_level = compared.groupby(level="level").mean()
    by_set = compared.groupby(level="set").mean()
    roc_rows = blocks(cells, "auroc")
    roc_rows = roc_rows[roc_rows.index.get_level_values("level") == "row"]
    lines = [
        "# Wrong and missing tags: summary",
        "",
        f"{len(done)} cells are done: "
        + ", ".join(
            f"{name} {len(of)} (seeds {of.seed.min()} to {of.seed.max()})"
            for name, of in done.groupby("set")
        )
        + f". Planned: ten seeds and {len(NOISES)} kinds of noise for every set. A block is a set, "
        "a noise and a kind of mistake; its figure is the mean over its seeds.",
        "",
        "## Claims",
        "",
        *claims(compared),
        "",
        "## AUPRC, mean over the blocks",
        "",
        *markdown(by_level),
        "",
        *markdown(by_set),
        "",
        "## AUPRC per block",
        "",
        *markdown(compared),
        "",
        "## Rows: AUPRC, then AUROC, means over the sets",
        "",
        *markdown(row_comparison(of_rows).groupby(level="block").mean()),
        "",
        *markdown(row_comparison(roc_rows).groupby(level="block").mean()),
        "",
    ]
    for measure, title in (
        ("auroc", "AUROC"),
        ("precision", "Precision at the number of mistakes"),
        ("lift", "Lift at 100"),
    ):
        other = blocks(cells, measure)
        other = comparison(other[other.index.get_level_values("level") != "row"])
        digits = 1 if measure == "lift" else 3
        lines += [f"## {title}, mean over the blocks", ""]
        lines += [*markdown(other.groupby(level=["set", "level"]).mean(), digits), ""]
    lines += ["## Shares of wrong and missing tags", "", *coverage_lines(coverage), ""]
    if (FOLDER / "correct.csv").exists():
        lines += ["## After correction at precision 0.9, 40 % of the tags dropped", ""]
        lines += [*correction_lines(FOLDER / "correct.csv"), ""]
    if (FOLDER / "speed.csv").exists():
        speed = pd.read_csv(FOLDER / "speed.csv").rename(columns={"shape": "size"})
        lines += ["## CPU seconds, one thread", "", "| set | what | seconds |", "|---|---|---|"]
        lines += [
            f"| {row.set} ({row.size}) | {row.what} | {row.seconds} |" for row in speed.itertuples()
        ]
    return "\n".join([*lines, ""])


def main():
    """Collect and write."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    collect()
    write_output(FOLDER / "summary.md", summary())
    print(f"wrote {FOLDER / 'summary.md'}")


if __name__ == "__main__":
    main()
