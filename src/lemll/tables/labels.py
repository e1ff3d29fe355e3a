"""Labels of a table: one column of tags, or one column per label. Doubt is an error."""

from __future__ import annotations

import ast
import difflib
import json
import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from lemll._formulas import without_guard
from lemll._types import FloatArray, MatrixLike, Settings, SettingsView
from lemll._warnings import warn_caller
from lemll.exceptions import LemllError
from lemll.tables.files import Frame, Table

__all__ = ["LabelSpec", "LabelledTable", "is_missing", "read_truth", "split_table", "truth_of"]

_USUAL = (";", "|", ",", "\t", "/")
# One column must not mix these pairs, each of which is False, True.
_PAIRS = (
    ("0", "1"),
    ("0.0", "1.0"),
    ("false", "true"),
    ("no", "yes"),
    ("n", "y"),
    ("f", "t"),
)
# A single sign in a column marks the rows to which a label applies. These would mean the opposite.
_NEGATIVE = ("-", "-1", "none", "nein", "non", "off", "nan", "null")
_CANDIDATES = "lemll info FILE shows which columns look like labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSpec:
    """Where the labels of a table are.

    Attributes
    ----------
    tags : str or None
        The column with all tags of a row.
    sep : str or None
        What separates the tags in a cell; None means a semicolon, or lists in the cells.
    untagged : {"none", "unknown"} or None
        The meaning of an empty cell: no tag applies ("none"), or nobody looked. None refuses empty
        cells of tags; in label columns it means "unknown". With "none", any single mark such as x
        in a label column means that the label applies.
    labels : tuple of str
        The columns of the labels, one per label, if there is no column of tags.
    """

    tags: str | None = None
    sep: str | None = None
    untagged: str | None = None
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.tags is None) == (not self.labels):
            raise LemllError(
                "say where the labels are: --tags COL for one column with all tags, or "
                f"--labels a,b,c for one column per label, not both; {_CANDIDATES}"
            )
        if self.untagged not in (None, "none", "unknown"):
            raise LemllError(f"--untagged must be none or unknown, got {self.untagged!r}")
        if self.tags is None and self.sep is not None:
            raise LemllError("--sep belongs to --tags; leave it out with --labels")
        if self.sep == "":
            raise LemllError("--sep must not be empty; give the sign between tags, such as ';'")

    def to_json(self) -> Settings:
        """Return plain data for a file."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: SettingsView) -> LabelSpec:
        """Return the specification that `to_json` wrote."""
        return cls(**{**content, "labels": tuple(content["labels"])})


class LabelledTable(NamedTuple):
    """Features, labels and ids of a table.

    Attributes
    ----------
    X : pandas.DataFrame
        The columns that are neither labels nor ids.
    Y : ndarray of shape (n_rows, n_labels)
        0/1, NaN in unknown cells.
    label_names : tuple of str
        Names of the labels.
    ids : tuple of str or None
        The ids of the rows, if a column of ids was named.
    """

    X: Frame
    Y: FloatArray
    label_names: tuple[str, ...]
    ids: tuple[str, ...] | None


def is_missing(value: object) -> bool:
    """Return whether a cell has no value: None, NaN, NaT or ``pandas.NA``."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def split_table(
    table: Table,
    spec: LabelSpec,
    *,
    ids: str | None = None,
    ignore: Sequence[str] = (),
    needs_features: bool = True,
) -> LabelledTable:
    """Separate the labels and ids of a table from its features.

    Parameters
    ----------
    table : Table
        The table.
    spec : LabelSpec
        Where the labels are.
    ids : str, optional
        The column of ids. It is not a feature.
    ignore : sequence of str, default=()
        Columns that are not features either.
    needs_features : bool, default=True
        Whether a table without features is refused.

    Returns
    -------
    LabelledTable
        Features, labels and ids.

    Examples
    --------
    >>> import pandas as pd
    >>> from lemll.tables import LabelSpec, Table, split_table
    >>> frame = pd.DataFrame({"width": [1, 2], "tags": ["sea;sky", "sky"]})
    >>> found = split_table(Table(frame, "photos"), LabelSpec(tags="tags"))
    >>> found.label_names, found.Y.tolist()
    (('sea', 'sky'), [[1.0, 1.0], [0.0, 1.0]])
    """
    Y, names = read_truth(table, spec)
    used = [spec.tags] if spec.tags is not None else list(spec.labels)
    row_ids = None
    if ids is not None:
        row_ids = tuple(_read_ids(table, ids))
        used.append(ids)
    for name in ignore:
        _column(table, name, "--ignore")
        used.append(name)
    X = table.frame[[name for name in table.frame.columns if name not in used]]
    if needs_features and not X.shape[1]:
        raise LemllError(
            f"{table.source}: no column is left for the features; only lemll enhance --method "
            "LabelGraph works without them"
        )
    return LabelledTable(X, Y, names, row_ids)


