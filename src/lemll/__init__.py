"""Multi-label learning with label enhancement."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lemll.models import load, save
    from lemll.predictors import (
        CLR,
        ECC,
        LEMLL,
        LEMLLCV,
        ML2,
        MLFE,
        MSVR,
        MSVRCV,
        RELIAB,
        BinaryRelevance,
        LabelChain,
        MLkNN,
        MSVRClassifier,
        MultilabelForest,
        TagPredictor,
        TwoStage,
    )

__version__ = "0.1.0.dev0"

__all__ = [
    "CLR",
    "ECC",
    "LEMLL",
    "LEMLLCV",
    "ML2",
    "MLFE",
    "MSVR",
    "MSVRCV",
    "RELIAB",
    "BinaryRelevance",
    "LabelChain",
    "MLkNN",
    "MSVRClassifier",
    "MultilabelForest",
    "TagPredictor",
    "TwoStage",
    "__version__",
    "load",
    "save",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that ``lemll --version`` does not wait."""
    if name not in __all__:
        raise AttributeError(f"module 'lemll' has no attribute {name!r}")
    room = "lemll.models" if name in ("load", "save") else "lemll.predictors"
    found = getattr(import_module(room), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
