"""Stratified folds: even in size, fair to every label, the same for the same seed."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import GridSearchCV, cross_val_predict

from lemll import LEMLL
from lemll.model_selection import (
    IterativeStratifiedHalves,
    IterativeStratifiedKFold,
    equal_row_groups,
    iterative_folds,
)


def random_labels(seed=0, n=400, n_labels=12):
    rng = np.random.default_rng(seed)
    frequency = rng.uniform(0.01, 0.5, n_labels) ** 1.5
    return (rng.random((n, n_labels)) < frequency).astype(np.int8)


def named_frame(Y):
    return pd.DataFrame(Y, columns=[f"tag {label}" for label in range(Y.shape[1])])


def unfairness(Y, folds, n_folds):
    """How far the labels' frequencies in a fold are from those in the whole, on average."""
    whole = Y.mean(axis=0)
    return np.mean([np.abs(Y[folds == fold].mean(axis=0) - whole) for fold in range(n_folds)])


@settings(max_examples=200, deadline=None)
@given(
    n=st.integers(2, 60),
    n_labels=st.integers(1, 8),
    n_folds=st.integers(2, 7),
    density=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    seed=st.integers(0, 1000),
)
def test_every_row_has_a_fold_and_the_folds_are_even(n, n_labels, n_folds, density, seed):
    Y = (np.random.default_rng(seed).random((n, n_labels)) < density).astype(int)
    if n_folds > n:
        with pytest.raises(ValueError, match=f"{n_folds} folds need at least as many rows"):
            iterative_folds(Y, n_folds, random_state=seed)
        return
    folds = iterative_folds(Y, n_folds, random_state=seed)
    sizes = np.bincount(folds, minlength=n_folds)
    assert sizes.sum() == n
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("n_folds", [2, 3, 10])
@pytest.mark.parametrize("seed", range(5))
def test_labels_are_shared_far_more_fairly_than_by_chance(n_folds, seed):
    Y = random_labels(seed)
    folds = iterative_folds(Y, n_folds, random_state=seed)
    by_chance = np.random.default_rng(seed).permutation(len(Y)) % n_folds
    assert unfairness(Y, folds, n_folds) < 0.5 * unfairness(Y, by_chance, n_folds)


def test_one_label_a_row_is_shared_exactly():
    Y = np.repeat(np.eye(4, dtype=int), [10, 20, 30, 5], axis=0)
    folds = iterative_folds(Y, 5)
    for fold in range(5):
        np.testing.assert_array_equal(Y[folds == fold].sum(axis=0), [2, 4, 6, 1])


def test_rows_with_the_same_labels_are_shared_with_all_their_labels():
    kinds = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1]])
    Y = np.repeat(kinds, 6, axis=0)
    folds = iterative_folds(Y, 3)
    for fold in range(3):
        found = Y[folds == fold]
        assert [int((found == kind).all(axis=1).sum()) for kind in kinds] == [2, 2, 2]


def test_a_seed_decides_and_nothing_else():
    Y = random_labels()
    first = iterative_folds(Y, 3, random_state=1)
    np.testing.assert_array_equal(first, iterative_folds(Y, 3, random_state=1))
    assert (first != iterative_folds(Y, 3, random_state=2)).any()


@pytest.mark.parametrize(
    "form", [sparse.csr_array, sparse.csc_matrix, named_frame, np.ndarray.tolist]
)
def test_labels_may_come_in_any_form(form):
    Y = random_labels()
    np.testing.assert_array_equal(iterative_folds(form(Y), 3), iterative_folds(Y, 3))


def test_the_callers_labels_stay_as_they_are():
    Y = random_labels()
    before = Y.copy()
    Y.flags.writeable = False
    iterative_folds(Y, 3)
    np.testing.assert_array_equal(Y, before)


def test_each_row_is_tested_once():
    Y = random_labels()
    splitter = IterativeStratifiedKFold(4, random_state=3)
    tested = [test for train, test in splitter.split(Y, Y) if not set(train) & set(test)]
    np.testing.assert_array_equal(np.sort(np.concatenate(tested)), np.arange(len(Y)))
    assert splitter.get_n_splits() == 4
    assert repr(splitter) == "IterativeStratifiedKFold(4, random_state=3)"


