"""Which of several learners is best on one table, and which differences may be chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from lemll.comparison.pairwise import holm
from lemll.comparison.statistics import checked_table, paired_t_test

__all__ = ["BestAgainst", "best_of_splits"]


class BestAgainst(NamedTuple):
    """The best learner against another one, over the splits of one table.

    Attributes
    ----------
    best, other : int
        Columns of the two learners.
    difference : float
        Mean of the best minus mean of the other.
    interval : (float, float)
        95 % interval of the difference, corrected for splits that share training rows.
    pvalue, adjusted : float
        p-value of the corrected t-test, and the same adjusted by Holm's rule.
    """

    best: int
    other: int
    difference: float
    interval: tuple[float, float]
    pvalue: float
    adjusted: float

    @property
    def significant(self) -> bool:
        """Whether the difference is more than chance, at 5 % for all comparisons together."""
        return self.adjusted < 0.05


def best_of_splits(
    values: npt.ArrayLike, *, greater_is_better: bool, test_train_ratio: float
) -> list[BestAgainst]:
    """Compare the learner with the best mean with each other one, by the corrected t-test.

    Parameters
    ----------
    values : array-like of shape (n_splits, n_learners)
        Values of one measure.
    greater_is_better : bool
        Its direction.
    test_train_ratio : float
        Test rows divided by training rows, for the correction of Nadeau and Bengio.

    Returns
    -------
    list of BestAgainst
        One per other learner, in the order of the columns.

    Examples
    --------
    >>> found = best_of_splits(
    ...     [[0.9, 0.7], [0.8, 0.65], [0.85, 0.66]], greater_is_better=True, test_train_ratio=0.5
    ... )
    >>> found[0].best, round(found[0].difference, 2), found[0].significant
    (0, 0.18, True)
    """
    table = checked_table(values)
    means = table.mean(axis=0)
    best = int(means.argmax() if greater_is_better else means.argmin())
    others = [column for column in range(table.shape[1]) if column != best]
    tests = [
        paired_t_test(
            table[:, best],
            table[:, other],
            greater_is_better=greater_is_better,
            test_train_ratio=test_train_ratio,
        )
        for other in others
    ]
    adjusted = holm([test.pvalue for test in tests]) if tests else np.zeros(0)
    share = float(np.sqrt(1 / len(table) + test_train_ratio))
    quantile = float(stats.t.ppf(0.975, len(table) - 1))
    found = []
    for other, test, p in zip(others, tests, adjusted.tolist(), strict=True):
        differences = table[:, best] - table[:, other]
        mean, half = float(differences.mean()), quantile * share * float(differences.std(ddof=1))
        found.append(BestAgainst(best, other, mean, (mean - half, mean + half), test.pvalue, p))
    return found
