"""Export a store as one flat table, with one row per cell and one column per metric."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lemll._files import csv_text, write_output
from lemll._types import Settings
from lemll.exceptions import import_extra
from lemll.lab.records import Record
from lemll.metrics.table import METRICS

_PLAIN = (
    "id", "code", "status", "experiment", "dataset", "method", "estimator", "criterion",
    "criterion_value",
    "attempt", "finished",
)  # fmt: skip


def _row(record: Record) -> Settings:
    return {
        **{name: getattr(record, name) for name in _PLAIN},
        "setting": str(record.setting[0]),
        "number": record.setting[-1],
        "hidden": record.hidden,
        "parameters": json.dumps(dict(record.parameters)),
        "chosen": None if record.chosen is None else json.dumps(dict(record.chosen)),
        "fit_seconds": record.seconds.get("fit"),
        "error": None if record.error is None else record.error["message"],
        **{name: record.metrics.get(name) for name in METRICS},
    }


def write_rows(records: Iterable[Record], path: Path) -> int:
    """Write records to a .csv or .parquet file, and return how many."""
    rows = [_row(record) for record in records]
    if not rows:
        raise ValueError("the store has no record to export; run the protocol first.")
    if path.suffix == ".parquet":
        write_output(path, _parquet(rows))
    elif path.suffix == ".csv":
        write_output(path, csv_text([list(rows[0]), *(row.values() for row in rows)]))
    else:
        raise ValueError(f"cannot export to {path.name!r}; the name must end in .csv or .parquet.")
    return len(rows)


def _arrow_table(rows: list[Settings]) -> Any:
    pyarrow = import_extra("pyarrow", "store", "A table of the results in the Arrow format")
    return pyarrow.Table.from_pylist(rows)


def _parquet(rows: list[Settings]) -> bytes:
    stream = io.BytesIO()
    parquet = import_extra("pyarrow.parquet", "store", "Writing Parquet")
    parquet.write_table(_arrow_table(rows), stream)
    return stream.getvalue()


def query_rows(records: Iterable[Record], sql: str) -> list[tuple[object, ...]]:
    """Run an SQL query on a table called ``cells``."""
    duckdb = import_extra("duckdb", "store", "Querying the store with SQL")
    connection = duckdb.connect(":memory:")
    try:
        connection.register("cells", _arrow_table([_row(record) for record in records]))
        answer: list[tuple[object, ...]] = connection.execute(sql).fetchall()
    finally:
        connection.close()
    return answer
