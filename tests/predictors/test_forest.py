"""Forests: the probabilities of scikit-learn's classifiers, out-of-bag rows, refusals."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier

from lemll import MultilabelForest
from lemll.datasets import load_digit_tags
from lemll.metrics import average_precision
from lemll.predictors import forest


@pytest.fixture(name="halves", scope="module")
def _halves():
    digits = load_digit_tags()
    return digits.X[:500], digits.Y[:500], digits.X[500:1000], digits.Y[500:1000]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trees", "theirs"), [("extra", ExtraTreesClassifier), ("random", RandomForestClassifier)]
)
@pytest.mark.nightly(when=lambda trees, per_label: trees == "extra" or per_label)
@pytest.mark.parametrize("per_label", [False, True])
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


def theirs(X, Y, n_trees, **options):
    """Return the forest of scikit-learn with the seed that ours draws."""
    seed = np.random.RandomState(0).randint(2**31 - 1)
    kind = ExtraTreesRegressor(n_trees, max_features="sqrt", random_state=seed, **options)
    return kind.fit(X.astype(np.float32), Y)


def test_probabilities_are_those_of_scikit_learn(halves, monkeypatch):
    X, Y, X_new, _ = halves
    monkeypatch.setattr(forest, "_SHARES_AT_ONCE", 5 * 2 * Y.size)  # five trees at once
    monkeypatch.setattr(forest, "_LEAVES_AT_ONCE", 100)
    ours = MultilabelForest(12, random_state=0).fit(X, Y)
    np.testing.assert_allclose(
        expit(ours.decision_function(X_new)),
        theirs(X, Y, 12).predict(X_new.astype(np.float32)),
        atol=1e-12,
    )


def test_a_forest_of_many_labels_is_small():
    rng = np.random.RandomState(0)
    X, Y = rng.randn(300, 5), (rng.rand(300, 150) < 0.02).astype(int)
    model = MultilabelForest(20, random_state=0).fit(X, Y)
    (found,) = model.forests_
    assert found.shares.nnz < 20 * 2 * Y.sum()
    assert {tree.value.shape[1:] for tree in found.trees} == {(1, 1)}


def test_rows_out_of_the_bag_are_those_of_a_loop(halves):
    X, Y, *_ = halves
    model = MultilabelForest(3, bootstrap=True, random_state=0).fit(X, Y)
    forest = theirs(X, Y, 3, bootstrap=True)
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


def test_a_tree_that_saw_a_copy_does_not_score_a_row(halves):
    X, _, *_ = halves
    Y = np.random.RandomState(0).randint(0, 2, (len(X), 3))
    both = MultilabelForest(50, trees="random", random_state=0).fit(
        np.vstack([X, X]), np.vstack([Y, Y])
    )
    found = np.nan_to_num(both.oob_proba_, nan=0.5)
    agreement = ((found > 0.5) == np.vstack([Y, Y])).mean()
    assert agreement < 0.6  # the copies of a row tell its random labels


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
