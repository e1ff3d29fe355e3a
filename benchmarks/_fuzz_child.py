"""Run as a program: read damaged files one after the other, and report each by a letter.

R: read; F: refused by an exception of lemll; U: a model that was loaded, but cannot predict; E:
another exception; O: a file was opened, or a program started; H: read or refused, but after more
than two seconds of CPU time. The process that started this one sees when it dies.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks._fuzz_models import Opened, mutate_model, use_model
from benchmarks._fuzz_mutate import mutate
from benchmarks._fuzz_run import own_peak
from benchmarks._fuzz_seeds import Seed, seeds

_SLOW_SECONDS = 2.0
_MAX_SECONDS = 20  # then the process ends itself by SIGALRM
_MAX_BYTES = 8 * 2**30


def main(arguments: list[str]) -> None:
    """Read ``format seed first last seconds folder output``."""
    name, seed, first, last, seconds, folder, output = arguments
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    from lemll.exceptions import LemllError

    report = os.dup(1)
    chosen = seeds(name)
    opened = Opened(Path(folder))
    if name == "model":
        _try_seeds(chosen, Path(folder))
    gc.freeze()  # a fork then copies less
    imported = own_peak()
    end = time.monotonic() + float(seconds)
    for number in range(int(first), int(last)):
        if time.monotonic() > end:
            break
        chance = random.Random(f"{name} {seed} {number}")
        start = chance.choice(chosen)
        path = Path(folder) / f"input{start.suffix}"
        path.write_bytes((mutate_model if name == "model" else mutate)(start, chance))
        read = _reader(name, start.suffix)
        signal.alarm(_MAX_SECONDS)
        before = _cpu_seconds()
        opened.on, opened.deeds = name == "model", []
        try:
            letter = "R" if read(path, **start.options) is not False else "U"
        except LemllError:
            letter = "F"
        except Exception as error:  # what escapes is what is looked for
            letter = "E"
            with (Path(output) / f"fuzz-{name}-escapes.txt").open("a") as log:
                log.write(f"{number} {type(error).__name__}: {str(error)[:200]!r}\n")
        opened.on = False
        if opened.deeds:
            letter = "O"
            with (Path(output) / f"fuzz-{name}-escapes.txt").open("a") as log:
                log.write(f"{number} {opened.deeds[:3]}\n")
        slow = _cpu_seconds() - before > _SLOW_SECONDS
        if letter in "EO" or slow:
            kept = Path(output) / f"fuzz-{name}-{seed}-{number}{start.suffix}"
            kept.write_bytes(path.read_bytes())
        os.write(report, ("H" if slow else letter).encode())
    signal.alarm(0)
    peak = max(own_peak(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
    os.write(report, b"\n" + json.dumps({"peak": peak, "imported": imported}).encode())


def _reader(name: str, suffix: str) -> Any:
    from lemll.datasets import read_dataset
    from lemll.datasets._columns import read_label_xml

    if name == "model":
        return use_model
    return read_label_xml if ".xml" in suffix else read_dataset


def _try_seeds(chosen: list[Seed], folder: Path) -> None:
    """Predict with every model as it is, so that all libraries are imported."""
    for start in chosen:
        path = folder / f"input{start.suffix}"
        path.write_bytes(start.data)
        if not use_model(path, **start.options):
            sys.exit("a model that was not changed cannot predict")


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main(sys.argv[1:])