def _read_ids(table: Table, name: str) -> list[str]:
    cells = _column(table, name, "--id")
    values = ["" if is_missing(cell) else without_guard(str(cell)) for cell in cells]
    seen: set[str] = set()
    for row, value in enumerate(values):
        if value == "" or value in seen:
            problem = "is empty" if value == "" else f"repeats {value!r}"
            raise LemllError(
                f"{table.source}: the id of row {row + 1} in column {name!r} {problem}; ids must "
                "differ, so choose another column with --id or mend the file"
            )
        seen.add(value)
    return values


def _column(table: Table, name: str, option: str) -> list[object]:
    columns = list(table.frame.columns)
    if name not in columns:
        folded = {column.casefold(): column for column in columns}
        near = difflib.get_close_matches(name.casefold(), folded, n=1)
        hint = f"did you mean {folded[near[0]]!r}?" if near else f"it has {', '.join(columns[:12])}"
        raise LemllError(f"{table.source} has no column {name!r} for {option}; {hint}")
    return list(table.frame[name])


def read_truth(table: Table, spec: LabelSpec) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the labels of a table as 0/1 with NaN in unknown cells, and their names."""
    if spec.tags is None:
        return _label_columns(table, spec), spec.labels
    rows = _tag_lists(table, spec, spec.tags)
    names = tuple(sorted({tag for row in rows if row is not None for tag in row}))
    if not names:
        raise LemllError(f"{table.source}: column {spec.tags!r} holds no tag at all")
    _warn_of_case(table, names)
    if len(names) > max(20, len(rows)):
        raise LemllError(
            f"{table.source}: column {spec.tags!r} holds {len(names)} different tags in "
            f"{len(rows)} rows, for example {names[0][:40]!r}; check --tags and --sep"
        )
    return _as_matrix(rows, names), names


def _warn_of_case(table: Table, names: Sequence[str]) -> None:
    """Say which tags differ only in case: they are different labels, probably by mistake."""
    folded: dict[str, list[str]] = {}
    for name in names:
        folded.setdefault(name.casefold(), []).append(name)
    alike = [" and ".join(same) for same in folded.values() if len(same) > 1]
    if alike:
        more = f", and {len(alike) - 3} more" if len(alike) > 3 else ""
        warn_caller(
            f"{table.source}: the tags {', '.join(alike[:3])}{more} differ only in case and count "
            "as different labels; mend the file if they are the same.",
            UserWarning,
        )


def truth_of(
    table: Table, spec: LabelSpec, names: Sequence[str]
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the labels of new rows for known labels, and the tags that are not known."""
    if spec.tags is None:
        return _label_columns(table, spec), ()
    rows = _tag_lists(table, spec, spec.tags)
    other = sorted({tag for row in rows if row is not None for tag in row} - set(names))
    return _as_matrix(rows, names), tuple(other)


def _as_matrix(rows: Sequence[Iterable[str] | None], names: Sequence[str]) -> FloatArray:
    place = {name: j for j, name in enumerate(names)}
    Y = np.zeros((len(rows), len(names)))
    for i, row in enumerate(rows):
        if row is None:
            Y[i] = np.nan
        else:
            Y[i, [place[tag] for tag in row if tag in place]] = 1
    return Y


def _tag_lists(table: Table, spec: LabelSpec, name: str) -> list[list[str] | None]:
    """Return the tags of each row, or None where nobody looked."""
    cells = _column(table, name, "--tags")
    texts = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
    lists = [text for text in texts if text.lstrip().startswith("[")]
    if spec.sep is None and texts and not lists:
        _check_separator(table, name, texts)
    if spec.sep is None and lists and len(lists) < len(texts):
        other = next(text for text in texts if not text.lstrip().startswith("["))
        raise LemllError(
            f"{table.source}: column {name!r} holds lists such as {lists[0][:40]!r} and other text "
            f"such as {other[:40]!r}; write all cells in one way, or pass --sep"
        )
    rows: list[list[str] | None] = []
    for number, cell in enumerate(cells):
        tags = _cell_tags(table, name, number, cell, spec.sep)
        if tags is None and spec.untagged is None:
            raise LemllError(
                f"{table.source}: row {number + 1} has an empty cell in column {name!r}; pass "
                "--untagged none if no tag applies to such rows, or --untagged unknown if nobody "
                "looked"
            )
        rows.append([] if tags is None and spec.untagged == "none" else tags)
    return rows


