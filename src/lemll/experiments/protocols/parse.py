"""Read the TOML file of a protocol; unknown keys are refused with the nearest known key."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lemll._types import Settings, SettingsView
from lemll.datasets import find_reader
from lemll.exceptions import ProtocolError
from lemll.experiments.protocols.hiding import Hide
from lemll.experiments.protocols.methods import OPTIONS, MethodSpec
from lemll.experiments.protocols.names import unknown_name
from lemll.experiments.protocols.settings import Splits, Tuning
from lemll.experiments.protocols.sources import Source, locate, make_source
from lemll.experiments.stores.files import read_plain

__all__ = ["ProtocolError", "parse_protocol", "read_toml"]

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
    _check_keys("key", content, _KEYS)
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
        _check_keys("key of [splits]", rule, _SPLITS)
        parsed["splits"] = Splits(**rule)
    if "tuning" in content:
        rule = dict(_table(content, "tuning"))
        _check_keys("key of [tuning]", rule, _TUNING)
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
        _check_keys("key of [hide]", rule, _HIDE)
        for needed in _HIDE:
            if needed not in rule:
                raise ValueError(f"[hide] has no {needed!r}; give a kind and a share.")
        shares = rule["share"] if isinstance(rule["share"], list) else [rule["share"]]
        yield from (Hide(rule["kind"], share) for share in shares)


def _check_keys(what: str, table: Iterable[str], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise ValueError(unknown_name(what, key, known))


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


def _source(entry: Any, folder: Path) -> Source:
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
    _check_keys(f"option to read {path.name}", options, known)


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{what} must be a text, got {value!r}.")
    return value


def _methods(methods: Any) -> tuple[MethodSpec, ...]:
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
