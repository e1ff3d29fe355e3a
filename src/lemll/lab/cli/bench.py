"""``lemll bench``: run a protocol, show its status, continue it, print its table."""

from __future__ import annotations

import importlib
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lemll._files import write_output
from lemll.cli.console import make_console, safe_text
from lemll.lab.cli import datasets, say, show_table
from lemll.lab.code import import_from_folder
from lemll.lab.methods import list_methods
from lemll.lab.protocol import Protocol
from lemll.lab.report import write_comparison
from lemll.lab.runner import RunProgress, run
from lemll.lab.store import Store
from lemll.lab.tables import ComparisonTable
from lemll.lab.verification import verify
from lemll.lab.workers import dask_client

Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        help="A Python file, or a module on PYTHONPATH, that registers your own methods. It can "
        "run any code.",
        metavar="FILE.py|MODULE",
    ),
]


def import_modules(names: list[str] | None) -> None:
    """Import the modules that the user named."""
    for name in names or ():
        if name.endswith(".py"):
            path = Path(name)
            import_from_folder([path.stem], path.parent)
            continue
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"--import {name}: {error}; give the file, {name}.py, or put its folder on "
                "PYTHONPATH."
            ) from error
        except Exception as error:  # the code of a user can raise anything
            raise ValueError(
                f"--import {name}: {type(error).__name__}: {error}; mend the module."
            ) from error


_SECONDS_BETWEEN_LINES = 10.0
_SIGNAL_EXIT = 128  # by convention, a process ended by signal n exits with 128 + n


def run_with_progress(
    protocol: Protocol, store: Store, *, command: str = "", **options: Any
) -> RunProgress:
    """Run a protocol and show its progress. When it is stopped, end without a traceback.

    Parameters
    ----------
    protocol : Protocol
        What to run.
    store : Store
        Where results go.
    command : str, optional
        The command that continues a stopped run; it is printed when the run is stopped. By default
        the command that was given.
    **options
        Options of `lemll.lab.run`.

    Returns
    -------
    RunProgress
        The progress at the end of the run.
    """
    try:
        with _sigterm_raises(), _live(make_console()) as show:
            return run(protocol, store, callback=show, **options)
    except (KeyboardInterrupt, _Terminated) as error:
        again = command or shlex.join(["lemll", *sys.argv[1:]])
        say(f"stopped; finished cells are stored. To continue: {again}")
        number = signal.SIGTERM if isinstance(error, _Terminated) else signal.SIGINT
        raise typer.Exit(code=_SIGNAL_EXIT + number) from None


