"""The settings of an experiment: splits of a prediction, or thresholds of a reconstruction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import KFold

from lemll._types import Array, IndexArray
from lemll._validation import check_whole
from lemll.datasets import Dataset
from lemll.experiments.protocols.hiding import Hide
from lemll.experiments.protocols.names import unknown_name
from lemll.metrics import METRICS
from lemll.model_selection import IterativeStratifiedKFold, RepeatedHalves

__all__ = ["THRESHOLDS", "Setting", "Splits", "Tuning", "rows_sha256", "settings_of"]

# The thresholds at which the paper binarises distributions.
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5)
# Every split gives one cell per method and data set, and all cells are expanded before the run.
_MOST_SPLITS = 10_000
_KINDS = ("halves", "kfold", "stratified")


@dataclass(frozen=True, slots=True)
class Splits:
    """How rows are split into training and test rows.

    Attributes
    ----------
    kind : {"halves", "kfold", "stratified"}
        Repeated random halves as in the paper; k folds of shuffled rows; or k folds by iterative
        stratification, which keeps the proportions of the labels.
    n_splits : int
        Number of halves or folds.
    random_state : int
        The seed. For halves, the seed of the first split; each further split adds 1.
    """

    kind: Literal["halves", "kfold", "stratified"] = "halves"
    n_splits: int = 10
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(unknown_name("kind of splits", self.kind, _KINDS))
        check_whole("n_splits", self.n_splits, least=1 if self.kind == "halves" else 2)
        if self.n_splits > _MOST_SPLITS:
            raise ValueError(f"n_splits must be at most {_MOST_SPLITS}, got {self.n_splits}.")
        check_whole("random_state", self.random_state, least=0)

    def rows(self, dataset: Dataset) -> Iterator[tuple[IndexArray, IndexArray]]:
        """Yield the training and test rows of each split.

        Parameters
        ----------
        dataset : Dataset
            The data set to split.

        Yields
        ------
        train, test : ndarray of int
            Row numbers.
        """
        yield from self._splitter().split(dataset.X, dataset.labels)

    def _splitter(self) -> Any:
        if self.kind == "halves":
            return RepeatedHalves(self.n_splits, random_state=self.random_state)
        if self.kind == "kfold":
            return KFold(self.n_splits, shuffle=True, random_state=self.random_state)
        return IterativeStratifiedKFold(self.n_splits, random_state=self.random_state)


@dataclass(frozen=True, slots=True)
class Tuning:
    """The tuning of parameters: a grid search with cross-validation on the training rows.

    Attributes
    ----------
    metric : str or tuple of str
        Names in ``lemll.metrics.METRICS`` of the metrics that select the best parameters. With
        several, each of them selects its own parameters, and its figure is that of the model with
        these parameters. All other figures are those of the first one's model.
    folds : int
        Number of folds of the inner cross-validation.
    random_state : int
        Seed of the folds.
    grids : mapping of str to mapping
        Grids by the labels of methods. Other methods use their registered grid.
    search : {"grid", "coarse"}
        "coarse" tries every third value of LEMLL first, then what surrounds the best point.
        Other methods, and "grid", try all points.
    splits : {"all", "first"}
        "all" selects parameters in every split, on its training rows. "first" selects them on the
        training rows of the first split, for all splits. This takes less time, but test rows of
        the other splits have then taken part in the selection.
    """

    metric: str | tuple[str, ...] = "average_precision"
    folds: int = 5
    random_state: int = 0
    grids: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)
    search: Literal["grid", "coarse"] = "grid"
    splits: Literal["all", "first"] = "all"

    def __post_init__(self) -> None:
        known = [name for name, metric in METRICS.items() if metric.ranks_or_decides]
        if not isinstance(self.metric, str):
            given = self.metric
            names = list(given) if isinstance(given, list | tuple) else []
            different = all(isinstance(n, str) for n in names) and len(set(names)) == len(names)
            if len(names) < 2 or not different:
                raise ValueError(
                    "metric of tuning must be one name, or a list of two or more different names, "
                    f'got {given!r}; for one measure write metric = "average_precision".'
                )
            object.__setattr__(self, "metric", tuple(names))
        for name in self.metrics:
            if name not in known:
                raise ValueError(unknown_name("metric of tuning", name, known))
        if self.search not in ("grid", "coarse"):
            raise ValueError(unknown_name("search of tuning", self.search, ("grid", "coarse")))
        if self.splits not in ("all", "first"):
            raise ValueError(unknown_name("splits of tuning", self.splits, ("all", "first")))
        check_whole("folds", self.folds, least=2)
        check_whole("random_state", self.random_state, least=0)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that select parameters."""
        return (self.metric,) if isinstance(self.metric, str) else self.metric

    def __str__(self) -> str:
        where = f"in {self.folds} folds"
        if self.splits == "first":
            where += " of the training rows of the first split, for all splits"
        separately = ", separately," if len(self.metrics) > 1 else ""
        return f"{', '.join(self.metrics)}{separately} {where}"

    @property
    def key(self) -> list[Any]:
        """The part of the tuning in the id of a cell. The id contains the grid separately."""
        # Defaults are left out, so that the ids of earlier results stay the same.
        search: list[str] = [] if self.search == "grid" else [self.search]
        search += [] if self.splits == "all" else ["first split"]
        metric = self.metric if isinstance(self.metric, str) else list(self.metric)
        return [metric, self.folds, self.random_state, *search]


