r"""Metrics between label distributions, as collected by Geng [1]_, as means over rows.

Below, :math:`t` is a row of the true distribution, and :math:`p` is a row of the predicted or
recovered distribution. Clark and Canberra are not divided by their largest values, :math:`\sqrt l`
and :math:`l`.

References
----------
.. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering
   28(7), 2016, pages 1734-1748.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, overload

import numpy as np

from lemll._types import FloatArray, MatrixLike
from lemll._validation import check_distribution, is_sparse

Part: TypeAlias = Literal["given", "others"]

MACHINE_EPSILON = float(np.finfo(np.float64).eps)


@overload
def chebyshev(true: MatrixLike, pred: MatrixLike, *, average: Literal[True] = ...) -> float: ...
@overload
def chebyshev(true: MatrixLike, pred: MatrixLike, *, average: Literal[False]) -> FloatArray: ...
def chebyshev(true: MatrixLike, pred: MatrixLike, *, average: bool = True) -> float | FloatArray:
    r"""Chebyshev distance, :math:`\max_j|t_j-p_j|`; lower is better.

    Parameters
    ----------
    true, pred : array-like of shape (n_samples, n_labels)
        True and predicted distribution: degrees >= 0, each row sums to one.
    average : bool, default=True
        Return the mean over rows, or the value of every row.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import chebyshev
    >>> chebyshev([[0.5, 0.25, 0.25]], [[0.25, 0.5, 0.25]])
    0.25
    """
    t, p = _check_pair(true, pred)
    return _mean(np.abs(t - p).max(axis=1), average)


@overload
def clark(true: MatrixLike, pred: MatrixLike, *, average: Literal[True] = ...) -> float: ...
@overload
def clark(true: MatrixLike, pred: MatrixLike, *, average: Literal[False]) -> FloatArray: ...
def clark(true: MatrixLike, pred: MatrixLike, *, average: bool = True) -> float | FloatArray:
    r"""Clark distance, :math:`\sqrt{\sum_j(t_j-p_j)^2/(t_j+p_j)^2}`; lower is better.

    A label with degree 0 in both distributions contributes 0.

    Parameters
    ----------
    true, pred : array-like of shape (n_samples, n_labels)
        True and predicted distribution: degrees >= 0, each row sums to one.
    average : bool, default=True
        Return the mean over rows, or the value of every row.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, sqrt(n_labels)].

    Examples
    --------
    >>> from lemll.metrics import clark
    >>> clark([[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]])  # sqrt(1/9 + 1 + 0)
    1.054...
    """
    t, p = _check_pair(true, pred)
    return _mean(np.sqrt(np.square(_relative_difference(t, p)).sum(axis=1)), average)


@overload
def canberra(true: MatrixLike, pred: MatrixLike, *, average: Literal[True] = ...) -> float: ...
@overload
def canberra(true: MatrixLike, pred: MatrixLike, *, average: Literal[False]) -> FloatArray: ...
def canberra(true: MatrixLike, pred: MatrixLike, *, average: bool = True) -> float | FloatArray:
    r"""Canberra distance, :math:`\sum_j|t_j-p_j|/(t_j+p_j)`; lower is better.

    A label with degree 0 in both distributions contributes 0.

    Parameters
    ----------
    true, pred : array-like of shape (n_samples, n_labels)
        True and predicted distribution: degrees >= 0, each row sums to one.
    average : bool, default=True
        Return the mean over rows, or the value of every row.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, n_labels].

    Examples
    --------
    >>> from lemll.metrics import canberra
    >>> canberra([[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]])  # 1/3 + 1 + 0
    1.333...
    """
    t, p = _check_pair(true, pred)
    return _mean(_relative_difference(t, p).sum(axis=1), average)


@overload
def kl_divergence(
    true: MatrixLike,
    pred: MatrixLike,
    *,
    direction: Literal["true_pred", "pred_true"] = ...,
    eps: float = ...,
    average: Literal[True] = ...,
) -> float: ...
@overload
def kl_divergence(
    true: MatrixLike,
    pred: MatrixLike,
    *,
    direction: Literal["true_pred", "pred_true"] = ...,
    eps: float = ...,
    average: Literal[False],
) -> FloatArray: ...
def kl_divergence(
    true: MatrixLike,
    pred: MatrixLike,
    *,
    direction: Literal["true_pred", "pred_true"] = "true_pred",
    eps: float = MACHINE_EPSILON,
    average: bool = True,
) -> float | FloatArray:
    r"""Kullback-Leibler divergence with natural logarithm; lower is better.

    .. math:: \mathrm{KL}(t\Vert p)=\sum_jt_j\ln\frac{t_j}{p_j}

    Both arguments are clipped from below at `eps` and not renormalised. Therefore a value may be
    below 0 by about ``n_labels * eps``.

    Parameters
    ----------
    true, pred : array-like of shape (n_samples, n_labels)
        True and predicted distribution: degrees >= 0, each row sums to one.
    direction : {"true_pred", "pred_true"}, default="true_pred"
        KL(true || pred) or KL(pred || true). The tables of the LEMLL paper contain the second one,
        which ``METRICS`` and the scorers call ``"kl_divergence_pred_true"``.
    eps : float, default=machine epsilon
        Smallest degree, in (0, 1). The default reproduces the tables of the paper.
    average : bool, default=True
        Return the mean over rows, or the value of every row.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, ln(1 / eps)], up to the clipping.

    Examples
    --------
    >>> from lemll.metrics import kl_divergence
    >>> kl_divergence([[1.0, 0.0]], [[0.5, 0.5]])  # ln 2
    0.693...
    >>> kl_divergence([[1.0, 0.0]], [[0.5, 0.5]], direction="pred_true")
    17.328...
    """
    if direction not in ("true_pred", "pred_true"):
        raise ValueError(f"direction must be 'true_pred' or 'pred_true', got {direction!r}.")
    if not (math.isfinite(eps) and 0 < eps < 1):
        raise ValueError(f"eps must lie in (0, 1), got {eps}.")
    t, p = (np.maximum(degrees, eps) for degrees in _check_pair(true, pred))
    if direction == "pred_true":
        t, p = p, t
    return _mean((t * np.log(t / p)).sum(axis=1), average)


@overload
def cosine(true: MatrixLike, pred: MatrixLike, *, average: Literal[True] = ...) -> float: ...
@overload
def cosine(true: MatrixLike, pred: MatrixLike, *, average: Literal[False]) -> FloatArray: ...
def cosine(true: MatrixLike, pred: MatrixLike, *, average: bool = True) -> float | FloatArray:
    r"""Cosine coefficient, :math:`t^\top p/(\lVert t\rVert\lVert p\rVert)`; higher is better.

    Parameters
    ----------
    true, pred : array-like of shape (n_samples, n_labels)
        True and predicted distribution: degrees >= 0, each row sums to one.
    average : bool, default=True
        Return the mean over rows, or the value of every row.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import cosine
    >>> cosine([[1.0, 0.0]], [[0.6, 0.4]])  # 0.6 / sqrt(0.52)
    0.832...
    """
    t, p = _check_pair(true, pred)
    lengths = np.linalg.norm(t, axis=1) * np.linalg.norm(p, axis=1)
    # Because of rounding, the cosine of a row with itself can be slightly above one.
    return _mean(np.minimum((t * p).sum(axis=1) / lengths, 1), average)


@overload
def intersection(true: MatrixLike, pred: MatrixLike, *, average: Literal[True] = ...) -> float: ...
@overload
def intersection(true: MatrixLike, pred: MatrixLike, *, average: Literal[False]) -> FloatArray: ...
def intersection(true: MatrixLike, pred: MatrixLike, *, average: bool = True) -> float | FloatArray:
    r"""Intersection similarity, :math:`\sum_j\min(t_j,p_j)`; higher is better.

    Equals :math:`1-\frac12\lVert t-p\rVert_1`.

    Parameters
    ----------
    true, pred : array-like of shape (n_samples, n_labels)
        True and predicted distribution: degrees >= 0, each row sums to one.
    average : bool, default=True
        Return the mean over rows, or the value of every row.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import intersection
    >>> intersection([[0.5, 0.25, 0.25]], [[0.25, 0.5, 0.25]])
    0.75
    """
    t, p = _check_pair(true, pred)
    return _mean(np.minimum(t, p).sum(axis=1), average)


@overload
def pair_order(
    true: MatrixLike, pred: MatrixLike, Y: MatrixLike, *,
    part: Part = ..., average: Literal[True] = ...,
) -> float: ...  # fmt: skip
@overload
def pair_order(
    true: MatrixLike, pred: MatrixLike, Y: MatrixLike, *,
    part: Part = ..., average: Literal[False],
) -> FloatArray: ...  # fmt: skip
def pair_order(
    true: MatrixLike,
    pred: MatrixLike,
    Y: MatrixLike,
    *,
    part: Part = "given",
    average: bool = True,
) -> float | FloatArray:
    """Share of pairs of labels in the right order; higher is better, chance is 0.5.

    Only pairs of two labels that the row has count, or of two that it has not, because every
    enhancer puts the first before the second. The measure needs no scale and no normalisation.

    Parameters
    ----------
    true : array-like of shape (n_samples, n_labels)
        True degrees, or any numbers in their order. A pair with equal degrees does not count.
    pred : array-like of shape (n_samples, n_labels)
        Recovered degrees, or any numbers whose order matters. A tie counts one half.
    Y : array-like of shape (n_samples, n_labels)
        Logical labels: above 0 where given, NaN where unknown. Unknown labels do not count.
    part : {"given", "others"}, default="given"
        The pairs of which labels are counted.
    average : bool, default=True
        Return the mean over the rows that have such a pair, or the value of every row, which is NaN
        where there is none.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import pair_order
    >>> pair_order([[0.5, 0.3, 0.2]], [[0.4, 0.5, 0.1]], [[1, 1, 0]])
    0.0
    >>> pair_order([[0.5, 0.3, 0.1, 0.1]], [[0.4, 0.3, 0.2, 0.1]], [[1, 1, 1, 0]])
    1.0
    """
    if part not in ("given", "others"):
        raise ValueError(f"part must be 'given' or 'others', got {part!r}.")
    t, p, labels = (
        np.asarray(matrix.toarray() if is_sparse(matrix) else matrix, dtype=np.float64)
        for matrix in (true, pred, Y)
    )
    for name, matrix in (("pred", p), ("Y", labels)):
        if matrix.shape != t.shape or t.ndim != 2:
            raise ValueError(
                f"{name} must have the shape of true, {t.shape}, a matrix of one row per sample, "
                f"got {matrix.shape}."
            )
    if not (np.isfinite(t).all() and np.isfinite(p).all()):
        raise ValueError("true and pred must hold finite numbers, got NaN or infinity.")
    # NaN is neither above 0 nor not.
    counted = labels > 0 if part == "given" else labels <= 0
    right, pairs = np.zeros(len(t)), np.zeros(len(t))
    for first in range(t.shape[1] - 1):
        order = np.sign(t[:, first, None] - t[:, first + 1 :])
        both = counted[:, first, None] & counted[:, first + 1 :] & (order != 0)
        found = np.sign(p[:, first, None] - p[:, first + 1 :])
        right += np.where(both, (1 + order * found) / 2, 0).sum(axis=1)
        pairs += both.sum(axis=1)
    share = np.divide(right, pairs, out=np.full(len(t), np.nan), where=pairs > 0)
    if not average:
        return np.asarray(share)
    if not pairs.any():
        raise ValueError(
            f"no row has two {'given' if part == 'given' else 'other'} labels with different true "
            "degrees, so there is no order to measure."
        )
    return float(np.nanmean(share))


def _check_pair(true: MatrixLike, pred: MatrixLike) -> tuple[FloatArray, FloatArray]:
    t, p = check_distribution(true, name="true"), check_distribution(pred, name="pred")
    if t.shape != p.shape:
        raise ValueError(f"pred must have the shape of true, {t.shape}, got {p.shape}.")
    if t.size == 0:
        raise ValueError(f"true must have at least one row and one label, got shape {t.shape}.")
    return t, p


def _relative_difference(t: FloatArray, p: FloatArray) -> FloatArray:
    """Return |t - p| / (t + p), or 0 if both are 0."""
    total = t + p
    return np.divide(np.abs(t - p), total, out=np.zeros_like(total), where=total > 0)


def _mean(values: FloatArray, average: bool) -> float | FloatArray:
    return float(values.mean()) if average else values
