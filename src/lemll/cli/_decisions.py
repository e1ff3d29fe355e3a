"""``lemll audit --apply``: write the labels of a table after the user's decisions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer

from lemll._types import Settings
from lemll.audit import read_decisions
from lemll.cli._console import make_console
from lemll.cli._tables import delimiter_sign, say
from lemll.exceptions import LemllError
from lemll.experiments import csv_text, safe_cell, write_output
from lemll.tables import (
    LabelledTable,
    LabelSpec,
    Table,
    edit_label,
    edit_tags,
    edit_text,
    is_text,
    written_cells,
)

__all__ = ["apply_decisions"]


def apply_decisions(
    decisions: Path,
    output: Path,
    *,
    table: Table,
    found: LabelledTable,
    spec: LabelSpec,
    fingerprints: Sequence[str],
    reading: Settings,
) -> None:
    """Write a table with the accepted suggestions, and say which of them do not fit it any more.

    Parameters
    ----------
    decisions : Path
        The file that the page exported.
    output : Path
        The file to write. It differs from a text file in the changed cells only. Tables of Excel
        and Parquet are written as CSV.
    table : Table
        The table.
    found : LabelledTable
        Its labels and ids.
    spec : LabelSpec
        Where its labels are.
    fingerprints : sequence of str
        Of its rows.
    reading : dict
        The options with which it was read.

    Raises
    ------
    typer.Exit
        With code 1, if a decision was refused. The others are written.
    """
    fits, refused = _match(decisions, found, fingerprints)
    cells = _new_cells(table, spec, found, fits)
    empty = {row for (row, _), text in cells.items() if text == "" and spec.tags is not None}
    if empty and spec.untagged != "none":
        reason = "without its last tag the cell would be empty; pass --untagged none"
        refused += [one._replace(reason=reason) for one in fits if one.row in empty]
        fits = [one for one in fits if one.row not in empty]
        cells = {place: text for place, text in cells.items() if place[0] not in empty}
    write_output(output, _corrected(table, cells, reading))
    _say_applied(output, fits, refused)


class _Change(NamedTuple):
    """An accepted decision, and why it is refused, if it is."""

    row: int
    id: str
    label: str
    add: bool
    reason: str = ""


def _match(
    path: Path, found: LabelledTable, fingerprints: Sequence[str]
) -> tuple[list[_Change], list[_Change]]:
    """Return the accepted decisions whose rows and tags are as the audit saw them, and the others.

    A table may have been sorted or edited since, and a spreadsheet may have changed ids.
    """
    issues = read_decisions(path)
    has_ids = found.ids is not None
    for name in ("decision", "id", "fingerprint"):
        if name not in issues:
            raise LemllError(
                f"{path} has no column {name!r}; decide on the page of the audit, and export"
            )
    odd = next((name for name in issues["id"] if not (has_ids or name.isdecimal())), None)
    if odd is not None:
        raise LemllError(
            f"{path} has a decision for the id {odd!r}, but no --id was given; name the column of "
            "ids with --id, as in the audit"
        )
    place = {name: number for number, name in enumerate(found.ids or ())}
    if has_ids:
        issues = issues.assign(row=[place.get(name, -1) for name in issues["id"]])
    changes: list[_Change] = []
    for issue in issues[issues["decision"] == "accept"].itertuples(index=False):
        change = _Change(issue.row, issue.id, issue.label, bool(issue.suggested))
        reason = _why_refused(issue, found, fingerprints)
        if not reason and any(one[:3] == change[:3] and not one.reason for one in changes):
            reason = "decided twice"
        changes.append(change._replace(reason=reason))
    fits = [change for change in changes if not change.reason]
    return fits, [change for change in changes if change.reason]


def _why_refused(issue: Any, found: LabelledTable, fingerprints: Sequence[str]) -> str:
    is_there = 0 <= issue.row < len(fingerprints)
    if not is_there or fingerprints[issue.row] != issue.fingerprint:
        if found.ids is None:
            moved = "the row is not as it was in the audit; if rows can move, audit with --id"
            return moved if is_there else "the table has fewer rows"
        # The fingerprint counts the id too, so it belongs to one row.
        if issue.fingerprint in fingerprints:
            meant = found.ids[fingerprints.index(issue.fingerprint)]
            return (
                f"the audit meant the row {meant}; a spreadsheet may have changed the id, so apply "
                "the file that the page exported"
            )
        return "the row is not as it was in the audit" if is_there else "no row has this id"
    if issue.label not in found.label_names:
        return "no row has this tag now"
    now = found.Y[issue.row, found.label_names.index(issue.label)]
    if now != issue.given:
        known = {0.0: "the row lacks the tag now", 1.0: "the row has the tag now"}
        return known.get(float(now), "the tag is unknown now")
    return ""


def _new_cells(
    table: Table, spec: LabelSpec, found: LabelledTable, changes: Sequence[_Change]
) -> dict[tuple[int, str], str]:
    """Return the cells that change, by row and column, as the table writes them."""
    cells: dict[tuple[int, str], str] = {}
    if spec.tags is None:
        for row, _, label, add, _ in changes:
            values = found.Y[:, spec.labels.index(label)]
            cells[row, label] = edit_label(written_cells(table, label), values, int(add))
        return cells
    written = written_cells(table, spec.tags)
    lists = spec.sep is None and any(cell.startswith("[") for cell in written)
    for row, _, label, add, _ in changes:
        before = cells.get((row, spec.tags), written[row])
        cells[row, spec.tags] = edit_tags(before, label, add=add, spec=spec, lists=lists)
    return cells


def _corrected(
    table: Table, cells: Mapping[tuple[int, str], str], reading: Settings
) -> str | bytes:
    """Return the table with the changed cells: the same text file, or another file as CSV."""
    source, columns = Path(table.source), [str(name) for name in table.frame.columns]
    if is_text(source):
        safe = {
            (row, columns.index(name)): str(safe_cell(text)) for (row, name), text in cells.items()
        }
        sign = delimiter_sign(reading["delimiter"])
        return edit_text(source, safe, encoding=reading["encoding"], delimiter=sign)
    written = {name: list(written_cells(table, name)) for name in columns}
    for (row, name), text in cells.items():
        written[name][row] = text
    return csv_text(itertools.chain([columns], zip(*written.values(), strict=True)))


def _say_applied(output: Path, fits: Sequence[_Change], refused: Sequence[_Change]) -> None:
    """Say what changed and what was refused; end with an error code if something was."""
    for change in fits:
        say(f"{change.id}: {'add' if change.add else 'remove'} {change.label}")
    for change in refused:
        verb = "add" if change.add else "remove"
        say(f"refused: {change.id}: {verb} {change.label}: {change.reason}")
    added = sum(change.add for change in fits)
    make_console().print(
        f"wrote {output}: {len(fits)} cells changed: {len(fits) - added} tags removed, {added} "
        f"added; {len(refused)} decisions refused",
        soft_wrap=True,
    )
    if refused:
        raise typer.Exit(1)
