"""``lemll reproduce``: the paper's experiments, our figures beside the published ones."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import track
from rich.table import Table

from lemll.cli._console import make_console
from lemll.datasets import list_datasets, load_dataset
from lemll.exceptions import DatasetNotFoundError
from lemll.experiments import published_reconstruction, recover_with_lemll
from lemll.experiments.reconstruction import THRESHOLDS
from lemll.metrics import METRICS

__all__ = ["app"]

app = typer.Typer(help="The paper's experiments, ours beside the published.", no_args_is_help=True)

_TOLERANCE = 0.001


@app.callback()
def _commands() -> None:
    """Keep the sub-commands visible even while there is only one."""


@app.command()
def reconstruction(
    datasets: Annotated[
        list[str] | None, typer.Argument(help="Data sets; by default all at hand.")
    ] = None,
) -> None:
    """Recover known distributions from 0/1 labels with LEMLL (Tables VI to VIII)."""
    console = make_console()
    names = datasets or [info.name for info in list_datasets(table="V")]
    ours, absent = {}, []
    for name in track(names, "Recovering", console=console, disable=not console.is_terminal):
        try:
            dataset = load_dataset(name, download_if_missing=datasets is not None)
        except DatasetNotFoundError:
            absent.append(name)
            continue
        for cell in recover_with_lemll(dataset):
            ours[cell.measure, cell.threshold, cell.dataset] = cell.value
    if not ours:
        raise DatasetNotFoundError(
            f"none of the data sets is at hand ({', '.join(absent)}): set LEMLL_DATA_DIR to the "
            "folder that holds them, or name one to download it"
        )
    published = {
        (cell.measure, cell.threshold, cell.dataset): cell.value
        for cell in published_reconstruction()
        if cell.method == "LEMLL"
    }
    differences = {key: round(value, 3) - published[key] for key, value in ours.items()}
    for measure in dict.fromkeys(measure for measure, _, _ in ours):
        console.print(_table(measure, ours, differences))
    within = sum(abs(difference) <= _TOLERANCE + 1e-9 for difference in differences.values())
    largest = max(abs(difference) for difference in differences.values())
    console.print(
        f"{within} of {len(differences)} cells within {_TOLERANCE} of the published figure after "
        f"rounding to three decimals; largest difference {largest:.3f}"
    )
    if absent:
        console.print(f"not at hand: {', '.join(absent)}")
    raise typer.Exit(code=0 if within == len(differences) else 1)


def _table(
    measure: str,
    ours: dict[tuple[str, float, str], float],
    differences: dict[tuple[str, float, str], float],
) -> Table:
    table = Table(title=f"LEMLL, {METRICS[measure].title}: ours (difference to the paper)")
    table.add_column("data set")
    for threshold in THRESHOLDS:
        table.add_column(f"threshold {threshold:g}", justify="right")
    for dataset in dict.fromkeys(dataset for _, _, dataset in ours):
        keys = [(measure, threshold, dataset) for threshold in THRESHOLDS]
        cells = [f"{ours[key]:.3f} ({differences[key]:+.3f})" for key in keys]
        table.add_row(dataset, *cells)
    return table
