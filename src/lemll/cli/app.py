"""Combine the commands into one application; each is imported when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from lemll import __version__

# Where each command is, and what the list of commands says of it.
COMMANDS: dict[str, tuple[str, str]] = {
    "info": ("lemll.cli.info:info", "Show what is in a table, and which columns look like labels."),
    "fit": ("lemll.cli.model:fit", "Fit a model, say how well it predicts unseen rows, write it."),
    "predict": ("lemll.cli.model:predict", "Predict the tags of new rows, as CSV."),
    "evaluate": ("lemll.cli.model:evaluate", "Compare a model with the labels of other rows."),
    "compare": ("lemll.cli.compare:compare", "Compare learners on a table; writes a page."),
    "explain": ("lemll.cli.model:explain", "Write a page that explains a table and its model."),
    "enhance": ("lemll.cli.enhance:enhance", "Recover how much each label matters in each row."),
    "audit": ("lemll.cli.audit:audit", "List tags that look wrong or missing; writes a page."),
    "export": ("lemll.cli.model:export", "Write a linear or kernel model as ONNX."),
    "demo": ("lemll.lab.cli.demo:demo", "The demonstration, on embedded data; writes a page."),
    "bench": ("lemll.lab.cli.bench:app", "The laboratory: experiments that can be stopped."),
    "reproduce": ("lemll.lab.cli.reproduce:app", "The laboratory: the paper's experiments."),
}


class Later(TyperCommand):
    """A command that is imported when it is called."""

    def loaded(self) -> Any:
        """Import the command, and return it."""
        module, _, attribute = COMMANDS[str(self.name)][0].partition(":")
        found = getattr(import_module(module), attribute)
        if not isinstance(found, typer.Typer):
            command = found
            found = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            found.command(name=str(self.name))(command)
        return typer.main.get_command(found)

    def make_context(
        self, info_name: str | None, args: list[str], *rest: object, **extra: object
    ) -> Any:
        """Parse the words of the command itself."""
        return self.loaded().make_context(info_name, args, *rest, **extra)


class _Commands(TyperGroup):
    """The list of commands, none of which is imported for it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (_, summary) in COMMANDS.items():
            self.commands[name] = Later(name=name, help=summary)


app = typer.Typer(
    cls=_Commands,
    help="Tags in a table? Predict them, find the wrong and missing ones, see how much each "
    "matters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lemll {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
    debug: bool = typer.Option(
        False, "--debug", help="Show the traceback of an error; may stand anywhere."
    ),
) -> None:
    del version, debug  # a callback and `main` have already handled them
