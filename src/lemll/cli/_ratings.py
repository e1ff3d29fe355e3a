"""Rated rows of ``lemll enhance``: read them from a file, or ask for them."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer
from rich.console import Console

from lemll._types import FloatArray, MatrixLike
from lemll.cli._console import safe_text
from lemll.exceptions import LemllError
from lemll.experiments import safe_cell
from lemll.tables import Table, is_missing, read_table

__all__ = ["RowNames", "ask_ratings", "numbered_rows", "read_ratings"]

_LARGEST_DEGREE = 1e100
# Ends an answer that leaves out the labels that a row lacks.
_REST = "*"


class RowNames(NamedTuple):
    """How a user calls the rows.

    Attributes
    ----------
    title : str
        The column of ids, or "row".
    names : sequence of str
        The ids, or the numbers from 0.
    are_ids : bool
        Which of the two.
    """

    title: str
    names: Sequence[str]
    are_ids: bool


def read_ratings(
    console: Console, path: Path, label_names: Sequence[str], rows: RowNames
) -> dict[int, FloatArray]:
    """Read rated rows; say which columns are not used.

    Parameters
    ----------
    console : Console
        The user's console.
    path : Path
        A table with one row per rated row, one column per label, and the ids of the rows in the
        column of ids, or their numbers, from 0, in a column "row".
    label_names : sequence of str
        The labels.
    rows : RowNames
        The rows of the data.

    Returns
    -------
    dict of int to ndarray
        The degrees of each rated row. They sum to 1.
    """
    # No sum of degrees needs a sign between thousands, so a comma is a decimal mark.
    table = read_table(path, keep=[rows.title], decimal=",")
    given = list(table.frame.columns)
    key = rows.title if rows.title in given else "row"
    # Programs write a letter with an accent as one sign or as two.
    composed = {unicodedata.normalize("NFC", str(name)): name for name in given}
    # lemll writes a label name that looks like a formula with an apostrophe before it.
    columns = {
        name: name if name in given else composed.get(
            unicodedata.normalize("NFC", name), str(safe_cell(name)))
        for name in label_names
    }  # fmt: skip
    absent = [name for name in columns.values() if name not in given]
    if key not in given or absent:
        ids = f"the ids in {rows.title!r} or " if rows.are_ids else ""
        lacks = ", ".join(map(repr, [*([] if key in given else [rows.title]), *absent]))
        hint = "" if rows.are_ids else "; to rate by ids, pass --id COL"
        raise LemllError(
            f"--rated {path} lacks {lacks}; it needs {ids}the row numbers, counted "
            f"from 0, in 'row', and one column per label{hint}"
        )
    unused = [str(name) for name in given if name not in (key, *columns.values())]
    if unused:
        console.print(
            f"--rated {path}: not used, because the data have no such label: {', '.join(unused)}",
            markup=False,
            soft_wrap=True,
        )
    places = _places(rows) if key == rows.title else _places(numbered_rows(len(rows.names)))
    ratings: dict[int, FloatArray] = {}
    for i, cell in enumerate(table.frame[key]):
        row = _row(table, key, cell, places)
        where = f"{table.source}, {key} {cell}"
        if row in ratings:
            raise LemllError(f"{where} is rated twice; leave one line out")
        degrees = [_degree(table.frame[columns[name]].iloc[i], where, columns[name])
                   for name in label_names]  # fmt: skip
        ratings[row] = _shares(degrees, where)
    return ratings


def numbered_rows(n_rows: int) -> RowNames:
    """Return the names of rows without ids: their numbers, from 0."""
    return RowNames("row", [str(row) for row in range(n_rows)], are_ids=False)


def _places(rows: RowNames) -> dict[str, int]:
    # An id that looks like a formula may be as lemll writes it.
    safe = {str(safe_cell(name)): row for row, name in enumerate(rows.names)}
    return safe | {name: row for row, name in enumerate(rows.names)}


def _row(table: Table, key: str, cell: object, places: dict[str, int]) -> int:
    found = None if is_missing(cell) else places.get(str(cell).strip())
    if found is None:
        what = "an empty cell" if is_missing(cell) else repr(str(cell))
        names = list(places)
        numbers = "; rows are counted from 0" if names[0] == "0" else ""
        raise LemllError(
            f"{table.source}: column {key!r} holds {what}, which is no {key} of the data, such as "
            f"{names[0]!r} or {names[-1]!r}{numbers}; mend or leave out this line"
        )
    return found


def _degree(cell: MatrixLike, where: str, column: str) -> float:
    if is_missing(cell):
        raise LemllError(
            f"{where}: column {column!r} is empty; write 0 if this label does not matter there"
        )
    try:
        degree = float(str(cell).strip().removesuffix("%").replace(",", "."))
    except ValueError:
        degree = np.nan
    if not 0 <= degree < _LARGEST_DEGREE:
        raise LemllError(
            f"{where}: column {column!r} must hold a degree, a number from 0, got {str(cell)!r}; "
            "write for example 0.5, or 50 for 50 of 100 points"
        )
    return degree


def _shares(degrees: list[float], where: str) -> FloatArray:
    values = np.array(degrees, dtype=np.float64)
    if not values.max() > 0:
        raise LemllError(
            f"{where}: all degrees are 0; give the labels that matter a number above 0, or leave "
            "the row out"
        )
    return np.asarray(values / values.sum())


def ask_ratings(
    console: Console,
    Y: MatrixLike,
    label_names: Sequence[str],
    rows: RowNames,
    n_asked: int,
    *,
    rated: Collection[int] = (),
) -> dict[int, FloatArray]:
    """Ask for the degrees of random rows; their sum may be any positive number, as 10 or 100.

    Parameters
    ----------
    console : Console
        Where to write.
    Y : ndarray of shape (n_rows, n_labels)
        The labels, which are shown.
    label_names : sequence of str
        Their names.
    rows : RowNames
        The rows.
    n_asked : int
        How many rows to ask for.
    rated : collection of int, default=()
        Rows that are rated already.

    Returns
    -------
    dict of int to ndarray
        The degrees of each rated row. They sum to 1.
    """
    counted = "" if rows.are_ids else " Rows are counted from 0; to see their ids, pass --id COL."
    console.print(
        f"Type the degrees of {', '.join(label_names)}, separated by blanks; their sum may be any "
        "number, as 1 or 100. Or type those of the labels that the question shows, in its order, "
        f"and then {_REST}: the other labels get 0. An empty line skips the row; Ctrl-C ends the "
        f"questions.{counted}",
        markup=False,
        soft_wrap=True,
    )
    ratings: dict[int, FloatArray] = {}
    order = np.random.RandomState(0).permutation(len(Y)).tolist()
    for row in [row for row in order if row not in rated][:n_asked]:
        where = f"{rows.title} {rows.names[row]}"
        relevant = [name for name, on in zip(label_names, Y[row], strict=True) if on == 1]
        while True:
            try:
                answer = typer.prompt(
                    safe_text(f"{where} ({', '.join(relevant) or 'no label'})"),
                    default="",
                    show_default=False,
                )
            except typer.Abort:  # no more answers; use those given so far
                return ratings
            if not answer.strip():
                break
            try:
                ratings[row] = _shares(_answered(answer, where, label_names, relevant), where)
            except LemllError as error:
                console.print(str(error), markup=False, soft_wrap=True)
                continue
            break
    return ratings


def _answered(
    answer: str, where: str, label_names: Sequence[str], relevant: Sequence[str]
) -> list[float]:
    texts = answer.split()
    # A forgotten number must not pass for a short answer, hence the sign.
    short = bool(relevant) and texts[-1] == _REST
    if short:
        texts.pop()
    rated = relevant if short else label_names
    if len(texts) != len(rated):
        other = f", or for each of {', '.join(relevant)} and then {_REST}" if relevant else ""
        raise LemllError(
            f"{where}: expected {len(rated)} numbers, got {len(texts)}; give one for each of "
            f"{', '.join(label_names)}, separated by blanks{other}"
        )
    given = {name: _degree(text, where, name) for name, text in zip(rated, texts, strict=True)}
    return [given.get(name, 0.0) for name in label_names]
