"""The commands of the laboratory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table

from lemll.cli.console import make_console


def say(*texts: object) -> None:
    """Print texts, one per line, which the terminal wraps and not the console."""
    for text in texts:
        make_console().print(str(text), soft_wrap=True)


def show_table(header: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    """Print a table."""
    table = Table(*header, title=title or None)
    for row in rows:
        table.add_row(*row)
    make_console().print(table)
