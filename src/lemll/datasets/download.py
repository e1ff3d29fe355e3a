"""Safe downloads: only https, with a size limit, a deadline, SHA-256 and no incomplete files.

Downloads and the store of results use the same functions for plain files and locks, so neither can
wait forever.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urljoin, urlsplit

from lemll._files import open_plain, take_lock
from lemll.exceptions import ChecksumError, DatasetNotFoundError, DownloadError, import_extra

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