def test_halves_are_halves_and_each_repeat_another():
    Y = random_labels(n=401)
    splitter = IterativeStratifiedHalves(3, random_state=5)
    halves = list(splitter.split(Y, Y))
    assert splitter.get_n_splits() == len(halves) == 3
    for train, test in halves:
        assert {len(train), len(test)} == {200, 201}
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(401))
    assert set(halves[0][0]) != set(halves[1][0])
    again = next(IterativeStratifiedHalves(1, random_state=6).split(Y, Y))
    np.testing.assert_array_equal(again[0], halves[1][0])
    assert repr(splitter) == "IterativeStratifiedHalves(3, random_state=5)"


def test_scikit_learn_takes_them():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 3)), random_labels(n=60, n_labels=3)
    search = GridSearchCV(LEMLL(), {"alpha": [0.1, 1.0]}, cv=IterativeStratifiedHalves(2))
    assert search.fit(X, Y).n_splits_ == 2
    assert cross_val_predict(LEMLL(), X, Y, cv=IterativeStratifiedKFold(3)).shape == Y.shape


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IterativeStratifiedKFold(1), "n_splits must be a whole number >= 2, got 1"),
        (lambda: IterativeStratifiedHalves(0), "n_repeats must be a whole number >= 1, got 0"),
        (lambda: IterativeStratifiedKFold(random_state=None), "random_state must be a whole"),
        (lambda: iterative_folds(np.ones((4, 2)), 1.5), "n_folds must be a whole number >= 2"),
        (lambda: iterative_folds(2 * np.ones((4, 2)), 2), "only 0 and 1"),
        (lambda: next(IterativeStratifiedHalves().split(np.ones((4, 2)))), "needs the labels"),
    ],
)
def test_bad_settings_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_few_known_zeros_are_distributed_too_if_cells_are_unknown():
    Y = random_labels(n=300, n_labels=6).astype(float)
    Y[np.random.default_rng(1).random(Y.shape) < 0.6] = np.nan
    Y[:, 0] = np.nan
    Y[:12, 0] = [1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]  # a label that is hardly ever known
    folds = iterative_folds(Y, 5)
    zeros, ones = (
        np.array([(Y[folds == fold] == value).sum(axis=0) for fold in range(5)]) for value in (0, 1)
    )
    assert (zeros[:, 0] == 1).all()
    assert (np.ptp(ones, axis=0) <= 2).all()


def test_many_known_zeros_take_no_part():
    Y = random_labels(n=120, n_labels=4).astype(float)
    partly = np.column_stack([Y, np.r_[1.0, np.zeros(12), np.full(107, np.nan)]])
    filled = np.nan_to_num(partly)  # the same ones, and nothing is unknown
    np.testing.assert_array_equal(iterative_folds(partly, 3), iterative_folds(filled, 3))
    partly[12, 4] = np.nan  # eleven zeros are fewer than four per fold
    assert (iterative_folds(partly, 3) != iterative_folds(filled, 3)).any()


def test_rows_of_a_group_have_the_same_fold():
    Y = random_labels(n=300)
    groups = np.random.default_rng(0).integers(0, 120, 300)
    folds = iterative_folds(Y, 5, groups=groups)
    for group in np.unique(groups):
        assert len(set(folds[groups == group])) == 1
    sizes = np.bincount([folds[groups == group][0] for group in np.unique(groups)])
    assert sizes.max() - sizes.min() <= 1
    splitter = IterativeStratifiedKFold(5)
    for train, test in splitter.split(Y, Y, groups):
        assert not set(groups[train]) & set(groups[test])
    with pytest.raises(ValueError, match="5 folds need at least as many groups, got 3"):
        iterative_folds(Y, 5, groups=np.arange(300) % 3)


def test_groups_of_one_row_change_nothing():
    Y = random_labels()
    folds = iterative_folds(Y, 4, groups=np.arange(len(Y)))
    np.testing.assert_array_equal(folds, iterative_folds(Y, 4))


def test_equal_rows_are_found_dense_and_sparse():
    X = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, 0.0], [-0.0, 1.5, 0.0], [0.0, 1.5, 1e-300]])
    for rows in (X, sparse.csr_array(X), X.astype(np.float32)[:3]):
        groups = equal_row_groups(rows, 2)
        assert groups[:3].tolist() == [0, 1, 0]
    assert equal_row_groups(X, 2)[3] == 2
    assert equal_row_groups(X[[0, 1, 3]], 2) is None  # all are different
    assert equal_row_groups(X[[0, 2, 1]], 3) is None  # fewer different rows than folds
