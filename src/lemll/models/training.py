"""Fit a learner to a table, report figures from unseen rows, and predict other tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from lemll._types import (
    BoolArray,
    Estimator,
    Features,
    FloatArray,
    Frame,
    IndexArray,
    MatrixLike,
    Settings,
    SettingsView,
)
from lemll.exceptions import LemllError, import_extra
from lemll.model_selection import IterativeStratifiedKFold, equal_row_groups
from lemll.models.assess import Assessment, assess, label_shares
from lemll.predictors import (
    LEMLL,
    LEMLLCV,
    BinaryRelevance,
    BlendProgress,
    MSVRClassifier,
    MultilabelForest,
    TagPredictor,
)
from lemll.tables import (
    LabelledTable,
    LabelSpec,
    Table,
    TableEncoder,
    inspect_columns,
    is_missing,
    split_table,
    truth_of,
)

LEARNERS: Mapping[str, Callable[[], Estimator]] = {
    "TagPredictor": TagPredictor,
    "LEMLL": lambda: LEMLLCV(
        estimator=LEMLL(probability=True), kernel="auto", normalize_rows="auto"
    ),
    "MSVR": lambda: MSVRClassifier(scale="auto", probability=True),
    "BinaryRelevance": BinaryRelevance,
    "MultilabelForest": lambda: MultilabelForest(random_state=0),
}
# One row in five is held out.
_HELD_OUT = 5
_FEWEST_ROWS = 20
# Share of the time budget for the choices of one of the two fits. The final fits of the members
# come after the choices, and they need the rest.
_SHARE = 0.25


class Predictions(NamedTuple):
    """Predictions for the rows of a table.

    Attributes
    ----------
    ids : tuple of str
        The ids of the rows, or their numbers from 1.
    labels : ndarray of shape (n_rows, n_labels)
        Whether each label is predicted.
    probabilities : ndarray of shape (n_rows, n_labels)
        The probability of each label; scores if the learner gives no probabilities.
    are_probabilities : bool
        Which of the two.
    label_names : tuple of str
        Names of the columns.
    """

    ids: tuple[str, ...]
    labels: BoolArray
    probabilities: FloatArray
    are_probabilities: bool
    label_names: tuple[str, ...]

    def to_frame(self) -> Frame:
        """Return the probabilities as a pandas frame: one row per id, one column per label."""
        pandas = import_extra("pandas", "tables", "Making a frame")
        return pandas.DataFrame(
            self.probabilities, index=list(self.ids), columns=list(self.label_names)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableModel:
    """A fitted learner together with the table that it was fitted to.

    Attributes
    ----------
    pipeline : Pipeline
        Encoder and learner.
    spec : LabelSpec
        Where the labels of a table are.
    id_column : str or None
        The column of ids.
    label_names : tuple of str
        Names of the labels.
    shares : tuple of float
        Frequencies of the labels in the training rows.
    n_rows : int
        Number of training rows.
    report : dict
        The figures of the rows that were held out, as plain data.
    """

    pipeline: Pipeline
    spec: LabelSpec
    id_column: str | None
    label_names: tuple[str, ...]
    shares: tuple[float, ...]
    n_rows: int
    report: Settings

    @property
    def learner(self) -> Estimator:
        """The fitted learner."""
        return self.pipeline[-1]

    @property
    def keep(self) -> list[str]:
        """Columns that a reader must keep as they are: tags and ids."""
        return [name for name in (self.spec.tags, self.id_column) if name is not None]

    def predict(self, table: Table) -> Predictions:
        """Predict the labels of the rows of a table.

        Parameters
        ----------
        table : Table
            A table with the feature columns of the training table.

        Returns
        -------
        Predictions
            Ids, labels and probabilities.
        """
        features = self.encoded(table)
        labels = np.asarray(self.learner.predict(features)) == 1
        sure = hasattr(self.learner, "predict_proba")
        values = (self.learner.predict_proba if sure else self.learner.decision_function)(features)
        return Predictions(self._ids(table), labels, np.asarray(values), sure, self.label_names)

    def encoded(self, table: Table) -> Features:
        """Return the features of the rows of a table; rows without ids have no words of ids."""
        frame = table.frame
        if self.id_column is not None and self.id_column not in frame.columns:
            frame = frame.assign(**{self.id_column: None})
        return self.pipeline[0].transform(frame)

    def evaluate(self, table: Table) -> tuple[Assessment, tuple[str, ...], int]:
        """Compare predictions with the labels of a table.

        Parameters
        ----------
        table : Table
            A table with features and labels, which the model has not seen.

        Returns
        -------
        assessment : Assessment
            The figures. The baseline is the frequencies in the training rows.
        unknown : tuple of str
            Tags of the table that the model does not know.
        n_seen : int
            Number of rows with the features of a training row. They are left out, because the model
            has seen them.
        """
        Y, unknown = truth_of(table, self.spec, self.label_names)
        X = self.encoded(table)
        new = np.flatnonzero(~self.pipeline[0].has_seen(X))
        if not len(new):
            raise LemllError(
                f"every row of {table.source} has the features of a training row, so its figures "
                "would be those of known rows; evaluate other rows, or read the figures of the "
                "rows that were held out with lemll info"
            )
        return _assessed(self.learner, X[new], Y[new], self.shares), unknown, len(Y) - len(new)

    def to_json(self) -> Settings:
        """Return all but the pipeline as plain data."""
        return {
            "spec": self.spec.to_json(),
            "id_column": self.id_column,
            "label_names": list(self.label_names),
            "shares": list(self.shares),
            "n_rows": self.n_rows,
            "report": self.report,
        }

    @classmethod
    def from_json(cls, content: SettingsView, pipeline: Pipeline) -> TableModel:
        """Return the model of plain data and its pipeline."""
        return cls(
            pipeline=pipeline,
            spec=LabelSpec.from_json(content["spec"]),
            id_column=content["id_column"],
            label_names=tuple(content["label_names"]),
            shares=tuple(content["shares"]),
            n_rows=content["n_rows"],
            report=content["report"],
        )

    def _ids(self, table: Table) -> tuple[str, ...]:
        if self.id_column is None or self.id_column not in table.frame.columns:
            return tuple(str(number) for number in range(1, len(table.frame) + 1))
        cells = table.frame[self.id_column]
        return tuple("" if is_missing(cell) else str(cell) for cell in cells)


def make_learner(
    name: str = "TagPredictor", *, seconds: float | None = None, thresholds: str | None = None
) -> Estimator:
    """Return a learner by name.

    Parameters
    ----------
    name : str, default="TagPredictor"
        One of ``LEARNERS``, in any case.
    seconds : float, optional
        Time budget of both fits of `fit_table` together, for TagPredictor and for the search of
        LEMLL. Others have none.
    thresholds : {"zero", "f1", "hamming"}, optional
        How the learner decides which labels are predicted. "zero" is a probability of one half.
        "f1" and "hamming" choose one threshold per label, from scores of unseen rows.

    Returns
    -------
    estimator
        The learner, not fitted.
    """
    known = next((known for known in LEARNERS if known.lower() == name.lower()), None)
    if known is None:
        raise LemllError(f"`learner` must be one of {', '.join(LEARNERS)}, got {name!r}")
    learner = LEARNERS[known]()
    if seconds is not None and isinstance(learner, (TagPredictor, LEMLLCV)):
        if not seconds > 0:
            raise LemllError(f"`seconds` must be above 0, got {seconds:g}")
        learner.set_params(max_seconds=_SHARE * seconds)
    if thresholds is not None:
        if thresholds not in ("zero", "f1", "hamming"):
            raise LemllError(f"`thresholds` must be zero, f1 or hamming, got {thresholds!r}")
        of = "estimator__" if isinstance(learner, LEMLLCV) else ""
        learner.set_params(**{f"{of}thresholds": thresholds})
    return learner


def fit_table(
    table: Table,
    spec: LabelSpec,
    *,
    learner: Estimator = None,
    ids: str | None = None,
    ignore: Sequence[str] = (),
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> tuple[TableModel, Assessment]:
    """Fit a learner to a table, and report how well it predicts rows that no choice has seen.

    The cells of all rows decide what each column holds, without a look at the labels. One row in
    five is held out, stratified by the labels. The encoder and the learner are fitted to the other
    rows and predict the held-out ones, which gives the figures. Then both are fitted to all rows,
    which gives the model. Ctrl-C (KeyboardInterrupt) in this last fit keeps the model
    that was measured.

    Parameters
    ----------
    table : Table
        The training table.
    spec : LabelSpec
        Where the labels are.
    learner : estimator, optional
        The learner; by default `TagPredictor`.
    ids : str, optional
        The column of ids.
    ignore : sequence of str, default=()
        Columns that are not features.
    seed : int, default=0
        Seed of the rows that are held out.
    progress : callable, optional
        Called with a line of text before each step.

    Returns
    -------
    model : TableModel
        The model of all rows.
    assessment : Assessment
        The figures of the held-out rows.
    """
    say = progress or _silent
    data = split_table(table, spec, ids=ids, ignore=ignore)
    if len(data.Y) < _FEWEST_ROWS:
        raise LemllError(
            f"{table.source} has {len(data.Y)} rows, and at least {_FEWEST_ROWS} are needed to "
            "hold some out; add rows"
        )
    learner = TagPredictor() if learner is None else clone(learner)
    pipeline = table_pipeline(learner, data)
    X = clone(pipeline[0]).fit_transform(data.X)
    train, test = next(stratified_splits(X, data.Y, _HELD_OUT, seed=seed, say=say))
    say(f"fitting {len(train)} rows; {len(test)} rows are held out")
    begin = time.perf_counter()
    first = fit_rows(pipeline, data, train, say)
    seconds = time.perf_counter() - begin
    shares = label_shares(data.Y[train])
    features = first[0].transform(data.X.iloc[test])
    assessment = _assessed(first[-1], features, data.Y[test], shares)
    say(f"fitting all {len(data.Y)} rows")
    asked = getattr(learner, "max_seconds", None)
    if isinstance(learner, TagPredictor) and asked is not None:
        # The members are those that were measured, also if there is less time. There are a quarter
        # more rows.
        members = [name for name, share in first[-1].contributions_.items() if share > 0]
        seconds = max(asked, 1.25 * seconds)
        pipeline[-1].set_params(members=members, max_seconds=seconds)
    if isinstance(learner, LEMLLCV):
        pipeline[-1].set_params(**_chosen(first[-1]))
    rows = np.arange(len(data.Y))
    try:
        fitted = fit_rows(pipeline, data, rows, say)
    except KeyboardInterrupt:
        say(f"stopped; the model of {len(train)} rows, which was measured, is kept")
        fitted, rows = first, train
    if isinstance(learner, TagPredictor):
        # A measured time would give equal models different files.
        fitted[-1].set_params(max_seconds=asked)
    model = TableModel(
        pipeline=fitted,
        spec=spec,
        id_column=ids,
        label_names=data.label_names,
        shares=tuple(label_shares(data.Y[rows]).tolist()),
        n_rows=len(rows),
        report=assessment.to_json(),
    )
    return model, assessment


def _chosen(searched: LEMLLCV) -> Settings:
    """Return the parameters of a search whose only point is the best one of an earlier search.

    So the model of all rows has the parameters that were measured.
    """
    best = searched.best_params_
    estimator = clone(searched.estimator)
    estimator.set_params(kernel_params={"gamma": best["kernel_gamma"]})
    return {
        "alphas": (best["alpha"],),
        "betas": (best["beta"],),
        "gammas": (best["gamma"],),
        "kernel": best["kernel"],
        "normalize_rows": best["normalize_rows"],
        "estimator": estimator,
        "search": "grid",
    }


def stratified_splits(
    X: Features, Y: MatrixLike, n_splits: int, *, seed: int = 0, say: Callable[[str], None]
) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Return splits in which each label is about as frequent, and equal rows stay together.

    A model that has learned a row knows its copies, and their figures would be those of known rows.
    So rows with equal features are never on both sides of a split.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Encoded features.
    Y : array-like of shape (n_rows, n_labels)
        Labels, 0/1, NaN in unknown cells.
    n_splits : int
        Number of splits. Each row is held out once.
    seed : int, default=0
        Seed of the splits.
    say : callable
        Called with a line of text if there are rows with equal features.

    Returns
    -------
    iterator of (train, test)
        Row numbers.
    """
    groups = equal_row_groups(X, n_splits)
    if groups is not None:
        copies = len(groups) - len(np.unique(groups))
        say(
            f"{copies} of {len(groups)} rows have the features of an earlier row; rows with equal "
            "features are held out together"
        )
    return IterativeStratifiedKFold(n_splits, random_state=seed).split(X, Y, groups)


