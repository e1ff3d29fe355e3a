"""The conclusions that one panel of a comparison supports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lemll.comparison.pairwise import PairTest, wilcoxon_holm
from lemll.comparison.panels import Panel
from lemll.comparison.significance import (
    Friedman,
    cliques,
    critical_difference,
    friedman_test,
)
from lemll.comparison.statistics import Outcome, WinTieLoss, paired_t_test, win_tie_loss
from lemll.experiments import Splits

__all__ = ["Against", "Conclusions", "conclude", "overlap_ratio"]


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
