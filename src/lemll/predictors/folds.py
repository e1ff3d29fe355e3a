"""The combinations that a search has tried, with their scores in all folds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.preprocessing import normalize as normalize_rows

from lemll._types import Array, Features, FloatArray, KernelLike, LabelArray, Settings, SettingsView
from lemll._validation import available_bytes
from lemll.exceptions import UndefinedMetricError
from lemll.fitting.equation9 import check_fits, choose_kernel, local_graph
from lemll.fitting.scaling import fit_scaling
from lemll.metrics import METRICS, Metric, MetricScorer
from lemll.solvers import (
    GridPoint,
    LogicalPath,
    MsvrSolution,
    kernel_bytes,
    solve_msvr_path,
    solver_bytes,
)

Measure = Callable[[LabelArray, FloatArray], float]
_Path = Callable[[Sequence[GridPoint]], Iterator[tuple[int, Any]]]


class Space(NamedTuple):
    """The feature space of the model: how columns and rows are scaled, and a kernel.

    Attributes
    ----------
    kernel : str or callable
        As in `lemll.LEMLL`.
    kernel_gamma : "variance" or float
        The setting ``gamma`` of `kernel_params`.
    normalize_rows : bool
        Whether each row is divided by its length, after the scaling of the columns.
    degree, coef0 : number
        Settings of `kernel_params`.
    scale : str
        The scaling of the columns, as in `lemll.LEMLL`.
    """

    kernel: KernelLike
    kernel_gamma: str | float
    normalize_rows: bool
    degree: int = 3
    coef0: float = 1.0
    scale: str = "none"

    @property
    def kernel_params(self) -> Settings:
        """The settings of the kernel, as estimators take them."""
        return {"gamma": self.kernel_gamma, "degree": self.degree, "coef0": self.coef0}

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

    X: Features
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
        ``graph``, the arguments of `local_graph`, and options of `solve_path`. Without ``graph``
        the labels are not enhanced, and the options are those of `solve_msvr_path`.
    """

    def __init__(self, fold: Fold, space: Space, options: SettingsView) -> None:
        self._fold, self._space = fold, space
        self._options = dict(options)
        self._graph: Settings | None = self._options.pop("graph", None)
        self._prepared: tuple[Features, _Path] | None = None

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

    def _prepare(self) -> tuple[Features, _Path]:
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
        if weight is not None and self._graph is None:
            seen = np.sign(weight.max(axis=1))
        kernel = choose_kernel(space.kernel, space.kernel_params, known, seen)
        check_fits(known, Y.shape[1], kernel)
        features = known if kernel is None else kernel.of_training(known, Y.shape[1])
        across = new if kernel is None else kernel.values(new, known)
        if self._graph is None:
            return across, partial(_fixed_labels, features, Y, weight, self._options)
        W = local_graph(known, kernel, **self._graph).W
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


# Roughly the number of points that a coarse search tries on the grid of the paper.
_USUAL_TRIALS = 60
# Share of the free memory that prepared folds may occupy between two calls.
_KEPT_SHARE = 0.5


class SearchProgress(NamedTuple):
    """The progress of a search, reported after each path through a fold.

    Attributes
    ----------
    done : int
        Number of models fitted so far, over all folds.
    expected : int
        Total number of models: exact for a grid, otherwise an estimate that is corrected later.
    best_score : float
        Best mean score so far. NaN until the first points have been scored in all folds.
    elapsed : float
        Seconds since the search began.
    """

    done: int
    expected: int
    best_score: float
    elapsed: float


