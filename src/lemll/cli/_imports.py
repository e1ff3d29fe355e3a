"""The option ``--import``: a module of the user that registers methods."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated

import typer

from lemll.experiments import import_from_folder

__all__ = ["Imports", "import_modules"]

Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        help="A Python file, or a module on PYTHONPATH, that registers your own methods. It can "
        "run any code.",
        metavar="FILE.py|MODULE",
    ),
]


def import_modules(names: list[str] | None) -> None:
    """Import the modules that the user named."""
    for name in names or ():
        if name.endswith(".py"):
            path = Path(name)
            import_from_folder([path.stem], path.parent)
            continue
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"--import {name}: {error}; give the file, {name}.py, or put its folder on "
                "PYTHONPATH."
            ) from error
        except Exception as error:  # the code of a user can raise anything
            raise ValueError(
                f"--import {name}: {type(error).__name__}: {error}; mend the module."
            ) from error
