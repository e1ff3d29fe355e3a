"""Grid searches: that of scikit-learn, or a path search if the learner has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from lemll._types import Estimator, Settings, SettingsView
from lemll.experiments.execution.shared_grid import SharedGridSearch
from lemll.experiments.protocols.settings import Tuning
from lemll.metrics import get_scorer
from lemll.predictors import LEMLL, LEMLLCV, MSVRCV, MSVRClassifier

__all__ = ["best_by_metric", "make_search"]

# Learners with a path search, and the names of the values to try in this search.
_PATHS: Mapping[type, tuple[type, Mapping[str, str]]] = {
    LEMLL: (LEMLLCV, {"alpha": "alphas", "beta": "betas", "gamma": "gammas"}),
    MSVRClassifier: (MSVRCV, {"alpha": "alphas"}),
}


def make_search(
    estimator: Estimator,
    grid: SettingsView,
    tuning: Tuning,
    folds: Any,
    decisions: tuple[str, ...] = (),
) -> Any:
    """Return the estimator that searches for the best parameters of a grid.

    Parameters
    ----------
    estimator : estimator
        A learner, not fitted.
    grid : mapping of str to sequence
        Values of its parameters.
    tuning : Tuning
        The metrics by which the best is chosen, and the kind of search on a path.
    folds : splitter
        The folds of the training rows.
    decisions : tuple of str, default=()
        Parameters that are chosen after the others, because the order of the labels hardly
        depends on them. Only learners with `fit_grid` have some.

    Returns
    -------
    estimator
        With `best_params_` and `best_estimator_` once it is fitted. With several metrics it has
        no final model: use `best_by_metric`.
    """
    several = len(tuning.metrics) > 1
    path, names = _PATHS.get(type(estimator), (None, {}))
    parameters = estimator.get_params()
    if path is not None and grid.keys() <= names.keys() and parameters.get("graph") is None:
        values = {of_path: grid.get(name, [parameters[name]]) for name, of_path in names.items()}
        made = path(**values, scoring=tuning.metric, cv=folds, refit=not several)
        # The path solves the points that lead by its first metric again. With several metrics all
        # of them are chosen at the gap of the search.
        made.set_params(tol_final=made.tol_search if several else parameters["tol"])
        # MSVR has one parameter to tune, so it has no coarse search.
        shared = {**parameters, "search": tuning.search}
        return made.set_params(
            **{name: value for name, value in shared.items() if name in made.get_params()}
        )
    lists = {name: list(values) for name, values in grid.items()}
    if hasattr(estimator, "fit_grid"):
        return SharedGridSearch(estimator, lists, tuning.metrics, folds, decisions)
    scorers = {name: get_scorer(name) for name in tuning.metrics}
    scoring = scorers if several else scorers[tuning.metrics[0]]
    return GridSearchCV(
        estimator, lists, scoring=scoring, cv=folds, refit=not several, error_score="raise"
    )


def best_by_metric(
    search: Any, grid: SettingsView, metrics: tuple[str, ...]
) -> dict[str, Settings]:
    """Return the parameters that each metric selects.

    Parameters
    ----------
    search : estimator
        A fitted search of `make_search`, with several metrics.
    grid : mapping of str to sequence
        The parameters that were searched.
    metrics : tuple of str
        The metrics of the search.

    Returns
    -------
    dict of str to dict
        The parameters by metric. Of points with the same score the first one is taken.
    """
    if isinstance(search, SharedGridSearch):
        return search.best_by_metric_
    found = {}
    for metric in metrics:
        means = np.asarray(search.cv_results_[f"mean_test_{metric}"], dtype=float)
        if np.isnan(means).all():
            raise ValueError(
                f"no fold has a row that {metric} can judge, so it cannot select parameters; use "
                "fewer folds, or leave it out of the metrics of the tuning."
            )
        place = int(np.nanargmax(means))
        found[metric] = {name: search.cv_results_[f"param_{name}"][place] for name in grid}
    return found
