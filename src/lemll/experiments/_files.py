"""Files that are there whole or not at all, and claims that die with their holder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from lemll.exceptions import StoreError

__all__ = ["Claim", "claim", "is_claimed", "write_texts", "write_whole"]

_TEMPORARY = ".tmp"


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
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it never stands there in part, not even after a power cut.

    Only one process may write a path at a time: the holder of the cell's claim does.

    Parameters
    ----------
    path : Path
        Where to; replaced if it exists.
    content : bytes
        What to write.

    Raises
    ------
    StoreError
        If the system refuses; what stood at `path` before still does.
    """
    # In the same folder, for a file is moved in one step only within a file system.
    temporary = path.with_name(path.name + _TEMPORARY)
    try:
        with open(temporary, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):  # what refuses to be written may refuse to be removed
            temporary.unlink(missing_ok=True)
        raise _refused(path, error) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot write {path.name} in {path.parent}: {error.strerror}. What was stored before is "
        "safe; make room or allow writing there, then resume"
    )


class Claim:
    """The right to run one cell, held until it is released or this process ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        """Let others have the cell."""
        # Removed while still held: who opened the file before finds, once the lock is his, that
        # it is no longer the one at its path, and tries again.
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def claim(path: Path) -> Claim | None:
    """Claim a cell by locking a file.

    The system drops the lock when its holder ends, in whatever way; the file may stay behind and
    does no harm.

    Parameters
    ----------
    path : Path
        The cell's file.

    Returns
    -------
    Claim or None
        None if another has it.

    Raises
    ------
    StoreError
        If the file cannot be made.
    """
    fcntl = _fcntl()
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise _refused(path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return Claim(path, descriptor)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except FileNotFoundError:  # its holder has just released it
            pass
        os.close(descriptor)


def is_claimed(path: Path) -> bool:
    """Tell whether someone holds the claim of this file."""
    fcntl = _fcntl()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _fcntl() -> ModuleType:
    try:
        import fcntl
    except ImportError as error:
        raise StoreError("a store needs file locks of a POSIX system, Linux or macOS") from error
    return fcntl