class _Terminated(BaseException):
    """SIGTERM arrived. Like KeyboardInterrupt, it must pass every `except Exception`."""


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _live(console: Console) -> Iterator[Callable[[RunProgress], None]]:
    """Show a bar on a terminal, elsewhere a line now and then, and one line per failure."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        # Names of data sets and methods may contain brackets, which are not markup.
        TextColumn("{task.fields[running]}", markup=False),
        console=console,
        disable=not console.is_terminal,
    )
    task = bar.add_task("cells", total=None, left="", running="")
    said = time.monotonic()

    def show(progress: RunProgress) -> None:
        failures = progress.failed + progress.timeout
        bar.update(
            task,
            total=progress.total,
            completed=progress.ended,
            description=f"cells, {failures} failed" if failures else "cells",
            left="" if progress.seconds_left is None else f"{_span(progress.seconds_left)} left",
            running="; ".join(progress.running[:3]),
        )
        nonlocal said
        if not console.is_terminal and time.monotonic() - said >= _SECONDS_BETWEEN_LINES:
            said = time.monotonic()
            left = "" if progress.seconds_left is None else f", {_span(progress.seconds_left)} left"
            line = f"{progress.ended} of {progress.total} cells, {failures} failed{left}"
            typer.echo(line, err=True)
        last = progress.last
        if last is not None and last.error is not None:
            console.print(f"{last.status}: {last}: {last.error['message']}", soft_wrap=True)

    with bar:
        yield show


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"


app = typer.Typer(help="Experiments that can be stopped and resumed.", no_args_is_help=True)
app.add_typer(datasets.app, name="datasets")

File = Annotated[Path, typer.Argument(help="The protocol, a TOML file.", metavar="P.toml")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust-imports",
        help="Import the modules that the protocol names (imports = [...]) from its folder. They "
        "can run any code. Once is enough, until one of them changes.",
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option("--store", help="Folder for the results; by default lemll-results/P for P.toml."),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Number of cells to run at the same time.")]
Seconds = Annotated[
    float | None, typer.Option("--time-limit", help="Time limit per cell, in seconds.")
]
Gibibytes = Annotated[
    float | None, typer.Option("--memory-limit", help="Memory limit per cell, in GiB.")
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        help="The address of a Dask scheduler, or local:N for N workers on this machine. Use only "
        "a cluster that you trust: this process unpickles what its workers send. tls://HOST:PORT "
        "uses the certificates of Dask's own configuration (distributed.comm.tls).",
    ),
]


# `verify` names at most this number of cells without a record, to keep its output readable.
_MAX_ABSENT = 20


class Format(StrEnum):
    """Format of a printed table."""

    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"


@app.callback()
def _options(modules: Imports = None) -> None:
    import_modules(modules)


@app.command("init")
def init_command(
    file: Annotated[Path, typer.Argument(help="The protocol to write.", metavar="P.toml")],
) -> None:
    """Write a protocol with explanations, to begin with; it runs as it is, in a minute."""
    if file.suffix != ".toml":
        raise ValueError(f"a protocol must end in .toml, got {file.name!r}.")
    if file.exists():
        raise ValueError(f"{file} exists already; choose another name, or remove it first.")
    text = resources.files("lemll.cli").joinpath("protocol_template.toml").read_text("utf-8")
    write_output(file, text)
    say(f"wrote {file}; change the data sets and the methods in it")
    say(f"next: {shlex.join(['lemll', 'bench', 'run', str(file)])}")


@app.command("resume", help="Continue a stopped run; the store must exist.")
@app.command("run", help="Run the cells that are not in the store yet, and print a summary.")
def run_command(
    context: typer.Context,
    file: File,
    store: Folder = None,
    *,
    jobs: Jobs = 1,
    time_limit: Seconds = None,
    memory_limit: Gibibytes = None,
    dask: Dask = None,
    trust: Trust = False,
) -> None:
    """Run the cells of a protocol: those that are missing, and those that `retry` names."""
    folder = _folder(file, store)
    if dask is not None:
        _refuse_beside_dask(jobs, time_limit, memory_limit)
    protocol = Protocol.from_toml(file, trust_imports=trust)
    opened = Store(folder, create=context.info_name == "run")
    with nullcontext() if dask is None else dask_client(dask) as client:
        end = run_with_progress(
            protocol,
            opened,
            command=_next("resume", file, folder),
            n_jobs=jobs,
            client=client,
            time_limit=time_limit,
            memory_limit=memory_limit,
            retry=context.obj or (),
        )
    say(
        f"{end.done} of {end.total} cells done, {end.failed} failed, {end.timeout} out of time; "
        f"store: {folder}"
    )
    for action in ("table", "report") if end.done else ("status",):
        say(f"next: {_next(action, file, folder)}")
    raise typer.Exit(code=1 if end.failed or end.timeout else 0)


@app.command("retry")
def retry_command(
    context: typer.Context,
    file: File,
    store: Folder = None,
    *,
    jobs: Jobs = 1,
    time_limit: Seconds = None,
    memory_limit: Gibibytes = None,
    dask: Dask = None,
    failed: Annotated[bool, typer.Option("--failed", help="Run failed cells.")] = False,
    timeout: Annotated[bool, typer.Option("--timeout", help="Run cells out of time.")] = False,
    trust: Trust = False,
) -> None:
    """Run again the cells that failed or took too long; by default both."""
    asked = {"failed": failed, "timeout": timeout}
    context.obj = [status for status in asked if asked[status] or not any(asked.values())]
    run_command(
        context, file, store, jobs=jobs, time_limit=time_limit, memory_limit=memory_limit,
        dask=dask, trust=trust,
    )  # fmt: skip


def _folder(file: Path, store: Path | None) -> Path:
    return Path("lemll-results") / file.stem if store is None else store


def _next(action: str, file: Path, folder: Path) -> str:
    """Return the command that goes on with a store."""
    words = ["lemll", "bench", action, str(file)]
    words += ["--store", str(folder)] if folder != _folder(file, None) else []
    return shlex.join(words)


def _refuse_beside_dask(jobs: int, time_limit: float | None, memory_limit: float | None) -> None:
    """Refuse options that a cluster would ignore."""
    given: dict[str, float | None] = {"--jobs": jobs if jobs != 1 else None}
    given |= {"--time-limit": time_limit, "--memory-limit": memory_limit}
    for option, value in given.items():
        if value is not None:
            raise ValueError(
                f"{option} {value:g} is for processes of this machine, not for --dask, which runs "
                "as many cells at a time as the cluster has threads; leave out one of the two."
            )


@app.command("status")
def status_command(file: File, store: Folder = None, *, trust: Trust = False) -> None:
    """Count the cells that are done, running and pending, and list the failures."""
    protocol, opened = _open(file, store, trust)
    overview = opened.overview(protocol.cells())
    counts = {status: overview.count(status) for status in ("done", "failed", "timeout")}
    running = {cell.id for cell in overview.running}
    counts |= {"pending": sum(cell.id not in running for cell in overview.pending)}
    counts |= {"running": len(running), "damaged": len(overview.damaged)}
    counts |= {"stale (other code)": len(overview.stale), "of other protocols": overview.unrelated}
    show_table(("status", "cells"), ((name, str(count)) for name, count in counts.items()))
    named = {cell.id: str(cell) for cell in overview.damaged}
    for cell_id, reason in overview.reasons.items():
        say(f"damaged: {named.get(cell_id, 'not of this protocol')}: {reason}")
    for record in overview.records.values():
        if record.error is not None:
            say(f"{record.status}: {record}: {record.error['message']}")


@app.command("verify")
def verify_command(
    file: File,
    store: Folder = None,
    *,
    discard: Annotated[
        bool, typer.Option("--discard", help="Remove damaged cells; resume runs them again.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Compute every figure of the table again from the stored outputs; exit 1 if one differs."""
    result = verify(*_open(file, store, trust), discard=discard)
    for problem in result.problems:
        say(problem)
    for cell in result.absent[:_MAX_ABSENT]:
        say(f"{cell}: has no record")
    if len(result.absent) > _MAX_ABSENT:
        say(f"and {len(result.absent) - _MAX_ABSENT} more cells have no record")
    say(
        f"{result.figures} figures computed again, {len(result.problems)} problems; "
        f"{result.missing} cells have no result to verify"
    )
    raise typer.Exit(code=1 if result.problems else 0)


