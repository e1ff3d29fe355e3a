"""``lemll reproduce``: the paper's experiments, our figures beside the published ones."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lemll.cli._console import make_console
from lemll.cli._run import run_with_progress
from lemll.datasets import list_datasets, load_dataset
from lemll.exceptions import DatasetNotFoundError
from lemll.experiments.reconstruction import (
    QUICK_DATASETS,
    THRESHOLDS,
    Agreement,
    paper_reconstruction,
)
from lemll.experiments.reconstruction_report import ReconstructionReport, make_report
from lemll.experiments.store import Store

__all__ = ["app"]

app = typer.Typer(help="The paper's experiments, ours beside the published.", no_args_is_help=True)

_QUICK_THRESHOLDS = (0.1, 0.5)


@app.callback()
def _commands() -> None:
    """Keep the sub-commands visible even while there is only one."""


@app.command()
def reconstruction(
    datasets: Annotated[
        list[str] | None, typer.Argument(help="Data sets; by default all at hand.")
    ] = None,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Three small sets, two thresholds: about a minute.")
    ] = False,
    store: Annotated[
        Path, typer.Option(help="Where results are kept; a stopped run goes on from there.")
    ] = Path("lemll-results/reconstruction"),
    output: Annotated[
        Path | None, typer.Option(help="Tables; by default beside the store.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Cells to run at a time.")] = 1,
) -> None:
    """Recover known distributions from 0/1 labels by every method (Tables VI to VIII)."""
    console = make_console()
    wanted = datasets or (list(QUICK_DATASETS) if quick else None)
    names, absent = _at_hand(wanted, download=datasets is not None)
    protocol = paper_reconstruction(names, thresholds=_QUICK_THRESHOLDS if quick else THRESHOLDS)
    opened = Store(store)
    command = ["lemll", "reproduce", "reconstruction", *(datasets or ())]
    command += ["--quick"] * quick + ["--store", str(store), "--jobs", str(jobs)]
    command += ["--output", str(output)] if output else []
    end = run_with_progress(console, protocol, opened, n_jobs=jobs, command=shlex.join(command))
    report = make_report(protocol, opened)
    folder = output or store.with_name(f"{store.name}-tables")
    files = report.write(folder)
    _print(console, report)
    if absent:
        console.print(f"not at hand: {', '.join(absent)}")
    console.print(f"tables: {', '.join(file.name for file in files)} in {folder}", soft_wrap=True)
    reproduced = all(entry.within == entry.cells for entry in report.agreement)
    raise typer.Exit(code=0 if reproduced and not end.failed else 1)


def _at_hand(wanted: list[str] | None, *, download: bool) -> tuple[list[str], list[str]]:
    names, absent = [], []
    for name in wanted or [info.name for info in list_datasets(table="V")]:
        try:
            names.append(load_dataset(name, download_if_missing=download).name)
        except DatasetNotFoundError:
            absent.append(name)
    if not names:
        raise DatasetNotFoundError(
            f"none of the data sets is at hand ({', '.join(absent)}): set LEMLL_DATA_DIR to the "
            "folder that holds them, or name one to download it"
        )
    return names, absent


def _print(console: Console, report: ReconstructionReport) -> None:
    for panel in report.table.panels:
        table = Table("data set", *panel.methods, title=f"{panel.title}: ours [printed]")
        for row in panel.rows():
            table.add_row(*row)
        console.print(table)
    ranks = Table("block", *report.table.panels[0].methods, title="Average ranks: ours [printed]")
    for block in report.ranks:
        pairs = zip(block.ours, block.published, strict=True)
        ranks.add_row(block.title, *(f"{ours:.2f} [{printed:.2f}]" for ours, printed in pairs))
    console.print(ranks)
    apart = Table(
        "data set", *report.apart.panels[0].methods, title=f"Apart: {report.apart.panels[0].title}"
    )
    for row in report.apart.panels[0].rows():
        apart.add_row(*row)
    console.print(apart)
    for entry in report.agreement:
        console.print(_sentence(entry), soft_wrap=True)
    for scale in report.calibration:
        console.print(
            f"LEMLL calibrated by {scale.n_rated} rated rows: better than scale 1 in "
            f"{scale.better_than_plain} of {scale.cells} cells, than uniform in "
            f"{scale.better_than_uniform}; Chebyshev {scale.chebyshev_over_best:.3f} times that of "
            "the best scale",
            soft_wrap=True,
        )


def _sentence(entry: Agreement) -> str:
    return (
        f"{entry.method}: {entry.within} of {entry.cells} cells within {entry.tolerance:g} of the "
        f"printed figure, {entry.exact} equal to it; largest difference {entry.largest:.3f}"
    )
