"""A cell: one piece of work with an id, which can run independently on any machine."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import KFold

from lemll._types import Array, Features, FloatArray, Grid, IndexArray, SettingsView
from lemll._validation import check_whole, is_sparse
from lemll.datasets.dataset import Dataset
from lemll.datasets.files import looks_like_a_file, read_dataset
from lemll.datasets.generators import load_digit_tags, make_artificial, make_artificial_surface
from lemll.datasets.registry import dataset_info, load_dataset
from lemll.lab.methods import MethodSpec, check_known, plain
from lemll.metrics.table import METRICS
from lemll.model_selection import IterativeStratifiedKFold, RepeatedHalves

_KINDS = ("cells", "positives", "rows")
# The halves also come from a generator that the number of the split seeds. Without this number,
# the order of the hidden rows could depend on that of the training rows.
_STREAM = 1_717


@dataclass(frozen=True, slots=True)
class Hide:
    """A rule that makes labels of the training rows unknown. Test rows stay complete.

    The order in which cells or rows are hidden depends on the split and its seed, but not on the
    share. So all methods see the same labels, and what is hidden at a share of 0.3 is also hidden
    at a share of 0.6.

    Attributes
    ----------
    kind : {"cells", "positives", "rows"}
        "cells" hides this share of all known cells of the training rows, relevant or not.
        "positives" hides this share of the cells with the value 1; every 0 stays known. "rows"
        hides all cells in this share of the training rows.
    share : float
        Between 0 and 1. The number of hidden cells or rows is the nearest whole number.

    Examples
    --------
    >>> import numpy as np
    >>> Hide("rows", 0.5).apply(np.array([[1, 0], [0, 1], [1, 1], [0, 0]]), seed=(0,))
    array([[nan, nan],
           [ 0.,  1.],
           [ 1.,  1.],
           [nan, nan]])
    """

    kind: Literal["cells", "positives", "rows"]
    share: float

    def __post_init__(self) -> None:
        check_known("kind of hide", [self.kind], _KINDS)
        number = isinstance(self.share, int | float) and not isinstance(self.share, bool)
        if not (number and 0 < self.share < 1):
            raise ValueError(
                f"share of hide must be a number between 0 and 1, got {self.share!r}; leave hide "
                "out to keep all labels."
            )
        object.__setattr__(self, "share", float(self.share))

    def __str__(self) -> str:
        return f"{100 * self.share:g} % of the {self.kind} hidden"

    @property
    def key(self) -> str:
        """The rule in the fewest words, for tables of results."""
        return f"{self.kind} {self.share:g}"

    def apply(self, Y: Array, *, seed: tuple[int, ...]) -> FloatArray:
        """Return the labels with NaN in the hidden cells.

        Parameters
        ----------
        Y : ndarray of shape (n_samples, n_labels)
            The labels of the training rows, 0/1; NaN in cells that nobody observed.
        seed : tuple of int
            Seed of the order in which cells or rows are hidden.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            A new array.

        Raises
        ------
        ValueError
            If nothing would stay known.
        """
        hidden: FloatArray = np.array(Y, dtype=np.float64)
        if self.kind == "rows":
            candidates = np.arange(len(hidden))
        else:
            known = hidden == 1 if self.kind == "positives" else ~np.isnan(hidden)
            candidates = np.flatnonzero(known)
        count = round(self.share * len(candidates))
        if count == len(candidates):
            raise ValueError(
                f"{self} leaves none of {count} {self.kind} in the training rows; lower the share."
            )
        # The legacy generator gives the same order in all versions of NumPy.
        order = np.random.RandomState([_STREAM, *seed]).permutation(len(candidates))
        chosen = candidates[order[:count]]
        if self.kind == "rows":
            hidden[chosen] = np.nan
        else:
            hidden.flat[chosen] = np.nan
        return hidden


EMBEDDED: Mapping[str, Callable[[], Dataset]] = {
    "digit-tags": load_digit_tags,
    "artificial": partial(make_artificial, random_state=0),
    "artificial-surface": make_artificial_surface,
}
"""Data sets that need no file, by their names in a protocol."""


@dataclass(frozen=True, slots=True)
class Source:
    """A data set of a protocol.

    Attributes
    ----------
    name : str
        Its name in tables.
    path : str
        The file to read, or "" for an embedded or registered data set.
    options : tuple of (str, object)
        Options of the reader, sorted by name. They are hashable, so that loading can be cached.
    """

    name: str
    path: str = ""
    options: tuple[tuple[str, Any], ...] = field(default=())


def make_source(entry: str, *, folder: Path | None = None) -> Source:
    """Make a source from a name or a path in a protocol.

    Parameters
    ----------
    entry : str
        The name of an embedded data set, a file, or a registered name, tried in this order.
    folder : Path, optional
        The folder of relative paths.

    Returns
    -------
    Source
        The source. Its name is the registered name, or the name of the file without suffixes.
    """
    if entry in EMBEDDED:
        return Source(entry)
    path = locate(entry, folder or Path())
    if path.is_file() or "/" in entry or looks_like_a_file(entry):
        return Source(path.name.split(".")[0], str(path.resolve()))
    return Source(dataset_info(entry).name)


def locate(entry: str, folder: Path) -> Path:
    """Return the path of an entry in a protocol. Relative paths begin at a folder.

    Parameters
    ----------
    entry : str
        The entry. ``~`` is the home folder of the user.
    folder : Path
        The folder of relative paths.

    Returns
    -------
    Path
        The path. Links are not resolved.
    """
    try:
        return folder / Path(entry).expanduser()
    except RuntimeError as error:
        raise ValueError(
            f"the path {entry!r} begins with the home folder of a user that does not exist here; "
            "write the full path."
        ) from error


# Cells are sorted by data set, so one cached set is almost enough. The second one avoids a reload
# when the run changes from one set to the next.
@lru_cache(maxsize=2)
def load_source(source: Source) -> tuple[Dataset, str]:
    """Load a data set and its hash. A process keeps the most recent data sets.

    Parameters
    ----------
    source : Source
        The source of the data set.

    Returns
    -------
    dataset : Dataset
        The data set under the name of the source.
    sha256 : str
        The hash of `data_sha256`.
    """
    if source.path:
        options = {
            key: list(value) if isinstance(value, tuple) else value for key, value in source.options
        }
        dataset = read_dataset(source.path, **options)
    elif source.name in EMBEDDED:
        dataset = EMBEDDED[source.name]()
    else:
        dataset = load_dataset(source.name)
    return replace(dataset, name=source.name), data_sha256(dataset)


def data_sha256(dataset: Dataset) -> str:
    """Compute the hash of features and labels: shapes, types and values, but not names.

    Parameters
    ----------
    dataset : Dataset
        The data set.

    Returns
    -------
    str
        Hexadecimal SHA-256.
    """
    return _sha256([*_parts(dataset.X), dataset.labels])


def features_sha256(X: Features) -> str:
    """Compute the hash of the features only, in the same way as `data_sha256`."""
    return _sha256(_parts(X))


def _parts(X: Features) -> list[Array]:
    return [np.array(X.shape), *((X.indptr, X.indices, X.data) if is_sparse(X) else (X,))]


def _sha256(parts: Iterable[Array]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        # SciPy chooses int32 or int64 for row pointers. This choice must not change the hash.
        if array.dtype.kind == "i":
            array = array.astype(np.int64)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()


class Recent(OrderedDict[Any, Any]):
    """The most recent results, at most a given number of them."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def of(self, key: object, make: Callable[[], Any]) -> Any:
        """Return the result of a key; make it if it is not there."""
        if key in self:
            return self[key]
        made = make()
        while len(self) >= self.most:
            self.popitem(last=False)
        self[key] = made
        return made


# The thresholds at which the paper binarises distributions.
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5)
# Every split gives one cell per method and data set, and all cells are expanded before the run.
_MOST_SPLITS = 10_000
_SPLITTERS = ("halves", "kfold", "stratified")


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
        check_known("kind of splits", [self.kind], _SPLITTERS)
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
    grids: Mapping[str, Grid] = field(default_factory=dict)
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
        check_known("metric of tuning", self.metrics, known)
        check_known("search of tuning", [self.search], ("grid", "coarse"))
        check_known("splits of tuning", [self.splits], ("all", "first"))
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
    grid: Grid
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