@app.command("table")
def table_command(
    file: File,
    store: Folder = None,
    form: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.MARKDOWN,
    metric: Annotated[
        list[str] | None, typer.Option(help="Print only this metric; may be repeated.")
    ] = None,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the table to this file.")
    ] = None,
    trust: Trust = False,
) -> None:
    """Print the comparison: mean ± std, marks against the control, average ranks."""
    table = ComparisonTable.from_store(*_open(file, store, trust), metrics=metric or ())
    text: str = getattr(table, f"to_{form}")()
    if output is None:
        typer.echo(safe_text(text), nl=False)
    else:
        write_output(output, text)
        say(f"wrote {output}")
    if form is not Format.MARKDOWN:  # Markdown already has the notes below its tables
        for note in table.notes:
            typer.echo(safe_text(note), err=True)


@app.command("report")
def report_command(
    file: File,
    store: Folder = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page; by default report.html in the store."),
    ] = None,
    *,
    trust: Trust = False,
) -> None:
    """Write a page with tables, tests and pictures; the run may still be under way."""
    protocol, opened = _open(file, store, trust)
    page = output or opened.folder / "report.html"
    write_comparison(page, protocol, opened)
    say(f"open {page}")


@app.command("export")
def export_command(
    file: File,
    out: Annotated[Path, typer.Argument(help="File to write: .csv or .parquet.")],
    store: Folder = None,
    *,
    trust: Trust = False,
) -> None:
    """Write all records of the store, also those of other protocols, as one flat table."""
    _, opened = _open(file, store, trust)
    rows = opened.export(out)
    for reason in opened.damaged().values():
        say(f"left out: {reason}")
    say(f"wrote {out}: {rows} cells")


@app.command("methods")
def methods_command() -> None:
    """List the methods that a protocol can name."""
    methods = list_methods()
    rows = ((found.name, found.kind, ", ".join(found.grid), found.summary) for found in methods)
    show_table(("method", "kind", "tuned", "what it does"), rows)


def _open(file: Path, store: Path | None, trust: bool) -> tuple[Protocol, Store]:
    # The protocol first: otherwise a mistyped file name would be reported as a missing store.
    protocol = Protocol.from_toml(file, trust_imports=trust)
    return protocol, Store(_folder(file, store), create=False)
