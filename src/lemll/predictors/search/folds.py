"""Cross-validation scores of many parameters, with one solution path per fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import normalize as normalize_rows

from lemll._types import Features, FloatArray, KernelLike, LabelArray, Settings, SettingsView
from lemll.exceptions import UndefinedMetricError
from lemll.fitting import check_fits, choose_kernel, fit_scaling, local_graph
from lemll.metrics import METRICS, Metric, MetricScorer
from lemll.solvers import GridPoint, LogicalPath, MsvrSolution, solve_msvr_path

__all__ = [
    "Fold",
    "FoldPath",
    "FoldScores",
    "Measure",
    "Space",
    "SpaceRows",
    "measures_of",
]

Measure = Callable[[LabelArray, FloatArray], float]
_Path = Callable[[Sequence[GridPoint]], Iterator[tuple[int, Any]]]


class Space(NamedTuple):
    """The feature space of the model: how columns and rows are scaled, and a kernel.

    Attributes
    ----------
    kernel, kernel_gamma : object
        As in `lemll.LEMLL`.
    normalize_rows : bool
        Whether each row is divided by its length, after the scaling of the columns.
    degree, coef0 : number
        As in `lemll.LEMLL`.
    scale : str
        The scaling of the columns, as in `lemll.LEMLL`.
    """

    kernel: KernelLike
    kernel_gamma: str | float
    normalize_rows: bool
    degree: int = 3
    coef0: float = 1.0
    scale: str = "none"

    def fit(self, X: Features) -> SpaceRows:
        """Return the function that turns rows into those to which the kernel is applied.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_samples, n_features)
            Training rows, which determine the scaling of the columns.
        """
        return SpaceRows(fit_scaling(self.scale, X), self.normalize_rows)


class SpaceRows(NamedTuple):
    """Turn rows into those to which the kernel is applied.

    Attributes
    ----------
    scaling : callable
        Scales the columns.
    normalize : bool
        Whether each row is then divided by its length.
    """

    scaling: Callable[[Features], Features]
    normalize: bool

    def __call__(self, X: Features) -> Features:
        """Return the scaled rows."""
        rows = self.scaling(X)
        return normalize_rows(rows) if self.normalize else rows


@dataclass(frozen=True)
class Fold:
    """One split of the rows into training rows and test rows.

    Attributes
    ----------
    X, Y : arrays
        All rows. For a precomputed kernel, X has one column per row.
    train, test : ndarray of int
        Indices of the rows to fit, and of the rows to score.
    weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1. Y is -1 in cells with the weight 0.
    """

    X: Any
    Y: LabelArray
    train: npt.NDArray[np.intp]
    test: npt.NDArray[np.intp]
    weight: FloatArray | None = None


class FoldScores(NamedTuple):
    """The scores of one fold.

    Attributes
    ----------
    values : ndarray of shape (n_points, n_measures)
        The value of each measure. Greater is better. NaN if the measure is not defined on any of
        the test rows.
    optimality : ndarray of shape (n_points,)
        Certified relative gaps.
    """

    values: FloatArray
    optimality: FloatArray


def measures_of(scoring: Any) -> dict[str, Measure]:
    """Return measures by name: functions of true labels and scores, where greater is better.

    Parameters
    ----------
    scoring : str, callable, or sequence of str
        Names in `lemll.metrics.METRICS`, one of its functions, a scorer of
        `lemll.metrics.get_scorer`, or another function ``(Y, scores) -> float``, of which greater
        values are better.

    Returns
    -------
    dict of str to callable
        The first measure decides.
    """
    if isinstance(scoring, MetricScorer):
        return {scoring.metric.name: _measure(scoring.metric, scoring.options)}
    # A loss must be negated, also if the user passes its function and not its name.
    named = [metric.name for metric in METRICS.values() if scoring in (metric, metric.function)]
    if callable(scoring) and not named:
        return {"score": scoring}
    scoring = named or scoring
    names = list(scoring) if isinstance(scoring, (list, tuple)) else [scoring]
    known = [name for name, metric in METRICS.items() if metric.ranks_or_decides]
    for name in names:
        if name not in known:
            raise ValueError(
                f"scoring={name!r} must be one of {', '.join(known)}, or a function of the true "
                "labels and the scores."
            )
    if not names:
        raise ValueError("scoring must name at least one measure, got none.")
    return {name: _measure(METRICS[name], {}) for name in names}


def _measure(metric: Metric, options: SettingsView) -> Measure:
    sign = 1.0 if metric.greater_is_better else -1.0

    def measure(Y: LabelArray, scores: FloatArray) -> float:
        if metric.prediction == "labels":
            return sign * float(metric(Y, (scores > 0).astype(np.int8), **options))
        if Y.shape[1] == 1:
            # A ranking needs at least two labels: add the complement of the single label.
            Y, scores = np.hstack([1 - Y, Y]), np.hstack([-scores, scores])
        return sign * float(metric(Y, scores, **options))

    return measure


class FoldPath:
    """One fold in one space. It is prepared at the first call and can be used again.

    Parameters
    ----------
    fold : Fold
        The rows.
    space : Space
        The feature space of the model.
    options : mapping
        ``n_neighbors`` and ``reg_policy`` of the graph, and options of `solve_path`. Without
        ``n_neighbors`` the labels are not enhanced, and the options are those of
        `solve_msvr_path`.
    """

    def __init__(self, fold: Fold, space: Space, options: SettingsView) -> None:
        self._fold, self._space = fold, space
        self._options = dict(options)
        self._n_neighbors = self._options.pop("n_neighbors", None)
        self._reg_policy = self._options.pop("reg_policy", None)
        self._prepared: tuple[Any, _Path] | None = None

    def score(
        self, points: Sequence[GridPoint], measures: Mapping[str, Measure], *, keep: bool = False
    ) -> FoldScores:
        """Fit every point on the training rows and measure it on the test rows.

        Parameters
        ----------
        points : sequence of GridPoint
            The weights to try.
        measures : mapping of str to callable
            From `measures_of`.
        keep : bool, default=False
            Whether to keep the prepared data for later calls.

        Returns
        -------
        FoldScores
            In the order of `points` and `measures`.
        """
        values = np.empty((len(points), len(measures)))
        optimality = np.empty(len(points))
        truth: Any = self._fold.Y[self._fold.test]
        if self._fold.weight is not None:
            # Measures skip the cells that nobody observed.
            truth = np.where(truth < 0, np.nan, truth)
        across, path = self._prepared or self._prepare()
        self._prepared = (across, path) if keep else None
        for place, solution in path(points):
            # A kernel model has one coefficient per training row, so the kernel values of the test
            # rows take the place of features.
            scores = np.asarray(across @ solution.coef.T + solution.intercept)
            values[place] = [_value(measure, truth, scores) for measure in measures.values()]
            optimality[place] = solution.optimality
        return FoldScores(values, optimality)

    def unseen_scores(self, point: GridPoint) -> FloatArray:
        """Fit one point on the training rows and return the scores of the test rows.

        Parameters
        ----------
        point : GridPoint
            The weights.

        Returns
        -------
        ndarray of shape (n_test, n_labels)
            The scores.
        """
        across, path = self._prepare()
        ((_, solution),) = path([point])
        return np.asarray(across @ solution.coef.T + solution.intercept)

    def _prepare(self) -> tuple[Any, _Path]:
        """Return the features (or kernel values) of the test rows, and the path to solve."""
        fold, space = self._fold, self._space
        pairwise = space.kernel == "precomputed"
        # The columns of a precomputed kernel are rows too, and the test rows must stay unknown.
        known, new = (
            fold.X[rows][:, fold.train] if pairwise else fold.X[rows]
            for rows in (fold.train, fold.test)
        )
        rows = space.fit(known)
        known, new = rows(known), rows(new)
        Y = fold.Y[fold.train]
        weight = None if fold.weight is None else fold.weight[fold.train]
        # MSVR does not use rows without an observed cell, also not for the width of the kernel.
        seen = None
        if weight is not None and self._n_neighbors is None:
            seen = np.sign(weight.max(axis=1))
        kernel = choose_kernel(space, known, seen)
        check_fits(known, Y.shape[1], kernel)
        features = known if kernel is None else kernel.of_training(known, Y.shape[1])
        across = new if kernel is None else kernel.values(new, known)
        if self._n_neighbors is None:
            return across, partial(_fixed_labels, features, Y, weight, self._options)
        wanted = self._n_neighbors, self._reg_policy
        W = local_graph(known, kernel, *wanted, neighbors="auto").W
        return across, partial(LogicalPath(features, Y, W, weight).solve, **self._options)


def _value(measure: Measure, truth: LabelArray, scores: FloatArray) -> float:
    # If few cells were observed, a fold may have no row that a measure can judge.
    try:
        return measure(truth, scores)
    except UndefinedMetricError:
        return float("nan")


def _fixed_labels(
    features: Features,
    Y: LabelArray,
    weight: FloatArray | None,
    options: Settings,
    points: Sequence[GridPoint],
) -> Iterator[tuple[int, MsvrSolution]]:
    """Solve for the model only, with the numerical labels fixed at the logical labels."""
    alphas = [point.alpha for point in points]
    # Eq. (9) codes logical labels as -1 and +1.
    return solve_msvr_path(features, 2.0 * Y - 1.0, alphas, cell_weight=weight, **options)
