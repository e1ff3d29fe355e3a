"""Fit on a cluster whose scheduler is lost, and print the error. Run as a script by test_lemll.

A process of its own, because a client without a scheduler leaves threads behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dask.array as da
import distributed

from lemll import dask as team
from lemll.dask import LEMLL
from lemll.datasets import load_digit_tags
from lemll.exceptions import LemllError


def start(command: str, file: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a scheduler or a worker on the loopback interface."""
    arguments = ["--scheduler-file", str(file), "--no-dashboard", *options]
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{command}",
            "--host",
            "127.0.0.1",
            *arguments,
        ],
        stderr=subprocess.DEVNULL,
    )


def lose(moment: str, scheduler: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send the signal when blocks are built, called, or asked for their numerical labels."""
    name, after = {"build": ("_build", 1), "call": ("call", 4), "labels": ("wait", 1)}[moment]
    whole = getattr(team.ActorTeam, name)
    calls = []

    def then(self: team.ActorTeam, *arguments: object, **options: object) -> object:
        calls.append(name)
        if len(calls) == after:
            scheduler.send_signal(number)
        return whole(self, *arguments, **options)

    setattr(team.ActorTeam, name, then)


def main(folder: Path, moment: str, number: signal.Signals) -> None:
    """Print the error of the fit."""
    team.POLL_SECONDS, team.SCHEDULER_SECONDS = 0.2, 3.0
    file = folder / "scheduler.json"
    processes = [start("scheduler", file, "--port", "0")]
    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    processes += [start("worker", file, "--nthreads", "1", "--no-nanny") for _ in range(2)]
    try:
        client = distributed.Client(scheduler_file=str(file))
        client.wait_for_workers(2, timeout=60)
        lose(moment, processes[0], number)
        digits = load_digit_tags()
        blocks = (da.from_array(part[:300], chunks=(150, -1)) for part in (digits.X, digits.Y))
        try:
            LEMLL(client=client, tol=1e-10).fit(*blocks)
        except LemllError as error:
            sys.stdout.write(f"{error}\n")
            sys.stdout.flush()
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
        # A client without a scheduler would wait for it before the process ends.
        os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], signal.Signals[sys.argv[3]])
