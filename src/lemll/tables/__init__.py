"""Tables as people have them: read a file, separate labels and ids, encode the other columns.

:func:`read_table` reads CSV, TSV, Parquet and Excel files. :func:`split_table` separates labels and
ids, as a :class:`LabelSpec` says. :class:`TableEncoder` is a transformer of scikit-learn that turns
numbers, dates, categories and texts into features. :func:`survey` tells what a table seems to hold.
This room needs pandas (extra ``tables``).
"""

from lemll.tables.cells import is_missing
from lemll.tables.columns import Column, inspect_column, inspect_columns
from lemll.tables.edit import (
    edit_label,
    edit_tags,
    edit_text,
    join_tags,
    row_fingerprints,
    written_cells,
)
from lemll.tables.encoder import TableEncoder
from lemll.tables.files import SUFFIXES, Frame, Table, is_text, read_table
from lemll.tables.labels import (
    LabelledTable,
    LabelSpec,
    read_truth,
    split_table,
    split_tags,
    tags_alike,
    truth_of,
)
from lemll.tables.parquet import open_parquet
from lemll.tables.suggest import Survey, survey

__all__ = [
    "SUFFIXES",
    "Column",
    "Frame",
    "LabelSpec",
    "LabelledTable",
    "Survey",
    "Table",
    "TableEncoder",
    "edit_label",
    "edit_tags",
    "edit_text",
    "inspect_column",
    "inspect_columns",
    "is_missing",
    "is_text",
    "join_tags",
    "open_parquet",
    "read_table",
    "read_truth",
    "row_fingerprints",
    "split_table",
    "split_tags",
    "survey",
    "tags_alike",
    "truth_of",
    "written_cells",
]
