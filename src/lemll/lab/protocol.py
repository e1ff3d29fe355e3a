"""The protocol of an experiment: data sets x methods x settings, declared in TOML or in Python.

:meth:`Protocol.cells` expands a :class:`Protocol` into :class:`Cell` objects. A cell is one piece
of work with an id, which can run independently on any machine. The id is a hash of everything that
the result depends on: the data, the method and its parameters, the rows of the split or the
threshold, the tuning, and the code. Metrics are not part of the id, because they are computed from
the stored arrays of a cell.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lemll._types import Estimator, Grid, Settings, SettingsView
from lemll.datasets.dataset import Dataset
from lemll.datasets.files import find_reader
from lemll.exceptions import ProtocolError
from lemll.lab.cells import (
    THRESHOLDS,
    Cell,
    Experiment,
    Hide,
    Source,
    Splits,
    Tuning,
    load_source,
    locate,
    make_source,
    settings_of,
)
from lemll.lab.code import check_trust, code_version, import_from_folder, imported_names
from lemll.lab.methods import (
    OPTIONS,
    Kind,
    MethodSpec,
    check_from_file,
    check_known,
    get_method,
    plain,
)
from lemll.lab.store import read_plain
from lemll.metrics.table import METRICS

_KEYS = (
    "name", "experiment", "datasets", "methods", "metrics", "splits", "thresholds", "tuning",
    "control", "exceptions", "hide", "imports",
)  # fmt: skip
# A protocol with all methods and all data sets has about two kilobytes.
_MOST_BYTES = 2**20
_SPLITS = ("kind", "n_splits", "random_state")
_TUNING = ("metric", "folds", "random_state", "grids", "search", "splits")
_HIDE = ("kind", "share")


def read_toml(file: Path) -> Settings:
    """Read a TOML file.

    Parameters
    ----------
    file : Path
        Plain, or a link to a plain file.

    Returns
    -------
    dict
        Its content.

    Raises
    ------
    ValueError
        Saying why it cannot be read.
    """
    try:
        return tomllib.loads(read_plain(file, most=_MOST_BYTES, follow=True).decode())
    except FileNotFoundError as error:
        raise ValueError("there is no such file; give the path of a protocol in TOML.") from error
    except OSError as error:
        raise ValueError(
            f"it cannot be read: {error.strerror}; give the path of a protocol in TOML."
        ) from error
    except RecursionError as error:
        raise ValueError(
            "its lists or tables are nested too deeply; a protocol needs four levels."
        ) from error


def parse_protocol(content: SettingsView, name: str, folder: Path) -> Settings:
    """Convert the content of a TOML file to the parameters of a protocol.

    Parameters
    ----------
    content : mapping
        The content, as tomllib reads it.
    name : str
        The name of the protocol, if the file does not contain one.
    folder : Path
        The folder of relative paths of data sets.

    Returns
    -------
    dict
        The keyword arguments of `Protocol`.
    """
    check_known("key", content, _KEYS)
    for needed in ("experiment", "datasets", "methods"):
        if needed not in content:
            raise ValueError(f"the key {needed!r} is missing.")
    parsed: Settings = {
        "name": _text(content.get("name", name), "name"),
        "experiment": content["experiment"],
        "datasets": tuple(_source(entry, folder) for entry in _list(content, "datasets")),
        "methods": _methods(content["methods"]),
        "metrics": tuple(_list(content, "metrics")),
        "thresholds": tuple(_list(content, "thresholds")),
        "control": content.get("control", ""),
    }
    if "exceptions" in content:
        of_dataset = _table(content, "exceptions")
        parsed["exceptions"] = {
            dataset: {
                label: _table(_table(of_dataset, dataset), label)
                for label in _table(of_dataset, dataset)
            }
            for dataset in of_dataset
        }
    if "splits" in content:
        rule = _table(content, "splits")
        check_known("key of [splits]", rule, _SPLITS)
        parsed["splits"] = Splits(**rule)
    if "tuning" in content:
        rule = dict(_table(content, "tuning"))
        check_known("key of [tuning]", rule, _TUNING)
        grids = _table(rule, "grids") if "grids" in rule else {}
        rule["grids"] = {
            label: {name: tuple(_list(_table(grids, label), name)) for name in _table(grids, label)}
            for label in grids
        }
        parsed["tuning"] = Tuning(**rule)
    if "hide" in content:
        parsed["hide"] = tuple(_hidings(content["hide"]))
    return parsed


def _hidings(given: object) -> Iterator[Hide]:
    """Take a table [hide] or several tables [[hide]]; each has one share or a list of them."""
    for rule in given if isinstance(given, list) else [given]:
        if not isinstance(rule, dict):
            raise ValueError(f"hide must be a table, [hide], or tables, [[hide]], got {rule!r}.")
        check_known("key of [hide]", rule, _HIDE)
        for needed in _HIDE:
            if needed not in rule:
                raise ValueError(f"[hide] has no {needed!r}; give a kind and a share.")
        shares = rule["share"] if isinstance(rule["share"], list) else [rule["share"]]
        yield from (Hide(rule["kind"], share) for share in shares)


def _list(content: SettingsView, key: str) -> list[Any]:
    values = content.get(key, [])
    if not isinstance(values, list):
        raise ValueError(f"{key} must be a list, got {values!r}.")
    return values


def _table(content: SettingsView, key: str) -> SettingsView:
    value = content[key]
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be a table, [{key}], got {value!r}.")
    return value


def _source(entry: object, folder: Path) -> Source:
    """Take a name or path; or a table with a path, and perhaps a name and options to read it."""
    if isinstance(entry, str):
        return make_source(entry, folder=folder)
    if not isinstance(entry, dict) or "path" not in entry:
        raise ValueError(
            f"a data set must be a name, a path, or a table with a path, got {entry!r}."
        )
    options = {key: value for key, value in entry.items() if key not in ("path", "name")}
    for key, value in options.items():
        texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not (texts or whole or isinstance(value, str)):
            raise ValueError(
                f"{key} of a data set must be a text, a whole number or a list of texts, "
                f"got {value!r}."
            )
    path = locate(_text(entry["path"], "path of a data set"), folder).resolve()
    _check_options(path, options)
    hashable = (
        (key, tuple(value) if isinstance(value, list) else value)
        for key, value in sorted(options.items())
    )
    name = _text(entry.get("name", path.name.split(".")[0]), "name of a data set")
    return Source(name, str(path), tuple(hashable))


def _check_options(path: Path, options: SettingsView) -> None:
    known = tuple(inspect.signature(find_reader(path)).parameters)[1:]
    check_known(f"option to read {path.name}", options, known)


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{what} must be a text, got {value!r}.")
    return value


def _methods(methods: object) -> tuple[MethodSpec, ...]:
    """Take a list of names; or a table of tables, ``[methods.LABEL]``, that set parameters."""
    if isinstance(methods, list):
        return tuple(MethodSpec(_text(name, "a method")) for name in methods)
    if not isinstance(methods, dict):
        raise ValueError(
            f"methods must be a list of names or tables [methods.NAME], got {methods!r}."
        )
    parsed = []
    for label, table in methods.items():
        if not isinstance(table, dict):
            raise ValueError(f"methods.{label} must be a table of parameters, got {table!r}.")
        options = {key: table[key] for key in OPTIONS if key in table}
        parameters = {
            key: value for key, value in table.items() if key != "method" and key not in options
        }
        parsed.append(MethodSpec(str(table.get("method", label)), label, parameters, **options))
    return tuple(parsed)


# Largest length of an error message, which may quote text of the file.
_MAX_MESSAGE = 2_000


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The declaration of an experiment.

    Parameters
    ----------
    name : str
        What it is called.
    experiment : {"prediction", "reconstruction"}
        "prediction" fits on training rows and predicts the test rows. "reconstruction" binarises a
        known distribution and recovers it.
    datasets : tuple of str or Source
        Embedded sets ("digit-tags", "artificial"), files, or registered names.
    methods : tuple of str or MethodSpec
        Registered learners, or enhancers for a reconstruction; the labels must differ.
    metrics : tuple of str, optional
        Names in ``lemll.metrics.METRICS``; by default the paper's.
    splits : Splits, optional
        The splits of a prediction. By default the ten halves of the paper.
    thresholds : tuple of float, optional
        The thresholds of a reconstruction. By default the five thresholds of the paper.
    tuning : Tuning, optional
        The tuning of a prediction. By default there is no tuning.
    control : str, optional
        The label of the method that t-tests compare with the others; by default the first.
    exceptions : mapping of str to mapping, optional
        For a data set, by a method's label, parameters that differ on this set alone.
    hide : tuple of Hide, optional
        Rules that hide labels of the training rows of a prediction. Each split is run once per
        rule. By default no label is hidden.

    Examples
    --------
    >>> protocol = Protocol(
    ...     name="small", experiment="prediction", datasets=("digit-tags",), methods=("MSVR",),
    ...     splits=Splits("halves", 2),
    ... )
    >>> [str(cell) for cell in protocol.cells()]
    ['MSVR on digit-tags, halves 0', 'MSVR on digit-tags, halves 1']
    """

    name: str
    experiment: Experiment
    datasets: tuple[Any, ...]
    methods: tuple[Any, ...]
    metrics: tuple[str, ...] = ()
    splits: Splits | None = None
    thresholds: tuple[float, ...] = ()
    tuning: Tuning | None = None
    control: str = ""
    exceptions: Mapping[str, Mapping[str, SettingsView]] = field(default_factory=dict)
    hide: tuple[Hide, ...] = ()

    def __post_init__(self) -> None:
        check_known("experiment", [self.experiment], ("prediction", "reconstruction"))
        self._set_sources()
        self._set_methods()
        self._set_metrics()
        predicts = self.experiment == "prediction"
        if predicts and self.thresholds:
            raise ValueError("thresholds belong to a reconstruction; a prediction has splits.")
        if not predicts and (self.splits is not None or self.tuning is not None):
            raise ValueError(
                "splits and tuning belong to a prediction; a reconstruction has thresholds, and "
                "no known distribution to tune by."
            )
        if not predicts and self.hide:
            raise ValueError(
                "hide belongs to a prediction, which has training rows; leave it out of a "
                "reconstruction."
            )
        if len(set(self.hide)) < len(self.hide):
            raise ValueError(
                f"rules of hide must differ, got {', '.join(map(str, self.hide))}; give each once."
            )
        if predicts and self.splits is None:
            self._set("splits", Splits())
        if not predicts:
            thresholds = tuple(_number(rho) for rho in self.thresholds) or THRESHOLDS
            if not all(0 < rho < 1 for rho in thresholds):
                raise ValueError(f"thresholds must lie between 0 and 1, got {thresholds}.")
            if len(set(thresholds)) < len(thresholds):
                raise ValueError(f"thresholds must differ, got {thresholds}.")
            self._set("thresholds", thresholds)
        labels = [spec.label for spec in self.methods]
        check_known("control", [self.control] if self.control else [], labels)
        self._set("control", self.control or labels[0])

    def _set(self, attribute: str, value: object) -> None:
        object.__setattr__(self, attribute, value)

    def _set_sources(self) -> None:
        sources = tuple(
            entry if isinstance(entry, Source) else make_source(entry) for entry in self.datasets
        )
        _refuse_repeats("data set", [source.name for source in sources])
        self._set("datasets", sources)

    def _set_methods(self) -> None:
        specs = tuple(
            entry if isinstance(entry, MethodSpec) else MethodSpec(entry) for entry in self.methods
        )
        _refuse_repeats("method", [spec.label for spec in specs])
        by_label = {spec.label: spec for spec in specs}
        for spec in specs:
            self._check_parameters(spec, spec.parameters)
        grids = {} if self.tuning is None else self.tuning.grids
        check_known("method in tuning", grids, by_label)
        for label, grid in grids.items():
            self._check_parameters(by_label[label], grid)
        names = [source.name for source in self.datasets]
        check_known("data set in exceptions", self.exceptions, names)
        for of_method in self.exceptions.values():
            check_known("method in exceptions", of_method, by_label)
            for label, parameters in of_method.items():
                self._check_parameters(by_label[label], parameters)
        self._set("methods", specs)

    def _check_parameters(self, spec: MethodSpec, given: Iterable[str]) -> None:
        known = get_method(self.kind, spec.method).make().get_params()
        check_known(f"parameter of {spec.method}", given, known)

    def _set_metrics(self) -> None:
        kind = "multilabel" if self.experiment == "prediction" else "distribution"
        known = [name for name, metric in METRICS.items() if metric.kind == kind]
        check_known(f"metric of a {self.experiment}", self.metrics, known)
        in_paper = tuple(name for name in known if METRICS[name].in_paper)
        self._set("metrics", tuple(self.metrics) or in_paper)

    @classmethod
    def from_toml(cls, path: str | Path, *, trust_imports: bool = False) -> Protocol:
        """Read a protocol from a TOML file.

        Parameters
        ----------
        path : str or Path
            The file; relative paths of data sets start in its folder.
        trust_imports : bool, default=False
            Whether to import the modules of the key ``imports`` from the folder of the file. They
            can run any code, so a file that has this key is refused by default. The trust is
            remembered for this file until a module of its folder changes.

        Returns
        -------
        Protocol
            Called after the file, if it does not give itself a name.

        Raises
        ------
        ProtocolError
            Naming the file, and the nearest known key to one that is not known; or a parameter
            that a file may not give, because it would name a path, a module or an object.
        """
        file = Path(path)
        try:
            content = read_toml(file)
            modules = imported_names(content.pop("imports", []))
            if modules:
                check_trust(modules, file, trust=trust_imports)
            import_from_folder(modules, file.parent)
            protocol = cls(**parse_protocol(content, file.stem, file.parent))
            protocol._check_from_file()
        except (ValueError, LookupError, OSError) as error:
            raise ProtocolError(f"{file}: {str(error)[:_MAX_MESSAGE]}") from error
        return protocol

    def _check_from_file(self) -> None:
        """Refuse parameters that are not plain data."""
        by_label = {spec.label: spec.method for spec in self.methods}
        given = [(spec.label, spec.parameters) for spec in self.methods]
        given += [pair for of_method in self.exceptions.values() for pair in of_method.items()]
        if self.tuning is not None:
            given += self.tuning.grids.items()
        for label, parameters in given:
            method = get_method(self.kind, by_label[label])
            for name, value in parameters.items():
                check_from_file(method.name, name, value, method.choices)

    @property
    def kind(self) -> Kind:
        """The kind of method that takes part."""
        return "learner" if self.experiment == "prediction" else "enhancer"

    def cells(self) -> Iterator[Cell]:
        """Expand into cells, data set by data set; each set is loaded for its hash and splits.

        Yields
        ------
        Cell
            In the order of data sets, splits, rules that hide labels (or thresholds), methods.
        """
        for source in self.datasets:
            dataset, data_sha256 = load_source(source)
            self._check_labels(dataset)
            specs = [self._on(source, spec) for spec in self.methods]
            estimators = {spec.label: self.estimator(spec) for spec in specs}
            parameters = {
                spec.label: plain(estimators[spec.label].get_params()) | spec.options
                for spec in specs
            }
            for setting in settings_of(self.splits, self.thresholds, dataset, self.hide):
                for spec in specs:
                    yield Cell(
                        experiment=self.experiment,
                        source=source,
                        data_sha256=data_sha256,
                        method=spec,
                        parameters=parameters[spec.label],
                        setting=setting,
                        grid=self._grid(spec),
                        tuning=self.tuning,
                        code=code_version(estimators[spec.label]),
                        decisions=self._decisions(spec),
                    )

    def restricted(self, dataset: str, label: str) -> Protocol | None:
        """Return the part of the protocol for one method on one data set.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        label : str
            Label of the method.

        Returns
        -------
        Protocol or None
            None if the protocol does not have this method or this data set.
        """
        sources = tuple(source for source in self.datasets if source.name == dataset)
        specs = tuple(spec for spec in self.methods if spec.label == label)
        if not sources or not specs:
            return None
        tuning = self.tuning
        if tuning is not None:
            grids = {name: grid for name, grid in tuning.grids.items() if name == label}
            tuning = replace(tuning, grids=grids)
        special = self.exceptions.get(dataset, {})
        kept = {dataset: {label: special[label]}} if label in special else {}
        return replace(
            self, datasets=sources, methods=specs, control=label, tuning=tuning, exceptions=kept
        )

    def on_datasets(self, names: Collection[str]) -> Protocol | None:
        """Return the part of the protocol for some of its data sets.

        Parameters
        ----------
        names : collection of str
            Names of data sets; those that the protocol does not have are ignored.

        Returns
        -------
        Protocol or None
            None if the protocol has none of them.
        """
        sources = tuple(source for source in self.datasets if source.name in names)
        if not sources:
            return None
        kept = {name: special for name, special in self.exceptions.items() if name in names}
        return replace(self, datasets=sources, exceptions=kept)

    def _on(self, source: Source, spec: MethodSpec) -> MethodSpec:
        """Return the method as it is run on a data set."""
        special = self.exceptions.get(source.name, {}).get(spec.label, {})
        return replace(spec, parameters={**spec.parameters, **special})

    def _check_labels(self, dataset: Dataset) -> None:
        wanted, other = ("Y", "D") if self.experiment == "prediction" else ("D", "Y")
        if getattr(dataset, wanted) is None:
            has = "a label distribution" if other == "D" else "logical labels"
            raise ValueError(
                f"data set {dataset.name!r} has {has}, which a {self.experiment} cannot use; "
                "leave it out of the protocol."
            )

    def _grid(self, spec: MethodSpec) -> Grid:
        if self.tuning is None:
            return {}
        grid = self.tuning.grids.get(spec.label, get_method(self.kind, spec.method).grid)
        # A parameter that the protocol sets has a fixed value and is not tuned.
        return {name: values for name, values in grid.items() if name not in spec.parameters}

    def _decisions(self, spec: MethodSpec) -> tuple[str, ...]:
        decisions = get_method(self.kind, spec.method).decisions
        return tuple(name for name in decisions if name in self._grid(spec))

    def estimator(self, spec: MethodSpec) -> Estimator:
        """Make the unfitted estimator of a method.

        Parameters
        ----------
        spec : MethodSpec
            One of this protocol's.

        Returns
        -------
        estimator
            With the registered defaults and the protocol's parameters.
        """
        return get_method(self.kind, spec.method).make().set_params(**spec.parameters)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"thresholds must be numbers, got {value!r}.")
    return float(value)


def _refuse_repeats(what: str, names: list[str]) -> None:
    if not names:
        raise ValueError(f"a protocol needs at least one {what}.")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what} {name!r} stands twice in the protocol; give each its label.")
