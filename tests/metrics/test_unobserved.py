"""Metrics of labels with unknown cells: each against a loop that leaves the cells out."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from lemll.metrics import (
    average_precision,
    brier_score,
    coverage,
    hamming_loss,
    macro_auc,
    micro_f1,
    one_error,
    ranking_loss,
)

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


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (average_precision, "scores"),
        (macro_auc, "scores"),
        (hamming_loss, "Y_pred"),
        (micro_f1, "Y_pred"),
        (brier_score, "probabilities"),
    ],
)
def test_frames_in_another_order_are_refused(metric, name):
    Y = pd.DataFrame([[1, 0, 0], [0, 1, 1], [1, 0, 1]], columns=list("abc"), index=[5, 7, 9])
    given = Y.copy()
    value = metric(Y, given)
    text = f"the columns of {name} must have the order of Y_true, a, b, c, ..., got c, b, a"
    with pytest.raises(ValueError, match=text):
        metric(Y, given[list("cba")])
    # Other names say nothing about the order.
    assert metric(Y, given.set_axis(["p1", "p2", "p3"], axis=1).reset_index(drop=True)) == value
    assert metric(Y.to_numpy(), given) == value


def test_frames_of_other_libraries_in_another_order_are_refused():
    polars, pyarrow = (pytest.importorskip(name) for name in ("polars", "pyarrow"))
    Y = pd.DataFrame([[1, 0, 0], [0, 1, 1]], columns=list("abc"))
    other = Y[list("cba")]
    for made in (polars.from_pandas, partial(pyarrow.Table.from_pandas, preserve_index=False)):
        assert average_precision(made(Y), made(Y)) == 1
        with pytest.raises(ValueError, match="columns of scores must have the order of Y_true"):
            average_precision(made(Y), made(other))
