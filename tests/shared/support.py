"""What tests of several rooms use: peaks of memory, commands, programs in another process."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from typing import Any


class Peak:
    """Measures the peak of Python's and NumPy's memory in a with statement."""

    bytes: int

    def __enter__(self) -> Peak:
        tracemalloc.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


def invoke(*words: object, code: int = 0, answers: str | None = None) -> Any:
    """Call a command of `lemll` here; raise its errors, and check how it ends."""
    from typer.testing import CliRunner

    from lemll.cli.app import app

    result = CliRunner().invoke(app, [str(word) for word in words], input=answers)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def in_process(code: str, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program of Python in a process of its own."""
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=check)
