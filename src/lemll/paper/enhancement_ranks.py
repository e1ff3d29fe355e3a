"""Ranks and ratios in the comparison of enhancers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

import numpy as np
from scipy.stats import rankdata

from lemll._types import FloatArray
from lemll.metrics import METRICS
from lemll.paper.enhancement_cells import MeasuredRegime

__all__ = ["OURS", "Place", "average_ranks", "mean_ranks", "ratios_of", "values_of"]

OURS = "Blend"
# A method takes part in the ranks if it has at least this share of the data sets and thresholds.
_SHARE = 0.75
Place = tuple[str, float]


def values_of(
    rows: Sequence[MeasuredRegime], regime: str, metric: str
) -> dict[tuple[Place, str], float]:
    """Return losses by (data set, threshold) and method; similarities are negated.

    Parameters
    ----------
    rows : sequence of MeasuredRegime
        Rows of the table.
    regime : str
        The regime.
    metric : str
        The measure.

    Returns
    -------
    dict
        The losses.
    """
    sign = -1 if METRICS[metric].greater_is_better else 1
    return {
        ((row.key.dataset, row.key.threshold), row.key.method): sign * row.metrics[metric]
        for row in rows
        if row.key.regime == regime
    }


def average_ranks(
    rows: Sequence[MeasuredRegime], regime: str, metric: str
) -> tuple[dict[str, float], int]:
    """Return the average ranks over the complete data sets, and the number of these sets.

    Parameters
    ----------
    rows : sequence of MeasuredRegime
        Rows of the table.
    regime : str
        The regime.
    metric : str
        The measure.

    Returns
    -------
    ranks : dict of str to float
        By method.
    n_sets : int
        Number of data sets.
    """
    values = values_of(rows, regime, metric)
    places = list(dict.fromkeys(place for place, _ in values))
    counts = Counter(method for _, method in values)
    methods = [method for method, count in counts.items() if count >= _SHARE * len(places)]
    by_set: dict[str, list[FloatArray]] = {}
    for place in places:
        found = [values.get((place, method), np.nan) for method in methods]
        if not np.isnan(found).any():
            by_set.setdefault(place[0], []).append(rankdata(found))
    if not by_set:
        return {}, 0
    means = np.mean([np.mean(ranks, axis=0) for ranks in by_set.values()], axis=0)
    return dict(zip(methods, means.tolist(), strict=True)), len(by_set)


def mean_ranks(
    rows: Sequence[MeasuredRegime], regime: str, metrics: Sequence[str]
) -> dict[str, float]:
    """Return the means of the average ranks over measures.

    Parameters
    ----------
    rows : sequence of MeasuredRegime
        Rows of the table.
    regime : str
        The regime.
    metrics : sequence of str
        The measures.

    Returns
    -------
    dict of str to float
        By method.
    """
    found = [average_ranks(rows, regime, metric)[0] for metric in metrics]
    return {method: fmean(ranks[method] for ranks in found) for method in found[0]}


def ratios_of(rows: Sequence[MeasuredRegime], regime: str) -> dict[Place, float]:
    """Return the Chebyshev distance of the blend, divided by that of the best other method.

    Parameters
    ----------
    rows : sequence of MeasuredRegime
        Rows of the table.
    regime : str
        The regime.

    Returns
    -------
    dict
        By data set and threshold.
    """
    values = values_of(rows, regime, "chebyshev")
    ratios = {}
    for (place, method), value in values.items():
        others = [v for (where, name), v in values.items() if where == place and name != method]
        if method == OURS and others:
            ratios[place] = value / min(others)
    return ratios
