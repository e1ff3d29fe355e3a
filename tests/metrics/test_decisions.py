"""F1, subset accuracy and the metrics of probabilities, against scikit-learn and loops."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import metrics as theirs

from lemll.metrics import (
    brier_score,
    calibration_error,
    example_f1,
    log_loss,
    macro_f1,
    micro_f1,
    subset_accuracy,
)

DECISIONS = [micro_f1, macro_f1, example_f1, subset_accuracy]
PROBABILITIES = [log_loss, brier_score, calibration_error]


@pytest.fixture(
    name="cells", params=[0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 5))]
)
def _cells(request):
    rng = np.random.RandomState(request.param)
    Y = (rng.rand(40, 6) < rng.rand(6)).astype(int)
    predicted = np.where(rng.rand(40, 6) < 0.3, 1 - Y, Y)
    Y[:, 5] = predicted[:, 5] = 0  # never relevant, never predicted
    Y[0] = predicted[0] = 0
    return Y, predicted, rng.rand(40, 6)


def test_decisions_are_those_of_scikit_learn(cells):
    Y, predicted, _ = cells
    assert micro_f1(Y, predicted) == pytest.approx(theirs.f1_score(Y, predicted, average="micro"))
    for ours, average, division in ((macro_f1, "macro", np.nan), (example_f1, "samples", 1.0)):
        expected = theirs.f1_score(Y, predicted, average=average, zero_division=division)
        assert ours(Y, predicted) == pytest.approx(expected)
    assert subset_accuracy(Y, predicted) == pytest.approx(theirs.accuracy_score(Y, predicted))


def test_probabilities_are_those_of_scikit_learn(cells):
    Y, _, p = cells
    assert log_loss(Y, p) == pytest.approx(theirs.log_loss(Y.ravel(), p.ravel()))
    assert brier_score(Y, p) == pytest.approx(theirs.brier_score_loss(Y.ravel(), p.ravel()))


@pytest.mark.parametrize("n_bins", [1, 10, 15])
def test_the_calibration_error_is_that_of_a_loop(cells, n_bins):
    Y, _, p = cells
    p[0, 0], p[0, 1] = 0.0, 1.0
    total = 0.0
    for number in range(n_bins):
        low, high = number / n_bins, (number + 1) / n_bins
        here = (p >= low) & ((p < high) | (number == n_bins - 1))
        if here.any():
            total += here.sum() * abs(Y[here].mean() - p[here].mean())
    assert calibration_error(Y, p, n_bins=n_bins) == pytest.approx(total / Y.size)


@pytest.mark.parametrize("metric", [*DECISIONS, *PROBABILITIES])
def test_unknown_cells_are_skipped(metric, cells):
    Y, predicted, p = cells
    prediction = predicted if metric in DECISIONS else p
    hidden = np.random.RandomState(9).rand(*Y.shape) < 0.3
    hidden[3] = True
    given = np.where(hidden, np.nan, Y)
    value = metric(given, prediction)
    # Predictions in unknown cells must not matter.
    assert metric(given, np.where(hidden, 1 - prediction, prediction)) == value
    known = ~hidden
    if metric in (example_f1, subset_accuracy):
        rows = zip(Y, predicted, known, strict=True)
        parts = [metric([y[seen]], [h[seen]]) for y, h, seen in rows if seen.any()]
    elif metric is macro_f1:
        columns = zip(Y.T, predicted.T, known.T, strict=True)
        labels = ((y[seen, None], h[seen, None]) for y, h, seen in columns)
        parts = [metric(y, h) for y, h in labels if y.any() or h.any()]
    else:
        parts = [metric(Y[known][:, None], prediction[known][:, None])]
    assert value == pytest.approx(np.mean(parts))


@pytest.mark.parametrize("metric", DECISIONS)
def test_sparse_predictions(metric, cells):
    Y, predicted, _ = cells
    assert metric(sparse.csr_array(Y), sparse.csr_array(predicted)) == metric(Y, predicted)


def test_nothing_relevant_and_nothing_predicted_is_right():
    nothing = np.zeros((3, 2), dtype=int)
    assert [metric(nothing, nothing) for metric in DECISIONS] == [1.0] * 4


@pytest.mark.parametrize(
    ("metric", "prediction", "text"),
    [
        (micro_f1, [[1, 0, 1]], r"Y_pred must have the shape of Y_true, \(1, 2\), got \(1, 3\)"),
        (macro_f1, [[0.5, 1]], "Y_pred"),
        (log_loss, [[0.5]], r"probabilities must have the shape of Y_true, \(1, 2\), got \(1, 1\)"),
        (log_loss, [["a", "b"]], "probabilities must hold numbers, got dtype"),
        (brier_score, [[0.5, 2.0]], "between 0 and 1, got 2.0 in row 0, label 1; use predict_pro"),
        (brier_score, [[np.nan, 0.0]], "between 0 and 1, got nan in row 0, label 0"),
    ],
)
def test_refusals(metric, prediction, text):
    with pytest.raises(ValueError, match=text):
        metric([[1, 0]], prediction)
    with pytest.raises(ValueError, match="no cell is observed; add rows"):
        metric([[np.nan, np.nan]], [[1, 0]])