@dataclass(frozen=True, slots=True)
class Setting:
    """One split of a prediction, or one threshold of a reconstruction.

    Attributes
    ----------
    splits : Splits, optional
        The rule of the splits, for a prediction.
    number : int
        The number of the split, counted from 0.
    rows_sha256 : str
        Hash of the training and test rows.
    threshold : float, optional
        The threshold that binarises the distribution, for a reconstruction.
    hide : Hide, optional
        The rule that hides labels of the training rows, for a prediction.
    """

    splits: Splits | None = None
    number: int = 0
    rows_sha256: str = ""
    threshold: float | None = None
    hide: Hide | None = None

    @property
    def key(self) -> list[Any]:
        """The part of the setting in the id and the record, in addition to the hash of the rows."""
        if self.splits is None:
            return ["threshold", self.threshold]
        hidden = [] if self.hide is None else ["hide", self.hide.kind, self.hide.share]
        *rule, number = _numbers(self.splits, self.number)
        return [self.splits.kind, *rule, *hidden, number]

    @property
    def condition(self) -> str:
        """What the training labels lack, in words; empty if they are complete."""
        return "" if self.hide is None else str(self.hide)

    def __str__(self) -> str:
        if self.splits is None:
            return f"threshold {self.threshold:g}"
        where = f"{self.splits.kind} {self.key[-1]}"
        return where if self.hide is None else f"{where}, {self.hide}"

    def hidden(self, Y: Array) -> Array:
        """Hide labels of the training rows, if the setting does so."""
        if self.splits is None or self.hide is None:
            return Y
        return self.hide.apply(Y, seed=_numbers(self.splits, self.number))

    def check_rows(self, train: IndexArray, test: IndexArray) -> None:
        """Raise an error if training and test rows are not those in the id of the cell."""
        if rows_sha256(train, test) != self.rows_sha256:
            raise ValueError(
                f"{self} has other rows here than where the cell was made; use the same versions "
                "of lemll, NumPy and scikit-learn in all processes."
            )


def _numbers(rule: Splits, number: int) -> tuple[int, ...]:
    """Return the numbers that identify a split. The last one is its seed or its number."""
    if rule.kind == "halves":  # the halves of a seed do not depend on n_splits
        return (rule.random_state + number,)
    return (rule.n_splits, rule.random_state, number)


def settings_of(
    splits: Splits | None,
    thresholds: tuple[float, ...],
    dataset: Dataset,
    hide: tuple[Hide, ...] = (),
) -> Iterator[Setting]:
    """Yield the settings of a data set: its splits if `splits` is given, else the thresholds.

    If there are rules that hide labels, each split occurs once per rule.
    """
    if splits is None:
        yield from (Setting(threshold=rho) for rho in thresholds)
        return
    for number, (train, test) in enumerate(splits.rows(dataset)):
        rows = rows_sha256(train, test)
        for rule in hide or (None,):
            yield Setting(splits, number, rows, hide=rule)


def rows_sha256(train: IndexArray, test: IndexArray) -> str:
    """Hash the rows of a split."""
    digest = hashlib.sha256()
    # A fixed width, a fixed byte order and a separator give the same hash on every machine.
    for rows in (train, test):
        digest.update(np.asarray(rows, dtype="<i8").tobytes())
        digest.update(b"|")
    return digest.hexdigest()
