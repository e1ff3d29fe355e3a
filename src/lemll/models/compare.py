"""Compare learners on one table: the same splits for all, and rows that no learner has seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from lemll._types import FloatArray, IndexArray, Settings
from lemll.exceptions import LemllError
from lemll.metrics import METRICS
from lemll.models.assess import MEASURES, label_shares
from lemll.models.training import (
    LEARNERS,
    fit_rows,
    make_learner,
    stratified_splits,
    table_pipeline,
)
from lemll.predictors import LEMLLCV, TagPredictor
from lemll.tables import LabelledTable, LabelSpec, Table, TableEncoder, inspect_columns, split_table

FREQUENCY = "labels by frequency"
_FEWEST_ROWS = 20
# Fewer splits do not tell a difference from chance, so they are done whatever the time.
FEWEST_SPLITS = 3
# TagPredictor gets this share of the time; the others need far less, and have no budget.
_SHARE = 0.35


class LearnerScores(NamedTuple):
    """Values of all learners in all splits.

    Attributes
    ----------
    learners : tuple of str
        Names of the learners. The last one, ``FREQUENCY``, predicts the frequencies of the labels.
    measures : tuple of str
        Names in ``lemll.metrics.METRICS``.
    values : ndarray of shape (n_splits, n_learners, n_measures)
        The values; NaN where a measure is not defined or a learner has no probabilities.
    seconds : ndarray of shape (n_splits, n_learners)
        Time of the fits.
    n_train, n_test : int
        Rows of a split.
    source : str
        The table.
    stopped : bool
        Whether the comparison was stopped before all splits were done.
    cut_short : tuple of str
        Learners that had less time than they need, in some split.
    """

    learners: tuple[str, ...]
    measures: tuple[str, ...]
    values: FloatArray
    seconds: FloatArray
    n_train: int
    n_test: int
    source: str
    stopped: bool
    cut_short: tuple[str, ...] = ()

    @property
    def caution(self) -> str:
        """A sentence about learners that had too little time; empty if there are none."""
        if not self.cut_short:
            return ""
        return (
            f"{', '.join(self.cut_short)} had less time than needed, so its figures are too low; "
            "compare again with a longer time limit, or without one."
        )

    def to_json(self) -> Settings:
        """Return plain data: a value per split, None where there is none."""
        return {
            "table": self.source,
            "splits": len(self.values),
            "stopped": self.stopped,
            "cut_short": list(self.cut_short),
            "rows": {"train": self.n_train, "test": self.n_test},
            "learners": {
                name: {
                    "seconds": self.seconds[:, i].round(3).tolist(),
                    "values": {
                        measure: [None if np.isnan(v) else float(v) for v in self.values[:, i, j]]
                        for j, measure in enumerate(self.measures)
                    },
                }
                for i, name in enumerate(self.learners)
            },
        }


def compare_learners(
    table: Table,
    spec: LabelSpec,
    learners: Sequence[str] = tuple(LEARNERS),
    *,
    n_splits: int = 5,
    ids: str | None = None,
    ignore: Sequence[str] = (),
    seconds: float | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> LearnerScores:
    """Fit learners to parts of a table, and measure how they predict the other rows.

    The rows are divided into folds, stratified by the labels. In each split one fold is predicted
    by models of the other folds. The cells of all rows decide what each column holds, without a
    look at the labels; a learner and its encoder learn from the training rows alone. Ctrl-C
    (KeyboardInterrupt) ends the comparison; the splits done so far are returned if there are at
    least two.

    Parameters
    ----------
    table : Table
        The table.
    spec : LabelSpec
        Where the labels are.
    learners : sequence of str, default=all
        Names in ``LEARNERS``, in any case.
    n_splits : int, default=5
        Number of folds.
    ids : str, optional
        The column of ids.
    ignore : sequence of str, default=()
        Columns that are not features.
    seconds : float, optional
        Time budget, about. TagPredictor gets a share of it. When the next split would exceed it,
        the comparison ends with the splits done so far, at least three.
    seed : int, default=0
        Seed of the folds.
    progress : callable, optional
        Called with a line of text before each step.

    Returns
    -------
    LearnerScores
        The values of each split.
    """
    say = progress or (lambda line: None)
    data = split_table(table, spec, ids=ids, ignore=ignore)
    if n_splits < 2 or len(data.Y) < max(_FEWEST_ROWS, 2 * n_splits):
        raise LemllError(
            f"`n_splits` must be at least 2, with 2 rows each and {_FEWEST_ROWS} in all, got "
            f"{n_splits} splits of {len(data.Y)} rows"
        )
    made = _make(learners, data, None if seconds is None else seconds / n_splits)
    X = TableEncoder(columns=inspect_columns(data.X)).fit_transform(data.X)
    splits = list(stratified_splits(X, data.Y, n_splits, seed=seed, say=say))
    rows: list[tuple[list[list[float]], list[float]]] = []
    cut_short: set[str] = set()
    stopped, begin = False, time.perf_counter()
    try:
        for number, split in enumerate(splits, start=1):
            if len(rows) >= FEWEST_SPLITS and seconds is not None:
                expected = (time.perf_counter() - begin) * number / len(rows)
                if expected > seconds:
                    say(f"no more splits: the next would exceed the limit of {seconds:g} s")
                    stopped = True
                    break
            say(f"split {number} of {n_splits}")
            rows.append(_split(made, data, split, say, cut_short))
    except KeyboardInterrupt:
        if len(rows) < 2:
            raise
        stopped = True
    return LearnerScores(
        learners=(*made, FREQUENCY),
        measures=MEASURES,
        values=np.array([values for values, _ in rows]),
        seconds=np.array([times for _, times in rows]),
        n_train=len(splits[0][0]),
        n_test=len(splits[0][1]),
        source=table.source,
        stopped=stopped,
        cut_short=tuple(name for name in made if name in cut_short),
    )


def _make(names: Sequence[str], data: LabelledTable, seconds: float | None) -> dict[str, Pipeline]:
    """Return the pipelines by the names of their learners."""
    made: dict[str, Pipeline] = {}
    for name in names:
        learner = make_learner(name)
        if isinstance(learner, (TagPredictor, LEMLLCV)) and seconds is not None:
            learner.set_params(max_seconds=_SHARE * seconds)
        known = next(known for known in LEARNERS if known.lower() == name.lower())
        if known in made:
            raise LemllError(f"`learners` names {known} twice")
        made[known] = table_pipeline(learner, data)
    if not made:
        raise LemllError(f"`learners` must name at least one of {', '.join(LEARNERS)}")
    return made


def _split(
    made: dict[str, Pipeline],
    data: LabelledTable,
    rows: tuple[IndexArray, IndexArray],
    say: Callable[[str], None],
    cut_short: set[str],
) -> tuple[list[list[float]], list[float]]:
    """Return the values and times of all learners in one split; add those cut short to a set."""
    train, test = rows
    values, times = [], []
    for name, pipeline in made.items():
        say(f"  {name}")
        begin = time.perf_counter()
        fitted = fit_rows(pipeline, data, train, lambda line: None)
        times.append(time.perf_counter() - begin)
        features = fitted[0].transform(data.X.iloc[test])
        learner = fitted[-1]
        if getattr(learner, "cut_short_", None):
            cut_short.add(name)
        outputs = {
            "labels": (np.asarray(learner.predict(features)) == 1).astype(np.int8),
            "scores": np.asarray(learner.decision_function(features)),
        }
        if hasattr(learner, "predict_proba"):
            outputs["probabilities"] = np.asarray(learner.predict_proba(features))
        values.append(list(_measured(data.Y[test], outputs)))
    shares = np.tile(label_shares(data.Y[train]), (len(test), 1))
    outputs = {"labels": (shares > 0.5).astype(np.int8), "scores": shares, "probabilities": shares}
    return [*values, list(_measured(data.Y[test], outputs))], [*times, 0.0]


def _measured(Y: FloatArray, outputs: dict[str, FloatArray]) -> Iterator[float]:
    for name in MEASURES:
        metric = METRICS[name]
        try:
            yield float(metric(Y, outputs[metric.prediction]))
        except (KeyError, ValueError):  # no probabilities, or not defined on these rows
            yield float("nan")
