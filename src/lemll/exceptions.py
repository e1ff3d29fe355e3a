"""The exceptions of lemll, one small tree.

::

    LemllError
    ├── DatasetFormatError   (ValueError)    a file or its content is not what it should be
    ├── UnknownDatasetError  (LookupError)   no data set of that name is registered
    ├── DatasetNotFoundError (OSError)       registered, but neither at hand nor downloadable
    ├── ChecksumError        (OSError)       a downloaded file is not the registered one
    ├── DownloadError        (OSError)       a download was refused or failed
    ├── StoreError           (OSError)       results cannot be written, or read back as written
    ├── NotEnoughMemoryError (MemoryError)   refused before allocating
    └── MissingExtraError    (ImportError)   an optional library is needed and not installed

Each also derives from the builtin that code written without lemll in mind would catch.
"""

from __future__ import annotations

from types import ModuleType

__all__ = [
    "ChecksumError",
    "DatasetFormatError",
    "DatasetNotFoundError",
    "DownloadError",
    "LemllError",
    "MissingExtraError",
    "NotEnoughMemoryError",
    "ProtocolError",
    "StoreError",
    "UnknownDatasetError",
    "import_extra",
]

_MAX_TOKEN = 80


class LemllError(Exception):
    """Base of every exception raised on purpose by lemll."""


class DatasetFormatError(LemllError, ValueError):
    """A data file, or data given as arrays, breaks its format.

    Parameters
    ----------
    problem : str
        What is wrong and what would be right.
    file : str, optional
        The file it was found in.
    line, column : int, optional
        Where, counted from 1.
    token : str, optional
        The offending text; cut to 80 characters.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        token: str | None = None,
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.column = column
        self.token = token if token is None or len(token) <= _MAX_TOKEN else token[:_MAX_TOKEN]
        super().__init__(problem)

    def __str__(self) -> str:
        place = [] if self.file is None else [self.file]
        if self.line is not None:
            place.append(f"line {self.line}")
        if self.column is not None:
            place.append(f"column {self.column}")
        prefix = f"{', '.join(place)}: " if place else ""
        suffix = "" if self.token is None else f" (got {self.token!r})"
        return f"{prefix}{self.problem}{suffix}"


class UnknownDatasetError(LemllError, LookupError):
    """No data set of that name is registered."""


class DatasetNotFoundError(LemllError, OSError):
    """The data set is registered, but its files are neither at hand nor downloadable."""


class ChecksumError(LemllError, OSError):
    """A downloaded file does not have the registered SHA-256."""


class DownloadError(LemllError, OSError):
    """A download was refused or failed."""


class StoreError(LemllError, OSError):
    """A store of results cannot be written, or holds what was not written to it."""


class NotEnoughMemoryError(LemllError, MemoryError):
    """A computation would need more memory than the machine has."""


class ProtocolError(LemllError, ValueError):
    """A protocol file cannot be read, breaks its format, or asks for what a file may not."""


class MissingExtraError(LemllError, ImportError):
    """An optional library is needed and not installed."""


def import_extra(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or say which extra brings it.

    Parameters
    ----------
    module : str
        The module to import, for example ``"pooch"``.
    extra : str
        The extra of lemll that installs it.
    purpose : str
        What it is needed for, as the start of a sentence.

    Returns
    -------
    module
        The imported module.
    """
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs the library {module.partition('.')[0]!r}, which is not installed; "
            f"run: pip install 'lemll[{extra}]'"
        ) from error
