"""Run the experiment engine for a user: show the progress, and end cleanly when stopped."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lemll.experiments import Protocol, RunProgress, Store, run

__all__ = ["run_with_progress"]

_SECONDS_BETWEEN_LINES = 10.0
_SIGNAL_EXIT = 128  # by convention, a process ended by signal n exits with 128 + n


def run_with_progress(
    console: Console, protocol: Protocol, store: Store, *, command: str, **options: Any
) -> RunProgress:
    """Run a protocol and show its progress. When it is stopped, end without a traceback.

    Parameters
    ----------
    console : Console
        Where to show the progress.
    protocol : Protocol
        What to run.
    store : Store
        Where results go.
    command : str
        The command that continues a stopped run; it is printed when the run is stopped.
    **options
        Options of `lemll.experiments.run`.

    Returns
    -------
    RunProgress
        The progress at the end of the run.
    """
    try:
        with _sigterm_raises(), _live(console) as show:
            return run(protocol, store, callback=show, **options)
    except (KeyboardInterrupt, _Terminated) as error:
        console.print(f"stopped; finished cells are stored. To continue: {command}", soft_wrap=True)
        number = signal.SIGTERM if isinstance(error, _Terminated) else signal.SIGINT
        raise typer.Exit(code=_SIGNAL_EXIT + number) from None


class _Terminated(BaseException):
    """SIGTERM arrived. Like KeyboardInterrupt, it must pass every `except Exception`."""


@contextmanager
def _sigterm_raises() -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
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
