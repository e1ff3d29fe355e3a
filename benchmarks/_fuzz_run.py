"""Run as a program: read one file, and report what became of it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

_MAX_BYTES = 8 * 2**30
_MAX_SECONDS = 120
_UNKNOWN = {"imports_mb": None, "peak_mb": None, "cpu_s": None}


def source_environment(source: Path | None) -> dict[str, str]:
    """Return an environment in which `lemll` is that of another source tree, if one is given."""
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**os.environ, **single, **({} if source is None else {"PYTHONPATH": str(source)})}


def measure(path: Path, options: dict[str, Any], source: Path | None) -> dict[str, Any]:
    """Read a file in a fresh process; return outcome, peak memory and CPU seconds."""
    command = [sys.executable, "-m", "benchmarks._fuzz_run", str(path), json.dumps(options)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=source_environment(source)
    ) as child:
        try:
            output, _ = child.communicate(timeout=_MAX_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            return {"outcome": f"stopped after {_MAX_SECONDS} s", **_UNKNOWN}
    if child.returncode != 0:
        return {"outcome": f"died, code {child.returncode}", **_UNKNOWN}
    figures: dict[str, Any] = json.loads(output)
    return figures


def main(arguments: list[str]) -> None:
    """Read ``path options``."""
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    from lemll.datasets import read_dataset, read_label_xml
    from lemll.exceptions import LemllError

    path, options = arguments
    read: Any = read_label_xml if ".xml" in path else read_dataset
    if path.endswith(".lemll"):
        read = _load_model()
    imported = own_peak()
    start = time.process_time() + os.times().children_user
    try:
        read(path, **json.loads(options))
        outcome = "read"
    except LemllError as error:
        outcome = f"refused: {str(error).rpartition(path)[2][2:70]}"
    except Exception as error:  # what escapes is reported, not passed on
        outcome = f"escaped: {type(error).__name__}"
    cpu = time.process_time() + os.times().children_user - start
    peak = max(own_peak(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
    figures = {"imports_mb": round(imported / 1e6), "peak_mb": round(peak / 1e6)}
    print(json.dumps({"outcome": outcome, **figures, "cpu_s": round(cpu, 2)}))


def _load_model() -> Callable[[str], object]:
    """Return what reads a model file, after it has imported its libraries."""
    import skops.io  # noqa: F401

    import lemll

    return lemll.load


def own_peak() -> int:
    """Return the peak memory of this process in bytes, without that of the one it was forked from.

    `resource` takes over the peak of the parent, which may just have made a bomb.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main(sys.argv[1:])
