"""How LEMLL grows with rows, features and labels, and what each approximation costs in quality.

``python -m benchmarks scale`` measures all parts; ``--part growth`` (rows, features, labels),
``million``, ``labels`` (many labels beside other methods), ``loss`` (quality lost by
approximations) or ``memory`` measures one. Data are texts made by `benchmarks._text`, except where
a data set is named. All jobs have two threads and a process of their own; "cpu" is the sum over the
threads. Fits are certified to a relative gap of 1e-3, in float32.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks._measure import write_json
from benchmarks._scale import fit_text
from benchmarks._scale_labels import many_labels
from benchmarks._scale_loss import losses
from benchmarks._scale_memory import refusals

ROWS = (10_000, 30_000, 100_000)
FEATURES = (500, 2_000, 8_000)
LABELS = (50, 200, 800)
WANTED_EXPONENT = 1.15
PARTS = ("growth", "million", "labels", "loss", "memory")


def show(row: dict[str, Any]) -> None:
    """Print the line of one job."""
    result = row["result"]
    graph, fit, predict = (f"{wall:7.1f} ({cpu:6.1f})" for wall, cpu in result["times"])
    print(
        f"{row['rows']:>9} {row['features']:>6} {row['labels']:>5}  {graph} {fit} {predict} "
        f"{result['recall']:.3f} {result['optimality']:.0e} {row['peak'] / 2**30:6.2f} "
        f"{result['estimate'] / 2**30:6.2f} {result['average_precision']:.4f} "
        f"{result['by_frequency']:.4f}",
        flush=True,
    )


def header() -> None:
    """Print the names of the columns: seconds, and CPU seconds in brackets; GiB."""
    print(
        f"{'rows':>9} {'feat.':>6} {'lab.':>5}  {'graph s (cpu)':>16} {'fit s (cpu)':>16} "
        f"{'predict s (cpu)':>16} recall gap   peak  est.fit  AP   AP by frequency"
    )


def exponent(rows: list[dict[str, Any]], key: str) -> float:
    """Return the slope of the CPU seconds of graph, fit and prediction, in logarithms."""
    cpu = [sum(times[1] for times in row["result"]["times"]) for row in rows]
    return float(np.polyfit(np.log([row[key] for row in rows]), np.log(cpu), 1)[0])


def growth() -> dict[str, Any]:
    """Measure the growth in rows, features and labels, one of them at a time."""
    header()
    series = {
        "rows": [fit_text(rows) for rows in ROWS],
        "features": [
            fit_text(10_000, features=features, density=8 / features) for features in FEATURES
        ],
        "labels": [fit_text(10_000, labels=labels) for labels in LABELS],
    }
    exponents = {}
    for key, rows in series.items():
        for row in rows:
            show(row)
        exponents[key] = exponent(rows, key)
        print(f"  CPU time grows like {key}^{exponents[key]:.2f}", flush=True)
    return {"series": series, "exponents": exponents}


def million() -> dict[str, Any]:
    """Measure one million rows, and the growth from 10,000 rows."""
    header()
    rows = [fit_text(10_000), fit_text(1_000_000)]
    for row in rows:
        show(row)
    slope = exponent(rows, "rows")
    print(f"  CPU time grows like n^{slope:.2f}, wanted at most {WANTED_EXPONENT}", flush=True)
    return {"rows": rows, "exponent": slope}


def main(options: list[str]) -> None:
    """Measure the chosen parts, print, and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks scale")
    parser.add_argument("--part", choices=PARTS)
    part = parser.parse_args(options).part
    jobs = {
        "growth": growth,
        "million": million,
        "labels": many_labels,
        "loss": losses,
        "memory": refusals,
    }
    for name in (part,) if part else PARTS:
        print(f"-- {name}", flush=True)
        write_json(f"scale_{name}", jobs[name]())
