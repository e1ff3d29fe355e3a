"""Run as a program: read one file, and report what became of it."""

from __future__ import annotations

import faulthandler
import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_MAX_BYTES = 8 * 2**30
_MAX_SECONDS = 120
# A process that waits takes no CPU time, so there is a limit by the clock too. It is wide, because
# on a busy machine a process of low priority may get a hundredth of a core.
_WALL_PER_CPU = 20
_UNKNOWN = {"imports_mb": None, "peak_mb": None, "cpu_s": None}


def source_environment(source: Path | None) -> dict[str, str]:
    """Return an environment in which `lemll` is that of another source tree, if one is given."""
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**os.environ, **single, **({} if source is None else {"PYTHONPATH": str(source)})}


def measure(
    path: Path,
    options: dict[str, Any],
    source: Path | None,
    *,
    command: Sequence[str] = (),
    seconds: float = _MAX_SECONDS,
) -> dict[str, Any]:
    """Read a file in a fresh process; return outcome, peak memory and CPU seconds.

    With a command, its words are those of ``lemll``, and the file is among them. It is stopped
    after so many CPU seconds.
    """
    words = [str(path), json.dumps(options), str(seconds), *command]
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks._fuzz_run", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=source_environment(source),
    ) as child:
        try:
            output, where = child.communicate(timeout=_WALL_PER_CPU * seconds)
        except subprocess.TimeoutExpired:
            peak = round(own_peak(child.pid) / 1e6)
            child.kill()
            child.communicate()
            outcome = f"stopped after {_WALL_PER_CPU * seconds:g} s by the clock"
            return {"outcome": outcome, **_UNKNOWN, "peak_mb": peak}
    if child.returncode == -signal.SIGXCPU:
        outcome = f"stopped after {seconds:g} CPU s\n{where.decode(errors='replace')}"
        return {"outcome": outcome, **_UNKNOWN}
    if child.returncode != 0:
        return {"outcome": f"died, code {child.returncode}", **_UNKNOWN}
    figures: dict[str, Any] = json.loads(output.splitlines()[-1])
    return figures


def main(arguments: list[str]) -> None:
    """Read ``path options seconds``, or run ``path options seconds command...``.

    After so many CPU seconds, each thread says where it is, and the process ends.
    """
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    from lemll.exceptions import LemllError

    path, options, seconds, *command = arguments
    faulthandler.register(signal.SIGXCPU, chain=True)
    most = math.ceil(float(seconds))
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 10))
    read = _command(command) if command else _reader(path, json.loads(options))
    imported = own_peak()
    start = time.process_time() + os.times().children_user
    try:
        read()
        outcome = "read"
    except (LemllError, ValueError) as error:
        outcome = f"refused: {str(error).rpartition(path)[2][2:70]}"
    except Exception as error:  # what escapes is reported, not passed on
        outcome = f"escaped: {type(error).__name__}"
    cpu = time.process_time() + os.times().children_user - start
    peak = max(own_peak(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
    figures = {"imports_mb": round(imported / 1e6), "peak_mb": round(peak / 1e6)}
    print(json.dumps({"outcome": outcome, **figures, "cpu_s": round(cpu, 2)}))


def _reader(path: str, options: dict[str, Any]) -> Callable[[], object]:
    """Return what reads a file, after it has imported its libraries."""
    if path.endswith(".lemll"):
        import skops.io  # noqa: F401

        import lemll

        return lambda: lemll.load(path)
    from lemll.datasets import read_dataset
    from lemll.datasets._columns import read_label_xml

    return lambda: read_label_xml(path) if ".xml" in path else read_dataset(path, **options)


def _command(words: list[str]) -> Callable[[], object]:
    # The libraries of the commands are loaded before the clock starts.
    import openpyxl  # noqa: F401
    import pandas as pd  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from lemll.cli.app import app

    return lambda: app(words, standalone_mode=False)


def own_peak(process: int | str = "self") -> int:
    """Return the peak memory of a process in bytes, without that of the one it was forked from.

    `resource` takes over the peak of the parent, which may just have made a bomb.
    """
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main(sys.argv[1:])