class Trials:
    """Scores of parameters in several spaces. Folds are prepared once per space.

    Parameters
    ----------
    folds : sequence of Fold
        The rows.
    measures : mapping of str to callable
        From `measures_of`. The first measure decides.
    options : mapping
        Options of `FoldPath`.
    n_jobs : int or None
        Number of folds that run at the same time, as in joblib.
    callback : callable or None
        Called with a `SearchProgress` after each path through a fold. If it returns True, the
        time is over.
    max_seconds : float, default=inf
        Time after which `out_of_time` is true.

    Attributes
    ----------
    tried : list of (Space, GridPoint)
        All combinations, in the order in which they were tried.
    scores : list of FoldScores
        The scores of each combination, with values of shape (n_splits, n_measures).
    """

    def __init__(
        self,
        folds: Sequence[Fold],
        measures: Mapping[str, Measure],
        options: SettingsView,
        *,
        n_jobs: int | None,
        callback: Callable[[SearchProgress], bool | None] | None,
        max_seconds: float = float("inf"),
    ) -> None:
        self.tried: list[tuple[Space, GridPoint]] = []
        self.scores: list[FoldScores] = []
        self._folds, self._measures, self._options = folds, measures, options
        self._n_jobs, self._callback = n_jobs, callback
        self._paths: list[FoldPath] = []
        self._best_score = float("nan")
        self._done = self._expected = 0
        self._clock = time.perf_counter()
        self._max_seconds = max_seconds

    def out_of_time(self) -> bool:
        """Whether no further combinations should be tried."""
        return time.perf_counter() - self._clock > self._max_seconds

    def best(self) -> tuple[Space, GridPoint]:
        """Return the best combination so far."""
        return self.tried[int(self.means().argmax())]

    def expect(self, n_points: int | None, n_spaces: int) -> None:
        """Set how many points each remaining space will try; None if this is not known."""
        tried_spaces = {space for space, _ in self.tried}
        n_points = n_points or max(_USUAL_TRIALS, len(self.tried) // max(1, len(tried_spaces)))
        self._expected = self._done + n_points * n_spaces * len(self._folds)

    def evaluate(
        self, space: Space, points: Sequence[GridPoint], *, keep: bool = False
    ) -> FloatArray:
        """Try points and return their mean scores.

        Parameters
        ----------
        space : Space
            The feature space of the model. It must stay the same until `forget` is called.
        points : sequence of GridPoint
            The weights to try.
        keep : bool, default=False
            Whether more points of this space will follow.

        Returns
        -------
        ndarray of shape (n_points, n_measures)
            Greater is better. -inf if no fold defines the measure.
        """
        if not self._paths:
            self._paths = self._through_space(space, self._options)
        scores = self._score(self._paths, points, keep=keep and self._may_keep(space))
        self.tried.extend((space, point) for point in points)
        self.scores.extend(scores)
        values = np.array([entry.values for entry in scores])
        # A measure is defined on the same folds for all combinations.
        sums = np.where(np.isnan(values), 0.0, values).sum(axis=1)
        counts = (~np.isnan(values)).sum(axis=1)
        found = np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf)
        # fmax ignores NaN, which stays until a fold can be judged.
        best = found[:, 0].max()
        self._best_score = float(np.fmax(self._best_score, best if np.isfinite(best) else np.nan))
        return found

    def refine(self, places: Sequence[int], tol: float) -> None:
        """Score some of the tried combinations again, solved to another certified gap.

        Parameters
        ----------
        places : sequence of int
            Their indices in `tried`.
        tol : float
            Certified relative gap.
        """
        self._expected = self._done + len(places) * len(self._folds)
        # One path per space and fold: kernel and graph are computed once for all its points.
        for space in dict.fromkeys(self.tried[i][0] for i in places):
            here = [i for i in places if self.tried[i][0] == space]
            paths = self._through_space(space, {**self._options, "tol": tol})
            scores = self._score(paths, [self.tried[i][1] for i in here], keep=False)
            for i, score in zip(here, scores, strict=True):
                self.scores[i] = score
        # Refined scores may be lower than the loose scores that they replace.
        self._best_score = float(self.means().max())

    def means(self) -> FloatArray:
        """Return the mean score of each combination by the first measure."""
        first = np.array([scores.values[:, 0] for scores in self.scores])
        # A measure is defined on the same folds for all combinations.
        defined = ~np.isnan(first[0])
        if not defined.any():
            raise ValueError(
                f"no fold has a test row that {next(iter(self._measures))} can judge: such a row "
                "has an observed relevant label and another observed one; tag more rows, use fewer "
                "folds (cv), or scoring='hamming_loss'."
            )
        return np.asarray(first[:, defined].mean(axis=1))

    def _through_space(self, space: Space, options: SettingsView) -> list[FoldPath]:
        return [FoldPath(fold, space, options) for fold in self._folds]

    def _score(
        self, paths: Sequence[FoldPath], points: Sequence[GridPoint], *, keep: bool
    ) -> list[FoldScores]:
        """Score points in every fold."""
        # Threads share memory, so a prepared fold can be used again for the next points. They run
        # in parallel, because BLAS and the sparse loops of SciPy release the GIL.
        parallel = Parallel(self._n_jobs, prefer="threads", return_as="generator")
        by_fold = []
        for scores in parallel(
            delayed(path.score)(points, self._measures, keep=keep) for path in paths
        ):
            by_fold.append(scores)
            self._report(len(points))
        values = np.stack([scores.values for scores in by_fold], axis=1)
        gaps = np.stack([scores.optimality for scores in by_fold], axis=1)
        return [FoldScores(*entry) for entry in zip(values, gaps, strict=True)]

    def forget(self) -> None:
        """Free the memory of the current space."""
        self._paths = []

    def _may_keep(self, space: Space) -> bool:
        fold = self._folds[0]
        n_train, n_labels = len(fold.train), fold.Y.shape[1]
        if space.kernel == "linear":
            needed = solver_bytes(fold.X, n_labels)
        else:
            needed = kernel_bytes(n_train, n_labels) + 8 * n_train * len(fold.test)
        free = available_bytes()
        return free is None or len(self._folds) * needed <= _KEPT_SHARE * free

    def _report(self, n_points: int) -> None:
        self._done += n_points
        self._expected = max(self._expected, self._done)
        if self._callback is not None:
            elapsed = time.perf_counter() - self._clock
            progress = SearchProgress(self._done, self._expected, self._best_score, elapsed)
            if self._callback(progress) is True:
                self._max_seconds = 0.0
