"""The blend beside the other enhancers on degrees that forests made from multi-label data sets.

    python -m benchmarks.enhancement_made [DATA_SET ...]

There are few data sets with true label distributions, and most of them are alike. This script makes
others: the degrees of a row are the out-of-fold probabilities of a random forest, alone or in equal
parts with the tags of the row in random strength. Thresholds make logical labels of them again.
The data set "generated" has no tags: the logarithms of its degrees are linear in the features, plus
noise. The source of labels and frequencies in `BlendEnhancer`, and the losses that weigh its
models, were chosen on such data, so the figures are no test of them. Nothing is written.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict
from threadpoolctl import threadpool_limits

from benchmarks._measure import data_dir
from benchmarks.enhancement_draws import FOLDER, METHODS, distances, show
from lemll.datasets import binarize_distribution, load_dataset
from lemll.lab.studies.enhancement import N_RATED, enhancement_protocol

GENERATED = "generated"
DATA = ("emotions", "flags", "yeast", "scene", "enron", "medical", GENERATED)
# Number of labels, and how much features and noise change the logarithms of the degrees.
SHAPES = ((68, 0.7, 0.5), (68, 1.5, 0.5), (20, 0.7, 0.5), (20, 1.5, 0.5), (8, 0.7, 0.5))
N_ROWS, FEWEST_RELEVANT = 1000, 8
SHARES_OF_TAGS = (0.0, 0.5)
THRESHOLDS = (0.1, 0.3, 0.5)
N_DRAWS, FIRST_SEED = 8, 2000


def generated() -> Iterator[tuple[str, Any, Any]]:
    """Yield names, features and degrees of rows whose degrees are nearly log-linear."""
    for n_labels, signal, noise in SHAPES:
        rng = np.random.RandomState(n_labels)
        X = rng.randn(N_ROWS, 30)
        log = signal * X @ rng.randn(30, n_labels) / np.sqrt(30)
        D = np.exp(log + noise * rng.randn(*log.shape) + 0.3 * rng.randn(n_labels))
        yield f"{GENERATED}, {n_labels} labels, {signal:g}", X, D / D.sum(axis=1, keepdims=True)


def made(dataset: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield names, features and degrees of the rows of a data set."""
    if dataset == GENERATED:
        yield from generated()
        return
    data = load_dataset(dataset)
    X, Y = (np.asarray(part.toarray() if hasattr(part, "toarray") else part)
            for part in (data.X, data.Y))  # fmt: skip
    rows = np.random.RandomState(0).permutation(len(X))[:N_ROWS]
    X, Y = X[rows], Y[rows]
    Y = Y[:, Y.sum(axis=0) >= FEWEST_RELEVANT]
    forest = RandomForestClassifier(60, min_samples_leaf=3, random_state=0)
    found = cross_val_predict(forest, X, Y, method="predict_proba", cv=3)
    likely = 0.01 + np.column_stack([probabilities[:, 1] for probabilities in found])
    tags = 0.01 + Y * np.random.RandomState(1).uniform(0.3, 1, Y.shape)
    for share in SHARES_OF_TAGS:
        D = (1 - share) * likely + share * tags
        yield f"{dataset}, {share:g} tags", X, D / D.sum(axis=1, keepdims=True)


def main() -> None:
    """Measure all methods on all made data sets, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", default=DATA)
    given = parser.parse_args()
    data_dir()
    protocol = enhancement_protocol(FOLDER)
    specs = [spec for spec in protocol.methods if spec.label in METHODS]
    rows: list[list[object]] = []
    with threadpool_limits(1), warnings.catch_warnings():
        # Scales at the end of the range are results here.
        warnings.simplefilter("ignore", UserWarning)
        for dataset in given.datasets:
            for name, X, D in made(dataset):
                for threshold in THRESHOLDS:
                    Y = binarize_distribution(D, threshold)
                    for spec in specs:
                        enhancer = protocol.estimator(spec).fit(X, Y)
                        for number in N_RATED:
                            found = distances(enhancer, D, number, N_DRAWS, FIRST_SEED)
                            row = [name, threshold, spec.label, number, N_DRAWS, np.mean(found), 0]
                            rows.append(row)
                print(f"{name} done", flush=True)
    show(rows)


if __name__ == "__main__":
    main()
