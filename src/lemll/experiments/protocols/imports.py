"""Modules that a protocol asks for: they run code, so only a user who trusts them imports them."""

from __future__ import annotations

import importlib
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path

from lemll.exceptions import ProtocolError

__all__ = ["import_from_folder", "imported_names"]

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


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
        If the folder has no such module, or if another module has this name.
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
        module = importlib.import_module(name)
        origin = Path(getattr(module, "__file__", None) or "").resolve()
        if not origin.is_relative_to(place):
            raise ProtocolError(
                f"imports names {name!r}, but another module has this name ({origin}); rename yours"
            )
