"""Tell which columns of a table look like labels. This is only shown, never used."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from lemll._types import MatrixLike
from lemll.exceptions import LemllError
from lemll.tables.cells import cell_text, is_missing
from lemll.tables.columns import Column, inspect_columns
from lemll.tables.files import Table
from lemll.tables.labels import LabelSpec, read_truth, split_tags

__all__ = ["Survey", "survey"]

_SIGNS = (";", "|", ",")
# Tags repeat: on average each of them occurs in at least this number of rows.
_FEWEST_USES = 2
_LONGEST_TAG = 40
_LONGEST_MARK = 5


class Survey(NamedTuple):
    """What a table seems to hold.

    Attributes
    ----------
    columns : list of Column
        What each column holds, as `TableEncoder` would decide it.
    label_columns : list of str
        Columns that hold only 0/1, true/false or yes/no.
    tag_columns : dict of str to str
        Columns that look like tags, each with what separates them ("list" for lists).
    id_columns : list of str
        Columns whose values all differ and which are no features.
    mark_columns : list of str
        Columns with one short sign, such as x, in some rows, and empty cells in the others.
    """

    columns: list[Column]
    label_columns: list[str]
    tag_columns: dict[str, str]
    id_columns: list[str]
    mark_columns: list[str]


def survey(table: Table) -> Survey:
    """Look at every column of a table.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    Survey
        Kinds of the columns, and those that look like labels or ids.

    Examples
    --------
    >>> import pandas as pd
    >>> from lemll.tables import Table, survey
    >>> frame = pd.DataFrame({"sea": ["yes", "no", None], "width": [1.5, 2.5, 3.5]})
    >>> survey(Table(frame, "photos")).label_columns
    ['sea']
    """
    columns = inspect_columns(table.frame)
    labels, tags, ids, marks = [], {}, [], []
    for column in columns:
        cells = list(table.frame[column.name])
        counts = _counted(cells)
        sign = "list" if counts is None else _separator(counts)
        if sign is not None:
            tags[column.name] = sign
        elif _is_label(table, column.name):
            labels.append(column.name)
        elif _only_marks(counts, len(cells)):
            marks.append(column.name)
        elif column.kind == "ignored" and counts is not None and len(counts) == len(cells):
            ids.append(column.name)
    return Survey(columns, labels, tags, ids, marks)


def _is_label(table: Table, name: str) -> bool:
    try:
        read_truth(table, LabelSpec(labels=(name,)))
    except LemllError:
        return False
    return True


def _counted(cells: list[MatrixLike]) -> Counter[str] | None:
    """Count the texts of a column; None if it holds lists."""
    known = [cell for cell in cells if not is_missing(cell)]
    if known and all(isinstance(cell, (list, np.ndarray)) for cell in known):
        return None
    return Counter(map(cell_text, known))


def _only_marks(counts: Counter[str] | None, n_rows: int) -> bool:
    """Tell whether a column has one short sign in some rows and nothing in the others."""
    signs = [] if counts is None else [item for item in counts.items() if item[0]]
    return len(signs) == 1 and len(signs[0][0]) <= _LONGEST_MARK and signs[0][1] < n_rows


def _separator(counts: Counter[str]) -> str | None:
    """Return what seems to separate tags in a column, or None if it does not look like tags."""
    texts = [text for text in counts if text]
    if not texts:
        return None
    if all(text.startswith("[") and text.endswith("]") for text in texts):
        return "list"
    for sign in _SIGNS:
        parts: Counter[str] = Counter()
        for text in texts:
            for part in split_tags(text, sign) or ():
                parts[part] += counts[text]
        joined = any(sign in text for text in texts)
        repeated = sum(parts.values()) >= _FEWEST_USES * len(parts) > 0
        # Tags combine in many ways. A comma in a few names of a category gives no other cells.
        combined = sign != "," or len(parts) <= len(texts)
        if joined and repeated and combined and max(map(len, parts)) <= _LONGEST_TAG:
            return sign
    return None
