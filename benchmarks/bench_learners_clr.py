"""CLR end to end: time, memory and quality, with and without the vote skipping of Mulan.

The paper prints one-errors of .978 on slashdot and .688 on medical, which Mulan's skipping of all
pairs after the first empty one may explain; both are shown beside the published values.
"""

from __future__ import annotations

from typing import Any

from benchmarks._learners import HEADER, best_of, halves, line, quality
from benchmarks._measure import write_json

PREDICT = "scores = model.decision_function(T)\nlabels = model.predict(T)"
RUNS = [
    ("yeast", "CLR()"),
    ("yeast", "CLR('weka')"),
    ("scene", "CLR()"),
    ("scene", "CLR('weka')"),
    ("medical", "CLR()"),
    ("medical", "CLR('weka')"),
    ("medical", "CLR('weka', mulan_compat=True)"),
    ("slashdot", "CLR()"),
    ("slashdot", "CLR('weka')"),
    ("slashdot", "CLR('weka', mulan_compat=True)"),
    ("corel5k", "CLR()"),
]
PUBLISHED_ONE_ERROR = {"medical": 0.688, "slashdot": 0.978}


def main() -> None:
    """Run all and write ``output/learners_clr.json``."""
    print(HEADER)
    rows: list[dict[str, Any]] = []
    for name, made in RUNS:
        half, Y = halves(name)
        figures, result = best_of(
            1, half, setup="from lemll import CLR", fit=f"model = {made}.fit(X, Y)", predict=PREDICT
        )
        found = quality(Y, result)
        published = PUBLISHED_ONE_ERROR.get(name)
        note = "" if published is None else f"  (paper's OE {published})"
        print(line(name, f"lemll {made}", figures, found) + note, flush=True)
        rows.append({"data": name, "method": made, "figures": figures, "quality": found})
    write_json("learners_clr", rows)
