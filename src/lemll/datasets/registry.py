"""The registry of the data sets in Tables I and V of the paper, and safe downloads of them.

The figures are in ``registry.csv``, and the files to download are in ``upstream.csv``. Both are in
the folder of this module. Downloads use only https, with a size limit, a deadline, SHA-256 and no
incomplete files. They use the same functions for plain files and locks as the store of results, so
neither can wait forever.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import os
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO, Literal
from urllib.parse import urljoin, urlsplit

from lemll._files import open_plain, take_lock
from lemll.datasets.arff import read_arff
from lemll.datasets.dataset import Dataset
from lemll.datasets.files import read_dataset
from lemll.datasets.matlab import read_mat
from lemll.exceptions import (
    ChecksumError,
    DatasetNotFoundError,
    DownloadError,
    UnknownDatasetError,
    import_extra,
)

_CHUNK_BYTES = 64 * 2**10
# Limit for one connection or one read.
_TIMEOUT_SECONDS = 30
# Limit for a whole file: this time, plus the time for its size at the slowest accepted speed.
_LEAST_SECONDS = 60
_SLOWEST_BYTES_PER_SECOND = 50_000
_POLL_SECONDS = 0.1
_MAX_REDIRECTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamFile:
    """A file on a server, with the size and the hash that identify it."""

    url: str
    sha256: str
    size: int

    @property
    def name(self) -> str:
        """The name of the file, without its folder."""
        return urlsplit(self.url).path.rpartition("/")[2]


def download(file: UpstreamFile, folder: Path, *, download_if_missing: bool = True) -> Path:
    """Return the local copy of `file`. Download it first if it is missing or damaged.

    The bytes go to a temporary file in the same folder. They are compared with the registered size
    and SHA-256, and then the file is renamed in one step. Only one process downloads a file at a
    time. The others wait and use the same file.

    Parameters
    ----------
    file : UpstreamFile
        Address, SHA-256 and size of the file.
    folder : Path
        The folder of the local copy.
    download_if_missing : bool, default=True
        If False, a missing or damaged copy is an error.

    Returns
    -------
    Path
        The verified file.
    """
    target = folder / file.name
    if _is_whole(target, file):
        return target
    if not download_if_missing:
        raise DatasetNotFoundError(
            f"{target} does not exist or is damaged, and download_if_missing=False forbids the "
            f"download of {file.url}"
        )
    _check_https(file.url)
    import_extra("pooch", "data", "Downloading a data set")
    seconds = _LEAST_SECONDS + file.size / _SLOWEST_BYTES_PER_SECOND
    deadline = time.monotonic() + seconds
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder / f".{file.name}.lock", deadline):
            # The process that held the lock before may have downloaded the file.
            return target if _is_whole(target, file) else _retrieve(file, folder, deadline)
    except (ChecksumError, DownloadError):
        raise
    except OSError as error:
        # All exceptions of requests, and a folder without permission to write.
        failed = f"failed: {error}"
        if time.monotonic() >= deadline:
            failed = f"took longer than {seconds:.0f} s in total, including the wait for others"
        raise DownloadError(
            f"downloading {file.url} {failed}; check the connection, or set LEMLL_DATA_DIR "
            "to a folder that has the file"
        ) from error


def _is_whole(path: Path, file: UpstreamFile) -> bool:
    try:
        descriptor = open_plain(path, follow=True)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise DownloadError(
            f"{path} cannot be read: {error.strerror}; remove it, then the file is downloaded again"
        ) from error
    with open(descriptor, "rb") as stream:
        if os.fstat(descriptor).st_size != file.size:
            return False
        return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256


@contextmanager
def _alone(path: Path, deadline: float) -> Iterator[None]:
    """Wait until no other process or thread holds the lock, but not longer than the deadline."""
    while True:
        try:
            lock = take_lock(path)
        except ImportError:  # without locks, two downloads are possible; both give a complete file
            yield
            return
        if lock is not None:
            break
        if time.monotonic() >= deadline:
            raise TimeoutError("another process holds the file's lock")
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()


def _retrieve(file: UpstreamFile, folder: Path, deadline: float) -> Path:
    pooch = import_extra("pooch", "data", "Downloading a data set")
    try:
        path = pooch.retrieve(
            url=file.url,
            known_hash=f"sha256:{file.sha256}",
            fname=file.name,
            path=folder,
            downloader=_CappedDownloader(file.size, deadline),
        )
    except OSError:  # some exceptions of requests are both an OSError and a ValueError
        raise
    except ValueError as error:
        raise ChecksumError(
            f"the file at {file.url} is not the registered one (SHA-256 {file.sha256}); it was "
            "deleted. If its authors have replaced it, the registry must be updated"
        ) from error
    return Path(path)


def _check_https(url: str) -> None:
    if not url.lower().startswith("https://"):
        raise DownloadError(f"only https addresses are downloaded, got {url}")


class _DeadlineSocket(ssl.SSLSocket):
    """A socket whose reads end at a deadline, even if single bytes continue to arrive."""

    deadline: float

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline of the download has passed")
        self.settimeout(min(left, _TIMEOUT_SECONDS))
        return super().recv_into(*arguments, **options)


def _session(deadline: float) -> Any:
    """Make a session of requests in which responses must be complete before a deadline."""
    requests = import_extra("requests", "data", "Downloading a data set")
    secure = import_extra("urllib3.util.ssl_", "data", "Downloading a data set")
    context = secure.create_urllib3_context()
    context.sslsocket_class = type("_Socket", (_DeadlineSocket,), {"deadline": deadline})

    # requests is imported at run time, so the type checker does not know this class.
    class Adapter(requests.adapters.HTTPAdapter):  # type: ignore[name-defined]
        def init_poolmanager(self, *arguments: object, **options: object) -> None:
            super().init_poolmanager(*arguments, **options | {"ssl_context": context})

        def proxy_manager_for(self, proxy: str, **options: object) -> Any:
            return super().proxy_manager_for(proxy, **options | {"ssl_context": context})

    session = requests.Session()
    session.mount("https://", Adapter())
    return session


class _CappedDownloader:
    """A downloader for pooch that accepts only https and at most the registered number of bytes."""

    def __init__(self, size: int, deadline: float) -> None:
        self.size = size
        self.deadline = deadline

    def __call__(self, url: str, output_file: str | BinaryIO, pooch: object) -> None:
        del pooch  # part of the protocol
        try:
            with _session(self.deadline) as session:
                self._fetch(session, url, Path(str(output_file)))
        except ValueError as error:
            # urllib and requests raise ValueError for a bad address. pooch also raises it for a
            # wrong check sum, so it must not reach the caller of pooch.
            raise DownloadError(f"{url} redirects to an invalid address: {error}") from error

    def _fetch(self, session: Any, url: str, path: Path) -> None:
        place = url
        for _ in range(_MAX_REDIRECTS + 1):
            # Check each address before the connection. If requests followed the redirects itself,
            # it would send the request over plain http before this check.
            _check_https(place)
            with session.get(
                place, stream=True, timeout=_TIMEOUT_SECONDS, allow_redirects=False
            ) as response:
                if not response.is_redirect:
                    response.raise_for_status()
                    self._save(response, url, path)
                    return
                place = urljoin(place, response.headers["location"])
        raise DownloadError(f"{url} redirects more than {_MAX_REDIRECTS} times; stopped")

    def _save(self, response: Any, url: str, path: Path) -> None:
        received = 0
        with path.open("wb") as target:
            for chunk in response.iter_content(_CHUNK_BYTES):
                received += len(chunk)
                if received > self.size:
                    raise DownloadError(
                        f"{url} sends more than the registered {self.size} bytes; stopped"
                    )
                target.write(chunk)


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
