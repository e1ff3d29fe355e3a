"""Downloads that cannot surprise: https only, a size cap, SHA-256, and no half file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urljoin, urlsplit

from lemll.exceptions import (
    ChecksumError,
    DatasetNotFoundError,
    DownloadError,
    import_extra,
)

__all__ = ["UpstreamFile", "download"]

_CHUNK_BYTES = 64 * 2**10
_TIMEOUT_SECONDS = 30
_MAX_REDIRECTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamFile:
    """A file somewhere else, with all that is needed to know it when it arrives."""

    url: str
    sha256: str
    size: int

    @property
    def name(self) -> str:
        """The file's own name."""
        return urlsplit(self.url).path.rpartition("/")[2]


def download(file: UpstreamFile, folder: Path, *, download_if_missing: bool = True) -> Path:
    """Return the local copy of `file`, downloading it if need be.

    The bytes go to a temporary file in the same folder, are checked against the registered size
    and SHA-256, and only then take their name, in one step.

    Parameters
    ----------
    file : UpstreamFile
        Address, SHA-256 and size, all three mandatory.
    folder : Path
        Where the copy stands.
    download_if_missing : bool, default=True
        If False, a missing or damaged copy is an error.

    Returns
    -------
    Path
        The verified file.
    """
    target = folder / file.name
    if target.is_file() and _sha256(target) == file.sha256:
        return target
    if not download_if_missing:
        raise DatasetNotFoundError(
            f"{target} is not there, and download_if_missing=False forbids fetching {file.url}"
        )
    _check_https(file.url)
    pooch = import_extra("pooch", "data", "Downloading a data set")
    try:
        path = pooch.retrieve(
            url=file.url,
            known_hash=f"sha256:{file.sha256}",
            fname=file.name,
            path=folder,
            downloader=_CappedDownloader(file.size),
        )
    except (ChecksumError, DownloadError):
        raise
    except OSError as error:
        # Everything that requests raises, and a folder that cannot be written.
        raise DownloadError(
            f"downloading {file.url} failed: {error}; check the connection, or set LEMLL_DATA_DIR "
            "to a folder that has the file"
        ) from error
    except ValueError as error:
        raise ChecksumError(
            f"what {file.url} delivers is not the registered file (SHA-256 {file.sha256}); "
            "nothing was kept. If it was replaced upstream, the registry must be updated"
        ) from error
    return Path(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_https(url: str) -> None:
    if not url.lower().startswith("https://"):
        raise DownloadError(f"only https addresses are downloaded, got {url}")


class _CappedDownloader:
    """Pooch's downloader protocol, refusing more bytes than registered and any way out of https."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, url: str, output_file: str | BinaryIO, pooch: Any) -> None:
        del pooch  # part of the protocol
        try:
            self._fetch(url, Path(str(output_file)))
        except ValueError as error:
            # urllib's and requests' word for it; to pooch it would look like a wrong checksum.
            raise DownloadError(f"{url} redirects to no valid address: {error}") from error

    def _fetch(self, url: str, path: Path) -> None:
        requests = import_extra("requests", "data", "Downloading a data set")
        place = url
        for _ in range(_MAX_REDIRECTS + 1):
            # Checked before each connection: following by itself, requests would have sent the
            # request in the clear before anyone could look.
            _check_https(place)
            with requests.get(
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
                        f"{url} delivers more than the registered {self.size} bytes; stopped"
                    )
                target.write(chunk)
