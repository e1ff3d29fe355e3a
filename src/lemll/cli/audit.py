"""``lemll audit``: the tags of a table that look wrong or missing, as CSV and as a page."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.table import Table as RichTable

from lemll._files import csv_text, safe_cell, write_output
from lemll._types import Frame
from lemll.audit.auditing import TagAudit, audit_tags, issue_frame, noise_frame
from lemll.audit.correction import read_decisions
from lemll.audit.scores import EVEN_ODDS
from lemll.cli.console import make_console
from lemll.cli.tables import (
    AsJson,
    Data,
    Reading,
    Source,
    check_output,
    expand,
    interruptible,
    print_json,
    say,
    say_notes,
)
from lemll.exceptions import LemllError
from lemll.predictors.tag_predictor import BlendProgress
from lemll.report.audit import AuditRows, write_audit
from lemll.report.page import template_environment
from lemll.tables.columns import inspect_columns
from lemll.tables.edit import edit_label, edit_tags, edit_text, row_fingerprints, written_cells
from lemll.tables.encoder import TableEncoder
from lemll.tables.files import Table, is_text
from lemll.tables.labels import LabelledTable, LabelSpec, split_table


def apply_decisions(
    decisions: Path,
    output: Path,
    *,
    table: Table,
    found: LabelledTable,
    spec: LabelSpec,
    fingerprints: Sequence[str],
    reading: Reading,
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
    reading : Reading
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


def _corrected(table: Table, cells: Mapping[tuple[int, str], str], reading: Reading) -> str | bytes:
    """Return the table with the changed cells: the same text file, or another file as CSV."""
    source, columns = Path(table.source), [str(name) for name in table.frame.columns]
    if is_text(source):
        safe = {
            (row, columns.index(name)): str(safe_cell(text)) for (row, name), text in cells.items()
        }
        return edit_text(source, safe, encoding=reading.encoding, delimiter=reading.sign)
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


_SHOWN_LABELS = 12
_FEWEST_LISTED, _MOST_LISTED = 100, 1000


@expand
def audit(
    data: Data,
    *,
    source: Source,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The CSV file to write; by default FILE-audit.csv."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--page", help="The page to write; by default beside the CSV file."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            help="Largest number of doubtful tags to list, all rows together; by default a tenth "
            "of the known ones, but at least 100 and at most 1000.",
            min=1,
        ),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="One LEMLL fit and no cross-validation: finds less.")
    ] = False,
    decisions: Annotated[
        Path | None,
        typer.Option(
            "--apply",
            help="Decisions that the page exported: write the table with the corrected labels to "
            "the CSV file (-o), and audit nothing.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the tags of a table that look wrong or missing, and write a page to decide on them.

    Nothing in the table is changed. On the page you accept or reject suggestions and export your
    decisions, without a server.

    Examples: lemll audit photos.csv --tags tags --id file;
    lemll audit plants.csv --labels red,tall,edible --fast;
    lemll audit photos.csv --tags tags --id file --apply decisions.csv -o corrected.csv
    """
    table, spec = source.labelled(data)
    found = split_table(table, spec, ids=source.ids, ignore=source.ignored)
    say_notes(table)
    # Rows without ids have their numbers, from 0, as in the column `row` and in Python.
    row_ids = found.ids or tuple(map(str, range(len(found.Y))))
    prints = row_fingerprints(table, spec, labels_count=found.ids is None)
    stem = f"{data.stem}-{'audit' if decisions is None else 'corrected'}"
    output = Path(f"{stem}.csv") if output is None else output
    _check_target(output, "-o", [data] if decisions is None else [data, decisions])
    if decisions is not None:
        apply_decisions(decisions, output, table=table, found=found, spec=spec,
                        fingerprints=prints, reading=source)  # fmt: skip
        return
    page = output.with_suffix(".html") if page is None else page
    _check_target(page, "--page", [data])
    if page.resolve() == output.resolve():
        raise LemllError(f"-o and --page are both {page}; choose another name for one of them")
    template_environment()  # report a missing library now, not after minutes of work
    with interruptible("nothing was written"):
        result = _audited(found, fast=fast)
        issues = issue_frame(result, limit=_listed(result) if limit is None else limit)
        noise = None if fast else noise_frame(result)
        write_output(output, csv_text(_lines(issues, row_ids, prints)))
        readable = [c.name for c in inspect_columns(found.X[:100]) if c.kind != "vector"]
        values = found.X[readable].to_numpy(dtype=object).tolist()
        shown = AuditRows(row_ids, readable, values, prints)
        notes = _notes(data, result, noise)
        write_audit(page, result, issues, shown, title=f"Audit of {data.name}", notes=notes)
    counts = issues["kind"].value_counts()
    likely = int(result.likely.sum())
    if as_json:
        print_json(
            {
                "output": str(output),
                "page": str(page),
                "rows": len(row_ids),
                "labels": list(found.label_names),
                "listed": {kind: int(counts.get(kind, 0)) for kind in ("wrong", "missing")},
                "likely": None if fast else likely,
                "noise": None if noise is None else noise.to_dict(orient="records"),
            }
        )
        return
    console = make_console()
    if noise is not None:
        console.print(_noise_table(noise))
    console.print(
        f"wrote {output}: the {len(issues)} most doubtful tags ({counts.get('wrong', 0)} given, "
        f"{counts.get('missing', 0)} not given); "
        + (
            "the scores only rank them"
            if fast
            else f"{likely} are more likely wrong than right (scores are cautious: {EVEN_ODDS:.2f} "
            "is even odds)"
        ),
        soft_wrap=True,
    )
    console.print(f"open {page} to accept or reject them", soft_wrap=True)
    console.print("next: run the same command with --apply and the file of decisions that the page "
                  "exports", soft_wrap=True)  # fmt: skip


