"""Text-like data of any size: topics, words by Zipf's law, tf-idf, and labels that follow topics.

Random sparse matrices have no neighbourhoods: all rows are about equally far apart. Texts have
some, because rows about one topic share words. A row here has one topic or two. Each word comes
from its topic or, with `BACKGROUND`, from the whole language. Labels belong to topics; some are
missing and a few are wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

# Share of the words that say nothing about the topic.
BACKGROUND = 0.3
# Share of the rows with two topics.
MIXED = 0.3
# How often a label of a topic is given to a row of that topic, and to any other row.
GIVEN, WRONG = 0.85, 0.002
LABELS_PER_TOPIC = 3


def text_like(
    n_rows: int, n_features: int, n_labels: int, *, density: float, seed: int = 0
) -> tuple[Any, Any]:
    """Return tf-idf features (CSR, float32, rows of length 1) and labels (CSR, 0/1)."""
    rng = np.random.default_rng(seed)
    n_topics = max(50, min(n_features // 2, 2 * n_labels))
    topics = _topics(rng, n_topics, n_features)
    words_wanted = density * n_features
    # Repeated words count once, so draw somewhat more.
    lengths = 2 + rng.poisson(max(0.5, 1.25 * words_wanted - 2), n_rows)
    first, second = rng.integers(n_topics, size=(2, n_rows))
    second = np.where(rng.random(n_rows) < MIXED, second, first)
    X = _features(rng, topics, lengths, first, second)
    return X, _labels(rng, n_topics, n_labels, first, second)


def _topics(rng: np.random.Generator, n_topics: int, n_features: int) -> Any:
    """Return the distribution of the words of each topic; the last row is the whole language."""
    ranks = 1 / (np.arange(n_features) + 2.7)
    language = rng.permutation(ranks / ranks.sum())
    topics = np.empty((n_topics + 1, n_features))
    own = max(10, n_features // 10)
    for topic in topics[:-1]:
        topic[:] = 0
        words = rng.choice(n_features, own, replace=False)
        shares = 1 / (np.arange(own) + 2.7)
        topic[words] = shares / shares.sum()
    topics[-1] = language
    return topics


def _features(rng: np.random.Generator, topics: Any, lengths: Any, first: Any, second: Any) -> Any:
    n_rows, n_features = len(lengths), topics.shape[1]
    row = np.repeat(np.arange(n_rows), lengths)
    topic = np.where(rng.random(len(row)) < 0.5, first[row], second[row])
    topic[rng.random(len(row)) < BACKGROUND] = len(topics) - 1
    # One search in all cumulated distributions: topic t covers the numbers from t to t + 1.
    cumulated = np.cumsum(topics, axis=1) / topics.sum(axis=1, keepdims=True)
    ends = (cumulated + np.arange(len(topics))[:, None]).ravel()
    place = np.searchsorted(ends, topic + rng.random(len(row)), side="right")
    word = np.minimum(place - topic * n_features, n_features - 1)
    counts = sparse.csr_array((np.ones(len(row), np.float32), (row, word)), (n_rows, n_features))
    counts.sum_duplicates()
    seen = np.bincount(counts.indices, minlength=n_features)
    idf = np.log((1 + n_rows) / (1 + seen)).astype(np.float32) + 1
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    squares = np.add.reduceat(np.square(counts.data), counts.indptr[:-1])
    counts.data /= np.repeat(np.sqrt(squares), np.diff(counts.indptr)).astype(np.float32)
    return counts


def _labels(rng: np.random.Generator, n_topics: int, n_labels: int, first: Any, second: Any) -> Any:
    n_rows = len(first)
    of_topic = rng.integers(n_labels, size=(n_topics, LABELS_PER_TOPIC))
    of_topic[:n_labels, 0] = np.arange(min(n_labels, n_topics))
    rows = np.repeat(np.arange(n_rows), LABELS_PER_TOPIC)
    row = np.concatenate([rows, rows])
    label = np.concatenate([of_topic[first].ravel(), of_topic[second].ravel()])
    given = rng.random(len(row)) < GIVEN
    n_wrong = int(WRONG * n_rows * n_labels)
    row = np.concatenate([row[given], rng.integers(n_rows, size=n_wrong)])
    label = np.concatenate([label[given], rng.integers(n_labels, size=n_wrong)])
    Y = sparse.csr_array((np.ones(len(row), np.int8), (row, label)), (n_rows, n_labels))
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y
