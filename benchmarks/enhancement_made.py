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


def _features(seed: int, n_rows: int) -> tuple[Any, Any]:
    rng = np.random.RandomState(seed)
    return rng, rng.randn(n_rows, 30)


def _signal(rng: Any, X: Any, n_labels: int) -> Any:
    return X @ rng.randn(X.shape[1], n_labels) / np.sqrt(X.shape[1])


def ordered(seed: int, n_rows: int, n_labels: int, width: float) -> tuple[Any, Any]:
    """Return a bump over ordered labels, as of ages, at a place that the features give."""
    rng, X = _features(seed, n_rows)
    middle = (X[:, :5].sum(axis=1) / np.sqrt(5) * 0.22 + 0.45 + 0.08 * rng.randn(n_rows)) * n_labels
    spread = width * np.exp(0.3 * rng.randn(n_rows))
    off = (np.arange(n_labels) - middle[:, None]) / spread[:, None]
    return X, np.exp(-0.5 * off**2) + 1e-5


def one_peak(seed: int, n_rows: int, n_labels: int) -> tuple[Any, Any]:
    """Return steep degrees: one label has nearly all."""
    rng, X = _features(seed, n_rows)
    log = _signal(rng, X, n_labels) + 0.5 * rng.randn(n_labels) + 0.7 * rng.randn(n_rows, n_labels)
    return X, np.exp(3 * log)


def votes(seed: int, n_rows: int, n_labels: int, n_votes: int) -> tuple[Any, Any]:
    """Return shares of a few votes, so that most labels have the degree 0."""
    rng, X = _features(seed, n_rows)
    likely = np.exp(1.5 * (_signal(rng, X, n_labels) + rng.randn(n_labels)))
    likely /= likely.sum(axis=1, keepdims=True)
    return X, np.array([rng.multinomial(n_votes, p) for p in likely], dtype=float)


def flat(seed: int, n_rows: int, n_labels: int, size: float) -> tuple[Any, Any]:
    """Return degrees that differ little."""
    rng, X = _features(seed, n_rows)
    log = 0.6 * _signal(rng, X, n_labels) + 0.3 * rng.randn(n_labels)
    return X, np.exp(size * (log + 0.6 * rng.randn(n_rows, n_labels)))


def unequal(seed: int, n_rows: int, n_labels: int) -> tuple[Any, Any]:
    """Return degrees of which some labels vary much and others hardly."""
    rng, X = _features(seed, n_rows)
    size = np.exp(0.8 * rng.randn(n_labels))
    log = (_signal(rng, X, n_labels) + rng.randn(n_rows, n_labels)) * size
    return X, np.exp(0.6 * (log + 0.6 * rng.randn(n_labels)))


def topics(seed: int, n_rows: int, n_labels: int, n_groups: int) -> tuple[Any, Any]:
    """Return degrees of labels in groups that occur together."""
    rng, X = _features(seed, n_rows)
    group = rng.randint(n_groups, size=n_labels)
    log = 2 * _signal(rng, X, n_groups)[:, group]
    return X, np.exp(log + 0.7 * rng.randn(n_rows, n_labels) + 0.5 * rng.randn(n_labels))


# Made before the order of labels was developed, which used the first seeds.
HABITS: tuple[tuple[str, Any, tuple[Any, ...]], ...] = (
    ("ordered 70, wide", ordered, (70, 6.0)),
    ("ordered 70, narrow", ordered, (70, 2.5)),
    ("ordered 20", ordered, (20, 2.0)),
    ("one peak 6", one_peak, (6,)),
    ("one peak 12", one_peak, (12,)),
    ("one peak 40", one_peak, (40,)),
    ("10 votes for 8", votes, (8, 10)),
    ("11 votes for 9", votes, (9, 11)),
    ("20 votes for 30", votes, (30, 20)),
    ("30 votes for 100", votes, (100, 30)),
    ("flat 5", flat, (5, 0.15)),
    ("flat 18", flat, (18, 0.1)),
    ("flat 60", flat, (60, 0.2)),
    ("unequal 6", unequal, (6,)),
    ("unequal 25", unequal, (25,)),
    ("topics 24", topics, (24, 6)),
    ("topics 80", topics, (80, 10)),
)


def habits(n_rows: int = 800, first_seed: int = 1) -> Iterator[tuple[str, Any, Any]]:
    """Yield names, features and degrees of generated rows of many habits."""
    for number, (name, make, options) in enumerate(HABITS):
        X, D = make(first_seed + number, n_rows, *options)
        yield name, X, D / D.sum(axis=1, keepdims=True)


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
