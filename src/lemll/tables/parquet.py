"""Read a Parquet table; its pages are counted before one of them is unpacked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lemll._budget import NAME_BYTES, Budget
from lemll.exceptions import DatasetFormatError, import_extra
from lemll.tables.cells import CELL_BYTES, Cells, cell_text, empty_columns
from lemll.tables.pages import unpacked_sizes

__all__ = ["open_parquet", "read_parquet"]

_BATCH_CELLS = 2**20


@contextmanager
def open_parquet(
    path: Path, budget: Budget, cell_bytes: int
) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Open a Parquet file whose content fits into a budget.

    Parameters
    ----------
    path : Path
        The file.
    budget : Budget
        Is charged for the cells and the names of the columns.
    cell_bytes : int
        What the caller needs for one cell.

    Yields
    ------
    ParquetFile
        The open file, of pyarrow.
    iterator of RecordBatch
        Its rows; columns of text have dictionaries.

    Raises
    ------
    Exception
        Of any kind, if the file is damaged.
    """
    parquet = import_extra("pyarrow.parquet", "store", "Reading Parquet")
    with path.open("rb") as raw:
        groups = list(unpacked_sizes(raw))
        budget.charge(cell_bytes * sum(group.values for group in groups))
        budget.check(max((group.size for group in groups), default=0))
        schema = parquet.read_metadata(path).schema
        leaves = [schema.column(j) for j in range(len(schema))]
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        # A text that repeats is kept once.
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            rows, width = file.metadata.num_rows, len(leaves)
            if rows < 0:
                raise ValueError(f"the footer announces {rows} rows")
            budget.charge(NAME_BYTES * width)
            yield file, _batches(file, rows, max(1, _BATCH_CELLS // max(1, width)))


def _batches(file: Any, rows: int, size: int) -> Iterator[Any]:
    """Yield batches, and count them: the file may have more rows than the footer announces."""
    count = 0
    for batch in file.iter_batches(size, use_threads=False):
        count += batch.num_rows
        if count > rows:
            break
        yield batch
    if count != rows:
        raise ValueError(f"the footer announces {rows} rows, but the file has another number")


def read_parquet(path: Path, budget: Budget) -> Cells:
    """Read the cells of a Parquet file as text."""
    try:
        with open_parquet(path, budget, CELL_BYTES) as (file, batches):
            # The metadata of pandas would hide an index; as a column it may hold the ids.
            names = [str(name) for name in file.schema_arrow.names]
            columns = empty_columns(names, str(path))
            for batch in batches:
                for column, values in zip(columns, batch.columns, strict=True):
                    column.extend(_texts(values, budget))
    except DatasetFormatError:
        raise
    except Exception as error:
        # A damaged file fails in many ways.
        raise DatasetFormatError(
            f"the file cannot be read as Parquet ({error}); write it again", file=str(path)
        ) from error
    return Cells(names, columns, [])


def _texts(values: Any, budget: Budget) -> list[str]:
    """Return the cells of a column as text; equal cells share one text."""
    types = import_extra("pyarrow.types", "store", "Reading Parquet")
    if types.is_list(values.type) or types.is_large_list(values.type):
        elements = iter(_texts(values.flatten(), budget))
        counts = values.value_lengths().to_pylist()
        lists = [None if n is None else list(itertools.islice(elements, n)) for n in counts]
        return [cell_text(cell) for cell in lists]
    if types.is_nested(values.type):
        # No feature and no tag; the column has the same value in all rows.
        return ["nested"] * len(values)
    if not types.is_dictionary(values.type):
        values = values.dictionary_encode()
    # The last text is that of cells without a value.
    different = [*map(cell_text, _python_values(values.dictionary)), ""]
    places = np.asarray(values.indices.fill_null(len(different) - 1))
    budget.charge(int(np.array([len(text) for text in different], dtype=np.int64)[places].sum()))
    shared = np.array(different, dtype=object)
    return list(shared[places])


def _python_values(values: Any) -> list[Any]:
    """Return Python's values; those of times in nanoseconds have no type but that of pandas."""
    types = import_extra("pyarrow.types", "store", "Reading Parquet")
    pyarrow = import_extra("pyarrow", "store", "Reading Parquet")
    if types.is_timestamp(values.type) and values.type.unit == "ns":
        values = values.cast(pyarrow.timestamp("us", values.type.tz), safe=False)
    found: list[Any] = values.to_pylist()
    return found
