"""Repeated halves: the paper's rule, and scikit-learn's manners."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from lemll.model_selection import RepeatedHalves


def test_the_training_half_of_a_seed_is_the_start_of_its_permutation():
    X = np.zeros((11, 2))
    pairs = list(RepeatedHalves(3, random_state=4).split(X))
    assert len(pairs) == 3
    for seed, (train, test) in zip((4, 5, 6), pairs, strict=True):
        order = np.random.RandomState(seed).permutation(11)
        np.testing.assert_array_equal(train, order[:5])
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(11))


def test_more_repeats_do_not_change_the_first_ones():
    few = list(RepeatedHalves(2).split(range(20)))
    many = list(RepeatedHalves(7).split(sparse.csr_array(np.ones((20, 1)))))
    for (train, test), (other_train, other_test) in zip(few, many[:2], strict=True):
        np.testing.assert_array_equal(train, other_train)
        np.testing.assert_array_equal(test, other_test)


def test_scikit_learn_takes_it_as_cv():
    X, Y = make_multilabel_classification(40, random_state=0)
    splitter = RepeatedHalves(3)
    assert splitter.get_n_splits() == 3
    assert len(cross_val_score(KNeighborsClassifier(), X, Y, cv=splitter)) == 3
    assert repr(splitter) == "RepeatedHalves(3, random_state=0)"


def test_the_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    list(RepeatedHalves(2).split(range(9)))
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_what_cannot_be_halved_is_refused():
    with pytest.raises(ValueError, match="halves need at least 2 rows, got 1"):
        next(RepeatedHalves().split([0]))
    with pytest.raises(ValueError, match="n_repeats must be a whole number >= 1, got 0"):
        RepeatedHalves(0)
    with pytest.raises(ValueError, match="random_state must be a whole number >= 0, got None"):
        RepeatedHalves(random_state=None)
