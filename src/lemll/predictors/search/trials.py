"""The combinations that a search has tried, with their scores in all folds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from lemll._types import FloatArray, SettingsView
from lemll._validation import available_bytes
from lemll.predictors.search.folds import Fold, FoldPath, FoldScores, Measure, Space
from lemll.solvers import GridPoint, kernel_bytes, solver_bytes

__all__ = ["SearchProgress", "Trials"]

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
        n_points = n_points or max(_USUAL_TRIALS, len(self.tried) // max(1, self._n_spaces()))
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

    def _n_spaces(self) -> int:
        return len({space for space, _ in self.tried})

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
