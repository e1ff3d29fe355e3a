"""The engine of experiments: protocols, their execution, and the store of results."""

from __future__ import annotations

import importlib
from typing import Any

from lemll.experiments.execution.dask import dask_client
from lemll.experiments.execution.execute import measure, run_cell
from lemll.experiments.execution.models import own_arrays, split_rows
from lemll.experiments.execution.runner import RunProgress, run
from lemll.experiments.protocols.hiding import Hide
from lemll.experiments.protocols.imports import import_from_folder, place_in_own_code
from lemll.experiments.protocols.methods import (
    Method,
    MethodSpec,
    get_method,
    list_methods,
    register,
)
from lemll.experiments.protocols.names import plain
from lemll.experiments.protocols.protocol import Cell, Protocol
from lemll.experiments.protocols.settings import THRESHOLDS, Splits, Tuning
from lemll.experiments.protocols.sources import load_source
from lemll.experiments.stores.export import csv_text, safe_cell
from lemll.experiments.stores.files import write_output, write_texts
from lemll.experiments.stores.records import Record, Status, damage
from lemll.experiments.stores.store import Store

__all__ = [
    "THRESHOLDS",
    "Cell",
    "Hide",
    "Method",
    "MethodSpec",
    "Protocol",
    "Record",
    "RunProgress",
    "Splits",
    "Status",
    "Store",
    "Tuning",
    "csv_text",
    "damage",
    "dask_client",
    "get_method",
    "import_from_folder",
    "list_methods",
    "load_source",
    "measure",
    "own_arrays",
    "place_in_own_code",
    "plain",
    "register",
    "run",
    "run_cell",
    "safe_cell",
    "split_rows",
    "write_output",
    "write_texts",
]

# The comparison of results and the experiments of the paper are separate packages, which use this
# one. Their names are also available here, because earlier versions had them in this package.
_ELSEWHERE = {
    "ComparisonTable": "lemll.comparison",
    "PredictionCell": "lemll.comparison",
    "ReconstructionCell": "lemll.comparison",
    "published_prediction": "lemll.comparison",
    "published_reconstruction": "lemll.comparison",
    "verify": "lemll.comparison",
    "paper_prediction": "lemll.paper",
    "paper_reconstruction": "lemll.paper",
}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_ELSEWHERE[name]), name)
