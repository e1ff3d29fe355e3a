"""Scores of many parameters on rows that had no part in the models: one path a fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import normalize as normalize_rows

from lemll._validation import LabelArray
from lemll.enhancers._equation9 import local_graph
from lemll.enhancers._kernels import Kernel, choose_kernel
from lemll.metrics import METRICS
from lemll.solvers import GridPoint, solve_msvr_path
from lemll.solvers.logical import solve_logical_path

__all__ = ["Fold", "FoldScores", "Measure", "Space", "held_out_scores", "measures_of", "score_fold"]

FloatArray = npt.NDArray[np.float64]
Measure = Callable[[LabelArray, FloatArray], float]


class Space(NamedTuple):
    """Where the model is linear: a kernel, and whether rows are scaled to length 1 before.

    Attributes
    ----------
    kernel, kernel_gamma : object
        As in `lemll.LEMLL`.
    normalize_rows : bool
        Whether each row is divided by its length.
    degree, coef0 : number
        As in `lemll.LEMLL`.
    """

    kernel: Any
    kernel_gamma: Any
    normalize_rows: bool
    degree: int = 3
    coef0: float = 1.0

    def rows(self, X: Any) -> Any:
        """Return the rows as the kernel sees them."""
        return normalize_rows(X) if self.normalize_rows else X


@dataclass(frozen=True)
class Fold:
    """One division of the rows.

    Attributes
    ----------
    X, Y : arrays
        All rows; of a precomputed kernel X has as many columns.
    train, test : ndarray of int
        Which rows are learnt from, and which are scored.
    """

    X: Any
    Y: LabelArray
    train: npt.NDArray[np.intp]
    test: npt.NDArray[np.intp]


class FoldScores(NamedTuple):
    """What became of one fold.

    Attributes
    ----------
    values : ndarray of shape (n_points, n_measures)
        Each measure, greater being better.
    optimality : ndarray of shape (n_points,)
        Certified relative gaps.
    """

    values: FloatArray
    optimality: FloatArray


def measures_of(scoring: Any) -> dict[str, Measure]:
    """Return measures by name, each of true labels and scores, greater being better.

    Parameters
    ----------
    scoring : str, callable, or sequence of str
        Names in `lemll.metrics.METRICS`, or a function ``(Y, scores) -> float``.

    Returns
    -------
    dict of str to callable
        The first decides.
    """
    if callable(scoring):
        return {"score": scoring}
    names = [scoring] if isinstance(scoring, str) else list(scoring)
    known = [name for name, metric in METRICS.items() if metric.kind == "multilabel"]
    for name in names:
        if name not in known:
            raise ValueError(
                f"scoring={name!r} must be one of {', '.join(known)}, or a function of the true "
                "labels and the scores."
            )
    if not names:
        raise ValueError("scoring must name at least one measure, got none.")
    return {name: _measure(name) for name in names}


def _measure(name: str) -> Measure:
    metric = METRICS[name]
    sign = 1.0 if metric.greater_is_better else -1.0

    def measure(Y: LabelArray, scores: FloatArray) -> float:
        prediction = (scores > 0).astype(np.int8) if metric.prediction == "labels" else scores
        return sign * float(metric(Y, prediction))

    return measure


def score_fold(
    fold: Fold,
    space: Space,
    points: Sequence[GridPoint],
    measures: Mapping[str, Measure],
    options: Mapping[str, Any],
) -> FoldScores:
    """Fit every point on the training rows and measure it on the test rows.

    Parameters
    ----------
    fold : Fold
        The rows.
    space : Space
        Where the model is linear.
    points : sequence of GridPoint
        The weights to try.
    measures : mapping of str to callable
        Of `measures_of`.
    options : mapping
        ``n_neighbors`` and ``reg_policy`` of the graph, and options of `solve_path`; without
        them, of `solve_msvr_path`.

    Returns
    -------
    FoldScores
        In the order of `points` and `measures`.
    """
    values = np.empty((len(points), len(measures)))
    optimality = np.empty(len(points))
    truth = fold.Y[fold.test]
    for place, scores, gap in held_out_scores(fold, space, points, options):
        values[place] = [measure(truth, scores) for measure in measures.values()]
        optimality[place] = gap
    return FoldScores(values, optimality)


def held_out_scores(
    fold: Fold, space: Space, points: Sequence[GridPoint], options: Mapping[str, Any]
) -> Iterator[tuple[int, FloatArray, float]]:
    """Yield the place of each point, its scores of the test rows, and its certified gap.

    Parameters
    ----------
    fold, space, points, options
        As in `score_fold`.

    Yields
    ------
    tuple of int, ndarray and float
        In the order of the path.
    """
    options = dict(options)
    n_neighbors, reg_policy = options.pop("n_neighbors", None), options.pop("reg_policy", None)
    pairwise = space.kernel == "precomputed"
    known, new = (
        space.rows(fold.X[rows][:, fold.train] if pairwise else fold.X[rows])
        for rows in (fold.train, fold.test)
    )
    Y = fold.Y[fold.train]
    kernel: Kernel | None = choose_kernel(space, known)
    features = known if kernel is None else kernel.of_training(known, Y.shape[1])
    across = new if kernel is None else kernel.values(new, known)
    steps: Iterator[tuple[int, Any]]
    if n_neighbors is None:
        # Labels that may not move: nothing but the model is left to find.
        steps = solve_msvr_path(features, 2.0 * Y - 1.0, [p.alpha for p in points], **options)
    else:
        W = local_graph(known, kernel, n_neighbors, reg_policy)
        steps = solve_logical_path(features, Y, W, points, **options)
    for place, solution in steps:
        scores = np.asarray(across @ solution.coef.T + solution.intercept)
        yield place, scores, solution.optimality
