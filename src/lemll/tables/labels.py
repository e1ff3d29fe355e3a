"""Labels of a table: one column of tags, or one column per label. Doubt is an error."""

from __future__ import annotations

import ast
import difflib
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from lemll._files import without_guard
from lemll._labels import spelling_key
from lemll._types import FloatArray, Frame, MatrixLike, Settings, SettingsView
from lemll._validation import warn_caller
from lemll.exceptions import LemllError
from lemll.tables.files import Table
from lemll.tables.text import cell_text, has_recurring_words, is_gap, is_missing

_USUAL = (";", "|", ",", "\t", "/")
# One column must not mix these pairs, each of which is False, True.
PAIRS = (
    ("0", "1"),
    ("0.0", "1.0"),
    ("false", "true"),
    ("no", "yes"),
    ("n", "y"),
    ("f", "t"),
)
# A single sign in a column marks the rows to which a label applies. These would mean the opposite.
_NEGATIVE = ("-", "-1", "nein", "non", "off")
# With more copies of rows than this, ids are not features.
_MOST_COPIES = 0.05
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
        in a label column means that the label applies. A word such as NA, or a question mark, in a
        label column is always unknown.
    labels : tuple of str
        The columns of the labels, one per label, if there is no column of tags.
    merge : {"case"} or None
        With "case", tags that differ only in case are one tag, in its most frequent spelling.
    """

    tags: str | None = None
    sep: str | None = None
    untagged: str | None = None
    labels: tuple[str, ...] = ()
    merge: str | None = None

    def __post_init__(self) -> None:
        if (self.tags is None) == (not self.labels):
            raise LemllError(
                "say where the labels are: `tags` for one column with all tags, or "
                f"`labels` for one column per label, not both; {_CANDIDATES}"
            )
        if self.untagged not in (None, "none", "unknown"):
            raise LemllError(f"`untagged` must be none or unknown, got {self.untagged!r}")
        if self.tags is None and self.sep is not None:
            raise LemllError("`sep` belongs to `tags`; leave it out with `labels`")
        if self.merge not in (None, "case"):
            raise LemllError(f"`merge` must be case, got {self.merge!r}; leave it out otherwise")
        if self.tags is None and self.merge is not None:
            raise LemllError("`merge` belongs to `tags`; leave it out with `labels`")
        if self.sep == "":
            raise LemllError("`sep` must not be empty; give the sign between tags, such as ';'")

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
        The column of ids. Their words are features if enough ids share them; otherwise it is not a
        feature. See Notes.
    ignore : sequence of str, default=()
        Columns that are not features either.
    needs_features : bool, default=True
        Whether a table without features is refused.

    Returns
    -------
    LabelledTable
        Features, labels and ids.

    Notes
    -----
    Names of files or packages often tell as much as other texts. But if more than 5 % of the rows
    are copies except for their ids, the ids are not features: copies of a row must be known as
    such, so that none is held out while the model learns from another.

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
        _column(table, name, "ignore")
        used.append(name)
    X = table.frame[[name for name in table.frame.columns if name not in used]]
    if ids is not None and row_ids is not None:
        X = _with_names(X, ids, row_ids)
    if needs_features and not X.shape[1]:
        raise LemllError(
            f"{table.source}: no column is left for the features; only the enhancer "
            "LabelGraph works without them"
        )
    return LabelledTable(X, Y, names, row_ids)


def _with_names(X: Frame, ids: str, names: tuple[str, ...]) -> Frame:
    """Add the ids to the features if their words say what rows have in common."""
    copied = X.shape[1] and X.astype(str).duplicated().mean() > _MOST_COPIES
    return X.assign(**{ids: list(names)}) if has_recurring_words(names) and not copied else X


def _read_ids(table: Table, name: str) -> list[str]:
    cells = _column(table, name, "ids")
    values = ["" if is_missing(cell) else without_guard(str(cell)) for cell in cells]
    seen: set[str] = set()
    for row, value in enumerate(values):
        if value == "" or value in seen:
            problem = "is empty" if value == "" else f"repeats {value!r}"
            raise LemllError(
                f"{table.source}: the id of row {row + 1} in column {name!r} {problem}; ids must "
                "differ, so choose another column with `ids` or mend the file"
            )
        seen.add(value)
    return values


def _column(table: Table, name: str, option: str) -> list[MatrixLike]:
    columns = list(table.frame.columns)
    if name not in columns:
        folded = {column.casefold(): column for column in columns}
        near = difflib.get_close_matches(name.casefold(), folded, n=1)
        hint = f"did you mean {folded[near[0]]!r}?" if near else f"it has {', '.join(columns[:12])}"
        raise LemllError(f"{table.source} has no column {name!r} for `{option}`; {hint}")
    if table.cells is not None and name in table.cells:
        return list(table.cells[name])
    return list(table.frame[name])


def read_truth(table: Table, spec: LabelSpec) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the labels of a table as 0/1 with NaN in unknown cells, and their names."""
    if spec.tags is None:
        return _label_columns(table, spec), spec.labels
    rows = _tag_lists(table, spec, spec.tags)
    alike = _alike(rows)
    if spec.merge is not None:
        rows = _merged(rows, [group[0] for group in alike])
    names = tuple(sorted({tag for row in rows if row is not None for tag in row}))
    if not names:
        raise LemllError(f"{table.source}: column {spec.tags!r} holds no tag at all")
    if alike and spec.merge is None:
        shown = ", ".join(" and ".join(sorted(group)) for group in alike[:3])
        more = f", and {len(alike) - 3} more" if len(alike) > 3 else ""
        warn_caller(
            f"{table.source}: the tags {shown}{more} differ only in case and count as different "
            "labels (lemll info lists them all); if they are the same, pass `merge='case'`.",
            UserWarning,
        )
    if len(names) > max(20, len(rows)):
        raise LemllError(
            f"{table.source}: column {spec.tags!r} holds {len(names)} different tags in "
            f"{len(rows)} rows, for example {names[0][:40]!r}; check `tags` and `sep`"
        )
    return _as_matrix(rows, names), names


