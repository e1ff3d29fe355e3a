"""Damaged files of every format, read by the public readers: nothing may escape, hang or die.

Model files (format "model") are changed inside, with valid checksums, and those that are loaded
predict. No file may be opened, and no index may lie outside of its array.

Options: ``--seconds`` and ``--executions`` per format (whichever ends first), ``--formats``
(separated by commas), ``--seed``, ``--src`` (another source tree to attack). The same seed damages
in the same way; the bytes that did harm are kept in the folder ``output``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks._fuzz_run import source_environment
from benchmarks._fuzz_seeds import FORMATS
from benchmarks._measure import OUTPUT, write_json

_SIGALRM = -14
_FAULTS = ("escaped", "opened", "hung", "died")


def main(options: list[str]) -> int:
    """Attack, print a table and keep it; return 1 if anything escaped, hung or died."""
    parser = argparse.ArgumentParser("python -m benchmarks fuzz")
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--executions", type=int, default=None)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--src", type=Path, default=None)
    asked = parser.parse_args(options)
    unknown = set(asked.formats.split(",")) - set(FORMATS)
    if unknown:
        parser.error(f"no such format: {', '.join(sorted(unknown))}; known: {', '.join(FORMATS)}")
    if asked.seconds is None:
        asked.seconds = 10.0 if asked.executions is None else 10.0**6
    figures = {name: _attack(name, asked) for name in asked.formats.split(",")}
    words = (
        "executions",
        "read",
        "useless",
        "refused",
        *_FAULTS,
        "imports_mb",
        "peak_mb",
        "seconds",
    )
    print(" " * 10 + "".join(f"{word:>11}" for word in words))
    for name, one in figures.items():
        print(f"{name:10}" + "".join(f"{one[word]:>11}" for word in words))
        for line in one["first_escapes"]:
            print(f"    escaped: {line}")
    write_json("fuzz", figures)
    return int(any(one[fault] for one in figures.values() for fault in _FAULTS))


def _attack(name: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Start children until the executions or the seconds are over; a death costs one execution."""
    OUTPUT.mkdir(exist_ok=True)
    log = OUTPUT / f"fuzz-{name}-escapes.txt"
    log.unlink(missing_ok=True)
    letters: Counter[str] = Counter()
    last = asked.executions or 10**9
    start, done, peak, imported = time.monotonic(), 0, 0, 0
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        while done < last and (left := asked.seconds - (time.monotonic() - start)) > 0:
            command = [sys.executable, "-m", "benchmarks._fuzz_child", name, str(asked.seed)]
            command += [str(done), str(last), str(left), folder, str(OUTPUT)]
            finished = subprocess.run(
                command, stdout=subprocess.PIPE, env=source_environment(asked.src), check=False
            )
            report, _, end = finished.stdout.partition(b"\n")
            letters.update(report.decode())
            done += len(report)
            if end:
                peak = max(peak, json.loads(end)["peak"])
                imported = max(imported, json.loads(end)["imported"])
                continue
            if not report and finished.returncode == 1:
                sys.exit(f"the child could not start: {' '.join(command)}")
            letters["H" if finished.returncode == _SIGALRM else "D"] += 1
            for culprit in Path(folder).iterdir():
                shutil.copy(culprit, OUTPUT / f"fuzz-{name}-{asked.seed}-{done}{culprit.suffix}")
                culprit.unlink()
            done += 1
    names = {"R": "read", "U": "useless", "F": "refused", "E": "escaped", "O": "opened"}
    names |= {"H": "hung", "D": "died"}
    return {
        "executions": done,
        **{word: letters[letter] for letter, word in names.items()},
        "first_escapes": log.read_text().splitlines()[:5] if log.exists() else [],
        "imports_mb": round(imported / 1e6),
        "peak_mb": round(peak / 1e6),
        "seconds": round(time.monotonic() - start),
    }
