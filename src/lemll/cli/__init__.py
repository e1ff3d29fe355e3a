"""The command ``lemll``. It parses options, calls the library and prints; it does not compute."""

from __future__ import annotations

import signal
import sys
import warnings

from lemll.exceptions import LemllError, MissingExtraError, import_extra

__all__ = ["main"]


def main() -> None:
    """Run the command line. An error meant for the user is one line, not a traceback."""
    try:
        import_extra("typer", "cli", "The command line")
        import_extra("rich", "cli", "The command line")
    except MissingExtraError as error:
        sys.exit(f"lemll: {error}")
    from lemll.cli._console import safe_text
    from lemll.cli.app import app

    # Warnings can also quote text from files, so they must not control the terminal.
    plain = warnings.formatwarning
    warnings.formatwarning = lambda *parts, **options: safe_text(plain(*parts, **options))
    try:
        app()
    except (LemllError, ValueError, OSError) as error:
        sys.exit(safe_text(f"lemll: {error}"))
    except KeyboardInterrupt:
        sys.stderr.write("lemll: stopped\n")
        sys.exit(128 + signal.SIGINT)