def tags_alike(table: Table, spec: LabelSpec) -> list[tuple[str, ...]]:
    """Return the groups of tags that differ only in case, the most frequent spelling first.

    Parameters
    ----------
    table : Table
        The table.
    spec : LabelSpec
        Where the tags are.

    Returns
    -------
    list of tuple of str
        The groups, for example ``("politics", "Politics")``; ties are in the order of the text.
    """
    return [] if spec.tags is None else _alike(_tag_lists(table, spec, spec.tags))


def _alike(rows: Sequence[list[str] | None]) -> list[tuple[str, ...]]:
    counts = Counter(tag for row in rows if row is not None for tag in row)
    groups: dict[str, list[str]] = {}
    for tag in sorted(counts, key=lambda tag: (-counts[tag], tag)):
        groups.setdefault(spelling_key(tag), []).append(tag)
    return [tuple(group) for _, group in sorted(groups.items()) if len(group) > 1]


def _merged(rows: Sequence[list[str] | None], names: Iterable[str]) -> list[list[str] | None]:
    """Return the tags of each row with these spellings."""
    spelling = {spelling_key(name): name for name in names}
    return [
        None if row is None else sorted({spelling.get(spelling_key(tag), tag) for tag in row})
        for row in rows
    ]


def truth_of(
    table: Table, spec: LabelSpec, names: Sequence[str]
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the labels of new rows for known labels, and the tags that are not known."""
    if spec.tags is None:
        return _label_columns(table, spec), ()
    rows = _tag_lists(table, spec, spec.tags)
    if spec.merge is not None:
        rows = _merged(rows, names)
    other = sorted({tag for row in rows if row is not None for tag in row} - set(names))
    return _as_matrix(rows, names), tuple(other)


def _as_matrix(rows: Sequence[Iterable[str] | None], names: Sequence[str]) -> FloatArray:
    place = {name: j for j, name in enumerate(names)}
    Y = np.zeros((len(rows), len(names)))
    Y[[row is None for row in rows]] = np.nan
    cells = [(i, place[tag]) for i, row in enumerate(rows) for tag in row or () if tag in place]
    if cells:
        Y[tuple(np.array(cells).T)] = 1
    return Y


def _tag_lists(table: Table, spec: LabelSpec, name: str) -> list[list[str] | None]:
    """Return the tags of each row, or None where nobody looked."""
    cells = _column(table, name, "tags")
    different = dict.fromkeys(cell for cell in cells if isinstance(cell, str))
    texts = [text for text in different if text.strip()]
    lists = [text for text in texts if text.lstrip().startswith("[")]
    if spec.sep is None and texts and not lists:
        _check_separator(table, name, texts)
    if spec.sep is None and lists and len(lists) < len(texts):
        other = next(text for text in texts if not text.lstrip().startswith("["))
        raise LemllError(
            f"{table.source}: column {name!r} holds lists such as {lists[0][:40]!r} and other text "
            f"such as {other[:40]!r}; write all cells in one way, or pass what separates the tags "
            "of the other cells, as in `sep=';'`"
        )
    rows: list[list[str] | None] = []
    # Most cells repeat another one, which is read once.
    seen: dict[str, list[str] | None] = {}
    for number, cell in enumerate(cells):
        if not isinstance(cell, str):
            tags = _cell_tags(table, name, number, cell, spec.sep)
        elif cell in seen:
            tags = seen[cell]
        else:
            tags = seen[cell] = _cell_tags(table, name, number, cell, spec.sep)
        if tags is None and spec.untagged is None:
            raise LemllError(
                f"{table.source}: row {number + 1} has an empty cell in column {name!r}; pass "
                "`untagged='none'` if no tag applies to such rows, or `untagged='unknown'` if "
                "nobody looked"
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
                f"pass `sep={sign!r}` if it is, and `sep=';'` if this is one tag"
            )


def _cell_tags(
    table: Table, name: str, number: int, cell: MatrixLike, sep: str | None
) -> list[str] | None:
    if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        parts = [str(tag) for tag in cell if not is_missing(tag)]
    elif is_missing(cell):
        return None
    else:
        found = split_tags(str(cell), sep)
        if found is None:
            raise LemllError(
                f"{table.source}: row {number + 1} of column {name!r} must be a list of tags such "
                f'as ["sea", "sky"], got {str(cell)[:60]!r}; mend the cell, or pass `sep`'
            )
        if not found and not str(cell).lstrip().startswith("["):
            return None
        parts = found
    # Programs write a letter with an accent as one sign or as two.
    return sorted({unicodedata.normalize("NFC", part) for part in parts})


def split_tags(text: str, sep: str | None) -> list[str] | None:
    """Return the tags in the text of a cell, in their order; None if it is a broken list."""
    if text.lstrip().startswith("["):
        found = _parse_list(text, json.loads)
        if found is None and sep is None:
            found = _parse_list(text, ast.literal_eval)
        if found is not None or sep is None:
            return found
    # A table of corrected tags that lemll wrote is read as the table that it came from.
    parts = (part.strip() for part in without_guard(text).split(sep or ";"))
    return [part for part in parts if part]


def _parse_list(text: str, parse: Callable[[str], object]) -> list[str] | None:
    """Read a list of tags, as JSON or as Python writes it."""
    try:
        found = parse(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(found, list):
        return None
    tags = [tag for tag in found if tag is not None]
    if not all(isinstance(tag, (str, int, float)) for tag in tags):
        return None
    return [text for text in map(cell_text, tags) if text]


def _label_columns(table: Table, spec: LabelSpec) -> FloatArray:
    names = spec.labels
    if len(set(names)) < len(names):
        raise LemllError(f"`labels` names a column twice: {', '.join(names)}")
    only_marks = spec.untagged == "none"
    return np.column_stack([_label_column(table, name, only_marks) for name in names])


def _label_column(table: Table, name: str, only_marks: bool) -> FloatArray:
    """Read 0/1; an empty cell is unknown, or 0 if the file only marks the labels that apply."""
    cells = _column(table, name, "labels")
    texts = ["" if is_missing(cell) else _plain(cell) for cell in cells]
    known = {text for text in set(texts) if not is_gap(text)}
    if not any(texts) and only_marks:
        return np.zeros(len(texts))
    if not known and not only_marks:
        raise LemllError(
            f"{table.source}: label column {name!r} is empty; leave it out of `labels`"
        )
    pair = next((pair for pair in PAIRS if known <= set(pair)), None)
    if only_marks and (pair is None or not known):
        pair = ("", _single_mark(table, name, known or set(texts) - {""}))
    if pair is None:
        allowed = {text for pair in PAIRS for text in pair}
        row, odd = next(
            (i, text)
            for i, text in enumerate(texts)
            if text in known and (text not in allowed or known <= allowed)
        )
        if known <= allowed:
            raise LemllError(
                f"{table.source}: label column {name!r} mixes {', '.join(sorted(known))}; write "
                "all its cells in one way, 0/1, true/false or yes/no"
            )
        raise LemllError(
            f"{table.source}: row {row + 1} of label column {name!r} must be 0/1, true/false, "
            f"yes/no, or empty if unknown, got {odd!r}; if it holds tags, use `tags={name!r}`; if "
            "it only marks rows with one sign such as x, use `untagged='none'`"
        )
    # A word for a gap is not an empty cell: somebody wrote that the label is unknown.
    values = {"": 0.0 if only_marks else np.nan, pair[0]: 0.0, pair[1]: 1.0}
    return np.array([values.get(text, np.nan) for text in texts])


def _single_mark(table: Table, name: str, known: set[str]) -> str:
    """Return the sign of the rows to which a label applies."""
    mark = min(known)
    if len(known) == 1 and mark not in _NEGATIVE and not is_gap(mark):
        return mark
    shown = ", ".join(repr(text) for text in sorted(known)[:5])
    raise LemllError(
        f"{table.source}: label column {name!r} must have one sign, such as x, in the rows to "
        f"which the label applies, or 0/1, true/false or yes/no, got {shown}; write it in one "
        "of these ways"
    )


def _plain(cell: object) -> str:
    """Return a cell as text, numbers without a needless fraction."""
    return cell_text(float(cell) if isinstance(cell, np.floating) else cell).lower()
