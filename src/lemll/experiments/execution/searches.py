"""Grid searches: that of scikit-learn, or a path search if the learner has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.model_selection import GridSearchCV

from lemll._types import Estimator, SettingsView
from lemll.experiments.execution.shared_grid import SharedGridSearch
from lemll.experiments.protocols.settings import Tuning
from lemll.metrics import get_scorer
from lemll.predictors import LEMLL, LEMLLCV, MSVRCV, MSVRClassifier

__all__ = ["make_search"]

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
        The measure by which the best is chosen, and the kind of search on a path.
    folds : splitter
        The folds of the training rows.
    decisions : tuple of str, default=()
        Parameters that the Hamming loss chooses after the others. Only learners with `fit_grid`
        have some.

    Returns
    -------
    estimator
        With `best_params_` and `best_estimator_` once it is fitted.
    """
    path, names = _PATHS.get(type(estimator), (None, {}))
    parameters = estimator.get_params()
    if path is not None and grid.keys() <= names.keys() and parameters.get("graph") is None:
        values = {of_path: grid.get(name, [parameters[name]]) for name, of_path in names.items()}
        made = path(**values, scoring=tuning.metric, cv=folds, tol_final=parameters["tol"])
        # MSVR has one parameter to tune, so it has no coarse search.
        shared = {**parameters, "search": tuning.search}
        return made.set_params(
            **{name: value for name, value in shared.items() if name in made.get_params()}
        )
    lists = {name: list(values) for name, values in grid.items()}
    if hasattr(estimator, "fit_grid"):
        return SharedGridSearch(estimator, lists, tuning.metric, folds, decisions)
    scoring = get_scorer(tuning.metric)
    return GridSearchCV(estimator, lists, scoring=scoring, cv=folds, error_score="raise")
