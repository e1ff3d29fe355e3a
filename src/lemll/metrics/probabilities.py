"""Metrics of probabilities: log loss, Brier score and calibration error.

All of them treat every observed cell, a row and a label, as one prediction. Unknown cells of the
truth (NaN) are skipped.
"""

from __future__ import annotations

import numpy as np

from lemll._types import FloatArray, MatrixLike
from lemll._validation import check_whole, is_sparse
from lemll.exceptions import UndefinedMetricError
from lemll.metrics.ranks import check_truth

__all__ = ["brier_score", "calibration_error", "log_loss"]

# Smallest distance of a probability from 0 and 1 in the log loss.
_CLIP = float(np.finfo(np.float64).eps)


def _cells(Y_true: MatrixLike, probabilities: MatrixLike) -> tuple[FloatArray, FloatArray]:
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
    if not observed.any():
        raise UndefinedMetricError(
            "no row of Y_true can be measured: no cell is observed; add rows."
        )
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
    y, p = _cells(Y_true, probabilities)
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
    y, p = _cells(Y_true, probabilities)
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
    y, p = _cells(Y_true, probabilities)
    place = np.minimum((p * bins).astype(np.intp), bins - 1)
    return float(np.abs(np.bincount(place, y - p, minlength=bins)).sum() / len(p))
