"""Metrics of labels with unknown cells: each against a loop that leaves the cells out."""

from __future__ import annotations

import numpy as np
import pytest

from lemll.metrics import average_precision, coverage, hamming_loss, one_error, ranking_loss

RANKING = [ranking_loss, one_error, coverage, average_precision]


def problem(seed, n=60, n_labels=7):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < 0.4).astype(float)
    Y[rng.random(Y.shape) < 0.5] = np.nan
    Y[0] = np.nan  # nothing is known about this row
    Y[1] = [1, np.nan, 1, np.nan, 1, np.nan, 1]  # all that is known is relevant
    Y[2] = [0, np.nan, 0, np.nan, 0, np.nan, 0]  # nothing that is known is relevant
    # Few different scores, so that there are ties.
    return Y, rng.integers(0, 4, Y.shape).astype(float)


def loop(metric, Y, scores, **options):
    values = np.full(len(Y), np.nan)
    for row in range(len(Y)):
        known = ~np.isnan(Y[row])
        if known.any():
            labels = Y[[row]][:, known].astype(int)
            values[row] = metric(labels, scores[[row]][:, known], average=False, **options)[0]
    return values


@pytest.mark.parametrize("metric", RANKING, ids=lambda metric: metric.__name__)
@pytest.mark.parametrize("convention", ["paper", "mulan", "lamda", "levi"])
@pytest.mark.parametrize("seed", range(3))
def test_ranking_metrics_skip_unknown_cells(metric, convention, seed):
    Y, scores = problem(seed)
    found = metric(Y, scores, average=False, convention=convention)
    expected = loop(metric, Y, scores, convention=convention)
    np.testing.assert_allclose(found, expected)
    assert metric(Y, scores, convention=convention) == pytest.approx(np.nanmean(expected))


@pytest.mark.parametrize("seed", range(3))
def test_the_hamming_loss_skips_unknown_cells(seed):
    Y, scores = problem(seed)
    predicted = (scores > 1).astype(int)
    expected = loop(hamming_loss, Y, predicted)
    np.testing.assert_allclose(hamming_loss(Y, predicted, average=False), expected)
    assert hamming_loss(Y, predicted) == pytest.approx(np.nanmean(expected))


def test_scores_of_unknown_cells_do_not_matter():
    Y, scores = problem(5)
    other = np.where(np.isnan(Y), np.inf, scores)
    for metric in RANKING:
        assert metric(Y, other) == metric(Y, scores)


def test_nothing_known_is_refused():
    with pytest.raises(ValueError, match="no row of Y_true can be measured"):
        hamming_loss([[np.nan, np.nan]], [[0, 1]])
    with pytest.raises(ValueError, match="no row of Y_true can be measured"):
        average_precision([[np.nan, np.nan]], [[0.0, 1.0]])
    with pytest.raises(ValueError, match="got an unknown cell .* in row 0, label 1"):
        hamming_loss([[0, 1]], [[0, np.nan]])
