"""Pictures of docs/findings.md, drawn from the committed tables in results/."""

from __future__ import annotations

import csv
from pathlib import Path

from matplotlib.figure import Figure

RESULTS = Path(__file__).parent.parent / "results"
# The paper's methods in the order of its tables; the last one is CLR with the error of Mulan.
METHODS = ("LEMLL", "MLFE", "ML2", "RELIAB", "MSVR", "ML-kNN", "CLR", "ECC", "CLR (Mulan)")


def average_precisions(folder: str) -> dict[tuple[str, str], tuple[float, float | None]]:
    """Return our mean and the printed mean, by data set and method."""
    found = {}
    with (RESULTS / folder / "tables.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["metric"] != "average_precision" or row["dataset"] == "average rank":
                continue
            if row["mean"]:
                printed = float(row["published_mean"]) if row["published_mean"] else None
                found[row["dataset"], row["method"]] = float(row["mean"]), printed
    return found


def draw_agreement(path: Path) -> None:
    """Draw our average precision minus the printed one, one column per method."""
    found = average_precisions("prediction")
    printed = {key: value for key, (_, value) in found.items() if value is not None}
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color="0.6", linewidth=1)
    for place, method in enumerate(METHODS):
        # The printed figures of CLR are compared with both of our readings of it.
        source = "CLR" if method == "CLR (Mulan)" else method
        gains = [
            ours - printed[dataset, source]
            for (dataset, name), (ours, _) in found.items()
            if name == method and (dataset, source) in printed
        ]
        axes.plot([place] * len(gains), gains, "o", color="C0", alpha=0.6, markersize=6)
    axes.set_xticks(range(len(METHODS)), METHODS, rotation=20)
    axes.set_ylabel("average precision,\nours minus printed")
    figure.savefig(path, dpi=130)


def draw_best(path: Path) -> None:
    """Draw the average precision of TagPredictor minus that of each other learner."""
    found = {key: ours for key, (ours, _) in average_precisions("best").items()}
    others = sorted({method for _, method in found if not method.startswith("TagPredictor")})
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.axvline(0, color="0.6", linewidth=1)
    for place, method in enumerate(others):
        gains = [
            found[dataset, "TagPredictor"] - ours
            for (dataset, name), ours in found.items()
            if name == method and (dataset, "TagPredictor") in found
        ]
        axes.plot(gains, [place] * len(gains), "o", color="C0", alpha=0.6, markersize=6)
    axes.set_yticks(range(len(others)), others)
    axes.set_xlabel("average precision of TagPredictor minus that of the learner, per data set")
    figure.savefig(path, dpi=130)


def draw_all(folder: Path) -> None:
    """Draw all pictures into a folder."""
    draw_agreement(folder / "agreement.png")
    draw_best(folder / "best.png")
