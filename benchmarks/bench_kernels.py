"""What an RBF kernel brings and costs.

Quality: training halves of seeds 0 to 4; alpha by three folds of the training half, beta and gamma
at 1, the width by the default rule (one over the sum of the features' variances). The linear model
and MSVR, which does not enhance labels, are tuned in the same way; "labels by frequency" scores
every row alike.

Cost: an exact fit of 10,000 rows, its time and memory against the estimate that is made beforehand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from benchmarks._measure import data_dir, run, write_json
from lemll import LEMLL, MSVRClassifier
from lemll.datasets import load_dataset
from lemll.metrics import average_precision, get_scorer
from lemll.solvers.joint import kernel_bytes

ALPHAS = [4.0**k for k in range(-3, 4)]
N_SPLITS = 5
LARGE, LABELS = 10_000, 10
WANTED = {"scene": 0.875, "yeast": 0.770}

_SETUP = f"""
import numpy as np
from lemll import LEMLL
rng = np.random.default_rng(0)
X = rng.standard_normal(({LARGE}, 50))
Y = (np.sin(X[:, :{LABELS}]) + 0.3 * rng.standard_normal(({LARGE}, {LABELS})) > 0).astype(int)
LEMLL(kernel="rbf").fit(X[:200], Y[:200])
"""
_FIT = """
model = LEMLL(kernel="rbf").fit(X, Y)
result = [model.optimality_, model.n_iter_]
"""


def tuned(model: Any, X: Any, Y: Any, train: Any, test: Any) -> float:
    """Average precision on the test rows, alpha tuned on the training rows."""
    search = GridSearchCV(model, {"alpha": ALPHAS}, cv=3, scoring=get_scorer("average_precision"))
    search.fit(X[train], Y[train])
    return average_precision(Y[test], search.decision_function(X[test]))


def quality(name: str) -> dict[str, Any]:
    """Mean and standard deviation over the splits, for each model."""
    data = load_dataset(name)
    X, Y = np.asarray(data.X), data.Y
    scores: dict[str, list[float]] = {}
    for seed in range(N_SPLITS):
        order = np.random.RandomState(seed).permutation(len(data))
        train, test = order[: len(data) // 2], order[len(data) // 2 :]
        for title, model in {
            "LEMLL rbf": LEMLL(kernel="rbf"),
            "MSVR rbf": MSVRClassifier(kernel="rbf", tol=1e-4),
            "LEMLL linear": LEMLL(),
        }.items():
            scores.setdefault(title, []).append(tuned(model, X, Y, train, test))
        frequency = np.tile(Y[train].mean(axis=0), (len(test), 1))
        scores.setdefault("labels by frequency", []).append(average_precision(Y[test], frequency))
    for title, values in scores.items():
        print(f"{name:6s} {title:20s} {np.mean(values):.4f} +- {np.std(values, ddof=1):.4f}")
    print(f"{name:6s} wanted of LEMLL rbf: {WANTED[name]}", flush=True)
    return {"data": name, "average_precision": scores, "wanted": WANTED[name]}


def cost() -> dict[str, Any]:
    """Time and memory of one large fit, in a process of its own."""
    measured = run(_SETUP, _FIT, threads=2)
    estimate = kernel_bytes(LARGE, LABELS)
    optimality, n_iter = measured["result"]
    print(
        f"n = {LARGE}, RBF, two threads: {measured['seconds']:.1f} s, {n_iter} iterations, "
        f"certified gap {optimality:.1e}; memory {measured['bytes'] / 2**30:.2f} GiB, estimated "
        f"{estimate / 2**30:.2f} GiB ({estimate / measured['bytes']:.2f} times)",
        flush=True,
    )
    return measured | {"estimate": estimate}


def main() -> None:
    """Measure, print, and keep the figures."""
    data_dir()
    write_json("kernels", {"quality": [quality(n) for n in ("scene", "yeast")], "cost": cost()})


if __name__ == "__main__":
    main()
