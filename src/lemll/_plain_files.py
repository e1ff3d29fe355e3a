"""Plain files, opened without following links or waiting for a pipe, and locks on them."""

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
# Flags that some systems do not have, or do not need.
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


def check_plain(mode: int) -> None:
    """Refuse what is not a plain file, by its mode; the OSError says what it is instead."""
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a plain file")


def open_plain(path: str | Path, flags: int = os.O_RDONLY, *, follow: bool = False) -> int:
    """Open a plain file; a FIFO or a device in its place is refused and never waited for.

    Parameters
    ----------
    path : str or Path
        The file.
    flags : int, default=os.O_RDONLY
        Of `os.open`.
    follow : bool, default=False
        Whether a symbolic link may lead to it.

    Returns
    -------
    int
        The descriptor.

    Raises
    ------
    OSError
        Its `strerror` says why not.
    """
    # Opening a FIFO waits for the other end, unless it is told not to.
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
        """Let others have it."""
        # Removed while still held: who opened the file before finds, once the lock is his, that
        # it is no longer the one at its path, and tries again.
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def take_lock(path: Path) -> FileLock | None:
    """Take a lock on a file, if it is free.

    The system drops it when its holder ends, in whatever way; the file may stay behind and does no
    harm.

    Parameters
    ----------
    path : Path
        The lock's file; made if it is not there.

    Returns
    -------
    FileLock or None
        None if another has it, in this process or in another.

    Raises
    ------
    OSError
        If the file cannot be made, or something else than a plain file stands there.
    ImportError
        On a system without such locks, which is one that is not POSIX.
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
    """Tell whether someone holds the lock of this file; what is not a plain file holds none."""
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
