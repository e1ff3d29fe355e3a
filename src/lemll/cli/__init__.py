"""The command ``lemll``. It parses options, calls the library and prints; it does not compute."""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TextIO

from lemll import __version__
from lemll.exceptions import LemllError, MissingExtraError, import_extra

__all__ = ["main"]

_FAULT = 70  # by convention, the exit code of an internal error
_INTERRUPTED = 128 + signal.SIGINT  # by convention, that of a process that Ctrl-C ended
_STOPPED = "lemll: stopped\n"


def main() -> None:
    """Run the command line. Without ``--debug``, an error is a line and not a traceback."""
    if sys.argv[1:] == ["--version"]:
        # The libraries of the other commands take a second to load.
        sys.stdout.write(f"lemll {__version__}\n")
        return
    with _ended_by_interrupts():
        try:
            import_extra("typer", "cli", "The command line")
            import_extra("rich", "cli", "The command line")
        except MissingExtraError as error:
            sys.exit(f"lemll: {error}")
        from lemll.cli.app import app

    debug = "--debug" in sys.argv[1:]
    _show_warnings_as_notes(debug)
    if debug:
        # It may stand anywhere; typer would accept it only before the command.
        sys.argv = [sys.argv[0], *(word for word in sys.argv[1:] if word != "--debug")]
    try:
        app()
    except KeyboardInterrupt:
        sys.stderr.write(_STOPPED)
        sys.exit(_INTERRUPTED)
    except Exception as error:
        if debug:
            raise
        from lemll.cli.console import as_options, safe_text

        if isinstance(error, OSError) and error.strerror and error.filename is not None:
            # The text of such an error has a number, and no advice.
            sys.exit(
                safe_text(
                    f"lemll: {error.filename}: {error.strerror}; check its name, its folder and "
                    "the permissions"
                )
            )
        if isinstance(error, (LemllError, ValueError, OSError)):
            sys.exit(safe_text(as_options(f"lemll: {error}")))
        if where := _place_outside(error):
            sys.exit(
                safe_text(f"lemll: {type(error).__name__}: {error} ({where}); mend your module")
            )
        sys.stderr.write(
            safe_text(
                f"lemll: {type(error).__name__}: {error}\nThis is a fault of lemll; run the "
                "command again with --debug, and report what it prints.\n"
            )
        )
        sys.exit(_FAULT)


@contextmanager
def _ended_by_interrupts() -> Iterator[None]:
    """End the process at Ctrl-C while libraries are imported.

    A KeyboardInterrupt there would leave a traceback, or a library would take it for its own error.
    """

    def end(number: int, frame: object) -> NoReturn:
        del number, frame
        os.write(2, _STOPPED.encode())
        os._exit(_INTERRUPTED)

    before = signal.getsignal(signal.SIGINT)
    # A shell lets its background processes ignore Ctrl-C, and only the first thread has signals.
    if before is not signal.default_int_handler or not _in_first_thread():
        yield
        return
    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _in_first_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _place_outside(error: BaseException) -> str:
    """Return the file and line of the user's own code that an error came from, or nothing."""
    installed = (str(Path(__file__).parents[1]), sysconfig.get_path("stdlib"), sys.prefix, "<")
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or frames[-1].filename.startswith(installed):
        return ""
    return f"{frames[-1].filename}, line {frames[-1].lineno}"


def _show_warnings_as_notes(debug: bool) -> None:
    """Print each different warning once, and where it comes from only with ``--debug``."""
    from lemll.cli.console import as_options, safe_text

    said: set[str] = set()

    def show(  # noqa: PLR0917 (the signature of Python)
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        del file, line
        text = as_options(f"note: {message}\n")
        if debug:
            text = warnings.formatwarning(message, category, filename, lineno)
        if text not in said:
            said.add(text)
            # Warnings can also quote text from files, so they must not control the terminal.
            sys.stderr.write(safe_text(text))

    warnings.showwarning = show
