"""Open plain files without following links or waiting for a pipe, and lock files."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

__all__ = ["FileLock", "check_plain", "is_locked", "open_plain", "take_lock"]

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
# Some systems do not have these flags, or do not need them.
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


def check_plain(mode: int) -> None:
    """Refuse anything that is not a plain file, by its mode; the OSError says what it is."""
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a plain file")


def open_plain(path: str | Path, flags: int = os.O_RDONLY, *, follow: bool = False) -> int:
    """Open a plain file; refuse a FIFO or a device at once, without waiting for it.

    Parameters
    ----------
    path : str or Path
        The file.
    flags : int, default=os.O_RDONLY
        Flags of `os.open`.
    follow : bool, default=False
        Whether a symbolic link may lead to it.

    Returns
    -------
    int
        The descriptor.

    Raises
    ------
    OSError
        If the file cannot be opened. Its `strerror` says why.
    """
    # Without O_NONBLOCK, opening a FIFO waits for the process at the other end.
    flags |= _BINARY | _NONBLOCK | (0 if follow else _NOFOLLOW)
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if not follow and error.errno == errno.ELOOP:
            check_plain(stat.S_IFLNK)
        raise
    try:
        check_plain(os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class FileLock:
    """A lock that is held until it is released or this process ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock."""
        # Remove the file while the lock is still held. Another process may have opened the file
        # before. When it gets the lock, it sees that the file is not at its path any more, and it
        # tries again.
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def take_lock(path: Path) -> FileLock | None:
    """Take a lock on a file, if it is free.

    The system releases the lock when its holder ends, also after a crash. The file may remain; this
    does no harm.

    Parameters
    ----------
    path : Path
        The file of the lock. It is created if it does not exist.

    Returns
    -------
    FileLock or None
        None if the lock is already held, in this process or in another one.

    Raises
    ------
    OSError
        If the file cannot be created, or if the path is not a plain file.
    ImportError
        On a system without such locks, that is, a system that is not POSIX.
    """
    import fcntl

    while True:
        descriptor = open_plain(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                return FileLock(path, descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except FileNotFoundError:  # its holder has just released it
            pass
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Return whether the lock of this file is held; False if it is not a plain file."""
    import fcntl

    try:
        descriptor = open_plain(path)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
