"""Combine the commands into one application."""

from __future__ import annotations

import typer

from lemll import __version__
from lemll.cli import (
    audit,
    bench,
    compare,
    datasets,
    demo,
    enhance,
    explain,
    export,
    info,
    model,
    reproduce,
    tune,
)

__all__ = ["app"]

app = typer.Typer(
    help="Multi-label learning with label enhancement.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command(name="info")(info.info)
app.command(name="fit")(model.fit)
app.command(name="predict")(model.predict)
app.command(name="evaluate")(model.evaluate)
app.command(name="compare")(compare.compare)
app.command(name="explain")(explain.explain)
app.command(name="export")(export.export)
app.command(name="audit")(audit.audit)
app.add_typer(datasets.app, name="datasets")
app.add_typer(reproduce.app, name="reproduce")
app.add_typer(bench.app, name="bench")
app.command(name="demo")(demo.demo)
app.command(name="enhance")(enhance.enhance)
app.command(name="tune")(tune.tune)


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
