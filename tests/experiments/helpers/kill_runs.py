"""Kills runners at random moments and checks what they leave: ``kill_runs.py FOLDER KILLS SEED``.

The modules are imported once; every runner is a fork of this process, so a launch costs
milliseconds. With a fourth argument, the number of worker processes, runners have workers, and
are killed together with them. Prints what was counted, as JSON; an invariant that does not hold
ends it with an AssertionError.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from engine_methods import LOG, expected_token, make_protocol

from lemll.lab.protocol import Protocol
from lemll.lab.runner import run
from lemll.lab.store import Store
from lemll.lab.tables import ComparisonTable


def launch(protocol: Protocol, folder: Path, workers: int) -> int:
    """Start a runner in a process group of its own and return its id."""
    child = os.fork()
    if child:
        os.setpgid(child, child)  # here too: the first kill may come before the child does it
        return child
    os.setpgid(0, 0)
    backend = {"backend": "sequential"} if workers == 0 else {"n_jobs": workers}
    run(protocol, Store(folder), **backend)
    os._exit(0)


def wait_or_kill(child: int, seconds: float) -> bool:
    """Kill the child's whole group after some time, and tell whether that ended it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0
            return False
        time.sleep(0.001)
    os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return time and content of every record."""
    return {
        path.stem: (path.stat().st_mtime_ns, path.read_bytes())
        for path in (folder / "cells").glob("*.json")
    }


def executions(log: Path) -> list[str]:
    return log.read_text(encoding="ascii").split() if log.exists() else []


def table(protocol: Protocol, folder: Path) -> str:
    return "".join(
        getattr(ComparisonTable.from_store(protocol, Store(folder)), f"to_{form}")()
        for form in ("markdown", "latex", "csv")
    )


def kill_until_done(
    protocol: Protocol, folder: Path, moments: Any, kills: int, workers: int
) -> tuple[int, int]:
    """Kill runners on one store until a run ends by itself; count kills and executions."""
    log = folder.with_suffix(".log")
    os.environ[LOG] = str(log)
    tokens = {cell.id: expected_token(cell) for cell in protocol.cells()}
    killed = 0
    while True:
        before = snapshot(folder)
        seen = len(executions(log))
        patience = moments() if killed < kills else 600
        if not wait_or_kill(launch(protocol, folder, workers), patience):
            break
        killed += 1
        after = snapshot(folder)
        for cell_id, content in before.items():
            assert after[cell_id] == content, "a finished cell was written again"
        finished = {tokens[cell_id] for cell_id in before}
        assert not finished & set(executions(log)[seen:]), "a finished cell ran twice"
    records = [record for record in Store(folder).records() if record.status == "done"]
    assert {record.id for record in records} == tokens.keys(), "a cell was lost"
    assert not list((folder / "cells").glob("*.tmp"))
    runs = Counter(executions(log))
    assert runs.keys() == set(tokens.values())
    at_a_time = max(workers, 1)
    # What is dispatched but not yet stored is lost with a kill, and nothing else.
    assert runs.total() <= len(tokens) + killed * 2 * at_a_time
    return killed, runs.total() - len(tokens)


def main() -> None:
    base, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    workers = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    longest = 0.25 if workers == 0 else 8.0
    draw = random.Random(seed)
    protocol = make_protocol(24, seconds=0.002 if workers == 0 else 0.05)
    cells = sum(1 for _ in protocol.cells())
    os.environ[LOG] = os.devnull
    reference = base / "reference"
    assert not wait_or_kill(launch(protocol, reference, 0), 600)
    expected = table(protocol, reference)
    counts = {"cells": cells, "kills": 0, "rounds": 0, "lost_executions": 0}
    while counts["kills"] < kills:
        folder = base / f"round{counts['rounds']}"
        killed, lost = kill_until_done(
            protocol, folder, lambda: draw.uniform(0, longest), kills - counts["kills"], workers
        )
        assert table(protocol, folder) == expected, "the table is another one"
        counts["kills"] += killed
        counts["lost_executions"] += lost
        counts["rounds"] += 1
    print(json.dumps(counts))  # noqa: T201


if __name__ == "__main__":
    main()
