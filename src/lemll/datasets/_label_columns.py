"""Find the label columns, by one rule for all formats with named columns."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lemll.datasets._streams import plain_suffix
from lemll.datasets.arff.header import unescape
from lemll.datasets.mulan_xml import read_label_xml
from lemll.exceptions import DatasetFormatError

__all__ = ["Labels", "resolve_labels"]

Labels = str | Path | int | Sequence[str]


def resolve_labels(columns: Sequence[str], labels: Labels, file: str) -> npt.NDArray[np.bool_]:
    """Find the label columns.

    Parameters
    ----------
    columns : sequence of str
        All column names, in the order of the file.
    labels : str, Path, int or sequence of str
        One column name, several column names, the path of a Mulan XML file, or a count `n` (the
        first `n` columns, or the last ``-n`` columns if `n` is negative).
    file : str
        Name of the file in error messages.

    Returns
    -------
    ndarray of shape (n_columns,), bool
        True for labels. At least one column is a label, and at least one is not.
    """
    if isinstance(labels, int | np.integer) and not isinstance(labels, bool):
        mask = _count_mask(int(labels), len(columns), file)
    else:
        mask = _name_mask(columns, _names(columns, labels, file), file)
    if mask.all():
        raise DatasetFormatError(
            f"all {len(columns)} columns are labels, so no feature is left; give fewer labels",
            file=file,
        )
    return mask


def _count_mask(count: int, width: int, file: str) -> npt.NDArray[np.bool_]:
    if count == 0 or abs(count) > width:
        raise DatasetFormatError(
            f"{count} labels were requested, but there are {width} columns; expected between 1 "
            f"and {width - 1} (negative: counted from the end)",
            file=file,
        )
    place = np.arange(width)
    return place < count if count > 0 else place >= width + count


def _names(columns: Sequence[str], labels: object, file: str) -> list[str]:
    if isinstance(labels, Path) or (
        isinstance(labels, str) and labels not in columns and _is_xml(labels)
    ):
        names: Sequence[object] = read_label_xml(labels)
    elif isinstance(labels, str):
        names = [labels]
    elif isinstance(labels, bool | bytes) or not hasattr(labels, "__iter__"):
        raise TypeError(
            f"labels={labels!r} must be column names, an XML file, or a whole number of columns"
        )
    else:
        names = list(labels)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"labels= must name columns by text, got {name!r} among the names")
    if not names:
        raise DatasetFormatError("labels= is empty; expected at least one label", file=file)
    return [str(name) for name in names]


def _is_xml(text: str) -> bool:
    return plain_suffix(Path(text)) == ".xml" or os.path.isfile(text)


def _name_mask(columns: Sequence[str], names: list[str], file: str) -> npt.NDArray[np.bool_]:
    occurrences = Counter(columns)
    # The XML files of Mulan copy the names from the ARFF file together with their escapes.
    found = [name if name in occurrences else unescape(name) for name in names]
    wanted = set(found)
    absent = [name for name in found if name not in occurrences]
    if absent:
        raise DatasetFormatError(
            f"{len(absent)} of the {len(names)} labels are not among the columns; expected column "
            "names, or the label file that belongs to this file",
            file=file,
            token=absent[0],
        )
    twice = next((name for name in columns if name in wanted and occurrences[name] > 1), None)
    if twice is not None:
        raise DatasetFormatError(
            "two columns have the name of one label; rename one of them", file=file, token=twice
        )
    return np.array([column in wanted for column in columns], dtype=bool)
