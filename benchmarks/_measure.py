"""Measuring in fresh processes: neither side warms the other's caches or hides its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).parent / "output"

_WRAPPER = """
import json, resource, sys, time
{setup}
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
start, cpu = time.perf_counter(), time.process_time()
{code}
seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
figures = dict(seconds=seconds, cpu=cpu_seconds, bytes=peak() - before, peak=peak())
print(json.dumps(figures | dict(result=result)))
"""


def data_dir() -> Path:
    """Return the folder of the real data sets, or end with a message."""
    folder = Path(os.environ.get("LEMLL_DATA_DIR", ""))
    if not os.environ.get("LEMLL_DATA_DIR") or not folder.is_dir():
        sys.exit("this benchmark needs the real data sets: set LEMLL_DATA_DIR to their folder")
    return folder


def run(setup: str, code: str, *, threads: int = 1) -> dict[str, Any]:
    """Time `code` (which must set `result`) after `setup`, in a fresh process.

    "bytes" is the peak memory above that of `setup`, "peak" that of the whole process.
    """
    environment = os.environ | {
        name: str(threads)
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    }
    finished = subprocess.run(
        [sys.executable, "-c", _WRAPPER.format(setup=setup, code=code)],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    measured: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return measured


def best(setup: str, code: str, *, repeats: int = 5, threads: int = 1) -> dict[str, Any]:
    """Return the run with the least CPU time: noise only ever adds."""
    runs = [run(setup, code, threads=threads) for _ in range(repeats)]
    return min(runs, key=lambda measured: measured["cpu"])


def side_python(name: str, variable: str, requirements: Sequence[str]) -> str:
    """Return the interpreter of an environment for other libraries; make it if there is none.

    `variable` is that of the process's environment which names one that exists.
    """
    given = os.environ.get(variable)
    if given:
        return given
    folder = OUTPUT / name
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"making an environment for {name}, which takes some minutes", flush=True)
        OUTPUT.mkdir(exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *requirements], check=True)
    return str(python)


def write_json(name: str, content: Any) -> None:
    """Keep the figures of a benchmark."""
    OUTPUT.mkdir(exist_ok=True)
    path = OUTPUT / f"{name}.json"
    path.write_text(json.dumps(content, indent=2) + "\n")
    print(f"wrote {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
