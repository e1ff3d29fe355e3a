"""The conclusions that one panel of a comparison supports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from lemll._types import FloatArray
from lemll.lab.cells import Splits
from lemll.lab.statistics import PairTest, WinTieLoss, rank_rows, wilcoxon_holm, win_tie_loss
from lemll.lab.tables import Panel
from lemll.models.pairwise import Outcome, check_level, checked_vector, paired_t_test


class Friedman(NamedTuple):
    """Result of :func:`friedman_test`.

    Attributes
    ----------
    chi_square, chi_square_pvalue : float
        Friedman's statistic, and the probability of a greater one if all methods are equal.
    f, f_pvalue : float
        The less conservative statistic of Iman and Davenport, and its p-value.
    average_ranks : ndarray of shape (n_methods,)
        1 for a method that is always best.
    """

    chi_square: float
    chi_square_pvalue: float
    f: float
    f_pvalue: float
    average_ranks: FloatArray


def friedman_test(
    values: npt.ArrayLike, *, greater_is_better: bool, decimals: int | None = 3
) -> Friedman:
    r"""Test whether any of the methods differ, by their ranks on the data sets.

    With ranks r over N data sets and k methods, average ranks R, and shared ranks for ties, it
    computes

    .. math::
        \chi_F^2=\frac{(k-1)\,N^2\sum_j(R_j-\frac{k+1}2)^2}{\sum_{ij}r_{ij}^2-\frac{Nk(k+1)^2}4},
        \qquad F_F=\frac{(N-1)\chi_F^2}{N(k-1)-\chi_F^2},

    and compares them with the distributions :math:`\chi^2_{k-1}` and :math:`F_{k-1,(k-1)(N-1)}`.

    Parameters
    ----------
    values : array-like of shape (n_datasets, n_methods)
        For example mean losses.
    greater_is_better : bool
        The metric's direction.
    decimals : int or None, default=3
        Values that are equal after rounding to this number of decimals share their rank.

    Returns
    -------
    Friedman
        Both statistics. If all methods tie on all data sets, the statistics are 0 and the p-values
        are 1. If every data set has the same order, F is infinite, and its distribution would give
        a p-value of 0. The p-value is then the exact probability of N equal orders, which is
        :math:`k!^{1-N}` without ties. With few data sets and methods it is large.

    Examples
    --------
    >>> losses = [[0.1, 0.2, 0.3], [0.2, 0.3, 0.5], [0.1, 0.4, 0.2], [0.3, 0.4, 0.6]]
    >>> test = friedman_test(losses, greater_is_better=False)
    >>> test.average_ranks, round(test.chi_square, 3), round(test.f_pvalue, 3)
    (array([1.  , 2.25, 2.75]), 6.5, 0.007)
    """
    ranks = rank_rows(values, greater_is_better=greater_is_better, decimals=decimals)
    n, k = ranks.shape
    if n < 2 or k < 2:
        raise ValueError(f"Friedman's test needs 2 data sets and 2 methods, got {n} and {k}.")
    means: FloatArray = ranks.mean(axis=0)
    middle = (k + 1) / 2
    spread = float(np.square(ranks - middle).sum())
    if spread == 0:
        return Friedman(0.0, 1.0, 0.0, 1.0, means)
    between = float(np.square(means - middle).sum())
    chi_square = (k - 1) * n * n * between / spread
    left = n * (k - 1) - chi_square
    chi_square_pvalue = float(stats.chi2.sf(chi_square, k - 1))
    if left <= 1e-9 * n:
        return Friedman(chi_square, chi_square_pvalue, np.inf, _chance_of_one_order(ranks), means)
    f = (n - 1) * chi_square / left
    f_pvalue = float(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))
    return Friedman(chi_square, chi_square_pvalue, f, f_pvalue, means)


def critical_difference(
    n_methods: int,
    n_datasets: int,
    *,
    test: Literal["nemenyi", "bonferroni-dunn"] = "nemenyi",
    level: float = 0.05,
) -> float:
    r"""Return the difference at which two average ranks differ significantly.

    It is :math:`q\sqrt{k(k+1)/(6N)}`. If all methods are compared with each other (Nemenyi), q is
    the quantile of the studentised range divided by :math:`\sqrt2`. If one method is compared with
    the others (Bonferroni-Dunn), q is the quantile of the normal distribution at
    :math:`1-\alpha/(2(k-1))`.

    Parameters
    ----------
    n_methods, n_datasets : int
        The numbers k and N.
    test : {"nemenyi", "bonferroni-dunn"}, default="nemenyi"
        Compare all pairs, or one control with the others.
    level : float, default=0.05
        Probability of at least one false finding.

    Returns
    -------
    float
        The difference, in ranks.

    Examples
    --------
    >>> round(critical_difference(8, 15), 3)
    2.711
    >>> round(critical_difference(8, 15, test="bonferroni-dunn"), 3)
    2.406
    """
    if n_methods < 2 or n_datasets < 1:
        raise ValueError(
            f"a critical difference needs 2 methods and 1 data set, got {n_methods} and "
            f"{n_datasets}."
        )
    check_level(level)
    if test == "nemenyi":
        quantile = float(stats.studentized_range.ppf(1 - level, n_methods, np.inf)) / np.sqrt(2)
    elif test == "bonferroni-dunn":
        quantile = float(stats.norm.ppf(1 - level / (2 * (n_methods - 1))))
    else:
        raise ValueError(f"test must be 'nemenyi' or 'bonferroni-dunn', got {test!r}.")
    return float(quantile * _rank_error(n_methods, n_datasets))


def nemenyi_pvalues(average_ranks: npt.ArrayLike, n_datasets: int) -> FloatArray:
    """Return the p-values of all pairs by Nemenyi's test.

    Parameters
    ----------
    average_ranks : array-like of shape (n_methods,)
        Average ranks over the data sets.
    n_datasets : int
        Number of data sets.

    Returns
    -------
    ndarray of shape (n_methods, n_methods)
        The p-values, with 1 on the diagonal.

    Examples
    --------
    >>> nemenyi_pvalues([1.0, 2.25, 2.75], 4).round(3)
    array([[1.   , 0.181, 0.036],
           [0.181, 1.   , 0.759],
           [0.036, 0.759, 1.   ]])
    """
    ranks = checked_vector(average_ranks, "average_ranks")
    if len(ranks) < 2 or n_datasets < 1:
        raise ValueError(
            f"Nemenyi's test needs 2 methods and 1 data set, got {len(ranks)} and {n_datasets}."
        )
    difference = np.abs(ranks[:, None] - ranks) / _rank_error(len(ranks), n_datasets)
    pvalues: FloatArray = stats.studentized_range.sf(np.sqrt(2) * difference, len(ranks), np.inf)
    return np.clip(pvalues, 0.0, 1.0)


def cliques(average_ranks: npt.ArrayLike, difference: float) -> list[tuple[int, ...]]:
    """Group methods whose average ranks do not differ significantly.

    Parameters
    ----------
    average_ranks : array-like of shape (n_methods,)
        Average ranks over the data sets.
    difference : float
        The critical difference.

    Returns
    -------
    list of tuple of int
        Groups of columns in the order of their ranks. Each group has at least two columns, and no
        group contains another.

    Examples
    --------
    >>> cliques([3.0, 1.0, 2.0, 6.0], 1.5)
    [(1, 2), (2, 0)]
    """
    ranks = checked_vector(average_ranks, "average_ranks")
    if not difference >= 0:
        raise ValueError(
            f"difference must be >= 0, got {difference!r}; critical_difference computes it."
        )
    order = np.argsort(ranks, kind="stable")
    groups: list[tuple[int, ...]] = []
    furthest = 0
    for start in range(len(order)):
        within = ranks[order] <= ranks[order[start]] + difference
        end = int(np.flatnonzero(within)[-1]) + 1
        if end > furthest and end - start > 1:
            groups.append(tuple(int(column) for column in order[start:end]))
        furthest = max(furthest, end)
    return groups


def _chance_of_one_order(ranks: FloatArray) -> float:
    """Return the probability that all data sets have the same order if all methods are equal."""
    n, k = ranks.shape
    _, tied = np.unique(ranks[0], return_counts=True)
    orders = math.factorial(k) // math.prod(math.factorial(int(count)) for count in tied)
    return float(float(orders) ** (1 - n))


def _rank_error(n_methods: int, n_datasets: int) -> float:
    """Return the standard error of a difference of average ranks if all methods are equal."""
    return float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


@dataclass(frozen=True, slots=True)
class Against:
    """Comparison of the control with one other method.

    Attributes
    ----------
    method : str
        Name of the other method.
    means : WinTieLoss
        Counts by the means, rounded to three decimals.
    t_test, corrected : WinTieLoss
        Number of data sets on which the paper's t-test finds the control better, neither, or
        worse; and the same with the correction for overlapping training rows.
    pair : PairTest
        Wilcoxon's test over the data sets, adjusted for the number of methods.
    """

    method: str
    means: WinTieLoss
    t_test: WinTieLoss
    corrected: WinTieLoss
    pair: PairTest


@dataclass(frozen=True, slots=True)
class Conclusions:
    """Tests of a panel, over the data sets on which all methods are complete.

    Attributes
    ----------
    n_datasets : int
        Number of these data sets.
    friedman : Friedman
        Whether any methods differ.
    nemenyi, bonferroni_dunn : float
        Critical differences of average ranks: between any two methods, and from the control.
    groups : list of tuple of str
        Groups of methods that Nemenyi's test cannot distinguish.
    against : list of Against
        One comparison of the control with each other method.
    """

    n_datasets: int
    friedman: Friedman
    nemenyi: float
    bonferroni_dunn: float
    groups: list[tuple[str, ...]]
    against: list[Against]


def overlap_ratio(splits: Splits | None) -> float:
    """Return the ratio of test rows to training rows.

    Parameters
    ----------
    splits : Splits or None
        The splits of a protocol; None for a reconstruction, which has no splits.

    Returns
    -------
    float
        1 for halves, 1 / (k - 1) for k folds, and 0 without splits.
    """
    if splits is None:
        return 0.0
    return 1.0 if splits.kind == "halves" else 1 / (splits.n_splits - 1)


def conclude(panel: Panel, control: str, *, ratio: float) -> Conclusions | None:
    """Apply all tests to a panel.

    Parameters
    ----------
    panel : Panel
        The comparison by one metric.
    control : str
        The method that the others are compared with.
    ratio : float
        The result of `overlap_ratio`.

    Returns
    -------
    Conclusions or None
        None if there are fewer than two methods or fewer than two complete data sets.
    """
    rows, methods = panel.ranked, panel.methods
    if len(rows) < 2 or len(methods) < 2:
        return None
    up = panel.metric.greater_is_better
    means = np.array([[panel.entries[row, m].figures[0] for m in methods] for row in rows])
    friedman = friedman_test(means, greater_is_better=up)
    nemenyi = critical_difference(len(methods), len(rows))
    at = methods.index(control)
    pairs = wilcoxon_holm(means, greater_is_better=up, control=at)
    against = [
        Against(
            methods[pair.second],
            win_tie_loss(means[:, at], means[:, pair.second], greater_is_better=up),
            _count(_t_tests(panel, control, methods[pair.second], 0.0)),
            _count(_t_tests(panel, control, methods[pair.second], ratio)),
            pair,
        )
        for pair in pairs
    ]
    return Conclusions(
        len(rows),
        friedman,
        nemenyi,
        critical_difference(len(methods), len(rows), test="bonferroni-dunn"),
        [tuple(methods[i] for i in group) for group in cliques(friedman.average_ranks, nemenyi)],
        against,
    )


def _t_tests(panel: Panel, control: str, other: str, ratio: float) -> list[Outcome]:
    """Test each data set separately, if it has at least two splits."""
    outcomes: list[Outcome] = []
    for row in panel.ranked:
        first, second = panel.entries[row, control].values, panel.entries[row, other].values
        shared = min(len(first), len(second))
        if shared >= 2:
            outcomes.append(
                paired_t_test(
                    first[:shared],
                    second[:shared],
                    greater_is_better=panel.metric.greater_is_better,
                    test_train_ratio=ratio,
                ).outcome
            )
    return outcomes


def _count(outcomes: list[Outcome]) -> WinTieLoss:
    return WinTieLoss(outcomes.count("better"), outcomes.count("equal"), outcomes.count("worse"))
