"""``lemll demo``: label enhancement and a comparison on embedded data, shown on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from lemll.cli.console import make_console
from lemll.cli.tables import say
from lemll.lab.cli.bench import run_with_progress
from lemll.lab.protocol import Protocol
from lemll.lab.runner import RunProgress
from lemll.lab.store import Store


def demo(
    output: Annotated[
        Path, typer.Option(help="Folder for the pages, pictures and results.")
    ] = Path("demo-output"),
    splits: Annotated[
        int, typer.Option(help="Number of random halves in the comparison.", min=2)
    ] = 3,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Number of cells to run at the same time.")
    ] = 2,
) -> None:
    """Run the commands on a table of photos, compare learners, and write a page."""
    from lemll.lab.demo import make_demo

    console = make_console()
    ends: list[RunProgress] = []

    def execute(protocol: Protocol, store: Store) -> None:
        ends.append(run_with_progress(protocol, store, n_jobs=jobs))

    result = make_demo(output, n_splits=splits, execute=execute, say=say)
    for data in result.tables:
        table = Table(*data.header, title=data.caption)
        for row in data.rows:
            table.add_row(*row)
        console.print(table)
    console.print(f"open {result.page}", soft_wrap=True)
    raise typer.Exit(code=1 if any(end.failed for end in ends) else 0)
