"""Fit the models of a cell of a prediction: one, or one per metric that selects parameters.

A grid search is that of scikit-learn, or a path search if the learner has one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import joblib
import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, KFold, ParameterGrid
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from lemll._types import Array, Estimator, Features, FloatArray, LabelArray, Settings, SettingsView
from lemll._validation import is_sparse
from lemll.datasets.dataset import Dataset
from lemll.fitting.equation9 import graph_is_given
from lemll.lab.cells import Cell, Recent, Tuning, features_sha256, rows_sha256
from lemll.lab.methods import plain
from lemll.metrics.scorers import get_scorer
from lemll.metrics.table import METRICS
from lemll.predictors.lemll import LEMLL, LEMLLCV, not_searchable
from lemll.predictors.msvr import MSVRClassifier
from lemll.predictors.msvr_cv import MSVRCV

# Three enhancers of lemll use a graph.
_MOST_GRAPHS = 3


class FirstStages:
    """A cache in the memory of one process, for the parameter `memory` of an estimator.

    It implements the part of the interface of `joblib.Memory` that scikit-learn uses. It does not
    write files.

    Parameters
    ----------
    most : int
        Largest number of results to keep.

    Examples
    --------
    >>> calls = []
    >>> remembered = FirstStages(2).cache(lambda x: calls.append(x) or x + 1)
    >>> remembered(1), remembered(1), len(calls)
    (2, 2, 1)
    """

    def __init__(self, most: int) -> None:
        self._kept = Recent(most)

    def cache(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with a cache of its results.

        Parameters
        ----------
        function : callable
            A function whose arguments `joblib.hash` can distinguish.

        Returns
        -------
        callable
            A function with the same results.
        """

        def remembered(*arguments: object) -> Any:
            key = str(joblib.hash((function.__qualname__, arguments)))
            return self._kept.of(key, lambda: function(*arguments))

        return remembered

    def at_least(self, most: int) -> Self:
        """Keep at least this many results.

        Parameters
        ----------
        most : int
            Number of results: one per subset of the rows that a search uses again.

        Returns
        -------
        self
            The same cache.
        """
        self._kept.most = max(self._kept.most, most)
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        # scikit-learn clones an estimator for each point of a grid. All clones share this cache.
        return self


class Graphs:
    """A cache of the graphs of enhancers, for further thresholds and for data sets with the same X.

    A graph depends only on the features. Fits give the same result with and without the cache, but
    some take a thousand times longer without it.
    """

    def __init__(self) -> None:
        self._kept = Recent(_MOST_GRAPHS)
        self._lock = threading.Lock()

    def of(self, estimator: Estimator, dataset: Dataset) -> Any:
        """Return the value for the parameter `graph` of an estimator, or None if it has none."""
        if graph_is_given(estimator.get_params().get("graph", dataset)):
            return None
        n_labels = dataset.labels.shape[1]
        settings = json.dumps(plain(estimator.get_params()), sort_keys=True)
        key = (type(estimator).__name__, settings, str(n_labels), features_sha256(dataset.X))
        with self._lock:
            return self._kept.of(key, lambda: estimator.make_graph(dataset.X, n_labels))


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

    def _lists(self, *, decide: bool) -> dict[str, list[object]]:
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
    unusable = isinstance(estimator, LEMLL) and not_searchable(estimator)
    if path is not None and grid.keys() <= names.keys() and not unusable:
        values = {of_path: grid.get(name, [parameters[name]]) for name, of_path in names.items()}
        made = path(**values, scoring=tuning.metric, cv=folds, refit=not several)
        template = clone(estimator)
        if several:
            # The path solves the points that lead by its first metric again. With several metrics
            # all of them are chosen at the gap of the search.
            template.set_params(tol=made.tol_search)
        if isinstance(made, LEMLLCV):  # MSVR has one parameter to tune, so no coarse search
            made.set_params(search=tuning.search)
        return made.set_params(estimator=template)
    lists = {name: list(values) for name, values in grid.items()}
    if hasattr(estimator, "fit_grid"):
        return SharedGridSearch(estimator, lists, tuning.metrics, folds, decisions)
    scorers = {name: get_scorer(name) for name in tuning.metrics}
    scoring = scorers if several else scorers[tuning.metrics[0]]
    return GridSearchCV(
        estimator, lists, scoring=scoring, cv=folds, refit=not several, error_score="raise"
    )


