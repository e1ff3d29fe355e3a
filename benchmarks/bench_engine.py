"""The experiment engine: kills survived, overhead, memory, and how fast a store opens.

The methods are those of the engine's tests: they sleep, or take the means of classes. So all that
is measured is the engine's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._measure import write_json

HELPERS = Path(__file__).parents[1] / "tests" / "experiments" / "helpers"
sys.path.insert(0, str(HELPERS))

from engine_methods import make_protocol  # noqa: E402

from lemll.lab.runner import Progress, run  # noqa: E402
from lemll.lab.store import Store  # noqa: E402

KILLS, KILLS_WITH_WORKERS = 200, 10
CELLS = 10_000
ONE_SECOND_CELLS = 40


def kills(folder: Path, number: int, workers: int) -> dict[str, int]:
    """Kill runners at random moments; the script asserts what must hold after each."""
    folder.mkdir()
    command = [sys.executable, str(HELPERS / "kill_runs.py"), str(folder), str(number), "1"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    start = time.perf_counter()
    ended = subprocess.run(
        [*command, str(workers)], capture_output=True, text=True, check=True, env=environment
    )
    counts: dict[str, int] = json.loads(ended.stdout)
    print(
        f"{counts['kills']} kills of runs of {counts['cells']} cells, {workers or 'no'} worker "
        f"processes: nothing lost, nothing finished ran twice, tables identical; "
        f"{counts['lost_executions']} unfinished executions repeated; "
        f"{time.perf_counter() - start:.0f} s",
        flush=True,
    )
    return counts


def overhead(folder: Path, n_jobs: int) -> dict[str, float]:
    """Run cells that sleep one second; from the first result on, for workers must start once."""
    moments: list[float] = []

    def watch(progress: Progress) -> None:
        if not moments or progress.last is not None:
            moments.append(time.perf_counter())

    run(
        make_protocol(ONE_SECOND_CELLS // 2, seconds=1.0),
        Store(folder),
        n_jobs=n_jobs,
        callback=watch,
    )
    started, *rest = moments
    steady = rest[-1] - rest[n_jobs - 1]
    ideal = (ONE_SECOND_CELLS - n_jobs) / n_jobs
    figures = {
        "n_jobs": n_jobs,
        "overhead": steady / ideal - 1,
        "start_s": rest[0] - started - 1,
        "overhead_with_start": (rest[-1] - started) / (ONE_SECOND_CELLS / n_jobs) - 1,
    }
    print(
        f"{ONE_SECOND_CELLS} one-second cells, {n_jobs} at a time: overhead "
        f"{100 * figures['overhead']:.1f} %; starting the workers took {figures['start_s']:.1f} s, "
        f"with which it is {100 * figures['overhead_with_start']:.1f} %",
        flush=True,
    )
    return figures


def resident_bytes() -> int:
    """Return this process's memory in use."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def many_cells(folder: Path) -> dict[str, Any]:
    """Run ten thousand cells in this process, watch its memory, then open the store."""
    protocol, store = make_protocol(CELLS // 2), Store(folder)
    memory: dict[int, int] = {}

    def watch(progress: Progress) -> None:
        if progress.ended % 1000 == 0:
            memory[progress.ended] = resident_bytes()

    start = time.perf_counter()
    run(protocol, store, backend="sequential", callback=watch)
    seconds = time.perf_counter() - start
    cells = list(protocol.cells())
    openings = []
    for _ in range(5):
        start = time.perf_counter()
        overview = store.overview(cells)
        openings.append(time.perf_counter() - start)
    if overview.count("done") != CELLS:
        raise RuntimeError(f"{overview.count('done')} of {CELLS} cells are done")
    growth = memory[CELLS] - memory[1000]
    print(
        f"{CELLS} cells: {1e3 * seconds / CELLS:.1f} ms a cell; memory "
        f"{memory[1000] / 2**20:.0f} MiB after 1000, {growth / 2**20:+.1f} MiB by the end; the "
        f"store opens in {min(openings):.2f} s",
        flush=True,
    )
    return {
        "cells": CELLS,
        "seconds": seconds,
        "resident_bytes": memory,
        "growth_bytes": growth,
        "open_s": min(openings),
    }


def main() -> None:
    """Measure, print, and keep the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = {
            "overhead": [overhead(folder / f"overhead{jobs}", jobs) for jobs in (1, 2)],
            "many_cells": many_cells(folder / "many"),
            "kills": kills(folder / "kills", KILLS, 0),
            "kills_with_workers": kills(folder / "workers", KILLS_WITH_WORKERS, 2),
        }
    write_json("engine", figures)


if __name__ == "__main__":
    main()
