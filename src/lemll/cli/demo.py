"""``lemll demo``: the main job on embedded data, ending with a page to open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from lemll.cli._console import make_console

__all__ = ["demo"]


def demo(
    output: Annotated[Path, typer.Option(help="Folder for the pictures and the page.")] = Path(
        "demo-output"
    ),
) -> None:
    """Recover label distributions and predict tags on embedded data; ends with a page to open."""
    from lemll.report.demo import make_demo

    result = make_demo(output)
    console = make_console()
    for caption, header, rows in result.tables:
        table = Table(*header, title=caption)
        for row in rows:
            table.add_row(*row)
        console.print(table)
    console.print(f"open {result.page}", soft_wrap=True)