def _check_separator(table: Table, name: str, texts: Sequence[str]) -> None:
    """Refuse a semicolon that nobody asked for if only other separators occur."""
    if any(";" in text for text in texts):
        return
    for sign in _USUAL:
        found = next((text for text in texts if sign in text), None)
        if found is not None:
            raise LemllError(
                f"{table.source}: column {name!r} holds {found[:40]!r}, which may be several tags; "
                f"pass --sep {sign!r}, or --sep ';' if this is one tag"
            )


def _cell_tags(
    table: Table, name: str, number: int, cell: MatrixLike, sep: str | None
) -> list[str] | None:
    if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        parts = [str(tag) for tag in cell if not is_missing(tag)]
    elif is_missing(cell) or not str(cell).strip():
        return None
    elif sep is None and str(cell).lstrip().startswith("["):
        parts = _parse_list(table, name, number, str(cell))
    else:
        # A table of corrected tags that lemll wrote is read as the table that it came from.
        parts = without_guard(str(cell)).split(sep or ";")
        if not "".join(parts).strip():
            return None
    # Programs write a letter with an accent as one sign or as two.
    return sorted({unicodedata.normalize("NFC", part.strip()) for part in parts} - {""})


def _parse_list(table: Table, name: str, number: int, text: str) -> list[str]:
    """Read a list in JSON, or as Python writes it."""
    try:
        found = json.loads(text)
    except ValueError:
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found = None
    if not isinstance(found, list) or not all(isinstance(tag, (str, int)) for tag in found):
        raise LemllError(
            f"{table.source}: row {number + 1} of column {name!r} must be a list of tags such as "
            f'["sea", "sky"], got {text[:60]!r}'
        )
    return [str(tag) for tag in found]


def _label_columns(table: Table, spec: LabelSpec) -> FloatArray:
    names = spec.labels
    if len(set(names)) < len(names):
        raise LemllError(f"--labels names a column twice: {', '.join(names)}")
    only_marks = spec.untagged == "none"
    return np.column_stack([_label_column(table, name, only_marks) for name in names])


def _label_column(table: Table, name: str, only_marks: bool) -> FloatArray:
    """Read 0/1; an empty cell is unknown, or 0 if the file only marks the labels that apply."""
    cells = _column(table, name, "--labels")
    blank = [is_missing(cell) or not str(cell).strip() for cell in cells]
    texts = [None if empty else _plain(cell) for empty, cell in zip(blank, cells, strict=True)]
    known = {text for text in texts if text is not None}
    if not known and only_marks:
        return np.zeros(len(texts))
    if not known:
        raise LemllError(
            f"{table.source}: label column {name!r} is empty; leave it out of --labels"
        )
    pair = next((pair for pair in _PAIRS if known <= set(pair)), None)
    if pair is None and only_marks:
        pair = ("", _single_mark(table, name, known))
    if pair is None:
        allowed = {text for pair in _PAIRS for text in pair}
        row, odd = next(
            (i, text)
            for i, text in enumerate(texts)
            if text is not None and (text not in allowed or known <= allowed)
        )
        if known <= allowed:
            raise LemllError(
                f"{table.source}: label column {name!r} mixes {', '.join(sorted(known))}; write "
                "all its cells in one way, 0/1, true/false or yes/no"
            )
        raise LemllError(
            f"{table.source}: row {row + 1} of label column {name!r} must be 0/1, true/false, "
            f"yes/no, or empty if unknown, got {odd!r}; if it holds tags, use --tags {name}; if it "
            "only marks rows with one sign such as x, use --untagged none"
        )
    values = {None: 0.0 if only_marks else np.nan, pair[0]: 0.0, pair[1]: 1.0}
    return np.array([values[text] for text in texts])


def _single_mark(table: Table, name: str, known: set[str]) -> str:
    """Return the sign of the rows to which a label applies."""
    mark = min(known)
    if len(known) == 1 and mark not in _NEGATIVE:
        return mark
    shown = ", ".join(repr(text) for text in sorted(known)[:5])
    raise LemllError(
        f"{table.source}: label column {name!r} must have one sign, such as x, in the rows to "
        f"which the label applies, or 0/1, true/false or yes/no, got {shown}; write it in one "
        "of these ways"
    )


def _plain(cell: object) -> str:
    """Return a cell as text, numbers without a needless fraction."""
    if isinstance(cell, (bool, np.bool_)):
        return str(bool(cell)).lower()
    if isinstance(cell, (float, np.floating)) and float(cell).is_integer():
        return str(int(cell))
    return str(cell).strip().lower()
