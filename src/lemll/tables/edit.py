"""Change single cells of a table, and leave everything else as it is written."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from lemll._files import without_guard
from lemll._labels import spelling_key
from lemll._types import FloatArray
from lemll.tables.files import Table
from lemll.tables.labels import PAIRS, LabelSpec, split_tags
from lemll.tables.text import cell_text, open_text


def written_cells(table: Table, name: str) -> list[str]:
    """Return the cells of a column as they are written."""
    if table.cells is not None and name in table.cells:
        return table.cells[name]
    return [cell_text(cell) for cell in table.frame[name]]


def row_fingerprints(table: Table, spec: LabelSpec, *, labels_count: bool = False) -> list[str]:
    """Return a short text per row that changes if a cell of the row does.

    Parameters
    ----------
    table : Table
        The table.
    spec : LabelSpec
        Where the labels are.
    labels_count : bool, default=False
        Whether labels count too. Without ids, rows with equal features could otherwise be mistaken
        for each other.

    Returns
    -------
    list of str
        For example ``"x5d41402abc4b"``. Rows with the same cells have the same text.
    """
    labels = set() if labels_count else {spec.tags, *spec.labels}
    names = [str(name) for name in table.frame.columns if name not in labels]
    rows = zip(*(written_cells(table, name) for name in names), strict=True)
    # A spreadsheet would take some texts of digits for numbers, hence the letter.
    return [
        "x" + hashlib.sha256(json.dumps([names, row]).encode()).hexdigest()[:12] for row in rows
    ]


def join_tags(tags: Sequence[str], sep: str | None, *, as_list: bool) -> str:
    """Write tags into one cell.

    Parameters
    ----------
    tags : sequence of str
        The tags.
    sep : str or None
        What separates them; None means a semicolon.
    as_list : bool
        Whether to write a list in JSON, which any tag survives.

    Returns
    -------
    str
        The text of the cell.
    """
    return json.dumps(list(tags), ensure_ascii=False) if as_list else (sep or ";").join(tags)


def edit_tags(cell: str, tag: str, *, add: bool, spec: LabelSpec, lists: bool) -> str:
    """Add a tag to a cell, or remove it; the other tags keep their order and spelling.

    Parameters
    ----------
    cell : str
        The cell as it is written.
    tag : str
        The tag.
    add : bool
        Whether to add it.
    spec : LabelSpec
        How the tags are written.
    lists : bool
        Whether the column holds lists.

    Returns
    -------
    str
        The new text of the cell.
    """

    def same(part: str) -> bool:
        if spec.merge is not None:
            return spelling_key(part.strip()) == spelling_key(tag)
        return unicodedata.normalize("NFC", part.strip()) == tag

    tags = [part for part in split_tags(cell, spec.sep) or () if not same(part)]
    tags += [tag] if add else []
    if lists or cell.lstrip().startswith("["):
        return join_tags(tags, spec.sep, as_list=True)
    sep = spec.sep or ";"
    pieces = [piece for piece in without_guard(cell).split(sep) if piece.strip()]
    blank = " " if len(pieces) > 1 and all(p.startswith(" ") for p in pieces[1:]) else ""
    kept = [piece for piece in pieces if not same(piece)]
    if add:
        kept.append(f"{blank}{tag}")
    text = sep.join(kept).strip()
    # Only a list keeps a tag that contains the sign between tags, or looks like a list itself.
    return text if split_tags(text, spec.sep) == tags else join_tags(tags, sep, as_list=True)


def edit_label(cells: Sequence[str], values: FloatArray, value: int) -> str:
    """Return how a label column writes a value.

    Parameters
    ----------
    cells : sequence of str
        The cells of the column as they are written.
    values : ndarray of shape (n_rows,)
        What they mean: 0, 1, or NaN.
    value : int
        The value to write, 0 or 1.

    Returns
    -------
    str
        The most frequent text with this meaning; if there is none, the opposite of the others.
    """
    written = Counter(cell for cell, known in zip(cells, values, strict=True) if known == value)
    if written:
        return written.most_common(1)[0][0]
    given = {cell.lower() for cell in cells}
    pair = next((pair for pair in PAIRS if given & set(pair)), ("", "1"))
    return pair[value]


def edit_text(
    path: Path,
    cells: Mapping[tuple[int, int], str],
    *,
    encoding: str | None,
    delimiter: str | None,
) -> bytes:
    """Return a text file with other cells; every other byte stays as it is.

    Parameters
    ----------
    path : Path
        The file.
    cells : mapping of (int, int) to str
        The new text of cells, by row below the header and column, from 0.
    encoding, delimiter : str or None
        As in `read_table`.

    Returns
    -------
    bytes
        The new content.
    """
    opened = open_text(path, encoding=encoding, delimiter=delimiter)
    sign = re.escape(opened.delimiter)
    field = re.compile(rf'"[^"]*(?:""[^"]*)*"|[^{sign}\r\n]*')
    end = re.compile(rf"{sign}|\r\n|\r|\n|\Z")
    made: list[str] = []
    done = place = 0
    row, column = -1, 0
    while place < len(opened.text):
        found = field.match(opened.text, place)
        after = end.match(opened.text, found.end()) if found else None
        if found is None or after is None:
            raise ValueError(f"{path} changed while it was read; run the command again.")
        if (row, column) in cells:
            made += [opened.text[done : found.start()],
                     _quoted(cells[row, column], found.group(), opened.delimiter)]  # fmt: skip
            done = found.end()
        # A line without a sign is not a row.
        blank = column == 0 and not found.group()
        column += 1
        if after.group() != opened.delimiter:
            row, column = (row if blank else row + 1), 0
        place = after.end()
    return opened.encode("".join([*made, opened.text[done:]]))


def _quoted(text: str, before: str, delimiter: str) -> str:
    """Return a cell with quotes if it had some or needs some."""
    if before.startswith('"') or re.search(rf'[{re.escape(delimiter)}"\r\n]|^\s|\s$', text):
        return '"' + text.replace('"', '""') + '"'
    return text
