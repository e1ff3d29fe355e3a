"""``lemll bench datasets``: list, info, check, convert."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track
from rich.table import Table

from lemll.cli.console import make_console
from lemll.cli.tables import is_registered, load_named
from lemll.datasets.describe import describe
from lemll.datasets.files import write_dataset
from lemll.datasets.registry import (
    DatasetInfo,
    dataset_info,
    list_datasets,
    load_dataset,
    local_path,
)
from lemll.exceptions import DatasetNotFoundError, LemllError

Labels = Annotated[
    str | None,
    typer.Option(
        help="Label columns: an XML file, names separated by commas, or a count: 3 means the "
        "first three columns, -3 the last three."
    ),
]
Nominal = Annotated[str | None, typer.Option(help="Nominal features of ARFF: codes or onehot.")]
Missing = Annotated[str | None, typer.Option(help="Missing values: error or nan.")]

app = typer.Typer(help="The paper's data sets, and your own files.", no_args_is_help=True)

_TITLE = "Registered data sets (figures as the paper prints them)"
_FIGURES = (
    ("examples", "rows"),
    ("features", "features"),
    ("labels", "labels"),
    ("cardinality", "cardinality"),
    ("density", "density"),
    ("distinct", "distinct"),
    ("proportion_distinct", "prop. distinct"),
)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() and value >= 1 else f"{value:.3f}"


@app.command("list")
def list_command() -> None:
    """List the registered data sets, the paper's figures, and where each set comes from."""
    table = Table("name", "table", "labels are", title=_TITLE)
    for heading in ("rows", "features", "labels"):
        table.add_column(heading, justify="right")
    for heading in ("domain", "from", "aliases"):
        table.add_column(heading)
    for info in list_datasets():
        sizes = [_number(info.published.get(figure)) for figure, _ in _FIGURES[:3]]
        rest = (info.domain, _whereabouts(info), ", ".join(info.aliases))
        table.add_row(info.name, info.table, info.kind, *sizes, *rest)
    make_console().print(table)


def _whereabouts(info: DatasetInfo) -> str:
    if local_path(info) is not None:
        return "LEMLL_DATA_DIR"
    return "download" if info.upstream else "not available"


@app.command("info")
def info_command(
    name: Annotated[str, typer.Argument(help="A registered name, or a file.")],
    labels: Labels = None,
    nominal: Nominal = None,
    missing: Missing = None,
) -> None:
    """Load one data set and describe it."""
    dataset = load_named(name, labels=labels, nominal=nominal, missing=missing)
    console = make_console()
    console.print(repr(dataset))
    summary = describe(dataset)
    table = Table(show_header=False)
    for figure, heading in _FIGURES:
        value = getattr(summary, figure)
        if value is not None:
            table.add_row(heading, _number(value))
    table.add_row("label names", _shorten(dataset.label_names))
    table.add_row("feature names", _shorten(dataset.feature_names))
    table.add_row("source", dataset.source)
    console.print(table)
    for difference in summary.differences:
        console.print(f"differs from the paper: {difference}")
    if is_registered(name) and dataset_info(name).note:
        console.print(f"note: {dataset_info(name).note}")


def _shorten(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown + (f", ... ({len(names)} in all)" if len(names) > most else "")


@app.command("check")
def check_command() -> None:
    """Load all available data sets and compare them with the paper's Tables I and V."""
    console = make_console()
    table = Table(title="Data sets of Tables I and V, as loaded")
    table.add_column("name")
    for _, heading in _FIGURES:
        table.add_column(heading, justify="right")
    table.add_column("against the paper")
    loaded, unexpected, absent, broken = 0, 0, [], []
    infos = [info for info in list_datasets() if info.table]
    for info in track(infos, "Loading", console=console, disable=not console.is_terminal):
        try:
            summary = describe(load_dataset(info.name, download_if_missing=False))
        except DatasetNotFoundError:
            absent.append(info.name)
            continue
        except LemllError as error:
            broken.append(f"{info.name} cannot be read: {error}")
            continue
        loaded += 1
        unexpected += sum(not difference.known for difference in summary.differences)
        figures = (_number(getattr(summary, figure)) for figure, _ in _FIGURES)
        verdict = "; ".join(map(str, summary.differences)) or "equal"
        table.add_row(info.name, *figures, verdict)
    console.print(table)
    console.print(f"{loaded} sets loaded; not available: {', '.join(absent) or 'none'}")
    for complaint in broken:
        console.print(complaint)
    if loaded == 0 and not broken:
        raise DatasetNotFoundError(
            "no data set is available: set LEMLL_DATA_DIR to the folder that holds them, or load "
            "one by name to download it"
        )
    console.print(
        "every figure equals Tables I and V, except for the known differences shown"
        if unexpected == 0
        else f"{unexpected} figures differ from the paper, and these differences are new"
    )
    raise typer.Exit(code=1 if unexpected or broken else 0)


@app.command("convert")
def convert_command(
    file: Annotated[str, typer.Argument(help="A file, or the name of a registered data set.")],
    out: Annotated[Path, typer.Argument(help="File to write: .arff, .csv, .npz, .parquet.")],
    *,
    labels: Labels = None,
    nominal: Nominal = None,
    missing: Missing = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
) -> None:
    """Read a data set in one format and write it in another."""
    if out.exists() and not force:
        raise LemllError(f"{out} exists already; choose another name, or pass --force")
    dataset = load_named(file, labels=labels, nominal=nominal, missing=missing)
    write_dataset(dataset, out)
    console = make_console()
    console.print(f"wrote {out}: {dataset!r}")
    if out.name.endswith((".csv", ".csv.gz", ".csv.bz2", ".csv.xz")):
        count = len(dataset.label_names)
        console.print(f"the labels are the last {count} columns: read it with labels=-{count}")
