"""Write the measured figures of the README from the committed results.

``python tools/readme_results.py`` rewrites the part of README.md between the two markers. A test
checks that the README is up to date.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def _summary(study: str) -> str:
    return (ROOT / "results" / study / "summary.md").read_text(encoding="utf-8")


def _best() -> str:
    """Return the average ranks by average precision of results/best."""
    lines = _summary("best").splitlines()
    start = lines.index("## Average ranks") + 2
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:]]
    header = rows[0]
    (found,) = [row for row in rows[2:10] if row[0].startswith("Average precision")]
    ranks = dict(zip(header, found, strict=True))
    others = ", ".join(
        f"{ranks[name]} ({title})"
        for name, title in (
            ("BR", "logistic regressions"),
            ("Random forest", "random forests"),
            ("Extra trees", "extra trees"),
        )
    )
    return (
        f"average rank by average precision on {ranks['data sets']} data sets: TagPredictor "
        f"{ranks['TagPredictor']}; {others}. {_other('LightGBM')}"
    )


def _cells(study: str) -> list[dict[str, str]]:
    with (ROOT / "results" / study / "cells.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _other(library: str) -> str:
    """Compare a library of results/others with TagPredictor on the same halves."""
    ours = {
        (row["dataset"], row["split"]): float(row["average_precision"])
        for row in _cells("best")
        if row["method"] == "TagPredictor" and row["status"] == "done"
    }
    # Of several methods of a library, the best mean on each data set counts.
    found: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in _cells("others"):
        if row["library"] == library and re.fullmatch(r"[\d.]+", row["average_precision"]):
            pair = (ours[row["dataset"], row["split"]], float(row["average_precision"]))
            found[row["dataset"]][row["method"]].append(pair)
    means = []
    for methods in found.values():
        pairs = max(methods.values(), key=lambda pairs: mean(theirs for _, theirs in pairs))
        means.append((mean(our for our, _ in pairs), mean(theirs for _, theirs in pairs)))
    better = sum(our > theirs for our, theirs in means)
    our, theirs = (mean(pair[k] for pair in means) for k in (0, 1))
    return (
        f"Average precision, mean of {len(means)} data sets: TagPredictor {our:.3f} beside "
        f"{theirs:.3f} ({library}); better on {better}"
    )


def _audit() -> str:
    """Return the means over all blocks of results/audit."""
    found = re.search(
        r"Mean AUPRC over (\d+) blocks: lemll ([\d.]+), cleanlab's best scorer of each block on "
        r"forest probabilities ([\d.]+)",
        _summary("audit"),
    )
    if found is None:
        raise ValueError("results/audit/summary.md has no line on forest probabilities")
    blocks, ours, theirs = found.groups()
    return (
        f"area under the precision-recall curve of planted mistakes, mean of {blocks} cases: "
        f"{ours} beside {theirs} (its best scorer of each case, on forest probabilities)"
    )


def _enhancement() -> str:
    """Return the average ranks with ten rated rows of results/enhancement."""
    (line,) = [
        line
        for line in _summary("enhancement").splitlines()
        if line.startswith("- 10 rated rows: Blend") and "PyLDL" in line
    ]
    ranks = re.findall(r"([A-Z][\w, -]*?) ([\d.]+)(?:,|$)", line.partition(": ")[2])
    blend = next(rank for name, rank in ranks if name.strip() == "Blend")
    theirs = [(float(rank), name.strip()) for name, rank in ranks if "PyLDL" in name]
    best, name = min(theirs)
    return (
        f"degrees with ten rated rows, average rank among {len(ranks)} methods: Blend {blend}, the "
        f"best of PyLDL {best:g} ({name.removeprefix('PyLDL ')})"
    )


def results_table() -> str:
    """Return the comparison with other libraries."""
    rows = (
        ("scikit-learn + LightGBM", "any prediction", _best(),
         "one model in a second is enough, or you want one classifier per tag that you know well"),
        ("AutoGluon", "tables with one target",
         f"{_other('AutoGluon')}; one half each, 12 s per label",
         "you have one column to predict, and hours"),
        ("cleanlab", "wrong labels of any kind", _audit(),
         "your labels exclude each other, or are boxes, masks or tokens"),
        ("PyLDL", "label distributions", _enhancement(),
         "you need its learners of given distributions"),
        ("scikit-multilearn", "multi-label methods",
         f"{_other('scikit-multilearn')}; its ML-kNN stops with an error on scikit-learn 1.9",
         "you need its methods on graphs of labels"),
    )  # fmt: skip
    head = ["| | is for | measured beside lemll | take it instead if |", "|---|---|---|---|"]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows)])


def updated(readme: str) -> str:
    """Return the README with the present table."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{results_table()}\n{END}{after}"


if __name__ == "__main__":
    path = ROOT / "README.md"
    path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")
