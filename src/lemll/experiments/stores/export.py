"""Export a store as one flat table, with one row per cell and one column per metric."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lemll._formulas import FORMULA_SIGNS
from lemll._types import Settings
from lemll.exceptions import import_extra
from lemll.experiments.stores.files import write_output
from lemll.experiments.stores.records import Record
from lemll.metrics import METRICS

__all__ = ["csv_text", "query_rows", "safe_cell", "write_rows"]

_PLAIN = (
    "id", "code", "status", "experiment", "dataset", "method", "estimator", "criterion",
    "criterion_value",
    "attempt", "finished",
)  # fmt: skip

# A number may begin with a sign, and is no formula.
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


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


def query_rows(records: Iterable[Record], sql: str) -> list[tuple[Any, ...]]:
    """Run an SQL query on a table called ``cells``."""
    duckdb = import_extra("duckdb", "store", "Querying the store with SQL")
    connection = duckdb.connect(":memory:")
    try:
        connection.register("cells", _arrow_table([_row(record) for record in records]))
        answer: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
    finally:
        connection.close()
    return answer


def safe_cell(value: object) -> Any:
    """Change a text that a spreadsheet would read as a formula; numbers do not change.

    Parameters
    ----------
    value : object
        The value of a table cell.

    Returns
    -------
    object
        The text after an apostrophe, if it begins like a formula. Other values do not change.

    Examples
    --------
    >>> safe_cell("=cmd|' /C calc'!A0"), safe_cell("-0.5"), safe_cell(-0.5), safe_cell("-a")
    ("'=cmd|' /C calc'!A0", '-0.5', -0.5, "'-a")
    """
    if (
        not isinstance(value, str)
        or not value.startswith(FORMULA_SIGNS)
        or _NUMBER.fullmatch(value)
    ):
        return value
    return f"'{value}"


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    r"""Write rows as CSV, and apply `safe_cell` to every cell.

    Parameters
    ----------
    rows : iterable of iterable
        The rows. The first one may be a header.

    Returns
    -------
    str
        The text. Every line ends with a line feed.

    Examples
    --------
    >>> csv_text([["method", "mean"], ["@SUM(1)", -1.5]])
    "method,mean\n'@SUM(1),-1.5\n"
    """
    return "".join(f"{','.join(map(_quoted, row))}\n" for row in rows)


def _quoted(value: object) -> str:
    # The csv module does not quote a carriage return, but other readers begin a new line there.
    text = "" if value is None else str(safe_cell(value))
    if not any(sign in text for sign in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'
