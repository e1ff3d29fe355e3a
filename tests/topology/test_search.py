"""Approximate neighbours: what they return, how good they say they are, and what they refuse."""

import sys

import numpy as np
import pytest
from scipy import sparse

from lemll.exceptions import MissingExtraError
from lemll.topology import find_neighbors, nearest_neighbors, neighbor_recall, weights


def rows(n=300, d=8, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def slow_recall(X, index):
    """Count the share of entries that are not farther than the true K-th neighbour."""
    distance = np.square(X[:, None] - X[None]).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    kth = np.sort(distance, axis=1)[:, index.shape[1] - 1]
    got = np.take_along_axis(distance, index, axis=1)
    return float((got <= kth[:, None] * (1 + 1e-12)).mean())


def inexact(shuffled):
    """Return a stand-in for pynndescent: true neighbours, in some rows replaced by others."""

    def descend(data, width, start):
        dense = np.asarray(data.toarray() if sparse.issparse(data) else data, dtype=np.float64)
        distance = np.square(dense[:, None] - dense[None]).sum(axis=2)
        index = np.argsort(distance, axis=1, kind="stable")[:, :width].astype(np.int32)
        wrong = np.random.default_rng(1).random(len(index)) < shuffled
        index[wrong, 1:] = np.argsort(-distance, axis=1)[wrong, : width - 1]
        return index, np.take_along_axis(distance, index, axis=1)

    return descend


def test_the_recall_is_that_of_the_slow_count():
    X = rows(120)
    index = nearest_neighbors(X, 5)
    assert neighbor_recall(X, index) == slow_recall(X, index) == 1.0
    worse = index.copy()
    worse[::3, 2:] = np.argsort(-np.square(X[:, None] - X[None]).sum(axis=2))[::3, :3]
    assert neighbor_recall(X, worse) == pytest.approx(slow_recall(X, worse))
    assert neighbor_recall(X, worse) < 0.9


def test_a_row_at_the_same_distance_is_as_good():
    X = np.array([[0.0], [1.0], [-1.0], [9.0]])
    assert neighbor_recall(X, np.array([[2], [0], [0], [1]])) == 1.0


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_an_approximate_search_returns_other_rows_and_its_recall(convert, monkeypatch):
    monkeypatch.setattr(weights, "_descend", inexact(shuffled=0.02))
    X = rows()
    found = find_neighbors(convert(X), 5, search="approximate")
    assert (found.search, found.checked_rows) == ("approximate", 200)
    assert found.index.shape == (300, 5)
    assert not (found.index == np.arange(300)[:, None]).any()
    assert 0.95 <= found.recall < 1
    assert found.recall == pytest.approx(slow_recall(X, found.index), abs=0.02)


def test_a_low_recall_is_tried_again_and_then_reported(monkeypatch):
    widths = []

    def descend(data, width, start):
        widths.append((width, start is not None))
        return inexact(shuffled=0.5)(data, width, start)

    monkeypatch.setattr(weights, "_descend", descend)
    with pytest.warns(UserWarning, match=r"found only .* of the neighbours of 200 checked rows"):
        found = find_neighbors(rows(), 5, search="approximate")
    assert widths == [(16, False), (26, True)]
    assert found.recall < 0.95


def test_few_candidates_are_filled_with_other_rows():
    index = np.array([[0, -1, -1, -1], [1, 0, -1, -1], [2, 2, 0, 1], [3, 2, 1, 0]])
    filled = weights._without_self(index, 2)
    assert not (filled == np.arange(4)[:, None]).any()
    assert all(len(set(line)) == 2 for line in filled[[0, 1, 3]])


def test_auto_depends_on_the_rows_and_says_what_is_missing(monkeypatch):
    X = rows(40)
    assert find_neighbors(X, 3).search == "exact"
    monkeypatch.setattr(weights, "MOST_EXACT_ROWS", 30)
    monkeypatch.setattr(weights, "_descend", inexact(shuffled=0.0))
    monkeypatch.setattr(weights, "find_spec", lambda name: "installed")
    assert find_neighbors(X, 3).search == "approximate"
    monkeypatch.setattr(weights, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match=r"pip install 'lemll\[ann\]'"):
        assert find_neighbors(X, 3).search == "exact"


def test_what_is_wrong_is_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"neighbors='near' must be 'exact', 'approximate' or"):
        find_neighbors(rows(), search="near")
    monkeypatch.setitem(sys.modules, "pynndescent", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lemll\[ann\]'"):
        find_neighbors(rows(), 5, search="approximate")


@pytest.mark.slow
@pytest.mark.long
def test_the_library_finds_nearly_all_neighbours_twice_the_same(nightly):
    pytest.importorskip("pynndescent")
    # One test, because every process compiles the library for itself.
    for far in (0.0, 1e6) if nightly else (1e6,):
        X = rows(2000, 6) + far
        first, again = (find_neighbors(X, 10, search="approximate") for _ in range(2))
        assert first.recall >= 0.95
        assert slow_recall(X - far, first.index) >= 0.95
        np.testing.assert_array_equal(first.index, again.index)
    if not nightly:
        return  # for sparse rows it compiles as much again
    X = np.where(rows(2000, 6) > 0, rows(2000, 6), 0.0)
    found = find_neighbors(sparse.csr_array(X), 10, search="approximate")
    assert found.recall >= 0.95
    assert slow_recall(X, found.index) >= 0.95
