"""The command ``lemll``: parses, calls the library, prints; no mathematics."""

from __future__ import annotations

import signal
import sys

from lemll.exceptions import LemllError, MissingExtraError, import_extra

__all__ = ["main"]


def main() -> None:
    """Run the command line; errors meant for the user end in one line, not in a traceback."""
    try:
        import_extra("typer", "cli", "The command line")
        import_extra("rich", "cli", "The command line")
    except MissingExtraError as error:
        sys.exit(f"lemll: {error}")
    from lemll.cli.app import app

    try:
        app()
    except (LemllError, ValueError, OSError) as error:
        sys.exit(f"lemll: {error}")
    except KeyboardInterrupt:
        sys.stderr.write("lemll: stopped\n")
        sys.exit(128 + signal.SIGINT)
