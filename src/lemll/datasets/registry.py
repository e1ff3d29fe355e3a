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

from lemll.datasets.arff.files import read_arff
from lemll.datasets.dataset import Dataset
from lemll.datasets.download import UpstreamFile, download
from lemll.datasets.files import read_dataset
from lemll.datasets.matlab.files import read_mat
from lemll.exceptions import DatasetNotFoundError, UnknownDatasetError

__all__ = ["FIGURES", "DatasetInfo", "dataset_info", "list_datasets", "load_dataset", "local_path"]

# The figures of the paper's tables, in its order.
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
    """What is known of a data set before it is read.

    Attributes
    ----------
    name : str
        Its name in lemll.
    aliases : tuple of str
        Other names it goes by, the paper's abbreviation among them.
    kind : {"logical", "distribution"}
        What its labels are.
    table : str
        The paper's table that lists it, "I" or "V", or "" for an extra.
    published : dict
        The figures the paper prints, by name (`examples`, `features`, `labels`, ...).
    known_differences : dict
        Where the data are known to differ from the paper, what they have instead.
    domain : str
        What it is about.
    path : str
        Where it stands below ``LEMLL_DATA_DIR``; "" if it could not be had.
    upstream : tuple of UpstreamFile
        The files to download it from; empty if none is registered.
    note : str
        What else a user should know.
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
        Only those of this table of the paper; "" for the extras beyond it.

    Returns
    -------
    list of DatasetInfo
        In the paper's order, then the extras.

    Examples
    --------
    >>> len(list_datasets(table="I")), len(list_datasets(table="V"))
    (15, 15)
    """
    return [info for info in _registry().values() if table is None or info.table == table]


def dataset_info(name: str) -> DatasetInfo:
    """Look a data set up by its name or an alias; case and punctuation do not matter.

    Parameters
    ----------
    name : str
        For example ``"rcv1-s1"``, ``"Corel16k001"``, ``"SJA"``.

    Returns
    -------
    DatasetInfo
        Its entry.

    Raises
    ------
    UnknownDatasetError
        Naming the nearest registered name.

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
        f"no data set is called {name!r}; {hint}`lemll datasets list` shows all names"
    )


def local_path(info: DatasetInfo) -> Path | None:
    """Return where a set stands below ``LEMLL_DATA_DIR``, or None if it does not."""
    folder = os.environ.get("LEMLL_DATA_DIR")
    if not folder or not info.path:
        return None
    path = _home_written_out(folder, "LEMLL_DATA_DIR") / info.path
    return path if path.is_file() else None


def load_dataset(
    name: str, *, download_if_missing: bool = True, cache_dir: str | Path | None = None
) -> Dataset:
    """Load a registered data set.

    Looks below the folder named by the environment variable ``LEMLL_DATA_DIR``, then in the cache,
    then downloads it where an upstream file is registered.

    Parameters
    ----------
    name : str
        Its name or an alias; see `list_datasets`.
    download_if_missing : bool, default=True
        Whether to go to the network.
    cache_dir : str or Path, optional
        Where downloads are kept; by default ``lemll`` in the user's cache folder.

    Returns
    -------
    Dataset
        Named as registered.

    Raises
    ------
    UnknownDatasetError
        If nothing is registered under that name.
    DatasetNotFoundError
        If it is neither at hand nor downloadable; says what to do.
    """
    info = dataset_info(name)
    path = local_path(info)
    if path is not None:
        return _renamed(read_dataset(path), info)
    if not info.upstream:
        where = f"put it at $LEMLL_DATA_DIR/{info.path}" if info.path else info.note
        raise DatasetNotFoundError(
            f"data set {info.name!r} is not at hand and has no registered download: {where}"
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
            f"{variable} is {folder!r}, and that home folder is not known here; set {variable} to "
            "a folder without ~"
        ) from error


def _read_upstream(files: list[Path]) -> Dataset:
    if files[0].suffix == ".mat":
        return read_mat(files[0])
    *tables, label_file = files
    return read_arff(list(tables), label_file)


def _renamed(dataset: Dataset, info: DatasetInfo) -> Dataset:
    return replace(dataset, name=info.name, registered=info.name)
