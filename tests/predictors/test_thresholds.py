"""Thresholds chosen on unseen rows, top labels, and distributions of new rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import f1_score

from lemll import LEMLL
from lemll.datasets import load_digit_tags
from lemll.predictors.base import best_thresholds
from lemll.topology import reconstruction_weights


def value(scores, y, threshold, criterion):
    predicted = scores > threshold
    if criterion == "hamming":
        return -int((predicted != y).sum())
    return 2 * (predicted & (y == 1)).sum() / max(1, predicted.sum() + y.sum())


@settings(max_examples=300, deadline=None)
@given(
    data=st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            hnp.arrays(float, (n, 1), elements=st.integers(-4, 4).map(lambda v: v / 4)),
            hnp.arrays(np.int8, (n, 1), elements=st.integers(0, 1)),
        )
    ),
    criterion=st.sampled_from(["f1", "hamming"]),
)
def test_no_threshold_is_better_than_the_chosen_one(data, criterion):
    scores, Y = data
    (chosen,) = best_thresholds(scores, Y, criterion)
    reached = value(scores[:, 0], Y[:, 0], chosen, criterion)
    if Y.any():
        candidates = np.linspace(-2, 2, 161)
        best = max(value(scores[:, 0], Y[:, 0], t, criterion) for t in candidates)
        assert reached >= best - 1e-12
    else:
        assert chosen == 0


def test_tuned_thresholds_raise_f1_on_rows_never_seen():
    data = load_digit_tags()
    rng = np.random.RandomState(0)
    order = rng.permutation(len(data))
    train, test = order[:600], order[600:1400]
    # Rare labels are where a threshold of 0 is too high.
    Y = data.Y * (np.arange(len(data)) % 3 == 0)[:, None].astype(np.int8)
    X = data.X / 16
    results = {}
    for thresholds in ("zero", "f1", "hamming"):
        model = LEMLL(thresholds=thresholds).fit(X[train], Y[train])
        predicted = model.predict(X[test])
        results[thresholds] = f1_score(Y[test], predicted, average="macro", zero_division=0)
        np.testing.assert_array_equal(
            predicted, (model.decision_function(X[test]) > model.thresholds_).astype(int)
        )
    assert results["f1"] > results["zero"] + 0.1


def test_thresholds_are_reproducible_and_leave_the_scores_alone():
    data = load_digit_tags()
    X, Y = data.X[:200] / 16, data.Y[:200]
    first, second = (LEMLL(thresholds="f1").fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.thresholds_, second.thresholds_)
    np.testing.assert_array_equal(
        first.decision_function(X), LEMLL().fit(X, Y).decision_function(X)
    )
    assert not LEMLL().fit(X, Y).thresholds_.any()


def test_faults():
    data = load_digit_tags()
    X, Y = data.X[:40] / 16, data.Y[:40]
    with pytest.raises(ValueError, match="thresholds='best' must be 'zero', 'f1', 'hamming'"):
        LEMLL(thresholds="best").fit(X, Y)
    with pytest.raises(ValueError, match="needs at least 10 rows, got 8; leave it out"):
        LEMLL(thresholds="f1").fit(X[:8], Y[:8])
    with pytest.raises(ValueError, match="the given graph does not hold"):
        LEMLL(thresholds="f1", graph=reconstruction_weights(X, 5)).fit(X, Y)
    model = LEMLL().fit(X, Y)
    with pytest.raises(ValueError, match="k=9 must not exceed the number of labels, 8"):
        model.predict_top_k(X, 9)
    with pytest.raises(ValueError, match="k must be a whole number >= 1"):
        model.predict_top_k(X, 0)


def test_top_labels_and_distributions():
    data = load_digit_tags()
    X, Y = data.X[:200] / 16, data.Y[:200]
    model = LEMLL().fit(X, Y)
    scores = model.decision_function(X)
    top = model.predict_top_k(X, 3)
    assert top.shape == (200, 3)
    for row, names in zip(scores, top, strict=True):
        assert list(names) == [f"y{j}" for j in np.argsort(-row, kind="stable")[:3]]
    D = model.predict_distribution(X)
    np.testing.assert_allclose(D.sum(axis=1), 1)
    np.testing.assert_array_equal(D.argmax(axis=1), scores.argmax(axis=1))


def test_rows_without_a_label_get_a_warning_that_names_the_remedy():
    rng = np.random.RandomState(0)
    X = rng.randn(100, 4)
    Y = np.eye(6, dtype=int)[rng.randint(0, 6, 100)]  # one label each, none of them frequent
    model = LEMLL().fit(X, Y)
    with pytest.warns(UserWarning, match="predicts no label in .* fit it with thresholds='f1'"):
        model.predict(X)
    LEMLL(thresholds="f1").fit(X, Y).predict(X)
    Y[rng.rand(100) < 0.8] = 0  # most rows have no label, so it is no surprise
    LEMLL().fit(X, Y).predict(X)
