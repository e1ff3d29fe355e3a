"""Modules that a protocol asks for: they run code, so only a user who trusts them imports them."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import PathFinder, all_suffixes
from pathlib import Path

from lemll.exceptions import ProtocolError

__all__ = ["check_trust", "import_from_folder", "imported_names", "own_files", "place_in_own_code"]

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
# The folders that modules were imported from. What a module can import from there counts as its
# code.
_FOLDERS: set[Path] = set()


def imported_names(given: object) -> list[str]:
    """Return the names of the key ``imports`` of a protocol, or raise a ValueError."""
    if not isinstance(given, list) or not all(
        isinstance(name, str) and _NAME.fullmatch(name) for name in given
    ):
        raise ValueError(
            f'imports must be a list of names of modules such as ["mymethods"], got {given!r}; '
            "leave out .py and folders."
        )
    return list(given)


def check_trust(names: list[str], file: Path, *, trust: bool) -> None:
    """Refuse modules that the user has not trusted; remember those that he trusts now.

    The trust is for a protocol file and the present content of everything that can be imported from
    its folder. It is kept in ``~/.config/lemll/trusted`` (or in ``$XDG_CONFIG_HOME/lemll``).

    Parameters
    ----------
    names : list of str
        Names of the modules.
    file : Path
        The protocol.
    trust : bool
        Whether the user trusts them now.

    Raises
    ------
    ValueError
        If they are not trusted.
    """
    folder = file.resolve().parent
    digest = hashlib.sha256(f"{file.resolve()}\0{' '.join(names)}".encode())
    for path in importable_files(folder):
        digest.update(f"\0{path.relative_to(folder).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    memory = _memory()
    known = memory.read_text(encoding="utf-8").split() if memory.is_file() else []
    if digest.hexdigest() in known:
        return
    if not trust:
        raise ValueError(
            f"it imports Python modules of its folder ({', '.join(names)}), which can run any "
            "code, and you have not trusted them, or they have changed since; if you trust them, "
            "pass --trust-imports once (in Python trust_imports=True)."
        )
    with suppress(OSError):  # without a place to remember it, the user is asked again
        memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with memory.open("a", encoding="utf-8") as stream:
            stream.write(f"{digest.hexdigest()}\n")


def _memory() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "lemll" / "trusted"


def importable_files(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Yield the files that can be imported from a folder, in a fixed order."""
    here = folder.resolve()
    if here in above:  # a link to a folder above it
        return
    try:
        paths = sorted(folder.iterdir())
    except PermissionError:  # Python cannot import from it either
        return
    for path in paths:
        if path.is_dir():
            if path.name.isidentifier() and path.name != "__pycache__":
                yield from importable_files(path, above | {here})
        elif path.name.endswith(tuple(all_suffixes())) and path.is_file():
            yield path


def own_files(file: Path) -> list[Path]:
    """Return all files that a module can import from the folder that it was imported from.

    Parameters
    ----------
    file : Path
        The file of the module.

    Returns
    -------
    list of Path
        Only the file itself if `import_from_folder` did not import it.
    """
    place = file.resolve()
    folders = [folder for folder in _FOLDERS if place.is_relative_to(folder)]
    return sorted({place, *(path for folder in folders for path in importable_files(folder))})


def place_in_own_code(error: BaseException, kind: type | None = None) -> str:
    """Return where an error came from in a module that `import_from_folder` imported.

    Parameters
    ----------
    error : BaseException
        The error.
    kind : type, optional
        The class of the method. A worker process has imported only the module of this class.

    Returns
    -------
    str
        The file and the line; empty if no such module is involved.
    """
    folders = set(_FOLDERS)
    if kind is not None and kind.__module__.partition(".")[0] not in {"lemll", "sklearn"}:
        with suppress(OSError, TypeError):  # a class typed into an interpreter has no file
            folders.add(Path(inspect.getfile(kind)).resolve().parent)
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next(
        (
            f"{frame.filename}, line {frame.lineno}"
            for frame in frames
            if any(Path(frame.filename).is_relative_to(folder) for folder in folders)
        ),
        "",
    )


def import_from_folder(names: list[str], folder: Path) -> None:
    """Import modules that lie in a folder, and make the folder importable.

    Worker processes get the same search path. The folder comes last in it, so that its files cannot
    replace modules of Python or of libraries.

    Parameters
    ----------
    names : list of str
        Names of the modules.
    folder : Path
        The folder that holds them.

    Raises
    ------
    ProtocolError
        If the folder has no such module, if another module has this name, or if it cannot be
        imported.
    """
    place = str(folder.resolve())
    for name in names:
        first = name.partition(".")[0]
        if PathFinder.find_spec(first, [place]) is None:
            raise ProtocolError(
                f"imports names {name!r}, but {folder} has no such module; put {first}.py beside "
                "the protocol"
            )
        if place not in sys.path:
            sys.path.append(place)
            importlib.invalidate_caches()
        _FOLDERS.add(Path(place))
        try:
            module = importlib.import_module(name)
        except (Exception, SystemExit) as error:  # the code of a user can raise anything
            where = place_in_own_code(error)
            raise ProtocolError(
                f"{name}.py cannot be imported: {type(error).__name__}: {error}"
                f"{where and f' ({where})'}; mend the module"
            ) from error
        origin = Path(getattr(module, "__file__", None) or "").resolve()
        if not origin.is_relative_to(place):
            raise ProtocolError(
                f"imports names {name!r}, but another module has this name ({origin}); rename yours"
            )
