"""Metrics of probabilities: log loss, Brier score and calibration error.

All of them treat every observed cell, a row and a label, as one prediction. Unknown cells of the
truth (NaN) are skipped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lemll._types import BoolArray, FloatArray, IndexArray, MatrixLike
from lemll._validation import check_whole, is_sparse
from lemll.metrics.multilabel import check_decisions, check_truth, refuse_unobserved


class _Decisions(NamedTuple):
    """Observed cells, and among them the relevant and the predicted ones."""

    observed: BoolArray
    relevant: BoolArray
    predicted: BoolArray

    @property
    def hits(self) -> int:
        return int((self.relevant & self.predicted).sum())


def _cells(Y_true: MatrixLike, Y_pred: MatrixLike) -> _Decisions:
    labels, predicted = check_decisions(Y_true, Y_pred)
    observed = labels >= 0
    refuse_unobserved(observed)
    return _Decisions(observed, labels == 1, (predicted == 1) & observed)


def micro_f1(Y_true: MatrixLike, Y_pred: MatrixLike) -> float:
    """F1 of all cells together. Greater is better.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted logical labels, 0/1. Unknown cells of Y_true (NaN) are skipped.

    Returns
    -------
    float
        In [0, 1]. It is 1 if nothing is relevant and nothing is predicted.

    Examples
    --------
    >>> from lemll.metrics import micro_f1
    >>> micro_f1([[1, 0], [1, 1]], [[1, 1], [1, 0]])
    0.6666666666666666
    """
    cells = _cells(Y_true, Y_pred)
    total = int(cells.relevant.sum() + cells.predicted.sum())
    return 2 * cells.hits / total if total else 1.0


def macro_f1(Y_true: MatrixLike, Y_pred: MatrixLike) -> float:
    """Mean over the labels of the F1 of each label. Greater is better.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted logical labels, 0/1. Unknown cells of Y_true (NaN) are skipped.

    Returns
    -------
    float
        In [0, 1]. Labels that are never relevant and never predicted are left out, as in
        scikit-learn with ``zero_division=nan``. It is 1 if this leaves no label.

    Examples
    --------
    >>> from lemll.metrics import macro_f1
    >>> macro_f1([[1, 0], [1, 1]], [[1, 1], [1, 0]])
    0.5
    """
    return _mean_defined(label_figures(Y_true, Y_pred).f1)


def example_f1(Y_true: MatrixLike, Y_pred: MatrixLike) -> float:
    """Mean over the rows of the F1 of each row. Greater is better.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted logical labels, 0/1. Unknown cells of Y_true (NaN) are skipped, and so
        are rows without a known cell.

    Returns
    -------
    float
        In [0, 1]. A row without relevant and without predicted labels is right, and counts as 1.

    Examples
    --------
    >>> from lemll.metrics import example_f1
    >>> example_f1([[1, 0], [0, 0]], [[1, 1], [0, 0]])
    0.8333333333333333
    """
    cells = _cells(Y_true, Y_pred)
    known = cells.observed.any(axis=1)
    total = (cells.relevant.sum(axis=1) + cells.predicted.sum(axis=1))[known]
    hits = (cells.relevant & cells.predicted).sum(axis=1)[known]
    return float(np.where(total > 0, 2 * hits / np.maximum(total, 1), 1.0).mean())


def subset_accuracy(Y_true: MatrixLike, Y_pred: MatrixLike) -> float:
    """Share of rows whose labels are all predicted correctly. Greater is better.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted logical labels, 0/1. Unknown cells of Y_true (NaN) are skipped, and so
        are rows without a known cell.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import subset_accuracy
    >>> subset_accuracy([[1, 0], [0, 1]], [[1, 0], [1, 1]])
    0.5
    """
    cells = _cells(Y_true, Y_pred)
    wrong = ((cells.relevant != cells.predicted) & cells.observed).any(axis=1)
    return float(1 - wrong[cells.observed.any(axis=1)].mean())


class LabelFigures(NamedTuple):
    """Figures of each label, as :func:`label_figures` returns them.

    Attributes
    ----------
    precision, recall, f1 : ndarray of shape (n_labels,)
        NaN where they are 0/0: precision of a label that is never predicted, recall of a label that
        is never relevant, F1 of a label that is neither.
    relevant, predicted, observed : ndarray of shape (n_labels,)
        Numbers of cells.
    """

    precision: FloatArray
    recall: FloatArray
    f1: FloatArray
    relevant: IndexArray
    predicted: IndexArray
    observed: IndexArray


def label_figures(Y_true: MatrixLike, Y_pred: MatrixLike) -> LabelFigures:
    """Precision, recall and F1 of each label.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted logical labels, 0/1. Unknown cells of Y_true (NaN) are skipped.

    Returns
    -------
    LabelFigures
        One value per label.

    Examples
    --------
    >>> from lemll.metrics import label_figures
    >>> found = label_figures([[1, 0], [1, 1], [0, 0]], [[1, 1], [1, 0], [1, 0]])
    >>> found.precision.round(2), found.recall
    (array([0.67, 0.  ]), array([1., 0.]))
    """
    cells = _cells(Y_true, Y_pred)
    hits = (cells.relevant & cells.predicted).sum(axis=0)
    relevant, predicted = cells.relevant.sum(axis=0), cells.predicted.sum(axis=0)
    return LabelFigures(
        _ratio(hits, predicted),
        _ratio(hits, relevant),
        _ratio(2 * hits, relevant + predicted),
        relevant,
        predicted,
        cells.observed.sum(axis=0),
    )


def _ratio(part: IndexArray, whole: IndexArray) -> FloatArray:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)


def _mean_defined(values: FloatArray) -> float:
    counted = values[~np.isnan(values)]
    return float(counted.mean()) if len(counted) else 1.0


def micro_precision(Y_true: MatrixLike, Y_pred: MatrixLike) -> float:
    """Share of the predicted cells that are relevant. Greater is better.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted logical labels, 0/1. Unknown cells of Y_true (NaN) are skipped.

    Returns
    -------
    float
        In [0, 1]. It is 1 if nothing is predicted.

    Examples
    --------
    >>> from lemll.metrics import micro_precision
    >>> micro_precision([[1, 0], [1, 1]], [[1, 1], [1, 0]])
    0.6666666666666666
    """
    cells = _cells(Y_true, Y_pred)
    total = int(cells.predicted.sum())
    return cells.hits / total if total else 1.0


def micro_recall(Y_true: MatrixLike, Y_pred: MatrixLike) -> float:
    """Share of the relevant cells that are predicted. Greater is better.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted logical labels, 0/1. Unknown cells of Y_true (NaN) are skipped.

    Returns
    -------
    float
        In [0, 1]. It is 1 if nothing is relevant.

    Examples
    --------
    >>> from lemll.metrics import micro_recall
    >>> micro_recall([[1, 0], [1, 1]], [[1, 1], [0, 0]])
    0.3333333333333333
    """
    cells = _cells(Y_true, Y_pred)
    total = int(cells.relevant.sum())
    return cells.hits / total if total else 1.0


def macro_precision(Y_true: MatrixLike, Y_pred: MatrixLike) -> float:
    """Mean over the labels of the precision of each label. Greater is better.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted logical labels, 0/1. Unknown cells of Y_true (NaN) are skipped.

    Returns
    -------
    float
        In [0, 1]. Labels that are never predicted are left out, as in scikit-learn with
        ``zero_division=nan``. It is 1 if this leaves no label.

    Examples
    --------
    >>> from lemll.metrics import macro_precision
    >>> macro_precision([[1, 0], [1, 1]], [[1, 1], [1, 0]])
    0.5
    """
    return _mean_defined(label_figures(Y_true, Y_pred).precision)


def macro_recall(Y_true: MatrixLike, Y_pred: MatrixLike) -> float:
    """Mean over the labels of the recall of each label. Greater is better.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted logical labels, 0/1. Unknown cells of Y_true (NaN) are skipped.

    Returns
    -------
    float
        In [0, 1]. Labels that are never relevant are left out. It is 1 if this leaves no label.

    Examples
    --------
    >>> from lemll.metrics import macro_recall
    >>> macro_recall([[1, 0], [1, 1]], [[1, 1], [1, 0]])
    0.5
    """
    return _mean_defined(label_figures(Y_true, Y_pred).recall)


# Smallest distance of a probability from 0 and 1 in the log loss.
_CLIP = float(np.finfo(np.float64).eps)


def _probability_cells(
    Y_true: MatrixLike, probabilities: MatrixLike
) -> tuple[FloatArray, FloatArray]:
    """Return the truth and the probabilities of the observed cells."""
    labels = check_truth(Y_true, probabilities, "probabilities")
    given = probabilities.toarray() if is_sparse(probabilities) else np.asarray(probabilities)
    if given.shape != labels.shape:
        raise ValueError(
            f"probabilities must have the shape of Y_true, {labels.shape}, got {given.shape}; "
            "give one probability for each row and label."
        )
    if given.dtype.kind not in "biuf":
        raise ValueError(
            f"probabilities must hold numbers, got dtype {given.dtype}; convert it first."
        )
    p = given.astype(np.float64)
    # NaN also fails this comparison.
    outside = np.argwhere(~((p >= 0) & (p <= 1)))
    if len(outside):
        row, label = outside[0]
        raise ValueError(
            f"probabilities must lie between 0 and 1, got {p[row, label]} in row {row}, label "
            f"{label}; use predict_proba, not scores."
        )
    observed = labels >= 0
    refuse_unobserved(observed)
    return labels[observed].astype(np.float64), p[observed]


def log_loss(Y_true: MatrixLike, probabilities: MatrixLike) -> float:
    r"""Mean over the cells of :math:`-y\log p-(1-y)\log(1-p)`. Lower is better.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped.
    probabilities : array-like of shape (n_samples, n_labels)
        The probability that each label is relevant.

    Returns
    -------
    float
        Not negative. Probabilities are kept 2.2e-16 away from 0 and 1, so it is finite.

    Examples
    --------
    >>> from lemll.metrics import log_loss
    >>> round(log_loss([[1, 0]], [[0.5, 0.5]]), 3)
    0.693
    """
    y, p = _probability_cells(Y_true, probabilities)
    p = np.clip(p, _CLIP, 1 - _CLIP)
    return float(-(y * np.log(p) + (1 - y) * np.log1p(-p)).mean())


def brier_score(Y_true: MatrixLike, probabilities: MatrixLike) -> float:
    r"""Mean over the cells of :math:`(y-p)^2`. Lower is better.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped.
    probabilities : array-like of shape (n_samples, n_labels)
        The probability that each label is relevant.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import brier_score
    >>> brier_score([[1, 0]], [[0.5, 0.5]])
    0.25
    """
    y, p = _probability_cells(Y_true, probabilities)
    return float(((y - p) ** 2).mean())


def calibration_error(Y_true: MatrixLike, probabilities: MatrixLike, *, n_bins: int = 10) -> float:
    r"""Mean difference between probabilities and shares of relevant cells. Lower is better.

    The cells are put into bins of equal width by their probability. With :math:`n_b` cells in bin
    b, the value is :math:`\sum_b\frac{n_b}{n}|\bar y_b-\bar p_b|`.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped.
    probabilities : array-like of shape (n_samples, n_labels)
        The probability that each label is relevant.
    n_bins : int, default=10
        Number of bins.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import calibration_error
    >>> calibration_error([[1, 1, 0, 0]], [[0.75, 0.75, 0.75, 0.75]])
    0.25
    """
    bins = check_whole("n_bins", n_bins, least=1)
    y, p = _probability_cells(Y_true, probabilities)
    place = np.minimum((p * bins).astype(np.intp), bins - 1)
    return float(np.abs(np.bincount(place, y - p, minlength=bins)).sum() / len(p))
