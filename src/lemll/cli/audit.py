"""``lemll audit``: the tags of a table that look wrong or missing, as CSV and as a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table as RichTable

from lemll.audit import TagAudit, audit_tags, correct, issue_frame, noise_frame, read_decisions
from lemll.cli._console import make_console
from lemll.cli._tables import (
    AsJson,
    Data,
    Decimal,
    Delimiter,
    Encoding,
    Id,
    Ignore,
    LabelNames,
    Sep,
    Sheet,
    Tags,
    Untagged,
    check_output,
    interruptible,
    label_spec,
    names_of,
    print_json,
    read_data,
    say,
    say_notes,
)
from lemll.exceptions import LemllError
from lemll.experiments import csv_text, write_output
from lemll.predictors import BlendProgress
from lemll.report import AuditRows, template_environment, write_audit
from lemll.tables import LabelledTable, LabelSpec, TableEncoder, split_table

__all__ = ["audit"]

_SHOWN_LABELS = 12
_LIKELY = 0.5
_FEWEST_LISTED, _MOST_LISTED = 100, 1000


def audit(
    data: Data,
    *,
    tags: Tags = None,
    sep: Sep = None,
    untagged: Untagged = None,
    labels: LabelNames = None,
    ids: Id = None,
    ignore: Ignore = None,
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
            help="Decisions that the page exported: write the corrected labels to the CSV file "
            "(-o), and audit nothing.",
        ),
    ] = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
    as_json: AsJson = False,
) -> None:
    """List the tags of a table that look wrong or missing, and write a page to decide on them.

    Nothing in the table is changed. On the page you accept or reject suggestions and export your
    decisions, without a server.

    Examples: lemll audit photos.csv --tags tags --id file;
    lemll audit plants.csv --labels red,tall,edible --fast;
    lemll audit photos.csv --tags tags --id file --apply decisions.csv -o corrected.csv
    """
    kept = [name for name in (tags, ids) if name is not None]
    reading = {"encoding": encoding, "delimiter": delimiter, "decimal": decimal, "sheet": sheet}
    table = read_data(data, kept, reading)
    spec = label_spec(table, tags=tags, sep=sep, untagged=untagged, labels=labels)
    found = split_table(table, spec, ids=ids, ignore=names_of(ignore))
    say_notes(table)
    # Rows without ids have their numbers, from 0, as in the column `row` and in Python.
    row_ids = found.ids or tuple(map(str, range(len(found.Y))))
    stem = f"{data.stem}-{'audit' if decisions is None else 'corrected'}"
    output = Path(f"{stem}.csv") if output is None else output
    _check_target(output, "-o", [data] if decisions is None else [data, decisions])
    if decisions is not None:
        _apply(decisions, output, found, spec=spec, id_column=ids, row_ids=row_ids)
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
        write_output(output, csv_text(_lines(issues, row_ids, ids)))
        shown = AuditRows(row_ids, list(found.X.columns), found.X.to_numpy(dtype=object).tolist())
        notes = _notes(data, result, noise)
        write_audit(page, result, issues, shown, title=f"Audit of {data.name}", notes=notes)
    counts = issues["kind"].value_counts()
    likely = int((issues["score"] > _LIKELY).sum())
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
        + ("the scores only rank them" if fast else f"{likely} have a score above one half"),
        soft_wrap=True,
    )
    console.print(f"open {page} to accept or reject them", soft_wrap=True)


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


def _lines(issues: Any, row_ids: Sequence[str], id_column: str | None) -> Iterator[list[object]]:
    """Yield the lines of the CSV file; `row` counts from 0, as in Python."""
    yield [
        *("row", id_column or "id", "label", "given", "suggested", "kind", "score"),
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
            *(issue.row, row_ids[issue.row], issue.label, issue.given, issue.suggested),
            issue.kind,
            *("" if math.isnan(value) else f"{value:.6f}" for value in figures),
            near,
        ]


def _notes(data: Path, result: TagAudit, noise: Any) -> list[str]:
    n_rows, n_labels = result.tags.Y.shape
    notes = [f"{data.name}: {n_rows} rows, {n_labels} labels, {result.tags.known} known tags."]
    if noise is None:
        return [*notes, "Made in fast mode, from one fit of LEMLL."]
    worst = noise.sort_values("missing", ascending=False).head(3)
    told = ", ".join(
        f"{row.label} {row.missing:.0%} (at most {row.missing_high:.0%})"
        for row in worst.itertuples()
        if row.missing_told
    )
    return [*notes, f"Estimated shares of missing tags, highest first: {told}."] if told else notes


def _noise_table(noise: Any) -> RichTable:
    table = RichTable(
        "label",
        "given",
        "wrong",
        "missing",
        title="Wrong and missing tags (at most, 90 %)",
    )
    doubtful = noise.sort_values(["missing", "wrong"], ascending=False).head(_SHOWN_LABELS)
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


def _apply(
    decisions: Path,
    output: Path,
    found: LabelledTable,
    *,
    spec: LabelSpec,
    id_column: str | None,
    row_ids: Sequence[str],
) -> None:
    """Write the labels after the accepted decisions, and say what changed."""
    issues = _found_rows(read_decisions(decisions), decisions, id_column, row_ids)
    names = list(found.label_names)
    corrected = correct(found.Y, issues, label_names=names)
    write_output(output, csv_text(_corrected(corrected.Y, names, spec, id_column, row_ids)))
    for change in corrected.changes.itertuples(index=False):
        verb = "add" if change.suggested else "remove"
        say(f"{row_ids[change.row]}: {verb} {change.label}")
    make_console().print(f"wrote {output}: {corrected}", soft_wrap=True)


def _found_rows(issues: Any, path: Path, id_column: str | None, row_ids: Sequence[str]) -> Any:
    """Return the decisions with the rows that have their ids; the table may have been sorted."""
    if "decision" not in issues:
        raise LemllError(
            f"{path} has no column 'decision'; decide on the page of the audit, and export"
        )
    # The page names the column "id"; the CSV file of an audit names it as the table does.
    column = next((name for name in ("id", id_column) if name in issues), None)
    if column is None:
        return issues
    if id_column is None:
        strange = [name for name in issues[column] if not name.isdecimal()]
        if strange:
            raise LemllError(
                f"{path} has a decision for the id {strange[0]!r}, but no --id was given; name the "
                "column of ids with --id, as in the audit"
            )
        return issues
    place = {name: number for number, name in enumerate(row_ids)}
    for name in issues[column].astype(str):
        if name not in place:
            raise LemllError(
                f"{path} has a decision for the id {name!r}, which is not in column {id_column!r} "
                "of the table; apply decisions to the table that was audited, with the same --id"
            )
    return issues.assign(row=[place[name] for name in issues[column].astype(str)])


def _corrected(
    Y: Any, names: list[str], spec: LabelSpec, id_column: str | None, row_ids: Sequence[str]
) -> Iterator[list[object]]:
    """Yield ids and labels in the form that the table has: one column of tags, or one per label."""
    first = id_column or "row"
    if spec.tags is None:
        yield [first, *names]
        for name, values in zip(row_ids, Y, strict=True):
            yield [name, *("" if value not in (0, 1) else int(value) for value in values)]
        return
    yield [first, spec.tags]
    for name, values in zip(row_ids, Y, strict=True):
        given = [tag for tag, value in zip(names, values, strict=True) if value == 1]
        yield [name, (spec.sep or ";").join(given)]
