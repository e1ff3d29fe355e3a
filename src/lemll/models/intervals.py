"""Confidence intervals of measures, from the influence of each row.

If row i counted 1 + t times instead of once, a measure would change by about t times the influence
of the row. The rows are a sample, so the variance of the measure is about the sum of the squared
influences [1]_. For the area under a ROC curve this is the estimate of DeLong [2]_, here with all
cells of a row as one draw. Unlike in bootstrap samples, no rare label is lost, so an interval
contains its measure. Memory and time grow with the number of cells.

References
----------
.. [1] B. Efron, "Nonparametric estimates of standard error: the jackknife, the bootstrap and other
   methods", Biometrika 68(3), 1981.
.. [2] E. DeLong, D. DeLong and D. Clarke-Pearson, "Comparing the areas under two or more correlated
   receiver operating characteristic curves", Biometrics 44(3), 1988.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit
from scipy.stats import rankdata, t

from lemll._types import Array, BoolArray, FloatArray
from lemll.metrics import METRICS

_CONFIDENCE = 0.95
# Measures without an upper bound. All others are between 0 and 1.
_UNBOUNDED = ("log_loss",)


def interval(name: str, value: float, influences: FloatArray) -> tuple[float, float]:
    """Return the 95 % interval of a measure.

    Parameters
    ----------
    name : str
        A measure of ``lemll.metrics.METRICS``.
    value : float
        Its value.
    influences : ndarray of shape (n_rows,)
        The influences of the rows on it.

    Returns
    -------
    low, high : float
        The bounds, within the range of the measure. They are symmetric in its log-odds; for a
        measure without an upper bound, in its logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.models.intervals import interval
    >>> low, high = interval("one_error", 0.5, np.array([0.05, -0.05] * 5))
    >>> round(low, 2), round(high, 2)
    (0.18, 0.82)
    """
    spread = _spread(influences)
    if name in _UNBOUNDED:
        factor = math.exp(spread / value) if spread else 1.0
        return value / factor, value * factor
    # Rounding errors of a sum over rows are below this.
    near = 1e-12
    if not near < value < 1 - near:
        # Every row has the same extreme value. As many rows of a share that is further away than
        # this would have shown another value.
        away = 1 - ((1 - _CONFIDENCE) / 2) ** (1 / len(influences))
        return (0.0, away) if value <= near else (1 - away, 1.0)
    spread /= value * (1 - value)
    return float(expit(logit(value) - spread)), float(expit(logit(value) + spread))


def difference_interval(difference: float, influences: FloatArray) -> tuple[float, float]:
    """Return the 95 % interval of the difference of two measures on the same rows.

    Parameters
    ----------
    difference : float
        The difference.
    influences : ndarray of shape (n_rows,)
        The differences of the influences of the rows.

    Returns
    -------
    low, high : float
        The bounds, symmetric about the difference.
    """
    spread = _spread(influences)
    return difference - spread, difference + spread


def _spread(influences: FloatArray) -> float:
    """Return half of the length of an interval."""
    n_rows = len(influences)
    if n_rows < 2:
        return 0.0
    variance = n_rows / (n_rows - 1) * float(influences @ influences)
    return float(t.ppf((1 + _CONFIDENCE) / 2, n_rows - 1)) * math.sqrt(variance)


def row_influences(name: str, Y: FloatArray, prediction: Array) -> FloatArray:
    """Return how much the weight of each row changes a measure.

    Parameters
    ----------
    name : str
        A measure of ``lemll.metrics.METRICS``.
    Y : ndarray of shape (n_rows, n_labels)
        True labels, NaN in unknown cells.
    prediction : ndarray of shape (n_rows, n_labels)
        What the measure compares with them.

    Returns
    -------
    ndarray of shape (n_rows,)
        The derivatives of the measure by the weights of the rows, at equal weights 1.
    """
    if name in ("macro_auc", "micro_auc"):
        return _influences_of_auc(Y, prediction, pooled=name == "micro_auc")
    return _influences_of_ratios(*_sums(name, Y, prediction))


def _influences_of_ratios(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return influences on the mean over columns of the ratios of two sums over rows."""
    total = below.sum(axis=0)
    used = total > 0
    above, below, total = above[:, used], below[:, used], total[used]
    ratio = above.sum(axis=0) / total
    return np.asarray((above @ (1 / total) - below @ (ratio / total)) / max(1, len(total)))


def _sums(name: str, Y: FloatArray, prediction: Array) -> tuple[FloatArray, FloatArray]:
    """Return what rows add to the two sums of each ratio of a measure, one column per ratio."""
    known = ~np.isnan(Y)
    if name == "log_loss":
        unit = np.finfo(np.float64).eps
        p = np.clip(prediction, unit, 1 - unit)
        losses = np.where(known, -np.where(Y == 1, np.log(p), np.log1p(-p)), 0.0)
        return losses.sum(axis=1)[:, None], known.sum(axis=1, dtype=np.float64)[:, None]
    if name in ("micro_f1", "macro_f1", "example_f1", "subset_accuracy"):
        return _sums_of_decisions(name, Y == 1, (prediction > 0) & known, known)
    values = np.asarray(METRICS[name](Y, prediction, average=False))
    measured = np.isfinite(values)
    return np.where(measured, values, 0.0)[:, None], measured.astype(np.float64)[:, None]


def _sums_of_decisions(
    name: str, relevant: BoolArray, chosen: BoolArray, known: BoolArray
) -> tuple[FloatArray, FloatArray]:
    hits = np.where(relevant & chosen, 2.0, 0.0)
    either = relevant.astype(np.float64) + chosen
    if name == "macro_f1":
        return hits, either
    hits, either = hits.sum(axis=1, keepdims=True), either.sum(axis=1, keepdims=True)
    if name == "micro_f1":
        return hits, either
    measured = known.max(axis=1, keepdims=True).astype(np.float64)
    if name == "example_f1":
        values = np.where(either > 0, hits / np.maximum(either, 1), 1.0)
    else:
        values = (relevant == chosen).min(axis=1, keepdims=True).astype(np.float64)
    return values * measured, measured


def _influences_of_auc(Y: FloatArray, scores: FloatArray, *, pooled: bool) -> FloatArray:
    """Return influences on the area under the ROC curve of all cells, or the mean of the labels."""
    total, n_curves = np.zeros(len(Y)), 0
    columns = [slice(None)] if pooled else [[j] for j in range(Y.shape[1])]
    for column in columns:
        known = ~np.isnan(Y[:, column])
        relevant, values = Y[:, column][known] == 1, scores[:, column][known]
        n_relevant = int(relevant.sum())
        n_other = len(relevant) - n_relevant
        if not n_relevant or not n_other:
            continue
        share = _share_on_the_right_side(relevant, values)
        area = float(share[relevant].mean())
        changes = (share - area) / np.where(relevant, n_relevant, n_other)
        total += np.bincount(np.nonzero(known)[0], changes, minlength=len(Y))
        n_curves += 1
    return total / max(1, n_curves)


def _share_on_the_right_side(relevant: BoolArray, scores: FloatArray) -> FloatArray:
    """Return the share of the other class that is below a relevant cell, or above another one."""
    n_relevant = int(relevant.sum())
    n_other = len(relevant) - n_relevant
    rank = rankdata(scores)
    share = np.empty(len(scores))
    share[relevant] = (rank[relevant] - rankdata(scores[relevant])) / n_other
    share[~relevant] = 1 - (rank[~relevant] - rankdata(scores[~relevant])) / n_relevant
    return share
