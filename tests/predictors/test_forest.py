"""Forests: the probabilities of scikit-learn's classifiers, out-of-bag rows, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from lemll import MultilabelForest
from lemll.datasets import load_digit_tags
from lemll.metrics import average_precision
from lemll.predictors import forest


@pytest.fixture(name="halves", scope="module")
def _halves():
    digits = load_digit_tags()
    return digits.X[:500], digits.Y[:500], digits.X[500:1000], digits.Y[500:1000]


@pytest.mark.parametrize(
    ("trees", "theirs"), [("extra", ExtraTreesClassifier), ("random", RandomForestClassifier)]
)
@pytest.mark.parametrize("per_label", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_forests_of_scikit_learn_predict_alike(halves, trees, theirs, per_label):
    X, Y, X_new, Y_new = halves
    ours = MultilabelForest(100, trees=trees, per_label=per_label, random_state=0).fit(X, Y)
    parts = [Y[:, [j]] for j in range(Y.shape[1])] if per_label else [Y]

    def probabilities(seed):
        found = []
        for part in parts:
            proba = theirs(100, random_state=seed).fit(X, np.squeeze(part)).predict_proba(X_new)
            found += [p[:, 1] for p in (proba if isinstance(proba, list) else [proba])]
        return np.column_stack(found)

    # Ours differ from theirs as theirs differ from theirs with another seed.
    first, second = probabilities(1), probabilities(2)
    noise = np.abs(first - second).mean()
    assert np.abs(ours.predict_proba(X_new) - first).mean() < 1.1 * noise
    assert average_precision(Y_new, ours.decision_function(X_new)) == pytest.approx(
        average_precision(Y_new, first), abs=0.015
    )


def test_one_tree_without_a_sample_repeats_the_labels(halves):
    X, Y, *_ = halves
    model = MultilabelForest(1, max_features=None, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), Y)
    assert model.oob_proba_ is None


def test_rows_out_of_the_bag_are_those_of_a_loop(halves):
    X, Y, *_ = halves
    model = MultilabelForest(3, bootstrap=True, random_state=0).fit(X, Y)
    (forest,) = model.forests_
    expected = np.full((3, *Y.shape), np.nan)
    for number, tree in enumerate(forest.estimators_):
        for row in set(range(len(X))) - set(forest.estimators_samples_[number]):
            expected[number, row] = tree.predict(X[[row]].astype(np.float32))[0]
    seen_by_all = np.isnan(expected).all(axis=(0, 2))
    assert seen_by_all.any()
    assert np.isnan(model.oob_proba_[seen_by_all]).all()
    np.testing.assert_allclose(
        model.oob_proba_[~seen_by_all], np.nanmean(expected[:, ~seen_by_all], axis=0)
    )


def test_constant_labels_and_sparse_rows(halves):
    X, Y, X_new, _ = halves
    Y = np.column_stack([Y, np.zeros(len(Y)), np.ones(len(Y))]).astype(int)
    dense = MultilabelForest(5, per_label=True, random_state=0).fit(X, Y)
    few = MultilabelForest(5, per_label=True, random_state=0).fit(sparse.csr_array(X), Y)
    assert (dense.predict(X_new)[:, -2:] == [0, 1]).all()
    np.testing.assert_allclose(few.predict_proba(X_new), dense.predict_proba(X_new))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trees": "oak"}, "trees='oak' must be one of extra, random"),
        ({"n_estimators": 0}, "n_estimators must be a whole number >= 1, got 0"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be a whole number >= 1, got 0"),
        ({"per_label": "yes"}, "per_label must be True or False, got 'yes'"),
        ({"bootstrap": 1}, "bootstrap must be True or False, got 1"),
    ],
)
def test_refusals(halves, options, message):
    X, Y, *_ = halves
    with pytest.raises(ValueError, match=message):
        MultilabelForest(**options).fit(X, Y)


@pytest.mark.parametrize("trees", ["extra", "random"])
def test_dense_copies_of_sparse_rows_give_the_same_trees(trees, halves, monkeypatch):
    X, Y, X_new, _ = halves
    X, X_new = (sparse.csr_array(np.where(rows > 1.0, rows, 0.0)) for rows in (X, X_new))
    copied = MultilabelForest(5, trees=trees, random_state=0).fit(X, Y)
    monkeypatch.setattr(forest, "_DENSE_BYTES", 0)
    kept = MultilabelForest(5, trees=trees, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(copied.predict_proba(X_new), kept.predict_proba(X_new))
