r"""Metrics of scores that people know from other fields: AUC and precision at k.

The area under the ROC curve is the share of pairs of a relevant and another cell in which the
relevant one has the higher score; equal scores count one half. Unknown cells of the truth (NaN) are
skipped.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from lemll._types import BoolArray, FloatArray, MatrixLike
from lemll._validation import check_whole
from lemll.exceptions import UndefinedMetricError
from lemll.metrics.multilabel import check_scores, check_truth, refuse_unobserved


def _cells(Y_true: MatrixLike, scores: MatrixLike) -> tuple[BoolArray, BoolArray, FloatArray]:
    """Return the observed cells, the relevant ones and the scores."""
    labels = check_truth(Y_true, scores)
    return labels >= 0, labels == 1, check_scores(scores, labels.shape)


def _auc(relevant: BoolArray, scores: FloatArray) -> float:
    """Return the area under the ROC curve of some cells, NaN if only one class occurs."""
    n_relevant = int(relevant.sum())
    n_pairs = n_relevant * (len(relevant) - n_relevant)
    if n_pairs == 0:
        return float("nan")
    # The sum of the ranks counts, for each relevant cell, the cells below it (Mann and Whitney).
    above = float(rankdata(scores)[relevant].sum()) - n_relevant * (n_relevant + 1) / 2
    return above / n_pairs


def label_auc(Y_true: MatrixLike, scores: MatrixLike) -> FloatArray:
    """Area under the ROC curve of each label. Greater is better.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped.
    scores : array-like of shape (n_samples, n_labels)
        Scores; higher means more relevant.

    Returns
    -------
    ndarray of shape (n_labels,)
        In [0, 1]; NaN for labels that are relevant in all rows or in none.

    Examples
    --------
    >>> from lemll.metrics import label_auc
    >>> label_auc([[1, 0], [0, 0], [1, 0]], [[0.9, 0.1], [0.5, 0.2], [0.4, 0.3]])
    array([0.5, nan])
    """
    observed, relevant, values = _cells(Y_true, scores)
    columns = zip(observed.T, relevant.T, values.T, strict=True)
    return np.array([_auc(y[known], s[known]) for known, y, s in columns])


def macro_auc(Y_true: MatrixLike, scores: MatrixLike) -> float:
    """Mean over the labels of the area under the ROC curve. Greater is better.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped.
    scores : array-like of shape (n_samples, n_labels)
        Scores; higher means more relevant.

    Returns
    -------
    float
        In [0, 1]; chance gives 0.5. Labels that are relevant in all rows or in none are left out.

    Examples
    --------
    >>> from lemll.metrics import macro_auc
    >>> macro_auc([[1, 0], [0, 1], [1, 0]], [[0.9, 0.1], [0.5, 0.2], [0.4, 0.3]])
    0.5
    """
    values = label_auc(Y_true, scores)
    counted = values[~np.isnan(values)]
    if not len(counted):
        raise UndefinedMetricError(
            "no label of Y_true can be measured: each is relevant in all rows or in none; add rows."
        )
    return float(counted.mean())


def micro_auc(Y_true: MatrixLike, scores: MatrixLike) -> float:
    """Area under the ROC curve of all cells together. Greater is better.

    Scores of different labels are compared with each other, as probabilities can be.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped.
    scores : array-like of shape (n_samples, n_labels)
        Scores; higher means more relevant.

    Returns
    -------
    float
        In [0, 1]; chance gives 0.5.

    Examples
    --------
    >>> from lemll.metrics import micro_auc
    >>> micro_auc([[1, 0], [0, 1]], [[0.9, 0.1], [0.5, 0.2]])
    0.75
    """
    observed, relevant, values = _cells(Y_true, scores)
    found = _auc(relevant[observed], values[observed])
    if np.isnan(found):
        raise UndefinedMetricError(
            "Y_true cannot be measured: all of its observed cells are equal; add rows."
        )
    return found


def precision_at_k(
    Y_true: MatrixLike, scores: MatrixLike, k: int = 3, *, average: bool = True
) -> float | FloatArray:
    """Share of relevant labels among the k labels with the highest scores. Greater is better.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped.
    scores : array-like of shape (n_samples, n_labels)
        Scores; higher means more relevant. If scores are equal, the earlier label comes first.
    k : int, default=3
        Number of labels. A row with fewer observed labels is divided by their number.
    average : bool, default=True
        Whether to return the mean over the rows; otherwise one value per row.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        In [0, 1]. Rows without an observed cell are left out of the mean, and are NaN otherwise.

    Examples
    --------
    >>> from lemll.metrics import precision_at_k
    >>> precision_at_k([[1, 0, 1], [0, 0, 1]], [[0.9, 0.2, 0.7], [0.1, 0.8, 0.3]], k=2)
    0.75
    """
    k = check_whole("k", k, least=1)
    observed, relevant, values = _cells(Y_true, scores)
    order = np.argsort(np.where(observed, -values, np.inf), axis=1, kind="stable")[:, :k]
    hits = np.take_along_axis(relevant, order, axis=1).sum(axis=1)
    shown = np.minimum(observed.sum(axis=1), k)
    rows = np.where(shown > 0, hits / np.maximum(shown, 1), np.nan)
    if not average:
        return rows
    refuse_unobserved(observed)
    return float(np.nanmean(rows))
