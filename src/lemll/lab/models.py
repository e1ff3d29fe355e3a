"""Fit the models of a cell of a prediction: one, or one per metric that selects parameters."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from lemll._types import Array, Estimator, Features, Settings, SettingsView
from lemll._validation import is_sparse
from lemll.datasets.dataset import Dataset
from lemll.lab.cells import Cell, Recent, Tuning, rows_sha256
from lemll.lab.methods import plain
from lemll.lab.searches import FirstStages, best_by_metric, make_search
from lemll.metrics.table import METRICS

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
