"""The settings of an experiment: splits of a prediction, or thresholds of a reconstruction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import KFold

from lemll._types import IndexArray
from lemll._validation import check_whole
from lemll.datasets import Dataset
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
        Repeated random halves as in the paper; k folds of shuffled rows; k folds by iterative
        stratification, which keeps the proportions of the labels.
    n_splits : int
        How many halves, or folds.
    random_state : int
        Seed; the first one, of halves.
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
            To be split.

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
    """How parameters are tuned: a grid, cross-validated on the training rows.

    Attributes
    ----------
    metric : str
        Name in ``lemll.metrics.METRICS``, by which the best parameters are chosen.
    folds : int
        Of the inner cross-validation.
    random_state : int
        Seed of the folds.
    grids : mapping of str to mapping
        For a method's label its own grid; for the others the registered one.
    """

    metric: str = "average_precision"
    folds: int = 5
    random_state: int = 0
    grids: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [name for name, metric in METRICS.items() if metric.kind == "multilabel"]
        if self.metric not in known:
            raise ValueError(unknown_name("metric of tuning", self.metric, known))
        check_whole("folds", self.folds, least=2)
        check_whole("random_state", self.random_state, least=0)

    @property
    def key(self) -> list[Any]:
        """What a cell's id says of it; the grid stands there by itself."""
        return [self.metric, self.folds, self.random_state]


@dataclass(frozen=True, slots=True)
class Setting:
    """One split of a prediction, or one threshold of a reconstruction.

    Attributes
    ----------
    splits : Splits, optional
        The rule.
    number : int
        Which of its splits, counted from 0.
    rows_sha256 : str
        Hash of the training and test rows.
    threshold : float, optional
        At which the distribution is binarised.
    """

    splits: Splits | None = None
    number: int = 0
    rows_sha256: str = ""
    threshold: float | None = None

    @property
    def key(self) -> list[Any]:
        """What a cell's id and record say of it; the rows' hash stands by itself."""
        if self.splits is None:
            return ["threshold", self.threshold]
        rule = self.splits
        if rule.kind == "halves":  # a seed's halves are the same however many follow
            return ["halves", rule.random_state + self.number]
        return [rule.kind, rule.n_splits, rule.random_state, self.number]

    def __str__(self) -> str:
        if self.splits is None:
            return f"threshold {self.threshold:g}"
        return f"{self.splits.kind} {self.key[-1]}"

    def check_rows(self, train: IndexArray, test: IndexArray) -> None:
        """Refuse other training and test rows than the cell's id stands for."""
        if rows_sha256(train, test) != self.rows_sha256:
            raise ValueError(
                f"{self} has other rows here than where the cell was made; use the same versions "
                "of lemll, NumPy and scikit-learn in all processes."
            )


def settings_of(
    splits: Splits | None, thresholds: tuple[float, ...], dataset: Dataset
) -> Iterator[Setting]:
    """Yield the settings of a data set: its splits if there is a rule, else the thresholds."""
    if splits is None:
        yield from (Setting(threshold=rho) for rho in thresholds)
        return
    for number, (train, test) in enumerate(splits.rows(dataset)):
        yield Setting(splits, number, rows_sha256(train, test))


def rows_sha256(train: IndexArray, test: IndexArray) -> str:
    """Hash the rows of a split."""
    digest = hashlib.sha256()
    for rows in (train, test):
        digest.update(np.asarray(rows, dtype="<i8").tobytes())
        digest.update(b"|")
    return digest.hexdigest()
