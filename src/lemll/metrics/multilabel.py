r"""Multi-label metrics, as defined in the review of Zhang and Zhou [1]_.

Below, there are m rows and l labels. :math:`Y_i` is the set of relevant labels of row i,
:math:`\bar Y_i` is the set of its irrelevant labels, and :math:`f_{ij}` is the score of label j.
The rank of the label with the highest score is 1. :mod:`lemll.metrics` describes the conventions
for ties, empty rows and full rows.

References
----------
.. [1] M.-L. Zhang and Z.-H. Zhou, "A review on multi-label learning algorithms", IEEE
   Transactions on Knowledge and Data Engineering 26(8), 2014, pages 1819-1837.
"""

from __future__ import annotations

from typing import Literal, Unpack, overload

import numpy as np

from lemll._types import FloatArray, MatrixLike
from lemll._validation import check_logical_labels
from lemll.exceptions import UndefinedMetricError
from lemll.metrics.conventions import (
    Convention,
    CoverageEmpty,
    CoverageOptions,
    CoverageUnit,
    RankingOptions,
    RowRule,
    Ties,
    resolve,
)
from lemll.metrics.ranks import RelevantRanks, check_truth, evaluate

__all__ = ["average_precision", "coverage", "hamming_loss", "one_error", "ranking_loss"]


@overload
def hamming_loss(
    Y_true: MatrixLike, Y_pred: MatrixLike, *, average: Literal[True] = ...
) -> float: ...
@overload
def hamming_loss(
    Y_true: MatrixLike, Y_pred: MatrixLike, *, average: Literal[False]
) -> FloatArray: ...
def hamming_loss(
    Y_true: MatrixLike, Y_pred: MatrixLike, *, average: bool = True
) -> float | FloatArray:
    r"""Fraction of labels predicted wrongly, :math:`\frac1m\sum_i\frac1l|h_i\triangle Y_i|`.

    Lower is better. The value does not depend on a convention.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted logical labels, 0/1. Unknown cells of Y_true (NaN) are skipped, and so
        are rows without a known cell.
    average : bool, default=True
        Return the mean over rows, or the value of every row.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import hamming_loss
    >>> hamming_loss([[1, 0, 1, 0], [0, 1, 1, 0]], [[1, 0, 0, 0], [0, 1, 1, 0]])
    0.125
    """
    labels = check_truth(Y_true, Y_pred, "Y_pred")
    predicted = check_logical_labels(Y_pred, name="Y_pred")
    if predicted.shape != labels.shape:
        raise ValueError(
            f"Y_pred must have the shape of Y_true, {labels.shape}, got {predicted.shape}."
        )
    observed = labels >= 0
    wrong = ((labels != predicted) & observed).sum(axis=1)
    with np.errstate(invalid="ignore"):  # 0 / 0: nothing is known about the row
        values: FloatArray = wrong / observed.sum(axis=1)
    if not average:
        return values
    known = observed.any(axis=1)
    if not known.any():
        raise UndefinedMetricError(
            "no row of Y_true can be measured: no cell is observed; add rows."
        )
    return float(values[known].mean())


@overload
def ranking_loss(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    average: Literal[True] = ...,
    **options: Unpack[RankingOptions],
) -> float: ...
@overload
def ranking_loss(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    average: Literal[False],
    **options: Unpack[RankingOptions],
) -> FloatArray: ...
def ranking_loss(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    convention: Convention = "paper",
    ties: Ties | None = None,
    empty: RowRule | None = None,
    full: RowRule | None = None,
    average: bool = True,
) -> float | FloatArray:
    r"""Fraction of (relevant, irrelevant) label pairs in the wrong order.

    .. math:: \frac1m\sum_i
        \frac{|\{(j,k)\in Y_i\times\bar Y_i:f_{ij}\le f_{ik}\}|}{|Y_i||\bar Y_i|}

    Lower is better. Under the default convention a tie counts as a wrong order.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped, as if the row did not have
        these labels; so are rows without a known cell.
    scores : array-like of shape (n_samples, n_labels)
        A higher score means more relevant. The scale does not matter.
    convention, ties, empty, full : str, optional
        See :mod:`lemll.metrics`. Empty and full rows that count have the value 0.
    average : bool, default=True
        Return the mean over rows, or one value per row. The value of a skipped row is NaN.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import ranking_loss
    >>> Y, scores = [[1, 0, 0], [0, 0, 0]], [[0.5, 0.5, 0.1], [0.3, 0.2, 0.1]]
    >>> ranking_loss(Y, scores)
    0.5
    >>> ranking_loss(Y, scores, convention="sklearn")  # the empty row counts as 0
    0.25
    """
    options = resolve("ranking_loss", convention, ties=ties, empty=empty, full=full)
    return evaluate(_ranking_loss, Y_true, scores, options, average)


def _ranking_loss(ranked: RelevantRanks) -> FloatArray:
    n_pairs = ranked.sizes * (ranked.n_labels - ranked.sizes)
    values: FloatArray = ranked.sum_by_row(ranked.misses) / np.maximum(n_pairs, 1)
    return values


