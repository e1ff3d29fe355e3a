"""Explain a table and its model: importance, telling features, neighbours, co-occurrence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from lemll._types import Array, BoolArray, Features, FloatArray, Frame, IndexArray, Settings
from lemll._validation import is_sparse
from lemll.enhancers import BlendEnhancer, OrderEstimate
from lemll.models.training import TableModel
from lemll.predictors import LEMLL
from lemll.tables import Table, is_missing, truth_of
from lemll.topology import reconstruction_weights

_NEIGHBORS = 10
# The gap to the optimum does not change what a reader can see.
_TOLERANCE = 1e-3
# The model's answers to shuffled columns are computed for this number of rows and columns.
_SHUFFLED_ROWS, _SHUFFLED_COLUMNS = 300, 24
_TELLING = 6


class Feature(NamedTuple):
    """A feature that tells for or against a label.

    Attributes
    ----------
    name : str
        Its name, for example "camera Nikon" or "caption: sea".
    effect : float
        How much the score of the label changes if the feature grows by its standard deviation.
    """

    name: str
    effect: float


class Explanation(NamedTuple):
    """What can be said about the rows, labels and columns of a table.

    Attributes
    ----------
    source : str
        The table.
    learner : str
        The learner of the model.
    ids : tuple of str
        Ids of the rows.
    label_names : tuple of str
        Names of the labels.
    Y : ndarray of shape (n_rows, n_labels)
        Given labels, NaN where unknown.
    importance : ndarray of shape (n_rows, n_labels)
        The probability that a given label matters most among those of its row, by `BlendEnhancer`.
        For the other labels, and in rows without a label, the degree.
    tossups : ndarray of bool of shape (n_rows, n_labels)
        The given labels whose order to the next one is not sure.
    order : OrderEstimate
        How well the order of the given labels is known.
    probabilities : ndarray of shape (n_rows, n_labels)
        Probabilities of the model, or its scores.
    are_probabilities : bool
        Which of the two.
    predicted : ndarray of shape (n_rows, n_labels)
        Labels that the model predicts.
    neighbors, weights : ndarray of shape (n_rows, n_neighbors)
        Rows from which LEMLL rebuilds a row, the largest weight first, and the weights.
    telling : list of list of Feature
        Per label, the features with the largest effects on the score of LEMLL.
    columns : tuple of str
        Columns whose shuffling was tried.
    sensitivity : ndarray of shape (n_columns, n_labels)
        Mean change of the model's probability if the column is shuffled among the rows.
    together : ndarray of shape (n_labels, n_labels)
        In how many rows both labels are given.
    cells : Frame
        The feature columns, to show them.
    report : dict
        The figures of the model's held-out rows.
    """

    source: str
    learner: str
    ids: tuple[str, ...]
    label_names: tuple[str, ...]
    Y: FloatArray
    importance: FloatArray
    tossups: BoolArray
    order: OrderEstimate
    probabilities: FloatArray
    are_probabilities: bool
    predicted: Array
    neighbors: IndexArray
    weights: FloatArray
    telling: list[list[Feature]]
    columns: tuple[str, ...]
    sensitivity: FloatArray
    together: IndexArray
    cells: Frame
    report: Settings


def explain_table(
    model: TableModel,
    table: Table,
    *,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Explanation:
    """Explain the rows of a table, its labels, and what a model makes of its columns.

    `BlendEnhancer` and LEMLL are fitted to the encoded rows and the given labels. The first says in
    which order the labels of a row matter; the graph of LEMLL says which neighbours rebuild a row,
    and its coefficients say which features tell for a label. What the model itself makes of a
    column is measured by shuffling it.

    Parameters
    ----------
    model : TableModel
        The model, of `fit_table` or `load`.
    table : Table
        A table with features and labels, for example the training table.
    seed : int, default=0
        Seed of the shuffling.
    progress : callable, optional
        Called with a line of text before each step.

    Returns
    -------
    Explanation
        Everything that the page shows.
    """
    say = progress or (lambda line: None)
    Y, _ = truth_of(table, model.spec, model.label_names)
    say(f"predicting {len(Y)} rows")
    found = model.predict(table)
    X = model.encoded(table)
    say("recovering how much each label matters")
    known = Y if np.isnan(Y).any() else Y.astype(np.int8)
    with warnings.catch_warnings():
        # A label without a row is named by the figures of the labels.
        warnings.filterwarnings("ignore", message="no row has the labels")
        blend = BlendEnhancer().fit(X, known)
    importance, tossups = _importance(blend)
    graph = reconstruction_weights(X, min(_NEIGHBORS, len(Y) - 1))
    enhanced = LEMLL(graph=graph, tol=_TOLERANCE).fit(X, known)
    neighbors, weights = _strongest(graph)
    say("shuffling columns")
    effects = enhanced.coef_ * _deviations(X)
    columns = _columns(model, effects)
    relevant, used = (Y == 1).astype(np.int64), _used(model)
    return Explanation(
        source=table.source,
        learner=type(model.learner).__name__,
        ids=found.ids,
        label_names=model.label_names,
        Y=Y,
        importance=importance,
        tossups=tossups,
        order=blend.order_estimate_,
        probabilities=found.probabilities,
        are_probabilities=found.are_probabilities,
        predicted=found.labels,
        neighbors=neighbors,
        weights=weights,
        telling=_telling(effects, list(model.pipeline[0].get_feature_names_out())),
        columns=columns,
        sensitivity=_sensitivity(model, table, columns, seed),
        together=relevant.T @ relevant,
        # The numbers of a vector tell a reader nothing.
        cells=table.frame[[n for n in table.frame.columns if used.get(n, "vector") != "vector"]],
        report=model.report,
    )


def _importance(blend: BlendEnhancer) -> tuple[FloatArray, BoolArray]:
    """Return shares among the given labels of each row, and whose order to the next is not sure."""
    shares = blend.label_distribution_.copy()
    tossups = np.zeros(shares.shape, dtype=np.bool_)
    for row in range(len(shares)):
        for label in blend.ranked_labels(row):
            shares[row, label.label] = label.share
            tossups[row, label.label] = not label.sure
    return shares, tossups


def _used(model: TableModel) -> dict[str, str]:
    """Return the columns that the encoder uses, with their kinds."""
    return {c.name: c.kind for c in model.pipeline[0].columns_ if c.kind != "ignored"}


def _deviations(X: Features) -> FloatArray:
    if not is_sparse(X):
        return np.asarray(X.std(axis=0))
    squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
    means = np.asarray(X.mean(axis=0)).ravel()
    return np.asarray(np.sqrt(np.maximum(squares - means**2, 0.0)))


def _strongest(graph: sparse.csr_array) -> tuple[IndexArray, FloatArray]:
    """Return the neighbours of each row by weight, and the weights; -1 and 0 for none."""
    n_rows = graph.shape[0]
    counts = np.diff(graph.indptr)
    width = int(counts.max(initial=0))
    neighbors = np.full((n_rows, width), -1, dtype=np.int64)
    weights = np.zeros((n_rows, width))
    places = np.arange(graph.nnz) - np.repeat(graph.indptr[:-1], counts)
    rows = np.repeat(np.arange(n_rows), counts)
    neighbors[rows, places], weights[rows, places] = graph.indices, graph.data
    order = np.argsort(-np.abs(weights), axis=1, kind="stable")
    return np.take_along_axis(neighbors, order, 1), np.take_along_axis(weights, order, 1)


def _telling(effects: FloatArray, names: list[str]) -> list[list[Feature]]:
    found = []
    for row in effects:
        order = np.argsort(-np.abs(row), kind="stable")[: 2 * _TELLING]
        found.append([Feature(names[j], float(row[j])) for j in order if row[j] != 0])
    return found


def _columns(model: TableModel, effects: FloatArray) -> tuple[str, ...]:
    """Return the columns to shuffle: all, or those with the largest effects in LEMLL."""
    used = list(_used(model))
    if len(used) <= _SHUFFLED_COLUMNS:
        return tuple(used)
    strength = dict.fromkeys(used, 0.0)
    for name, effect in zip(
        model.pipeline[0].feature_owners(), np.abs(effects).sum(axis=0), strict=True
    ):
        strength[name] += float(effect)
    best = sorted(used, key=lambda name: -strength[name])[:_SHUFFLED_COLUMNS]
    return tuple(name for name in used if name in best)


def _sensitivity(
    model: TableModel, table: Table, columns: tuple[str, ...], seed: int
) -> FloatArray:
    rng = np.random.RandomState(seed)
    n_rows = len(table.frame)
    rows = np.sort(rng.permutation(n_rows)[:_SHUFFLED_ROWS])
    frame = table.frame.iloc[rows].reset_index(drop=True)
    before = model.predict(Table(frame, table.source)).probabilities
    found = []
    for name in columns:
        cells = list(frame[name])
        if all(is_missing(cell) for cell in cells):
            found.append(np.zeros(before.shape[1]))
            continue
        order = rng.permutation(len(cells))
        changed = frame.assign(**{name: [cells[i] for i in order]})
        after = model.predict(Table(changed, table.source)).probabilities
        found.append(np.abs(after - before).mean(axis=0))
    return np.array(found)
