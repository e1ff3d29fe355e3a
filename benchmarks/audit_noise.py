"""Data sets and noise of the audit experiment (`results/audit/README.md` describes it)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import make_multilabel_classification

from lemll.datasets import load_dataset
from lemll.fitting.scaling import fit_scaling
from lemll.topology import nearest_neighbors

# Labels with fewer tags, or with fewer rows without them, are left out.
FEWEST = 10
N_NEIGHBORS = 10


class Noise(NamedTuple):
    """A kind of noise and its amount, relative to the number of tags of a label."""

    kind: str
    amount: float

    def __str__(self) -> str:
        return f"{self.kind} {self.amount:.0%}"


NOISES = (
    Noise("flip", 0.02),
    Noise("flip", 0.05),
    Noise("flip", 0.10),
    Noise("drop", 0.20),
    Noise("drop", 0.40),
    Noise("add", 0.10),
    Noise("feature", 0.10),
)
# In the manner of cleanlab's benchmark, which uses this generator: few classes and many.
SYNTHETIC = {
    "synthetic-small": {"n_samples": 1500, "n_classes": 4, "n_labels": 2, "n_features": 20},
    "synthetic-large": {"n_samples": 3000, "n_classes": 30, "n_labels": 4, "n_features": 60},
}


def load_clean(name):
    """Return features and tags of the labels with at least `FEWEST` rows of either value."""
    if name in SYNTHETIC:
        X, Y = make_multilabel_classification(**SYNTHETIC[name], random_state=0)
    else:
        data = load_dataset(name)
        X, Y = data.X, data.Y
    Y = np.asarray(Y.toarray() if sparse.issparse(Y) else Y).astype(np.int8)
    often = np.minimum(Y.sum(axis=0), len(Y) - Y.sum(axis=0)) >= FEWEST
    return X, Y[:, often]


def add_noise(X, Y, noise, seed):
    """Return tags with noise.

    For every label with m tags, k = max(1, round(amount m)) tags are removed ("drop"), as many are
    added to other rows ("add"), or both ("flip", "feature"). Rows are drawn with equal
    probabilities; for "feature", in proportion to the share of the ten nearest rows (by scaled
    features) that have the tag, so mistakes fall on tags that the neighbours have.
    """
    rng = np.random.default_rng(seed)
    noisy = Y.copy()
    share = None
    if noise.kind == "feature":
        share = Y[nearest_neighbors(fit_scaling("auto", X)(X), N_NEIGHBORS)].mean(axis=1)
    for j in range(Y.shape[1]):
        with_tag, without = np.flatnonzero(Y[:, j] == 1), np.flatnonzero(Y[:, j] == 0)
        number = max(1, round(noise.amount * len(with_tag)))
        weight = None if share is None else share[:, j] + 1e-6
        if noise.kind != "add":
            noisy[_drawn(rng, with_tag, number, weight), j] = 0
        if noise.kind != "drop":
            noisy[_drawn(rng, without, number, weight), j] = 1
    return noisy


def _drawn(rng, rows, number, weight):
    number = min(number, len(rows) // 2)
    p = None if weight is None else weight[rows] / weight[rows].sum()
    return rng.choice(rows, number, replace=False, p=p)
