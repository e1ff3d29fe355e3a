"""Choose which parameters to try, and select the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from lemll._types import Array, FloatArray
from lemll.predictors.search.folds import FoldScores, Space
from lemll.solvers import GridPoint

__all__ = ["SPACE_PARAMETERS", "coarse_to_fine", "one_standard_error", "results_table"]

# What a search reports about the space of a combination.
SPACE_PARAMETERS = ("kernel", "kernel_gamma", "normalize_rows", "scale")

Place = tuple[int, int, int]

# Every third value is tried first. Of the seven values of the paper: both ends and the middle.
_STRIDE = 3


def coarse_to_fine(
    axes: Sequence[Sequence[float]],
    evaluate: Callable[[list[GridPoint]], FloatArray],
    *,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Try every third value of each axis, then neighbours of the best until none is better.

    With several measures, each of them has its own best point.

    Parameters
    ----------
    axes : sequence of three sequences of float
        Ascending values of alpha, beta and gamma.
    evaluate : callable
        Returns the scores of points, of shape (n_points, n_measures); greater is better. It is
        called only once per point.
    is_over : callable, optional
        Whether to stop before the next round, because the time is over.
    """
    scores: dict[Place, list[float]] = {}

    def look_at(places: Iterable[Place]) -> list[Place]:
        """Evaluate the places that are new; return the best place so far by each measure."""
        new = [place for place in dict.fromkeys(places) if place not in scores]
        if new:
            points = [GridPoint(*(axis[i] for axis, i in zip(axes, p, strict=True))) for p in new]
            scores.update(zip(new, evaluate(points).tolist(), strict=True))
        n_measures = len(next(iter(scores.values())))
        return [max(scores, key=lambda place: scores[place][m]) for m in range(n_measures)]

    sizes = [len(axis) for axis in axes]
    coarse = [sorted({*range(0, size, _STRIDE), size - 1}) for size in sizes]
    best = look_at(_product(coarse))
    # Of equal scores the place tried first stays the best. So every round finds a strictly better
    # place by one of the measures, and the loop ends.
    while not is_over():
        better = look_at(place for center in best for place in _around(center, sizes))
        if better == best:
            return
        best = better


def _around(center: Place, sizes: Sequence[int]) -> list[Place]:
    """Return a place and its neighbours on the grid."""
    return _product(
        [
            [i for i in (at - 1, at, at + 1) if 0 <= i < size]
            for at, size in zip(center, sizes, strict=True)
        ]
    )


def _product(axes: Sequence[Sequence[int]]) -> list[Place]:
    first, second, third = axes
    return [(i, j, k) for i in first for j in second for k in third]


def one_standard_error(
    tried: Sequence[tuple[Space, GridPoint]], values: Sequence[FloatArray]
) -> int:
    """Choose the simplest combination within one standard error of the best.

    Only combinations in the same space as the best are considered. The simplest one has the
    largest alpha, then the largest beta (which keeps the labels near Y), then the smallest gamma.

    Parameters
    ----------
    tried : sequence of (Space, GridPoint)
        The combinations.
    values : sequence of ndarray of shape (n_splits,)
        Their scores. Greater is better.

    Returns
    -------
    int
        Index in `tried`.
    """
    # A measure is defined on the same folds for all combinations.
    values = [value[~np.isnan(value)] for value in values]
    means = np.array([value.mean() for value in values])
    best = int(means.argmax())
    # The standard error of the mean over the folds.
    n_folds = len(values[best])
    error = float(np.std(values[best], ddof=1)) / np.sqrt(n_folds) if n_folds > 1 else 0.0
    space = tried[best][0]
    near = [i for i, (at, _) in enumerate(tried) if at == space and means[i] >= means[best] - error]
    return max(near, key=lambda i: (tried[i][1].alpha, tried[i][1].beta, -tried[i][1].gamma))


def results_table(
    tried: Sequence[tuple[Space, GridPoint]], scores: Sequence[FoldScores], measures: list[str]
) -> dict[str, Array]:
    """Return a table of the results, with one column per parameter and per figure.

    Parameters
    ----------
    tried : sequence of (Space, GridPoint)
        The combinations.
    scores : sequence of FoldScores
        The scores of each combination, with values of shape (n_splits, n_measures).
    measures : list of str
        Names of the measures.

    Returns
    -------
    dict of str to ndarray
        In the form of ``cv_results_`` of scikit-learn.
    """
    table: dict[str, Array] = {
        f"param_{name}": np.array([getattr(point, name) for _, point in tried])
        for name in GridPoint._fields
    }
    for name in SPACE_PARAMETERS:
        # A kernel may be a name or a function, and np.array would convert mixed types to text.
        column = np.empty(len(tried), dtype=object)
        column[:] = [getattr(space, name) for space, _ in tried]
        table[f"param_{name}"] = column
    values = np.array([entry.values for entry in scores])
    for number, name in enumerate(measures):
        for split in range(values.shape[1]):
            table[f"split{split}_test_{name}"] = values[:, split, number]
        defined = values[:, ~np.isnan(values[0, :, number]), number]
        table[f"mean_test_{name}"] = defined.mean(axis=1) if defined.size else values[:, 0, number]
        table[f"std_test_{name}"] = defined.std(axis=1) if defined.size else values[:, 0, number]
        means = table[f"mean_test_{name}"]
        # Equal means share the better rank, as in scikit-learn.
        table[f"rank_test_{name}"] = 1 + (means[:, None] < means).sum(axis=1)
    table["optimality"] = np.array([entry.optimality.max() for entry in scores])
    return table