@overload
def one_error(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    average: Literal[True] = ...,
    **options: Unpack[RankingOptions],
) -> float: ...
@overload
def one_error(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    average: Literal[False],
    **options: Unpack[RankingOptions],
) -> FloatArray: ...
def one_error(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    convention: Convention = "paper",
    ties: Ties | None = None,
    empty: RowRule | None = None,
    full: RowRule | None = None,
    average: bool = True,
) -> float | FloatArray:
    r"""Fraction of rows whose highest-scored label is irrelevant.

    .. math:: \frac1m\sum_i[\arg\max_jf_{ij}\notin Y_i]

    Lower is better. Under the default convention a row is correct if at least one of the labels
    with the highest score is relevant.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped, as if the row did not have
        these labels; so are rows without a known cell.
    scores : array-like of shape (n_samples, n_labels)
        A higher score means more relevant. The scale does not matter.
    convention, ties, empty, full : str, optional
        See :mod:`lemll.metrics`. If such rows count, an empty row is an error and a full row is
        not.
    average : bool, default=True
        Return the mean over rows, or one value per row. The value of a skipped row is NaN.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import one_error
    >>> one_error([[1, 0, 0], [0, 1, 0]], [[0.5, 0.5, 0.1], [0.3, 0.2, 0.1]])
    0.5
    >>> one_error([[1, 0, 0], [0, 1, 0]], [[0.5, 0.5, 0.1], [0.3, 0.2, 0.1]], ties="pessimistic")
    1.0
    """
    options = resolve("one_error", convention, ties=ties, empty=empty, full=full)
    return evaluate(_one_error, Y_true, scores, options, average)


def _one_error(ranked: RelevantRanks) -> FloatArray:
    # The top label is relevant if a relevant label exists with no irrelevant label before it.
    n_good = ranked.sum_by_row(ranked.misses == 0)
    return np.where(n_good == 0, 1.0, 0.0)


@overload
def coverage(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    average: Literal[True] = ...,
    **options: Unpack[CoverageOptions],
) -> float: ...
@overload
def coverage(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    average: Literal[False],
    **options: Unpack[CoverageOptions],
) -> FloatArray: ...
def coverage(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    convention: Convention = "paper",
    ties: Ties | None = None,
    empty: CoverageEmpty | None = None,
    unit: CoverageUnit | None = None,
    average: bool = True,
) -> float | FloatArray:
    r"""Return how far down the ranking the last relevant label is.

    .. math:: \frac1m\sum_i\frac1l\Big(\max_{j\in Y_i}\mathrm{rank}_i(j)-1\Big)

    Lower is better. The division by l follows the published values, which are in [0, 1]. The
    largest value is (l - 1) / l.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped, as if the row did not have
        these labels; so are rows without a known cell.
    scores : array-like of shape (n_samples, n_labels)
        A higher score means more relevant. The scale does not matter.
    convention, ties : str, optional
        See :mod:`lemll.metrics`.
    empty : {"skip", "count", "depth_zero"}, optional
        What to do with rows without a relevant label. "skip" leaves them out. "count" gives them
        the value 0. "depth_zero" gives them the depth 0, as in the MATLAB code; then their value
        is -1 step. Full rows always count.
    unit : {"fraction", "steps", "depth"}, optional
        The depth is the largest rank of a relevant label. "fraction" is (depth - 1) / l, "steps"
        is depth - 1, and "depth" is the depth.
    average : bool, default=True
        Return the mean over rows, or one value per row. The value of a skipped row is NaN.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, 1) under the default convention.

    Examples
    --------
    >>> from lemll.metrics import coverage
    >>> coverage([[1, 0, 0, 1]], [[0.9, 0.5, 0.1, 0.4]])
    0.5
    >>> coverage([[1, 0, 0, 1]], [[0.9, 0.5, 0.1, 0.4]], unit="depth")
    3.0
    """
    options = resolve("coverage", convention, ties=ties, empty=empty, unit=unit)

    def measure(ranked: RelevantRanks) -> FloatArray:
        depth = np.zeros(len(ranked.sizes))
        np.maximum.at(depth, ranked.rows, ranked.ranks)
        values = depth if options["unit"] == "depth" else depth - 1
        if options["empty"] == "count":
            values[ranked.sizes == 0] = 0
        return values / np.maximum(ranked.n_labels, 1) if options["unit"] == "fraction" else values

    return evaluate(measure, Y_true, scores, options, average)


@overload
def average_precision(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    average: Literal[True] = ...,
    **options: Unpack[RankingOptions],
) -> float: ...
@overload
def average_precision(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    average: Literal[False],
    **options: Unpack[RankingOptions],
) -> FloatArray: ...
def average_precision(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    convention: Convention = "paper",
    ties: Ties | None = None,
    empty: RowRule | None = None,
    full: RowRule | None = None,
    average: bool = True,
) -> float | FloatArray:
    r"""Return the mean precision at the ranks of the relevant labels, averaged over the rows.

    .. math:: \frac1m\sum_i\frac1{|Y_i|}\sum_{j\in Y_i}
        \frac{|\{k\in Y_i:\mathrm{rank}_i(k)\le\mathrm{rank}_i(j)\}|}{\mathrm{rank}_i(j)}

    Higher is better. In scikit-learn this is ``label_ranking_average_precision_score``, and not
    ``average_precision_score``.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped, as if the row did not have
        these labels; so are rows without a known cell.
    scores : array-like of shape (n_samples, n_labels)
        A higher score means more relevant. The scale does not matter.
    convention, ties, empty, full : str, optional
        See :mod:`lemll.metrics`. Empty and full rows that count have the value 1.
    average : bool, default=True
        Return the mean over rows, or one value per row. The value of a skipped row is NaN.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In (0, 1].

    Examples
    --------
    >>> from lemll.metrics import average_precision
    >>> average_precision([[1, 0, 0]], [[0.5, 0.5, 0.1]])
    0.5
    >>> average_precision([[1, 0, 0]], [[0.5, 0.5, 0.1]], ties="first")
    1.0
    """
    options = resolve("average_precision", convention, ties=ties, empty=empty, full=full)
    return evaluate(_average_precision, Y_true, scores, options, average)


def _average_precision(ranked: RelevantRanks) -> FloatArray:
    totals = ranked.sum_by_row(ranked.hits / ranked.ranks)
    return np.where(ranked.sizes == 0, 1.0, totals / np.maximum(ranked.sizes, 1))
