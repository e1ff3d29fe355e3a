"""The exceptions of lemll, in one small tree.

::

    LemllError
    ├── DatasetFormatError   (ValueError)    a data file or an array is not valid
    ├── UnknownDatasetError  (LookupError)   no data set has this registered name
    ├── DatasetNotFoundError (OSError)       registered, but not here and not downloadable
    ├── ChecksumError        (OSError)       a downloaded file is not the registered one
    ├── DownloadError        (OSError)       a download was refused or failed
    ├── StoreError           (OSError)       results cannot be written, or are damaged
    ├── GraphFileError       (ValueError)    a file of a neighbour graph cannot be read
    ├── ModelFileError       (ValueError)    a model file cannot be read or written
    ├── NotEnoughMemoryError (MemoryError)   refused before memory is allocated
    ├── ProtocolError        (ValueError)    a protocol file cannot be read or is not valid
    ├── UndefinedMetricError (ValueError)    a metric is not defined on any of the rows
    └── MissingExtraError    (ImportError)   an optional library is needed but not installed

Each also derives from a builtin exception, so code that does not know lemll can catch it.
"""

from __future__ import annotations

from types import ModuleType

__all__ = [
    "ChecksumError",
    "DatasetFormatError",
    "DatasetNotFoundError",
    "DownloadError",
    "GraphFileError",
    "LemllError",
    "MissingExtraError",
    "ModelFileError",
    "NotEnoughMemoryError",
    "ProtocolError",
    "StoreError",
    "UndefinedMetricError",
    "UnknownDatasetError",
    "import_extra",
]

_MAX_TOKEN = 80


class LemllError(Exception):
    """Base class of all exceptions that lemll defines."""


class DatasetFormatError(LemllError, ValueError):
    """A data file or an array is not valid.

    Parameters
    ----------
    problem : str
        What is wrong, and what is expected.
    file : str, optional
        The file with the problem.
    line, column : int, optional
        The position of the problem, counted from 1.
    token : str, optional
        The text that is wrong. It is cut after 80 characters.
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
    """No data set has this registered name."""


class DatasetNotFoundError(LemllError, OSError):
    """The data set is registered, but its files are not here and cannot be downloaded."""


class ChecksumError(LemllError, OSError):
    """A downloaded file does not have the registered SHA-256."""


class DownloadError(LemllError, OSError):
    """A download was refused or failed."""


class StoreError(LemllError, OSError):
    """A store of results cannot be written, or its files are damaged."""


class GraphFileError(LemllError, ValueError):
    """A file of a neighbour graph cannot be read."""


class ModelFileError(LemllError, ValueError):
    """A model file is damaged, too large, of another version, or not a model file at all."""


class NotEnoughMemoryError(LemllError, MemoryError):
    """A computation would need more memory than the machine has."""


class UndefinedMetricError(LemllError, ValueError):
    """A metric is not defined on any of the rows, for example because no cell is observed."""


class ProtocolError(LemllError, ValueError):
    """A protocol file cannot be read, is not valid, or asks for something that is not allowed."""


class MissingExtraError(LemllError, ImportError):
    """An optional library is needed but not installed."""


def import_extra(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or raise an error that names the extra to install.

    Parameters
    ----------
    module : str
        The module to import, for example ``"pooch"``.
    extra : str
        The extra of lemll that installs it.
    purpose : str
        The action that needs the library. It begins the sentence of the error message.

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
