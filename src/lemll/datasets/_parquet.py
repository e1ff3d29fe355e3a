"""Reading a Parquet table of numbers, looking at its footer before its cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from lemll.datasets._streams import check_expansion, file_size, refuse_compression
from lemll.exceptions import DatasetFormatError, import_extra

__all__ = ["METADATA_KEY", "Table", "read_parquet"]

Table = tuple[list[str], Any, dict[str, Any]]
METADATA_KEY = b"lemll"


def read_parquet(path: Path, max_expanded_bytes: int | None) -> Table:
    """Read a table: its column names, its cells as float64, and what lemll once noted in it."""
    parquet = import_extra("pyarrow.parquet", "store", "Reading Parquet")
    refuse_compression(path)
    packed = file_size(path)
    try:
        with parquet.ParquetFile(path) as file:
            columns, rows = list(file.schema_arrow.names), file.metadata.num_rows
            known = _known(file.schema_arrow.metadata or {}, path)
            _check_types(file.schema_arrow, path)
            check_expansion(8 * rows * len(columns), packed, str(path), max_expanded_bytes)
            table = file.read()
            cells = np.empty((rows, len(columns)))
            for j, column in enumerate(table.columns):
                cells[:, j] = column.to_numpy()
    except DatasetFormatError:
        raise
    except Exception as error:
        raise DatasetFormatError(f"not a readable Parquet file: {error}", file=str(path)) from error
    if not cells.size:
        raise DatasetFormatError("the table has no row or no column", file=str(path))
    return columns, cells, known


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


def _known(metadata: dict[bytes, bytes], path: Path) -> dict[str, Any]:
    """Return what `write_parquet` noted: name, kind and labels."""
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
            "the table's note about its labels is broken; want name, kind and labels",
            file=str(path),
            token=str(known),
        )
    return dict(known)