def _listed(result: TagAudit) -> int:
    return max(_FEWEST_LISTED, min(_MOST_LISTED, result.tags.known // 10))


def _check_target(path: Path, option: str, inputs: Sequence[Path]) -> None:
    check_output(path, option, inputs)
    if not path.absolute().parent.is_dir():
        raise LemllError(f"there is no folder {path.absolute().parent} for {path.name}; make it")


def _audited(found: LabelledTable, *, fast: bool) -> TagAudit:
    say(f"encoding {len(found.Y)} rows")
    features = TableEncoder().fit_transform(found.X)

    def report(progress: BlendProgress) -> None:
        say(f"{progress.elapsed:.0f} s: {progress.step}")

    if fast:
        return audit_tags(features, found.Y, mode="fast", label_names=found.label_names)
    return audit_tags(features, found.Y, label_names=found.label_names, callback=report)


def _lines(issues: Frame, row_ids: Sequence[str], prints: Sequence[str]) -> Iterator[list[object]]:
    """Yield the lines of the CSV file; `row` counts from 0, as in Python."""
    yield [
        *("row", "id", "fingerprint", "label", "given", "suggested", "kind", "score"),
        *("probability", "out_of_fold", "numerical_label", "neighbour_share", "neighbours"),
    ]
    for issue in issues.itertuples(index=False):
        figures = (
            issue.score,
            issue.probability,
            issue.out_of_fold,
            issue.numerical_label,
            issue.neighbour_share,
        )
        near = ";".join(row_ids[other] for other in issue.neighbours)
        yield [
            *(issue.row, row_ids[issue.row], prints[issue.row]),
            *(issue.label, issue.given, issue.suggested),
            issue.kind,
            *("" if math.isnan(value) else f"{value:.6f}" for value in figures),
            near,
        ]


def _notes(data: Path, result: TagAudit, noise: Frame) -> list[str]:
    n_rows, n_labels = result.tags.Y.shape
    notes = [f"{data.name}: {n_rows} rows, {n_labels} labels, {result.tags.known} known tags."]
    if noise is None:
        return [*notes, "Made in fast mode, from one fit of LEMLL."]
    worst = noise[noise["missing_told"]].sort_values("missing", ascending=False).head(3)
    told = ", ".join(
        f"{row.label} {row.missing:.0%} (at most {row.missing_high:.0%})"
        for row in worst.itertuples()
    )
    return [*notes, f"Estimated shares of missing tags, highest first: {told}."] if told else notes


def _noise_table(noise: Frame) -> RichTable:
    table = RichTable(
        "label",
        "given",
        "wrong",
        "missing",
        title="Wrong and missing tags (at most, 90 %)",
    )
    # Labels of which the data cannot tell come last.
    told = noise["missing_told"].astype(int) + noise["wrong_told"]
    order = ["told", "missing", "wrong"]
    doubtful = noise.assign(told=told).sort_values(order, ascending=False).head(_SHOWN_LABELS)
    for row in doubtful.itertuples(index=False):
        table.add_row(
            row.label,
            str(row.n_given),
            _share(row.wrong, row.wrong_high, row.wrong_told),
            _share(row.missing, row.missing_high, row.missing_told),
        )
    return table


def _share(estimate: float, high: float, told: bool) -> str:
    return f"{estimate:.1%} ({high:.1%})" if told else "the data cannot tell"
