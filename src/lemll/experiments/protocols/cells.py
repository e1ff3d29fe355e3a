"""A cell: one piece of work with an id, which can run independently on any machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from lemll._types import SettingsView
from lemll.experiments.protocols.methods import MethodSpec
from lemll.experiments.protocols.names import plain
from lemll.experiments.protocols.settings import Setting, Tuning
from lemll.experiments.protocols.sources import Source

__all__ = ["Cell", "Experiment"]

Experiment = Literal["prediction", "reconstruction"]


@dataclass(frozen=True)
class Cell:
    """One piece of work: a method on a data set in one setting.

    Attributes
    ----------
    experiment : {"prediction", "reconstruction"}
        The kind of experiment.
    source : Source
        The data set.
    data_sha256 : str
        The hash of its content.
    method : MethodSpec
        The method and its label.
    parameters : mapping
        All parameters of its estimator, in a form that JSON can store, and the options of the
        method that differ from their defaults.
    setting : Setting
        The split or the threshold.
    grid : mapping, optional
        The parameters to tune, on the training rows only.
    tuning : Tuning, optional
        The search over the grid.
    code : str
        Hash of the code that the result depends on.
    decisions : tuple of str
        Parameters of the grid that are chosen after the others, by predicted labels.
    """

    experiment: Experiment
    source: Source
    data_sha256: str
    method: MethodSpec
    parameters: SettingsView
    setting: Setting
    grid: Mapping[str, tuple[Any, ...]]
    tuning: Tuning | None
    code: str
    decisions: tuple[str, ...] = ()

    @cached_property
    def work(self) -> str:
        """Hash of the work, which does not depend on the version of the code."""
        content = {
            "experiment": self.experiment,
            "data": self.data_sha256,
            "method": self.method.method,
            "parameters": dict(self.parameters),
            "setting": [self.setting.key, self.setting.rows_sha256],
            "grid": plain(self.grid),
            "tuning": None if self.tuning is None else self.tuning.key,
            **({"decisions": self.decisions} if self.decisions else {}),
            **({"first seed": self._first_seed} if self._first_seed else {}),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def _first_seed(self) -> int:
        """The seed of the split that selects the parameters; 0 if every split does so."""
        splits = self.setting.splits
        if self.tuning is None or self.tuning.splits == "all" or splits is None:
            return 0
        return splits.random_state

    @cached_property
    def id(self) -> str:
        """Hash of the work and of the code: the name of the cell's record."""
        return hashlib.sha256(f"{self.work}{self.code}".encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.method.label} on {self.source.name}, {self.setting}"
