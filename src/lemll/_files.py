"""Read only plain files, and write files either completely or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from lemll.exceptions import DatasetFormatError

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


# The arrays of a file may be this many times larger than the file itself. Real data sets stay below
# 60. Results below the floor are always allowed. A few kilobytes of packed zeros must not fill the
# memory.
_MAX_RATIO = 200
_FLOOR_BYTES = 256 * 2**20
# The floor for compressed text is lower, because text is expensive: without a fast path, Python
# reads about one megabyte per second, and the numbers made from the text need memory again.
_TEXT_FLOOR_BYTES = 2 * 2**20
# Approximate memory of a short Python string and its pointer in a tuple.
NAME_BYTES = 64


class Budget:
    """Counts the bytes that a reader allocates for a file, and refuses allocations beyond a limit.

    Parameters
    ----------
    file : str
        Name of the file in error messages.
    packed : int
        Size of the file in bytes.
    limit : int or None
        The option `max_expanded_bytes` of the reader, for the text and for the arrays. By default
        200 times `packed`, but at least 2 MiB for text and 256 MiB for arrays.
    remedy : str
        What to do if a correct file is refused.
    """

    def __init__(
        self,
        file: str,
        packed: int,
        limit: int | None,
        remedy: str = "pass a larger max_expanded_bytes",
    ) -> None:
        self.file = file
        self._packed = packed
        self._limit = limit
        self._remedy = remedy
        self._text = 0
        self._arrays = 0

    def charge_text(self, size: int) -> None:
        """Count `size` bytes of text from a compressed file."""
        self._text += size
        allowed = self._allowed(_TEXT_FLOOR_BYTES)
        if self._text > allowed:
            raise DatasetFormatError(
                f"expands to more than {allowed} bytes, which is too much for a file of this "
                f"size; if the file is correct, {self._remedy}",
                file=self.file,
            )

    def charge(self, size: int) -> None:
        """Count `size` bytes of arrays and names before they are allocated."""
        self.check(size)
        self._arrays += size

    def check(self, size: int) -> None:
        """Refuse `size` bytes that do not fit, without counting them: they are freed soon."""
        total = self._arrays + size
        allowed = self._allowed(_FLOOR_BYTES)
        if total > allowed:
            raise DatasetFormatError(
                f"its arrays would take {total} bytes, more than the {allowed} that a file of this "
                f"size should need; if the file is correct, {self._remedy}",
                file=self.file,
            )

    def join(self, other: Budget) -> None:
        """Add the counts of another file of the same data set."""
        self._packed += other._packed
        self._arrays += other._arrays

    def _allowed(self, floor: int) -> int:
        return max(floor, _MAX_RATIO * self._packed) if self._limit is None else self._limit


# Characters that begin a formula, including their East Asian full-width forms.
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def without_guard(text: str) -> str:
    """Remove the apostrophe that lemll writes before a text that begins like a formula."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_SIGNS) else text


_TEMPORARY = ".tmp"


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing, so that it is never incomplete, even after a power failure.

    The bytes go to a new file with a random name in the same folder, which is then renamed. If
    `path` is a link, the link itself is replaced.

    Parameters
    ----------
    path : str or Path
        The file to write. An existing file is replaced.

    Yields
    ------
    binary file
        To write to, and to read again.

    Raises
    ------
    OSError
        If the file cannot be written. After this and any other error, an existing file is
        unchanged.
    """
    temporary = f"{path}.{secrets.token_hex(8)}{_TEMPORARY}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY | _NOFOLLOW
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with open(descriptor, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # if writing fails, removing may fail too; keep the first error
            os.unlink(temporary)
        raise
    _sync_folder(Path(path).parent)


def write_whole(path: str | Path, content: bytes) -> None:
    """Write bytes to a file as `whole_file` does."""
    with whole_file(path) as stream:
        stream.write(content)


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


# A number may begin with a sign, and is not a formula.
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


def safe_cell(value: object) -> Any:
    """Change a text that a spreadsheet would read as a formula; numbers do not change.

    Parameters
    ----------
    value : object
        The value of a table cell.

    Returns
    -------
    object
        The text after an apostrophe, if it begins like a formula. Other values do not change.

    Examples
    --------
    >>> safe_cell("=cmd|' /C calc'!A0"), safe_cell("-0.5"), safe_cell(-0.5), safe_cell("-a")
    ("'=cmd|' /C calc'!A0", '-0.5', -0.5, "'-a")
    """
    if (
        not isinstance(value, str)
        or not value.startswith(FORMULA_SIGNS)
        or _NUMBER.fullmatch(value)
    ):
        return value
    return f"'{value}"


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    r"""Write rows as CSV, and apply `safe_cell` to every cell.

    Parameters
    ----------
    rows : iterable of iterable
        The rows. The first one may be a header.

    Returns
    -------
    str
        The text. Every line ends with a line feed.

    Examples
    --------
    >>> csv_text([["method", "mean"], ["@SUM(1)", -1.5]])
    "method,mean\n'@SUM(1),-1.5\n"
    """
    return "".join(f"{','.join(map(_quoted, row))}\n" for row in rows)


def _quoted(value: object) -> str:
    # The csv module does not quote a carriage return, but other readers begin a new line there.
    text = "" if value is None else str(safe_cell(value))
    if not any(sign in text for sign in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'
