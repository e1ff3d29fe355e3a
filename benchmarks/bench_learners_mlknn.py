"""ML-kNN beside Mulan's figures, and its CPU time beside scikit-multilearn-ng's.

Training half of ``RandomState(0).permutation``, k = 10. Mulan's figures were measured once
(commit 43f6389 of 2022-09-26, on the same halves); they are constants here.
"""

from __future__ import annotations

from typing import Any

from benchmarks._learners import HEADER, MEASURES, best_of, halves, line, peers_python, quality
from benchmarks._measure import write_json

MULAN = {
    "yeast": (0.1987, 0.1706, 0.2366, 0.4549, 0.7590),
    "scene": (0.0876, 0.0832, 0.2326, 0.0828, 0.8601),
    "corel5k": (0.0095, 0.1344, 0.7308, 0.3100, 0.2423),
    "bibtex": (0.0134, 0.2256, 0.6113, 0.3600, 0.3265),
}
OURS = {
    "setup": "from lemll import MLkNN",
    "fit": "model = MLkNN(scale='minmax').fit(X, Y)",
    "predict": "scores, labels = model.decision_function(T), model.predict(T)",
}
THEIRS = {
    "setup": "from skmultilearn.adapt import MLkNN\nX, T, Y = map(sparse.lil_matrix, (X, T, Y))",
    "fit": "model = MLkNN(k=10, ignore_first_neighbours=1).fit(X, Y)",
    "predict": "scores = model.predict_proba(T).toarray()\nlabels = model.predict(T).toarray()",
}


def main() -> None:
    """Run all and write ``output/learners_mlknn.json``."""
    peer = peers_python()
    print(HEADER)
    rows: list[dict[str, Any]] = []
    for name, mulan in MULAN.items():
        half, Y = halves(name)
        ours, result = best_of(3, half, **OURS)
        found = quality(Y, result)
        theirs, their_result = best_of(1, half, python=peer, **THEIRS)
        their_quality = quality(Y, their_result)
        print(line(name, "lemll MLkNN(scale='minmax')", ours, found))
        print(f"{name:9} {'Mulan (43f6389)':44} {'':25}" + " ".join(f"{v:.4f}" for v in mulan))
        print(line(name, "scikit-multilearn-ng MLkNN", theirs, their_quality))
        off = max(abs(a - b) for a, b in zip(found.values(), mulan, strict=True))
        times = theirs["cpu"] / ours["cpu"]
        print(f"{'':9} largest difference from Mulan {off:.4f}; {times:.0f} times less CPU")
        rows.append({
            "data": name, "ours": ours, "scikit_multilearn_ng": theirs, "times_less": times,
            "quality": found, "mulan": dict(zip(MEASURES, mulan, strict=True)),
            "their_quality": their_quality,
        })  # fmt: skip
    write_json("learners_mlknn", rows)
