r"""Metrics of 0/1 predictions: F1, precision, recall and subset accuracy.

F1 is :math:`2\,TP/(2\,TP+FP+FN)`, precision :math:`TP/(TP+FP)`, recall :math:`TP/(TP+FN)`. They are
0/0 for example where no label is relevant and none is predicted; each function says what counts
then. Unknown cells of the truth (NaN) are skipped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lemll._types import BoolArray, FloatArray, IndexArray, MatrixLike
from lemll._validation import check_logical_labels
from lemll.exceptions import UndefinedMetricError
from lemll.metrics.ranks import check_truth

__all__ = [
    "LabelFigures",
    "example_f1",
    "label_figures",
    "macro_f1",
    "macro_precision",
    "macro_recall",
    "micro_f1",
    "micro_precision",
    "micro_recall",
    "subset_accuracy",
]


class _Decisions(NamedTuple):
    """Observed cells, and among them the relevant and the predicted ones."""

    observed: BoolArray
    relevant: BoolArray
    predicted: BoolArray


def _cells(Y_true: MatrixLike, Y_pred: MatrixLike) -> _Decisions:
    labels = check_truth(Y_true, Y_pred, "Y_pred")
    predicted = check_logical_labels(Y_pred, name="Y_pred")
    if predicted.shape != labels.shape:
        raise ValueError(
            f"Y_pred must have the shape of Y_true, {labels.shape}, got {predicted.shape}."
        )
    observed = labels >= 0
    if not observed.any():
        raise UndefinedMetricError(
            "no row of Y_true can be measured: no cell is observed; add rows."
        )
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
    return 2 * int((cells.relevant & cells.predicted).sum()) / total if total else 1.0


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
    cells = _cells(Y_true, Y_pred)
    total = cells.relevant.sum(axis=0) + cells.predicted.sum(axis=0)
    hits = (cells.relevant & cells.predicted).sum(axis=0)
    counted = total > 0
    return float((2 * hits[counted] / total[counted]).mean()) if counted.any() else 1.0


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
    return int((cells.relevant & cells.predicted).sum()) / total if total else 1.0


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
    return int((cells.relevant & cells.predicted).sum()) / total if total else 1.0


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
