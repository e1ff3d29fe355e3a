"""The registry of the data sets in Tables I and V of the paper: names, figures and locations.

The figures are in ``registry.csv``, and the files to download are in ``upstream.csv``. Both are in
the folder of this module.
"""

from __future__ import annotations

import csv
import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from lemll.datasets.arff import read_arff
from lemll.datasets.dataset import Dataset
from lemll.datasets.download import UpstreamFile, download
from lemll.datasets.files import read_dataset
from lemll.datasets.matlab import read_mat
from lemll.exceptions import DatasetNotFoundError, UnknownDatasetError

# The figures in the tables of the paper, in the same order.
FIGURES = (
    "examples",
    "features",
    "labels",
    "cardinality",
    "density",
    "distinct",
    "proportion_distinct",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetInfo:
    """The registered information about a data set.

    Attributes
    ----------
    name : str
        Its name in lemll.
    aliases : tuple of str
        Its other names, for example the abbreviation in the paper.
    kind : {"logical", "distribution"}
        The kind of its labels.
    table : str
        The table of the paper that lists it: "I", "V", or "" if no table does.
    published : dict
        The figures in the paper, by name (`examples`, `features`, `labels`, ...).
    known_differences : dict
        The figures that are known to differ from the paper, with their values in the data.
    domain : str
        The subject of the data.
    path : str
        The path of the file relative to ``LEMLL_DATA_DIR``, or "" if the file is not available.
    upstream : tuple of UpstreamFile
        The files to download. Empty if no file is registered.
    note : str
        More information for users.
    """

    name: str
    aliases: tuple[str, ...]
    kind: Literal["logical", "distribution"]
    table: str
    published: dict[str, float]
    known_differences: dict[str, float]
    domain: str
    path: str
    upstream: tuple[UpstreamFile, ...]
    note: str


def _rows(resource: str) -> Iterator[dict[str, str]]:
    text = resources.files("lemll.datasets").joinpath(resource).read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines())


@cache
def _registry() -> dict[str, DatasetInfo]:
    upstream: dict[str, list[UpstreamFile]] = {}
    for row in _rows("upstream.csv"):
        file = UpstreamFile(url=row["url"], sha256=row["sha256"], size=int(row["bytes"]))
        upstream.setdefault(row["dataset"], []).append(file)
    return {
        row["name"]: DatasetInfo(
            name=row["name"],
            aliases=tuple(filter(None, row["aliases"].split(";"))),
            kind="logical" if row["kind"] == "logical" else "distribution",
            table=row["table"],
            published={figure: float(row[figure]) for figure in FIGURES if row[figure]},
            known_differences={
                figure: float(value)
                for figure, _, value in (
                    part.partition("=") for part in row["known_difference"].split(";") if part
                )
            },
            domain=row["domain"],
            path=row["path"],
            upstream=tuple(upstream.get(row["name"], ())),
            note=row["note"],
        )
        for row in _rows("registry.csv")
    }


def _key(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


@cache
def _names() -> dict[str, str]:
    return {
        _key(name): info.name
        for info in _registry().values()
        for name in (info.name, *info.aliases)
    }


def list_datasets(*, table: str | None = None) -> list[DatasetInfo]:
    """List the registered data sets.

    Parameters
    ----------
    table : {"I", "V", ""}, optional
        List only the data sets of this table of the paper. "" lists the data sets in no table.

    Returns
    -------
    list of DatasetInfo
        The data sets in the order of the paper, then the others.

    Examples
    --------
    >>> len(list_datasets(table="I")), len(list_datasets(table="V"))
    (15, 15)
    """
    return [info for info in _registry().values() if table is None or info.table == table]


def dataset_info(name: str) -> DatasetInfo:
    """Find a data set by its name or an alias. Case and punctuation are ignored.

    Parameters
    ----------
    name : str
        For example ``"rcv1-s1"``, ``"Corel16k001"``, ``"SJA"``.

    Returns
    -------
    DatasetInfo
        The registered information.

    Raises
    ------
    UnknownDatasetError
        If the name is not registered. The message suggests the most similar name.

    Examples
    --------
    >>> dataset_info("yeast spoem").name
    'Yeast_spoem'
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a data set must be a str, got {type(name).__name__}")
    found = _names().get(_key(name))
    if found is not None:
        return _registry()[found]
    near = difflib.get_close_matches(_key(name), list(_names()), n=1, cutoff=0.5)
    hint = f"did you mean {_names()[near[0]]!r}? " if near else ""
    raise UnknownDatasetError(
        f"no data set is called {name!r}; {hint}`lemll bench datasets list` shows all names"
    )


def local_path(info: DatasetInfo) -> Path | None:
    """Return the path of a data set below ``LEMLL_DATA_DIR``, or None if it is not there."""
    folder = os.environ.get("LEMLL_DATA_DIR")
    if not folder or not info.path:
        return None
    path = _home_written_out(folder, "LEMLL_DATA_DIR") / info.path
    return path if path.is_file() else None


def load_dataset(
    name: str, *, download_if_missing: bool = True, cache_dir: str | Path | None = None
) -> Dataset:
    """Load a registered data set.

    The function looks in the folder of the environment variable ``LEMLL_DATA_DIR``, then in the
    cache. Then it downloads the data set, if a file to download is registered.

    Parameters
    ----------
    name : str
        The name or an alias of the data set; see `list_datasets`.
    download_if_missing : bool, default=True
        Whether the data set may be downloaded.
    cache_dir : str or Path, optional
        The folder for downloaded files. By default ``lemll`` in the cache folder of the user.

    Returns
    -------
    Dataset
        The data set under its registered name.

    Raises
    ------
    UnknownDatasetError
        If the name is not registered.
    DatasetNotFoundError
        If the data set is not on this machine and cannot be downloaded. The message says what to
        do.
    """
    info = dataset_info(name)
    path = local_path(info)
    if path is not None:
        return _renamed(read_dataset(path), info)
    if not info.upstream:
        where = f"put it at $LEMLL_DATA_DIR/{info.path}" if info.path else info.note
        raise DatasetNotFoundError(
            f"data set {info.name!r} is not on this machine and has no registered download: {where}"
        )
    folder = (Path(cache_dir) if cache_dir is not None else _default_cache()) / info.name
    files = [
        download(file, folder, download_if_missing=download_if_missing) for file in info.upstream
    ]
    return _renamed(_read_upstream(files), info)


def _default_cache() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return _home_written_out(folder, "XDG_CACHE_HOME") / "lemll"


def _home_written_out(folder: str, variable: str) -> Path:
    try:
        return Path(folder).expanduser()
    except RuntimeError as error:
        raise DatasetNotFoundError(
            f"{variable} is {folder!r}, but this home folder is not known; set {variable} to a "
            "folder without ~"
        ) from error


def _read_upstream(files: list[Path]) -> Dataset:
    if files[0].suffix == ".mat":
        return read_mat(files[0])
    *tables, label_file = files
    return read_arff(list(tables), label_file)


def _renamed(dataset: Dataset, info: DatasetInfo) -> Dataset:
    return replace(dataset, name=info.name, registered=info.name)
