"""Fit the models of a cell of a prediction: one, or one per metric that selects parameters."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from lemll._types import Array, Estimator, Features, IndexArray, Settings, SettingsView
from lemll._validation import is_sparse
from lemll.datasets import Dataset
from lemll.experiments.execution.reuse import FirstStages
from lemll.experiments.execution.searches import best_by_metric, make_search
from lemll.experiments.protocols.cells import Cell
from lemll.experiments.protocols.settings import Splits, Tuning, rows_sha256

__all__ = ["Models", "fit_models", "split_rows", "unseen_features"]

# Number of data sets whose splits are kept. The cells of one data set follow each other.
_MOST_SPLIT_SETS = 2
# Number of choices on the first split that are kept. The other splits of a data set follow.
_MOST_CHOICES = 64

_ROWS: OrderedDict[tuple[str, Splits], list[tuple[Any, Any]]] = OrderedDict()
_CHOICES: OrderedDict[str, dict[str, Settings]] = OrderedDict()
# A worker of a cluster may run cells in several threads.
_LOCK = threading.Lock()
# Variants of a method follow each other on the same rows, so one cached result is enough.
_FIRST_STAGES = FirstStages(2)


@dataclass(frozen=True)
class Models:
    """The fitted models of a cell.

    Attributes
    ----------
    by_suffix : dict of str to estimator
        The models by the suffix of their arrays. The suffix of the first model is empty, that of
        another one is a dot and the metric that selected its parameters.
    chosen : mapping, optional
        The selected parameters. If several metrics select them: the parameters by metric.
    """

    by_suffix: dict[str, Estimator]
    chosen: SettingsView | None = None


def split_rows(cell: Cell, dataset: Dataset) -> tuple[Any, Any]:
    """Return the training and test rows of the split of a cell; each rule is computed once."""
    splits = cell.setting.splits
    if splits is None:
        raise ValueError("a prediction needs splits.")
    key = cell.data_sha256, splits
    with _LOCK:
        if key not in _ROWS:
            while len(_ROWS) >= _MOST_SPLIT_SETS:
                _ROWS.popitem(last=False)
            _ROWS[key] = list(splits.rows(dataset))
        return _ROWS[key][cell.setting.number]


def unseen_features(cell: Cell, dataset: Dataset, train: IndexArray, test: IndexArray) -> Features:
    """Return the features of the test rows, as the method gets them."""
    return _scaling(cell, dataset.X[train])(dataset.X[test])


def _scaling(cell: Cell, seen: Features) -> Any:
    """Return the function that scales features; it is learned on the training rows."""
    if cell.method.features == "given":
        return lambda rows: rows
    # Sparse features stay sparse: they are not centred.
    scaler = MaxAbsScaler() if is_sparse(seen) else StandardScaler()
    return scaler.fit(seen).transform


def _training(cell: Cell, dataset: Dataset) -> tuple[Features, Array]:
    """Return the features and labels of the training rows, as the method gets them."""
    train, _ = split_rows(cell, dataset)
    seen = dataset.X[train]
    Y = cell.setting.hidden(dataset.labels[train])
    if cell.method.unobserved == "zero":
        Y = np.where(Y == 1, 1, 0).astype(np.int8)
    return _scaling(cell, seen)(seen), Y


def fit_models(estimator: Estimator, cell: Cell, dataset: Dataset) -> Models:
    """Fit the model of a cell, or one model per metric that selects other parameters.

    Parameters
    ----------
    estimator : estimator
        The learner of the cell, not fitted. It may be fitted.
    cell : Cell
        A cell of a prediction.
    dataset : Dataset
        Its data.

    Returns
    -------
    Models
        At least one.
    """
    X, Y = _training(cell, dataset)
    tuning = cell.tuning
    _share_first_stages(estimator, tuning)
    if tuning is None or not cell.grid:
        return _alone(estimator.fit(X, Y), cell)
    if tuning.splits == "all" and len(tuning.metrics) == 1:
        return _alone(_search(estimator, cell, tuning, X, Y), cell)
    if tuning.splits == "all":
        chosen = _choices(estimator, cell, tuning, X, Y)
    else:
        chosen = _choices_on_first(estimator, cell, tuning, dataset)
    by_suffix = _fit_chosen(estimator, chosen, X, Y)
    return Models(by_suffix, chosen if len(chosen) > 1 else chosen[tuning.metrics[0]])


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
        return Models({"": model})
    # A search may also try values outside of the grid, for example its default kernel.
    names = cell.grid or model.best_params_
    return Models({"": model}, {name: model.best_params_[name] for name in names})


def _search(estimator: Estimator, cell: Cell, tuning: Tuning, X: Features, Y: Array) -> Any:
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


def _choices_on_first(
    estimator: Estimator, cell: Cell, tuning: Tuning, dataset: Dataset
) -> dict[str, Settings]:
    """Return the parameters selected on the training rows of the first split, once per process."""
    first = replace(cell, setting=replace(cell.setting, number=0, rows_sha256=""))
    rows = rows_sha256(*split_rows(first, dataset))
    first = replace(first, setting=replace(first.setting, rows_sha256=rows))
    with _LOCK:
        known = _CHOICES.get(first.id)
    if known is None:
        known = _choices(estimator, first, tuning, *_training(first, dataset))
        with _LOCK:
            while len(_CHOICES) >= _MOST_CHOICES:
                _CHOICES.popitem(last=False)
            _CHOICES[first.id] = known
    return known


def _fit_chosen(
    estimator: Estimator, chosen: dict[str, Settings], X: Features, Y: Array
) -> dict[str, Estimator]:
    """Fit each selected point once; metrics that agree with the first one share its model."""
    fits: list[tuple[Settings, Estimator]] = []
    by_suffix: dict[str, Estimator] = {}
    for metric, parameters in chosen.items():
        model = next((made for known, made in fits if known == parameters), None)
        if model is None:
            model = clone(estimator).set_params(**parameters).fit(X, Y)
            fits.append((parameters, model))
        if not by_suffix:
            by_suffix[""] = model
        elif parameters != fits[0][0]:
            by_suffix[f".{metric}"] = model
    return by_suffix
