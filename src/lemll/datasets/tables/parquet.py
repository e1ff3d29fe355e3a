"""Read a Parquet table of numbers; its footer is checked before its cells are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from lemll._budget import Budget
from lemll._types import Settings
from lemll.datasets._streams import file_size, refuse_compression
from lemll.datasets.tables.text import Table
from lemll.exceptions import DatasetFormatError, import_extra
from lemll.tables import open_parquet

__all__ = ["METADATA_KEY", "names_its_labels", "read_parquet"]

METADATA_KEY = b"lemll"


def read_parquet(path: Path, max_expanded_bytes: int | None) -> Table:
    """Read a table: its column names, its cells as float64, and the metadata written by lemll."""
    refuse_compression(path)
    budget = Budget(str(path), file_size(path), max_expanded_bytes)
    try:
        with open_parquet(path, budget, cell_bytes=8) as (file, batches):
            columns = list(file.schema_arrow.names)
            known = _known(file.schema_arrow.metadata or {}, path)
            _check_types(file.schema_arrow, path)
            cells = np.empty((file.metadata.num_rows, len(columns)))
            filled = 0
            for batch in batches:
                stop = filled + batch.num_rows
                for j, column in enumerate(batch.columns):
                    cells[filled:stop, j] = column.to_numpy(zero_copy_only=False)
                filled = stop
    except DatasetFormatError:
        raise
    except Exception as error:
        raise DatasetFormatError(f"not a readable Parquet file: {error}", file=str(path)) from error
    if not cells.size:
        raise DatasetFormatError("the table has no rows or no columns", file=str(path))
    return columns, cells, known


def names_its_labels(path: str | Path) -> bool:
    """Return whether a Parquet file says which of its columns are labels, as those of lemll do.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    bool
        False also if the file does not exist or cannot be read.
    """
    parquet = import_extra("pyarrow.parquet", "store", "Reading Parquet")
    try:
        known = _known(parquet.read_schema(path).metadata or {}, Path(path))
    except (ValueError, OSError):
        return False
    return "labels" in known


def _check_types(schema: Any, path: Path) -> None:
    types = import_extra("pyarrow.types", "store", "Reading Parquet")
    for field in schema:
        kind = field.type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise DatasetFormatError(
                f"column {field.name[:40]!r} must hold numbers; encode text columns first",
                file=str(path),
                token=str(kind),
            )


def _known(metadata: dict[bytes, bytes], path: Path) -> Settings:
    """Return the metadata of `write_parquet`: name, kind and labels."""
    known = json.loads(metadata.get(METADATA_KEY, b"{}"))
    sound = (
        isinstance(known, dict)
        and isinstance(known.get("name", ""), str)
        and known.get("kind", "logical") in ("logical", "distribution")
        and isinstance(known.get("labels", []), list)
        and all(isinstance(label, str) for label in known.get("labels", []))
    )
    if not sound:
        raise DatasetFormatError(
            "the metadata about the labels are broken; expected name, kind and labels",
            file=str(path),
            token=str(known),
        )
    return dict(known)
