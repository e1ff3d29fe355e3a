"""AUC, precision at k, precision and recall: against scikit-learn and loops."""

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from lemll.exceptions import UndefinedMetricError
from lemll.metrics import (
    label_auc,
    label_figures,
    macro_auc,
    macro_precision,
    macro_recall,
    micro_auc,
    micro_precision,
    micro_recall,
    precision_at_k,
)


@pytest.fixture(name="case", params=range(5))
def _case(request):
    rng = np.random.RandomState(request.param)
    Y = (rng.rand(60, 5) < [0.5, 0.1, 0.3, 0.8, 0.2]).astype(int)
    Y[0], Y[1] = 1, 0
    scores = (rng.randn(60, 5) + Y).round(request.param % 3)  # few digits give many ties
    return Y, scores


def test_auc_is_that_of_scikit_learn(case):
    Y, scores = case
    for average, ours in (("macro", macro_auc), ("micro", micro_auc)):
        theirs = sklearn_metrics.roc_auc_score(Y, scores, average=average)
        assert ours(Y, scores) == pytest.approx(theirs, abs=1e-12)


def test_unknown_cells_and_constant_labels_are_left_out(case):
    Y, scores = case
    partial = np.column_stack([Y, np.ones(len(Y))]).astype(float)
    scores = np.column_stack([scores, scores[:, 0]])
    partial[np.random.RandomState(9).rand(*partial.shape) < 0.3] = np.nan
    partial[:, 5] = np.where(np.isnan(partial[:, 5]), np.nan, 1)
    values = label_auc(partial, scores)
    for j in range(5):
        known = ~np.isnan(partial[:, j])
        theirs = sklearn_metrics.roc_auc_score(partial[known, j], scores[known, j])
        assert values[j] == pytest.approx(theirs)
    assert np.isnan(values[5])
    assert macro_auc(partial, scores) == pytest.approx(values[:5].mean())
    known = ~np.isnan(partial)
    theirs = sklearn_metrics.roc_auc_score(partial[known], scores[known])
    assert micro_auc(partial, scores) == pytest.approx(theirs)


def test_auc_of_equal_cells_is_not_defined():
    with pytest.raises(UndefinedMetricError, match="no label of Y_true can be measured"):
        macro_auc([[1, 0]], [[0.5, 0.2]])
    with pytest.raises(UndefinedMetricError, match="all of its observed cells are equal"):
        micro_auc([[1, 1]], [[0.5, 0.2]])


@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_precision_at_k_is_that_of_a_loop(case, k):
    Y, scores = case
    truth = Y.astype(float)
    truth[np.random.RandomState(k).rand(*truth.shape) < 0.3] = np.nan
    truth[7] = np.nan
    rows = []
    for y, s in zip(truth, scores, strict=True):
        known = [j for j in range(5) if not np.isnan(y[j])]
        best = sorted(known, key=lambda j: (-s[j], j))[:k]
        rows.append(np.mean([y[j] for j in best]) if best else np.nan)
    np.testing.assert_allclose(precision_at_k(truth, scores, k, average=False), rows)
    assert precision_at_k(truth, scores, k) == pytest.approx(np.nanmean(rows))


def test_precision_at_k_refuses_what_has_no_meaning():
    with pytest.raises(ValueError, match="k must be a whole number >= 1, got 0"):
        precision_at_k([[1, 0]], [[0.5, 0.2]], 0)
    with pytest.raises(UndefinedMetricError, match="no cell is observed"):
        precision_at_k([[np.nan, np.nan]], [[0.5, 0.2]])


def test_precision_and_recall_are_those_of_scikit_learn(case):
    Y, scores = case
    predicted = (scores > 0.5).astype(int)
    predicted[:, 1] = 0
    found = label_figures(Y, predicted)
    for average, precision, recall in (
        ("macro", macro_precision, macro_recall), ("micro", micro_precision, micro_recall),
        (None, lambda *_: found.precision, lambda *_: found.recall),
    ):  # fmt: skip
        options = {"average": average, "zero_division": np.nan}
        theirs = sklearn_metrics.precision_score(Y, predicted, **options)
        np.testing.assert_allclose(precision(Y, predicted), theirs)
        theirs = sklearn_metrics.recall_score(Y, predicted, **options)
        np.testing.assert_allclose(recall(Y, predicted), theirs)
    np.testing.assert_array_equal(found.relevant, Y.sum(axis=0))
    np.testing.assert_array_equal(found.predicted, predicted.sum(axis=0))
    theirs = sklearn_metrics.f1_score(Y, predicted, average=None, zero_division=np.nan)
    np.testing.assert_allclose(found.f1, theirs)


def test_nothing_predicted_and_nothing_relevant_count_as_right():
    nothing = np.zeros((3, 2), dtype=int)
    for metric in (micro_precision, macro_precision, micro_recall, macro_recall):
        assert metric(nothing, nothing) == 1.0
