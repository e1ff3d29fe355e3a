"""Grid search for learners that fit a whole grid faster than its points one by one."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid

from lemll._types import Estimator, Features, FloatArray, LabelArray, Settings, SettingsView
from lemll.metrics import METRICS, get_scorer

__all__ = ["SharedGridSearch"]

# The metric of the parameters in `decisions`, if the metric of the others judges only the order.
_DECISION_METRIC = "hamming_loss"


class SharedGridSearch(BaseEstimator):
    """Cross-validate the points of a grid with `fit_grid`, and refit the best one.

    First the parameters that are not in `decisions` are chosen by the metric, the others having
    their values in the estimator. Then those in `decisions` are chosen. The score of a point is
    the mean over the folds; the first of equal points wins.

    Parameters
    ----------
    estimator : estimator with `fit_grid`
        A learner, not fitted.
    grid : mapping of str to sequence
        Values of its parameters.
    metrics : tuple of str
        Names in ``lemll.metrics.METRICS``. Each chooses parameters of its own. A metric that
        judges predicted labels also chooses those in `decisions`; for the others they keep their
        values in the estimator. If no metric judges predicted labels, the Hamming loss chooses
        those in `decisions` for the first metric.
    folds : splitter
        The folds of the training rows.
    decisions : tuple of str, default=()
        Parameters that change which labels are predicted, but hardly their order.

    Attributes
    ----------
    scores_ : list of dict of str to ndarray of shape (n_folds, n_points)
        The scores of the points in each of the steps, by metric; greater is better.
    best_by_metric_ : dict of str to dict
        The parameters of the best point, by metric.
    best_params_ : dict
        The parameters of the best point. Only with one metric.
    best_estimator_ : estimator
        Fitted to all rows with these parameters. Only with one metric.
    """

    def __init__(
        self,
        estimator: Estimator,
        grid: SettingsView,
        metrics: tuple[str, ...],
        folds: Any,
        decisions: tuple[str, ...] = (),
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.metrics = metrics
        self.folds = folds
        self.decisions = decisions

    def fit(self, X: Features, Y: LabelArray) -> Self:
        """Search. With one metric, also fit the best point to all rows."""
        self.scores_: list[dict[str, FloatArray]] = []
        first, second = self._lists(decide=False), self._lists(decide=True)
        best: dict[str, Settings] = {name: {} for name in self.metrics}
        if first:
            best = self._step(X, Y, list(ParameterGrid(first)), self.metrics)
        if second:
            for name, decider in self._deciders().items():
                points = [best[name] | point for point in ParameterGrid(second)]
                best[name] = self._step(X, Y, points, (decider,))[decider]
        self.best_by_metric_ = best
        if len(self.metrics) == 1:
            self.best_params_ = best[self.metrics[0]]
            self.best_estimator_ = clone(self.estimator).set_params(**self.best_params_).fit(X, Y)
        return self

    def _lists(self, *, decide: bool) -> dict[str, list[Any]]:
        return {
            name: list(values)
            for name, values in self.grid.items()
            if (name in self.decisions) == decide
        }

    def _deciders(self) -> dict[str, str]:
        """Return the metrics whose points get decisions, and the metric that chooses them."""
        judges = {name: name for name in self.metrics if METRICS[name].prediction == "labels"}
        return judges or {self.metrics[0]: _DECISION_METRIC}

    def _step(
        self, X: Features, Y: LabelArray, points: list[Settings], metrics: tuple[str, ...]
    ) -> dict[str, Settings]:
        """Score points and return the best one by each metric."""
        scorers = [get_scorer(name) for name in metrics]
        # A model is measured as soon as it is fitted, so only one is in the memory at a time.
        scores = np.array(
            [
                [
                    [scorer(model, X[test], Y[test]) for scorer in scorers]
                    for model in self.estimator.fit_grid(X[train], Y[train], points)
                ]
                for train, test in self.folds.split(X, Y)
            ]
        )
        self.scores_.append({name: scores[..., i] for i, name in enumerate(metrics)})
        return {
            name: points[int(scores[..., i].mean(axis=0).argmax())]
            for i, name in enumerate(metrics)
        }

    def predict(self, X: Features) -> LabelArray:
        """Return the labels of the best model."""
        return np.asarray(self.best_estimator_.predict(X))

    def decision_function(self, X: Features) -> FloatArray:
        """Return the scores of the best model."""
        return np.asarray(self.best_estimator_.decision_function(X))
