"""Read only plain files, and write files either completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from lemll._plain_files import check_plain, open_plain

__all__ = ["read_plain", "write_output", "write_texts", "write_whole"]

_TEMPORARY = ".tmp"
_BLOCK_BYTES = 2**20
# Flags that some systems do not have, or do not need.
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


def read_plain(path: str | Path, *, most: int, follow: bool = False) -> bytes:
    """Read a plain file that is not too long.

    Parameters
    ----------
    path : str or Path
        The file.
    most : int
        Bytes that it may have.
    follow : bool, default=False
        Whether a symbolic link may lead to it.

    Returns
    -------
    bytes
        Its content.

    Raises
    ------
    OSError
        Its `strerror` says why it was not read.
    """
    descriptor = open_plain(path, follow=follow)
    try:
        size = os.fstat(descriptor).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it has {size} bytes, and at most {most} are read")
        content = os.read(descriptor, size)
        # A system may give less than was asked for; the file may have grown or shrunk meanwhile.
        while len(content) < size and (more := os.read(descriptor, _BLOCK_BYTES)):
            content += more
        return content
    finally:
        os.close(descriptor)


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file so that it is never incomplete, even after a power failure.

    The bytes go to a file of a random name that did not exist before, in the same folder; a link
    at `path` is replaced and not followed.

    Parameters
    ----------
    path : str or Path
        Where to; replaced if it exists.
    content : bytes
        What to write.

    Raises
    ------
    OSError
        If the system refuses; what stood at `path` before still does.
    """
    temporary = f"{path}.{secrets.token_hex(8)}{_TEMPORARY}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY | _NOFOLLOW
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # what refuses to be written may refuse to be removed
            os.unlink(temporary)
        raise
    _sync_folder(Path(path).parent)


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):  # a system that opens no folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_output(path: Path, content: str | bytes) -> None:
    """Write a file that a user named, whole or not at all; its folder is made if need be.

    Parameters
    ----------
    path : Path
        Where to. What a link names is replaced, and the link stays.
    content : str or bytes
        What to write; text in UTF-8.

    Raises
    ------
    OSError
        If there is something else than a plain file, or the system refuses.
    """
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        # As root, a device such as /dev/null could be replaced by a file.
        check_plain(os.stat(target).st_mode)
    write_whole(target, content.encode() if isinstance(content, str) else content)


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts for people to read, into a folder that is made if it is not there.

    Parameters
    ----------
    folder : Path
        Where to.
    texts : mapping of str to str
        By the names of the files.

    Returns
    -------
    list of Path
        The files.
    """
    for name, text in texts.items():
        write_output(folder / name, text)
    return [folder / name for name in texts]