def table_pipeline(learner: Estimator, data: LabelledTable) -> Pipeline:
    """Return encoder and learner, not fitted, for the columns and labels of a table.

    All rows decide what the columns hold, without a look at the labels. Otherwise a row that is
    held out could change a column, and the measured model would not be the final one.
    """
    if isinstance(learner, MultilabelForest) and np.isnan(data.Y).any():
        learner.set_params(per_label=True)  # trees that all labels share need all labels
    return make_pipeline(TableEncoder(columns=inspect_columns(data.X)), learner)


def _silent(line: str) -> None:
    """Say nothing."""


def fit_rows(
    pipeline: Pipeline, data: LabelledTable, rows: IndexArray, say: Callable[[str], None]
) -> Pipeline:
    """Return a copy of the pipeline, fitted to some rows."""
    fresh = clone(pipeline)
    reports = isinstance(fresh[-1], TagPredictor)
    if reports:

        def report(step: BlendProgress) -> None:
            say(f"  {step.step} ({step.done + 1} of {step.expected}, {step.elapsed:.0f} s)")

        fresh[-1].set_params(callback=report)
    Y = data.Y[rows]
    fresh.fit(data.X.iloc[rows], Y if np.isnan(Y).any() else Y.astype(np.int8))
    if reports:
        # A model file cannot hold a function.
        fresh[-1].set_params(callback=None)
    return fresh


def _assessed(
    learner: Estimator, X: Features, Y: FloatArray, shares: Sequence[float] | FloatArray
) -> Assessment:
    return assess(
        Y,
        np.asarray(learner.decision_function(X)),
        np.asarray(learner.predict(X)) == 1,
        np.asarray(shares),
        probabilities=(
            np.asarray(learner.predict_proba(X)) if hasattr(learner, "predict_proba") else None
        ),
        groups=equal_row_groups(X, 1),
    )
