"""Statistics of a table of results: ranks, wins and losses, and the paper's paired t-test.

The functions take plain arrays. Rows are data sets and columns are methods. The t-test takes the
values of two methods over the same splits.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from lemll._types import FloatArray

__all__ = [
    "MARKS",
    "Outcome",
    "TTest",
    "WinTieLoss",
    "average_ranks",
    "check_level",
    "checked_table",
    "checked_vector",
    "paired_t_test",
    "rank_rows",
    "win_tie_loss",
]

Outcome = Literal["better", "worse", "equal"]

MARKS: dict[Outcome, str] = {"better": "•", "worse": "∘", "equal": ""}
"""The paper's marks: the result of the control against the method that has the mark."""


class WinTieLoss(NamedTuple):
    """How often a method is better than, equal to and worse than another."""

    wins: int
    ties: int
    losses: int


class TTest(NamedTuple):
    """Result of :func:`paired_t_test`.

    Attributes
    ----------
    statistic : float
        t of control minus other; infinite if all differences are equal and not zero.
    pvalue : float
        Two-sided p-value.
    outcome : {"better", "worse", "equal"}
        Whether the control is significantly better or worse than the other method, or neither.
    """

    statistic: float
    pvalue: float
    outcome: Outcome

    @property
    def mark(self) -> str:
        """The paper's sign of the outcome: "•" better, "∘" worse."""
        return MARKS[self.outcome]


def checked_table(values: npt.ArrayLike) -> FloatArray:
    """Return values as a table of data sets and methods, or raise an error.

    Parameters
    ----------
    values : array-like of shape (n_datasets, n_methods)
        Finite values.

    Returns
    -------
    ndarray of shape (n_datasets, n_methods)
        The same values.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            f"values must have shape (n_datasets, n_methods), none zero, got {table.shape}."
        )
    if not np.isfinite(table).all():
        row, column = map(int, np.argwhere(~np.isfinite(table))[0])
        raise ValueError(
            f"values must be finite, got {table[row, column]} for data set {row}, method {column}; "
            "leave out data sets that lack a result."
        )
    return table


def check_level(level: float) -> None:
    """Refuse an invalid level of significance.

    Parameters
    ----------
    level : float
        Must lie between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}.")


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


def paired_t_test(
    control: npt.ArrayLike,
    other: npt.ArrayLike,
    *,
    greater_is_better: bool,
    level: float = 0.05,
    test_train_ratio: float = 0.0,
) -> TTest:
    r"""Test whether two methods differ over the same splits, as the paper does for its marks.

    The differences over n splits have mean m and variance v. The statistic is
    :math:`t=m/\sqrt{(1/n+q)v}` with n - 1 degrees of freedom. In the paper's test q is 0. In the
    corrected test of Nadeau and Bengio [1]_ q is the ratio of test rows to training rows.

    Parameters
    ----------
    control, other : array-like of shape (n_splits,)
        Values of the two methods on the same splits.
    greater_is_better : bool
        The metric's direction.
    level : float, default=0.05
        The difference is significant if the two-sided p-value is below this.
    test_train_ratio : float, default=0.0
        Ratio of test rows to training rows: 1 for halves, 1/9 for ten folds. 0 is the paper's
        test.

    Returns
    -------
    TTest
        If all differences are zero, the result is not significant. If all differences are equal
        and not zero, it is significant.

    Notes
    -----
    Training halves overlap, so the differences are not independent, and the paper's test finds too
    many significant differences. lemll has this test because the paper's marks come from it.
    `test_train_ratio` corrects for the overlap.

    References
    ----------
    .. [1] C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52,
       2003.

    Examples
    --------
    >>> test = paired_t_test([0.10, 0.12, 0.11], [0.20, 0.21, 0.23], greater_is_better=False)
    >>> test.outcome, test.mark
    ('better', '•')
    """
    first, second = _pair(control, other)
    if len(first) < 2:
        raise ValueError(f"a paired t-test needs at least 2 splits, got {len(first)}.")
    check_level(level)
    if not 0 <= test_train_ratio < np.inf:
        raise ValueError(f"test_train_ratio must be finite and >= 0, got {test_train_ratio!r}.")
    difference = first - second
    mean = float(difference.mean())
    # Differences that are equal in exact arithmetic can differ in their last digits.
    noise = 8 * np.finfo(np.float64).eps * float(np.abs([first, second]).max())
    if float(np.ptp(difference)) <= noise:
        same = abs(mean) <= noise
        statistic, pvalue = (0.0, 1.0) if same else (float(np.copysign(np.inf, mean)), 0.0)
    else:
        share = 1 / len(difference) + test_train_ratio
        statistic = mean / (float(difference.std(ddof=1)) * np.sqrt(share))
        pvalue = float(2 * stats.t.sf(abs(statistic), len(difference) - 1))
    if pvalue >= level:
        return TTest(float(statistic), pvalue, "equal")
    return TTest(float(statistic), pvalue, "better" if (mean > 0) == greater_is_better else "worse")


def _pair(control: npt.ArrayLike, other: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = (np.asarray(values, dtype=np.float64) for values in (control, other))
    if first.ndim != 1 or first.shape != second.shape or len(first) == 0:
        raise ValueError(
            f"control and other must be 1-D and of one length, got shapes {first.shape} and "
            f"{second.shape}."
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("control and other must be finite; leave out what has no result.")
    return first, second


def checked_vector(values: npt.ArrayLike, name: str) -> FloatArray:
    """Return values of one dimension as floats, or say what is wrong with them."""
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one value each, got shape {vector.shape}.")
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} must be finite, got {vector.tolist()}; leave out what is not.")
    return vector
