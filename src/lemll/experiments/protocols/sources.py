"""Load the data sets of a protocol and compute the hash that identifies their content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from lemll._types import Features
from lemll._validation import is_sparse
from lemll.datasets import (
    Dataset,
    dataset_info,
    load_dataset,
    load_digit_tags,
    looks_like_a_file,
    make_artificial,
    make_artificial_surface,
    read_dataset,
)

__all__ = [
    "EMBEDDED",
    "Source",
    "data_sha256",
    "features_sha256",
    "load_source",
    "locate",
    "make_source",
]

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


def _parts(X: Features) -> list[Any]:
    return [np.array(X.shape), *((X.indptr, X.indices, X.data) if is_sparse(X) else (X,))]


def _sha256(parts: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        # SciPy chooses int32 or int64 for row pointers. This choice must not change the hash.
        if array.dtype.kind == "i":
            array = array.astype(np.int64)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()
