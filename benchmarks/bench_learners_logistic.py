"""ECC and BR beside scikit-learn's chains and one-vs-rest, and napkinXC's BR, by CPU time.

ECC: 30 chains on yeast and scene; scikit-learn's ``ClassifierChain`` gets the same orders, the
same bootstrap samples and the same penalty. BR: corel5k and bibtex; ``LogisticRegression`` with
its default tolerance, and with one at which its probabilities, too, are within 1e-3 of the
optimum's, which `solve_logistic` at a tolerance of 1e-9 stands for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._learners import HEADER, best_of, halves, line, peers_python, quality
from benchmarks._measure import write_json

PREDICT = "scores, labels = model.predict_proba(T), model.predict(T)"
OUR_ECC = {
    "setup": "from lemll import ECC",
    "fit": "model = ECC(random_state=0).fit(X, Y)",
    "predict": PREDICT,
}
CHAINS_SETUP = """
from lemll import ECC
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.utils import check_random_state
ours, random = ECC(None, 30), check_random_state(0)
from lemll.rivals.ecc import by_content
drawn = []
for _ in range(30):
    order = by_content(Y)[random.permutation(Y.shape[1])]
    drawn.append((order, np.repeat(np.arange(len(Y)), ours._sample(random, len(Y)))))
"""
CHAINS = {
    "setup": CHAINS_SETUP,
    "fit": "chains = [ClassifierChain(LogisticRegression(max_iter=200), order=order)"
    ".fit(X[rows], Y[rows]) for order, rows in drawn]",
    "predict": "scores = np.mean([chain.predict_proba(T) for chain in chains], axis=0)\n"
    "labels = scores >= 0.5",
}
OUR_BR = {
    "setup": "from lemll import BinaryRelevance",
    "fit": "model = BinaryRelevance(tol={tol}).fit(X, Y)",
    "predict": PREDICT,
}
ONE_VS_REST = {
    "setup": "from sklearn.linear_model import LogisticRegression\n"
    "from sklearn.multiclass import OneVsRestClassifier",
    "fit": "model = OneVsRestClassifier(LogisticRegression(tol={tol}, max_iter=1000)).fit(X, Y)",
    "predict": PREDICT,
}
NAPKIN = {
    "setup": "import tempfile\nfrom napkinxc.models import BR\nfolder = tempfile.mkdtemp()\n"
    "sets = [np.flatnonzero(y).tolist() for y in Y]",
    "fit": "model = BR(folder, threads=1, verbose=False)\nmodel.fit(X, sets)",
    "predict": "scores = np.zeros((T.shape[0], Y.shape[1]))\n"
    "for i, found in enumerate(model.predict_proba(T, top_k=0)):\n"
    "    for label, p in found:\n        scores[i, label] = p\n"
    "labels = scores >= 0.5",
}


def filled(parts: dict[str, str], **values: Any) -> dict[str, str]:
    """Put values into the text of `fit`."""
    return parts | {"fit": parts["fit"].format(**values)}


def compare_ecc(name: str) -> dict[str, Any]:
    """Compare 30 chains."""
    half, Y = halves(name)
    ours, result = best_of(3, half, **OUR_ECC)
    theirs, their_result = best_of(1, half, **CHAINS)
    found, their_quality = quality(Y, result), quality(Y, their_result)
    print(line(name, "lemll ECC(random_state=0)", ours, found))
    print(line(name, "30 x ClassifierChain(LogisticRegression)", theirs, their_quality))
    off = float(np.abs(result["scores"] - their_result["scores"]).mean())
    times = theirs["cpu"] / ours["cpu"]
    print(f"{'':9} {times:.0f} times less CPU; mean difference of probabilities {off:.1e}")
    return {
        "data": name, "ours": ours, "chains": theirs, "times_less": times, "quality": found,
        "their_quality": their_quality, "mean_difference": off,
    }  # fmt: skip


def compare_br(name: str, peer: str) -> dict[str, Any]:
    """Compare one model for each label."""
    half, Y = halves(name)
    _, optimum = best_of(1, half, **filled(OUR_BR, tol=1e-9))
    runs = {
        "lemll BinaryRelevance()": best_of(3, half, **filled(OUR_BR, tol=1e-4)),
        "OneVsRest(LogisticRegression())": best_of(2, half, **filled(ONE_VS_REST, tol=1e-4)),
        "OneVsRest(LogisticRegression(tol=3e-7))": best_of(
            2, half, **filled(ONE_VS_REST, tol=3e-7)
        ),
        "napkinXC BR": best_of(2, half, python=peer, **NAPKIN),
    }
    row: dict[str, Any] = {"data": name}
    least = runs["lemll BinaryRelevance()"][0]["cpu"]
    for method, (figures, result) in runs.items():
        found = quality(Y, result)
        off = float(np.abs(result["scores"] - optimum["scores"]).max())
        print(line(name, method, figures, found))
        note = "" if "napkin" in method else f"; probabilities within {off:.1e} of the optimum's"
        print(f"{'':9} {figures['cpu'] / least:.1f} times the CPU of lemll{note}")
        row[method] = {"figures": figures, "quality": found, "from_optimum": off}
    return row


def main() -> None:
    """Run all and write ``output/learners_logistic.json``."""
    peer = peers_python()
    print(HEADER)
    rows = [compare_ecc(name) for name in ("yeast", "scene")]
    rows += [compare_br(name, peer) for name in ("corel5k", "bibtex")]
    write_json("learners_logistic", rows)
