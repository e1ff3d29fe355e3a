"""Tables as people have them: read a file, separate labels and ids, encode the other columns.

:func:`read_table` reads CSV, TSV, Parquet and Excel files. :func:`split_table` separates labels and
ids, as a :class:`LabelSpec` says. :class:`TableEncoder` is a transformer of scikit-learn that turns
numbers, dates, categories and texts into features. :func:`survey` tells what a table seems to hold.
This room needs pandas (extra ``tables``).
"""

from lemll.tables.columns import Column, inspect_columns
from lemll.tables.encoder import TableEncoder
from lemll.tables.files import Table, read_table
from lemll.tables.labels import LabelledTable, LabelSpec, split_table, truth_of
from lemll.tables.parquet import open_parquet
from lemll.tables.text import is_missing

__all__ = [
    "Column",
    "LabelSpec",
    "LabelledTable",
    "Table",
    "TableEncoder",
    "inspect_columns",
    "is_missing",
    "open_parquet",
    "read_table",
    "split_table",
    "truth_of",
]
