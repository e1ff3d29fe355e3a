"""Grid search for learners that fit a whole grid faster than its points one by one."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid

from lemll._types import Estimator, Features, FloatArray, LabelArray, Settings, SettingsView
from lemll.metrics import MetricScorer, get_scorer

__all__ = ["SharedGridSearch"]

# The measure of the parameters in `decisions`.
_DECISION_METRIC = "hamming_loss"


class SharedGridSearch(BaseEstimator):
    """Cross-validate the points of a grid with `fit_grid`, and refit the best one.

    First the parameters that are not in `decisions` are chosen by `metric`, the others having
    their values in the estimator. Then those in `decisions` are chosen by the Hamming loss. The
    score of a point is the mean over the folds; the first of equal points wins.

    Parameters
    ----------
    estimator : estimator with `fit_grid`
        A learner, not fitted.
    grid : mapping of str to sequence
        Values of its parameters.
    metric : str
        Name in ``lemll.metrics.METRICS``.
    folds : splitter
        The folds of the training rows.
    decisions : tuple of str, default=()
        Parameters that change which labels are predicted, but hardly their order.

    Attributes
    ----------
    scores_ : list of ndarray of shape (n_folds, n_points)
        The scores of the points in each of the steps; greater is better.
    best_params_ : dict
        The parameters of the best point.
    best_estimator_ : estimator
        Fitted to all rows with these parameters.
    """

    def __init__(
        self,
        estimator: Estimator,
        grid: SettingsView,
        metric: str,
        folds: Any,
        decisions: tuple[str, ...] = (),
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.metric = metric
        self.folds = folds
        self.decisions = decisions

    def fit(self, X: Features, Y: LabelArray) -> Self:
        """Search, and fit the best point to all rows."""
        self.scores_: list[FloatArray] = []
        best: Settings = {}
        for metric, in_decisions in ((self.metric, False), (_DECISION_METRIC, True)):
            lists = {
                name: list(values)
                for name, values in self.grid.items()
                if (name in self.decisions) == in_decisions
            }
            if lists:
                points = [best | point for point in ParameterGrid(lists)]
                self.scores_.append(self._scores(X, Y, points, get_scorer(metric)))
                best = points[int(self.scores_[-1].mean(axis=0).argmax())]
        self.best_params_ = best
        self.best_estimator_ = clone(self.estimator).set_params(**best).fit(X, Y)
        return self

    def _scores(
        self, X: Features, Y: LabelArray, points: list[Settings], scorer: MetricScorer
    ) -> FloatArray:
        # A model is measured as soon as it is fitted, so only one is in the memory at a time.
        return np.array(
            [
                [
                    scorer(model, X[test], Y[test])
                    for model in self.estimator.fit_grid(X[train], Y[train], points)
                ]
                for train, test in self.folds.split(X, Y)
            ]
        )

    def predict(self, X: Features) -> LabelArray:
        """Return the labels of the best model."""
        return np.asarray(self.best_estimator_.predict(X))

    def decision_function(self, X: Features) -> FloatArray:
        """Return the scores of the best model."""
        return np.asarray(self.best_estimator_.decision_function(X))
