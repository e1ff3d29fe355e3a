"""Compare two methods over many data sets: Wilcoxon's exact test, adjusted by Holm's rule."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from lemll._types import FloatArray
from lemll.comparison.statistics import Outcome, check_level, checked_table, checked_vector

__all__ = ["PairTest", "holm", "wilcoxon_holm"]


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


def holm(pvalues: npt.ArrayLike) -> FloatArray:
    """Adjust p-values for the number of tests, by Holm's step-down rule.

    Parameters
    ----------
    pvalues : array-like of shape (n_tests,)
        The p-values, not adjusted.

    Returns
    -------
    ndarray of shape (n_tests,)
        Adjusted p-values, never smaller. A test is significant at a level if its value is below it.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    given = checked_vector(pvalues, "pvalues")
    outside = given[(given < 0) | (given > 1)]
    if len(outside):
        raise ValueError(f"pvalues must lie between 0 and 1, got {float(outside[0])!r}.")
    order = np.argsort(given, kind="stable")
    steps = (len(given) - np.arange(len(given))) * given[order]
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


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
