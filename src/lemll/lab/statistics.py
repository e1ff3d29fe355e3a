"""Ranks, wins and Wilcoxon's test: statistics of many data sets."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from lemll._types import FloatArray
from lemll.models.pairwise import Outcome, _pair, check_level, checked_table, holm


class WinTieLoss(NamedTuple):
    """How often a method is better than, equal to and worse than another."""

    wins: int
    ties: int
    losses: int


def rank_rows(
    values: npt.ArrayLike, *, greater_is_better: bool, decimals: int | None = 3
) -> FloatArray:
    """Rank the methods on each data set: the best has rank 1, ties share the mean rank.

    Parameters
    ----------
    values : array-like of shape (n_datasets, n_methods)
        For example mean losses.
    greater_is_better : bool
        The metric's direction.
    decimals : int or None, default=3
        Values that are equal after rounding to this number of decimals are ties. The paper ranks
        its printed values, which have three decimals. None ranks the values without rounding.

    Returns
    -------
    ndarray of shape (n_datasets, n_methods)
        The ranks.

    Examples
    --------
    >>> rank_rows([[0.1371, 0.1369, 0.2]], greater_is_better=False)
    array([[1.5, 1.5, 3. ]])
    """
    table = checked_table(values)
    if decimals is not None:
        table = np.round(table, decimals)
    ranks: FloatArray = stats.rankdata(-table if greater_is_better else table, axis=1)
    return ranks


def average_ranks(
    values: npt.ArrayLike, *, greater_is_better: bool, decimals: int | None = 3
) -> FloatArray:
    """Average each method's rank over the data sets, as in the paper's Table IV.

    Parameters
    ----------
    values, greater_is_better, decimals
        As in :func:`rank_rows`.

    Returns
    -------
    ndarray of shape (n_methods,)
        1 for a method that is always best.

    Examples
    --------
    >>> average_ranks([[0.1, 0.2], [0.3, 0.3]], greater_is_better=False)
    array([1.25, 1.75])
    """
    ranks = rank_rows(values, greater_is_better=greater_is_better, decimals=decimals)
    means: FloatArray = ranks.mean(axis=0)
    return means


def win_tie_loss(
    control: npt.ArrayLike,
    other: npt.ArrayLike,
    *,
    greater_is_better: bool,
    decimals: int | None = 3,
) -> WinTieLoss:
    """Count on how many data sets one method is better than, equal to and worse than another.

    Parameters
    ----------
    control, other : array-like of shape (n_datasets,)
        Values of the two methods.
    greater_is_better : bool
        The metric's direction.
    decimals : int or None, default=3
        Values that are equal after rounding to this number of decimals count as equal.

    Returns
    -------
    WinTieLoss
        The counts of the control.

    Examples
    --------
    >>> win_tie_loss([0.1, 0.2, 0.3], [0.2, 0.2, 0.1], greater_is_better=False)
    WinTieLoss(wins=1, ties=1, losses=1)
    """
    first, second = _pair(control, other)
    if decimals is not None:
        first, second = np.round(first, decimals), np.round(second, decimals)
    gain = first - second if greater_is_better else second - first
    return WinTieLoss(int((gain > 0).sum()), int((gain == 0).sum()), int((gain < 0).sum()))


class PairTest(NamedTuple):
    """Comparison of two methods over the data sets.

    Attributes
    ----------
    first, second : int
        Columns of the two methods.
    pvalue, adjusted : float
        Two-sided p-value, and the same adjusted for the number of comparisons.
    effect : float
        Matched-pairs rank-biserial correlation, from -1 to 1: the share of the signed ranks in
        favour of `first` minus the share in favour of `second`.
    outcome : {"better", "worse", "equal"}
        Whether `first` is significantly better or worse, by the adjusted p-value.
    """

    first: int
    second: int
    pvalue: float
    adjusted: float
    effect: float
    outcome: Outcome


def wilcoxon_holm(
    values: npt.ArrayLike,
    *,
    greater_is_better: bool,
    control: int | None = None,
    level: float = 0.05,
) -> list[PairTest]:
    """Compare methods pair by pair with Wilcoxon's signed-rank test, adjusted by Holm's rule.

    Parameters
    ----------
    values : array-like of shape (n_datasets, n_methods)
        For example mean losses, not rounded.
    greater_is_better : bool
        The metric's direction.
    control : int, optional
        Compare only this column with the others; by default all pairs.
    level : float, default=0.05
        A pair is significant if its adjusted p-value is below this.

    Returns
    -------
    list of PairTest
        One per pair. The test of a pair leaves out data sets without a difference.

    Examples
    --------
    >>> losses = [[0.1 + i / 100, 0.2 + i / 50] for i in range(8)]
    >>> test = wilcoxon_holm(losses, greater_is_better=False)[0]
    >>> test.outcome, round(test.pvalue, 4), test.effect
    ('better', 0.0078, 1.0)
    """
    table = checked_table(values)
    check_level(level)
    columns = range(table.shape[1])
    if len(columns) < 2:
        raise ValueError(f"Wilcoxon's test needs 2 methods, got {len(columns)}.")
    # A negative column would also be compared with itself, and Holm's rule would count that test.
    if control is not None and control not in columns:
        raise ValueError(
            f"control must be a column of values, from 0 to {len(columns) - 1}, got {control!r}."
        )
    if control is None:
        pairs = list(itertools.combinations(columns, 2))
    else:
        pairs = [(control, other) for other in columns if other != control]
    sign = 1.0 if greater_is_better else -1.0
    found = [_signed_rank(sign * (table[:, a] - table[:, b])) for a, b in pairs]
    adjusted = holm([pvalue for pvalue, _ in found])
    tests = []
    for (first, second), (pvalue, effect), at in zip(pairs, found, adjusted, strict=True):
        outcome: Outcome = "equal" if at >= level else ("better" if effect > 0 else "worse")
        tests.append(PairTest(first, second, pvalue, float(at), effect, outcome))
    return tests


def _signed_rank(gain: FloatArray) -> tuple[float, float]:
    """Return the p-value and the rank-biserial correlation of differences."""
    # Differences in the last digits are rounding errors and count as zero.
    gain = gain[np.abs(gain) > 1e-12 * max(1.0, float(np.abs(gain).max(initial=0.0)))]
    if len(gain) == 0:
        return 1.0, 0.0
    ranks = stats.rankdata(np.abs(gain))
    effect = float((np.sign(gain) * ranks).sum() / ranks.sum())
    # Ranks of ties are multiples of one half, so doubled ranks are integers.
    doubled = np.rint(2 * ranks).astype(np.intp)
    chances = _sum_distribution(doubled)
    at = int(doubled[gain > 0].sum())
    pvalue = 2 * min(float(chances[: at + 1].sum()), float(chances[at:].sum()))
    return min(pvalue, 1.0), effect


def _sum_distribution(ranks: npt.NDArray[np.intp]) -> FloatArray:
    """Return the probability of each sum of integer ranks; each is added with probability 1/2.

    The result is exact, with or without ties. Libraries use a normal approximation in different
    cases, and these cases change between versions.
    """
    chances = np.zeros(int(ranks.sum()) + 1)
    chances[0] = 1.0
    for rank in ranks:
        with_it = np.zeros_like(chances)
        with_it[rank:] = chances[: len(chances) - rank]
        chances = (chances + with_it) / 2
    return chances
