"""``lemll info``: what is in a table or in a model file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lemll._types import Settings
from lemll.cli.console import make_console
from lemll.cli.tables import AsJson, Reading, expand, print_json
from lemll.exceptions import LemllError
from lemll.models.files import SUFFIX, read_metadata
from lemll.tables.columns import Survey, survey
from lemll.tables.edit import written_cells
from lemll.tables.files import Table
from lemll.tables.labels import LabelSpec, tags_alike
from lemll.tables.text import is_missing

# How people call a column of tags.
_TAG_NAMES = ("tags", "tag", "labels", "label", "keywords", "categories", "topics")

_KINDS = {
    "number": "numbers",
    "vector": "vectors",
    "date": "dates",
    "category": "categories",
    "text": "texts",
    "ignored": "ignored",
}
_ENCODED = {
    "number": "median in gaps, standardised",
    "vector": "for example embeddings; standardised",
    "date": "days, month, weekday, hour",
    "category": "one column per value",
    "text": "tf-idf of words",
    "ignored": "no features",
}
# At most this number of columns are described in a line; of others only the names are shown.
_DESCRIBED, _NAMED = 4, 12


@expand
def info(
    file: Annotated[Path, typer.Argument(help="A table or a model file.", metavar="FILE")],
    *,
    reading: Reading,
    as_json: AsJson = False,
) -> None:
    """Show how each column of a table would be encoded, and which columns look like labels.

    Nothing of this is used by itself: lemll fit asks where the labels are.

    Examples: lemll info photos.csv; lemll info photos.lemll
    """
    console = make_console()
    if file.suffix.lower() == SUFFIX:
        metadata = read_metadata(file)
        if as_json:
            print_json(metadata)
        else:
            _print_model(console, file, metadata)
        return
    table = reading.table(file)
    found = survey(table)
    alike = {name: _alike(table, name, sign) for name, sign in found.tag_columns.items()}
    command = _next_command(file, table, found, asdict(reading), alike)
    if as_json:
        print_json(
            {
                "file": str(file),
                "rows": len(table.frame),
                "notes": list(table.notes),
                "columns": [column._asdict() for column in found.columns],
                "look_like_labels": found.label_columns,
                "look_like_tags": found.tag_columns,
                "tags_alike": alike,
                "look_like_ids": found.id_columns,
                "look_like_marks": found.mark_columns,
                "next": command,
            }
        )
        return
    notes = f" ({', '.join(table.notes)})" if table.notes else ""
    console.print(
        f"{file}: {len(table.frame)} rows, {len(found.columns)} columns{notes}", soft_wrap=True
    )
    _print_columns(console, table, found, alike)
    console.print(f"next: {command}", soft_wrap=True)


def _alike(table: Table, name: str, sign: str) -> list[tuple[str, ...]]:
    """Return the tags that differ only in case; none if the guess that these are tags is wrong."""
    spec = LabelSpec(tags=name, sep=None if sign == "list" else sign, untagged="unknown")
    try:
        return tags_alike(table, spec)
    except LemllError:
        return []


def _print_columns(
    console: Console, table: Table, found: Survey, alike: Mapping[str, list[tuple[str, ...]]]
) -> None:
    labels = {*found.label_columns, *found.tag_columns, *found.mark_columns}
    for kind, title in _KINDS.items():
        columns = [c for c in found.columns if c.kind == kind and c.name not in labels]
        if not columns:
            continue
        shown = [f"{c.name} ({c.why})" for c in columns[:_DESCRIBED]]
        shown += [c.name for c in columns[_DESCRIBED:_NAMED]]
        shown += [f"and {len(columns) - _NAMED} more"] if len(columns) > _NAMED else []
        line = f"{title} ({len(columns)}; {_ENCODED[kind]}): {'; '.join(shown)}"
        console.print(line, soft_wrap=True)
    for name, sign in found.tag_columns.items():
        how = "lists" if sign == "list" else f"separated by {sign!r}"
        # A tag may be called None or NA.
        empty = sum(not text.strip() for text in written_cells(table, name))
        if empty:
            how += (
                f"; {empty} empty cells: pass --untagged none if no tag applies to them, or "
                "--untagged unknown if nobody looked"
            )
        console.print(f"looks like tags: {name} ({how})", soft_wrap=True)
        if alike[name]:
            groups = "; ".join(", ".join(group) for group in alike[name])
            console.print(
                f"tags of {name} that differ only in case ({len(alike[name])} groups): {groups}; "
                "pass --merge case if each group is one tag (the most frequent spelling is kept)",
                markup=False,
                soft_wrap=True,
            )
    if found.label_columns:
        names = _shortened(found.label_columns)
        console.print(
            f"look like labels ({len(found.label_columns)}; 0/1, true/false or yes/no): {names}",
            soft_wrap=True,
        )
        cells = table.frame[found.label_columns]
        empty = sum(sum(map(is_missing, cells[name])) for name in found.label_columns)
        if empty:
            console.print(
                f"{empty} of {cells.size} cells of these columns are empty: nobody looked there. "
                "If an empty cell means that the label does not apply, pass --untagged none.",
                soft_wrap=True,
            )
    if found.mark_columns:
        console.print(
            f"may be labels that only mark rows ({len(found.mark_columns)}; one sign or empty): "
            f"{_shortened(found.mark_columns)}; pass them with --labels and --untagged none",
            soft_wrap=True,
        )
    if not labels:
        console.print("no column looks like labels: name them with --tags or --labels")


def _shortened(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f", and {more} more" if more > 0 else "")


def _next_command(
    file: Path,
    table: Table,
    found: Survey,
    options: Settings,
    alike: Mapping[str, list[tuple[str, ...]]],
) -> str:
    """Return a command that would fit a model, if the guesses are right."""
    words = ["lemll", "fit", str(file)]
    if found.tag_columns:
        # A caption with commas also looks like tags, so the name of the column decides first.
        names = sorted(found.tag_columns, key=lambda name: name.strip().lower() not in _TAG_NAMES)
        name, sign = names[0], found.tag_columns[names[0]]
        written = [text.strip() for text in written_cells(table, name)]
        # Without --sep, lists among other text are refused.
        some_lists = sign == ";" and any(text.startswith("[") for text in written)
        words += ["--tags", name]
        words += ["--sep", sign] if sign not in (";", "list") or some_lists else []
        # The line on this column says what the other choice means.
        empty = not all(written)
        words += ["--untagged", "unknown"] if empty else []
        words += ["--merge", "case"] if alike[name] else []
    elif found.mark_columns and not found.label_columns:
        words += ["--labels", ",".join(found.mark_columns), "--untagged", "none"]
    else:
        words += ["--labels", ",".join(found.label_columns) or "A,B,C"]
    words += ["--id", found.id_columns[0]] if found.id_columns else []
    # The file was read with these options, so every other command needs them too.
    words += [word for name, value in options.items() if value is not None
              for word in (f"--{name}", str(value))]  # fmt: skip
    return shlex.join([*words, "-m", f"{file.stem}{SUFFIX}"])


def _print_model(console: Console, file: Path, metadata: Settings) -> None:
    labels, columns = metadata["labels"], metadata["columns"]
    lines = [
        f"{file}: {metadata['learner']}, {metadata['bytes'] / 2**20:.1f} MiB, written by lemll "
        f"{metadata['lemll']} with scikit-learn {metadata['scikit-learn']}",
        f"labels ({len(labels)}): {_shortened(labels)}",
        f"columns ({len(columns)}): {_shortened(columns)}",
    ]
    table = metadata["table"]
    if table is not None:
        report = table["report"]
        lines.append(f"training rows: {table['n_rows']}; ids: {table['id_column'] or 'none'}")
        for score in report["scores"]:
            low, high = score["interval"]
            lines.append(
                f"{score['measure']} on {report['rows']} held-out rows: {score['value']:.3f} "
                f"({low:.3f} to {high:.3f}), by frequency {score['baseline']:.3f}"
            )
        lines.append(report["verdict"])
    for line in lines:
        console.print(line, soft_wrap=True)
