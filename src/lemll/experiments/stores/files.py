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
# Flags that do not exist on all systems.
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


def read_plain(path: str | Path, *, most: int, follow: bool = False) -> bytes:
    """Read a plain file up to a limit of its size.

    Parameters
    ----------
    path : str or Path
        The file.
    most : int
        Largest number of bytes.
    follow : bool, default=False
        Whether the path may be a symbolic link.

    Returns
    -------
    bytes
        The content of the file.

    Raises
    ------
    OSError
        If the file cannot be read. The attribute `strerror` gives the reason.
    """
    descriptor = open_plain(path, follow=follow)
    try:
        size = os.fstat(descriptor).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it has {size} bytes, but at most {most} are allowed")
        content = os.read(descriptor, size)
        # One call may return less than requested, and the size may change during the reading.
        while len(content) < size and (more := os.read(descriptor, _BLOCK_BYTES)):
            content += more
        return content
    finally:
        os.close(descriptor)


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file so that it is never incomplete, even after a power failure.

    The bytes go to a new file with a random name in the same folder, which is then renamed. If
    `path` is a link, the link itself is replaced.

    Parameters
    ----------
    path : str or Path
        The file to write. An existing file is replaced.
    content : bytes
        The new content.

    Raises
    ------
    OSError
        If the file cannot be written. Then an existing file is unchanged.
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
        with suppress(OSError):  # if writing fails, removing may fail too; keep the first error
            os.unlink(temporary)
        raise
    _sync_folder(Path(path).parent)


def _sync_folder(folder: Path) -> None:
    # A rename survives a power failure only after the folder is flushed as well.
    if not hasattr(os, "O_DIRECTORY"):  # this system cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_output(path: Path, content: str | bytes) -> None:
    """Write an output file of the user completely or not at all. Its folder is created if missing.

    Parameters
    ----------
    path : Path
        The file to write. If it is a link, the file that it points to is replaced.
    content : str or bytes
        The new content. Text is written in UTF-8.

    Raises
    ------
    OSError
        If the path is not a plain file, or if it cannot be written.
    """
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        # Without this check, root would replace a device such as /dev/null by a file.
        check_plain(os.stat(target).st_mode)
    write_whole(target, content.encode() if isinstance(content, str) else content)


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write text files into a folder, which is created if it does not exist.

    Parameters
    ----------
    folder : Path
        The folder.
    texts : mapping of str to str
        The texts by the names of their files.

    Returns
    -------
    list of Path
        The files.
    """
    for name, text in texts.items():
        write_output(folder / name, text)
    return [folder / name for name in texts]
