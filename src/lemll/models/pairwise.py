"""Which of several learners is best on one table, and which differences may be chance."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from lemll._types import FloatArray

Outcome = Literal["better", "worse", "equal"]

MARKS: dict[Outcome, str] = {"better": "•", "worse": "∘", "equal": ""}
"""The paper's marks: the result of the control against the method that has the mark."""


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
