"""The console of all commands."""

from __future__ import annotations

from rich.console import Console

__all__ = ["make_console"]

_PIPE_WIDTH = 140


def make_console() -> Console:
    """Return a console that prints text as it is: names of labels and files are not markup."""
    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH  # a pipe has no width; tables must not be folded to 80 columns
    return console
