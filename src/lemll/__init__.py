"""Multi-label learning with label enhancement."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lemll.models import load, save
    from lemll.predictors import (
        LEMLL,
        LEMLLCV,
        MSVR,
        MSVRCV,
        BinaryRelevance,
        MSVRClassifier,
        MultilabelForest,
        TagPredictor,
    )

__version__ = "0.1.0.dev0"

__all__ = [
    "LEMLL",
    "LEMLLCV",
    "MSVR",
    "MSVRCV",
    "BinaryRelevance",
    "MSVRClassifier",
    "MultilabelForest",
    "TagPredictor",
    "__version__",
    "load",
    "save",
]


def __getattr__(name: str) -> object:
    """Import a public name or a package when it is first used.

    So ``lemll --version`` does not wait, and ``lemll.metrics`` needs no import of its own.
    """
    if name in __all__:
        room = "lemll.models" if name in ("load", "save") else "lemll.predictors"
        found: object = getattr(import_module(room), name)
    elif not name.startswith("_") and find_spec(f"lemll.{name}") is not None:
        found = import_module(f"lemll.{name}")
    else:
        raise AttributeError(f"module 'lemll' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