def best_by_metric(
    search: Estimator, grid: SettingsView, metrics: tuple[str, ...]
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


# Number of data sets whose splits are kept. The cells of one data set follow each other.
_MOST_SPLIT_SETS = 2
# Number of choices on the first split that are kept. The other splits of a data set follow.
_MOST_CHOICES = 64

_ROWS = Recent(_MOST_SPLIT_SETS)
_CHOICES = Recent(_MOST_CHOICES)
_CHOOSING: dict[str, threading.Lock] = {}
# A worker of a cluster may run cells in several threads.
_LOCK = threading.Lock()
# Variants of a method follow each other on the same rows, so the results of one method are enough.
# TagPredictor has the most: one per member.
_FIRST_STAGES = FirstStages(4)


@dataclass(frozen=True)
class Models:
    """The fitted models of a cell.

    Attributes
    ----------
    first : estimator
        The model of all metrics that have no model of their own.
    others : dict of str to estimator
        The models of the metrics that selected other parameters.
    chosen : mapping, optional
        The selected parameters. If several metrics select them: the parameters by metric.
    """

    first: Estimator
    others: dict[str, Estimator] = field(default_factory=dict)
    chosen: SettingsView | None = None


def own_arrays(cell: Cell, chosen: SettingsView | None) -> dict[str, str]:
    """Return the names of the arrays of metrics that selected other parameters than the first.

    Parameters
    ----------
    cell : Cell
        A cell of a prediction.
    chosen : mapping or None
        The selected parameters; by metric if there are several metrics.

    Returns
    -------
    dict of str to str
        The names by metric: scores or predictions, a dot, and the metric.
    """
    tuning = cell.tuning
    # A method without a grid may search by itself. Its parameters serve all metrics.
    if tuning is None or not cell.grid or len(tuning.metrics) == 1 or chosen is None:
        return {}
    first = chosen[tuning.metrics[0]]
    array = {"labels": "predictions"}
    return {
        name: f"{array.get(METRICS[name].prediction, 'scores')}.{name}"
        for name in tuning.metrics
        if chosen[name] != first
    }


def split_rows(cell: Cell, dataset: Dataset) -> tuple[Features, Features]:
    """Return the training and test rows of the split of a cell; each rule is computed once."""
    splits = cell.setting.splits
    if splits is None:
        raise ValueError("a prediction needs splits.")
    with _LOCK:
        rows = _ROWS.of((cell.data_sha256, splits), lambda: list(splits.rows(dataset)))
    train, test = rows[cell.setting.number]
    return train, test


def training_rows(
    cell: Cell, dataset: Dataset
) -> tuple[Features, Array, Callable[[Features], Features]]:
    """Return the training rows of a cell, as the method gets them.

    Parameters
    ----------
    cell : Cell
        A cell of a prediction.
    dataset : Dataset
        Its data.

    Returns
    -------
    X, Y : array
        Features and labels.
    scaling : callable
        Scales features of other rows in the same way.
    """
    train, _ = split_rows(cell, dataset)
    X = dataset.X[train]
    Y = cell.setting.hidden(dataset.labels[train])
    if cell.method.unobserved == "zero":
        Y = np.where(Y == 1, 1, 0).astype(np.int8)
    if cell.method.features == "given":
        return X, Y, lambda rows: rows
    # Sparse features stay sparse: they are not centred.
    scaler = (MaxAbsScaler() if is_sparse(X) else StandardScaler()).fit(X)
    return scaler.transform(X), Y, scaler.transform


def fit_models(
    estimator: Estimator,
    cell: Cell,
    dataset: Dataset,
    rows: tuple[Features, Array],
    known: SettingsView | None = None,
) -> Models:
    """Fit the model of a cell, or one model per metric that selects other parameters.

    Parameters
    ----------
    estimator : estimator
        The learner of the cell, not fitted. It may be fitted here.
    cell : Cell
        A cell of a prediction.
    dataset : Dataset
        Its data, for the rows of the first split.
    rows : tuple of array
        Features and labels of the training rows of the cell, from `training_rows`.
    known : mapping, optional
        The parameters that the first split has selected, as in its record. By default they are
        selected here if the tuning asks for them.

    Returns
    -------
    Models
        The fitted models.
    """
    X, Y = rows
    tuning = cell.tuning
    _share_first_stages(estimator, tuning)
    if tuning is None or not cell.grid:
        return _alone(estimator.fit(X, Y), cell)
    if tuning.splits == "first" and known is not None:
        chosen = _choices_of_record(cell, tuning, known)
    elif tuning.splits == "first":
        chosen = _choices_on_first(estimator, cell, tuning, dataset)
    elif len(tuning.metrics) == 1:
        return _alone(_search(estimator, cell, tuning, X, Y), cell)
    else:
        chosen = _choices(estimator, cell, tuning, X, Y)
    fits = _fit_chosen(estimator, chosen, X, Y)
    parameters = chosen if len(chosen) > 1 else chosen[tuning.metrics[0]]
    others = {metric: fits[metric] for metric in own_arrays(cell, parameters)}
    return Models(fits[tuning.metrics[0]], others, parameters)


def _share_first_stages(estimator: Estimator, tuning: Tuning | None) -> None:
    """Let a learner with two stages compute its first stage once for the whole grid."""
    parameters = estimator.get_params()
    if "memory" in parameters and parameters["memory"] is None:
        # One first stage per fold is used for the whole grid, and one for the final fit on all
        # training rows.
        parts = 1 if tuning is None else tuning.folds + 1
        estimator.set_params(memory=_FIRST_STAGES.at_least(parts))


def _alone(model: Estimator, cell: Cell) -> Models:
    if not hasattr(model, "best_params_"):
        return Models(model)
    # A search may also try values outside of the grid, for example its default kernel.
    names = cell.grid or model.best_params_
    return Models(model, chosen={name: model.best_params_[name] for name in names})


def _search(estimator: Estimator, cell: Cell, tuning: Tuning, X: Features, Y: Array) -> Estimator:
    folds = KFold(tuning.folds, shuffle=True, random_state=tuning.random_state)
    return make_search(estimator, cell.grid, tuning, folds, cell.decisions).fit(X, Y)


def _choices(
    estimator: Estimator, cell: Cell, tuning: Tuning, X: Features, Y: Array
) -> dict[str, Settings]:
    """Return the parameters that each metric of the tuning selects on these rows."""
    search = _search(estimator, cell, tuning, X, Y)
    if len(tuning.metrics) == 1:
        return {tuning.metrics[0]: {name: search.best_params_[name] for name in cell.grid}}
    return best_by_metric(search, cell.grid, tuning.metrics)


def _choices_of_record(cell: Cell, tuning: Tuning, known: SettingsView) -> dict[str, Settings]:
    """Return the values of the grid that a record names. Records hold them in plain form."""
    by_metric = known if len(tuning.metrics) > 1 else {tuning.metrics[0]: known}
    return {
        metric: {
            name: next(value for value in cell.grid[name] if plain(value) == shown)
            for name, shown in by_metric[metric].items()
        }
        for metric in tuning.metrics
    }


def _choices_on_first(
    estimator: Estimator, cell: Cell, tuning: Tuning, dataset: Dataset
) -> dict[str, Settings]:
    """Return the parameters selected on the training rows of the first split.

    A process selects them once. Another process selects them again if the first split is not done
    yet, with the same result unless the learner is random without a seed.
    """
    first = replace(cell, setting=replace(cell.setting, number=0, rows_sha256=""))
    rows = rows_sha256(*split_rows(first, dataset))
    first = replace(first, setting=replace(first.setting, rows_sha256=rows))

    def choose() -> dict[str, Settings]:
        X, Y, _ = training_rows(first, dataset)
        return _choices(estimator, first, tuning, X, Y)

    with _LOCK:
        choosing = _CHOOSING.setdefault(first.id, threading.Lock())
    with choosing:
        known: dict[str, Settings] = _CHOICES.of(first.id, choose)
    return known


def _fit_chosen(
    estimator: Estimator, chosen: dict[str, Settings], X: Features, Y: Array
) -> dict[str, Estimator]:
    """Return the fitted model of each metric. Metrics with the same parameters share a model."""
    fits: dict[str, Estimator] = {}
    for metric, parameters in chosen.items():
        same = next((other for other in fits if chosen[other] == parameters), None)
        fits[metric] = (
            clone(estimator).set_params(**parameters).fit(X, Y) if same is None else fits[same]
        )
    return fits
