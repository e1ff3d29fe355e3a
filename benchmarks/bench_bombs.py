"""Small files that ask for much: how much memory and time each takes until it is refused.

Model files were made to do harm, by what they expand to or by what they hold.

Options: ``--only`` (names or suffixes, separated by commas), ``--src`` (another source tree to
measure).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._fuzz_bombs import BOMBS, Bomb
from benchmarks._fuzz_models import crafted
from benchmarks._fuzz_run import measure
from benchmarks._measure import write_json

_MAX_MB = 1000
# Above the memory of the imports.
_MAX_MB_OF_MODELS = 200
_MAX_SECONDS = 5


def main(options: list[str]) -> int:
    """Make each, read it in a fresh process, print and keep; return 1 if one took too much."""
    parser = argparse.ArgumentParser("python -m benchmarks bombs")
    bombs: dict[str, Bomb] = BOMBS | {name: (make, {}) for name, make in crafted().items()}
    parser.add_argument("--only", default=",".join(bombs))
    parser.add_argument("--src", type=Path, default=None)
    asked = parser.parse_args(options)
    wanted = tuple(asked.only.split(","))
    chosen = [name for name in bombs if name.endswith(wanted)]
    if not chosen:
        parser.error(f"no such bomb: {asked.only}; known: {', '.join(bombs)}")
    figures = {}
    print(f"{'file':34}{'bytes':>12}{'imports MB':>11}{'peak MB':>9}{'CPU s':>8}  outcome")
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            make, read_options = bombs[name]
            path = Path(folder) / name
            make(path)
            size = path.stat().st_size
            one = measure(path, read_options, asked.src)
            path.unlink()
            figures[name] = {"bytes": size, **one}
            print(f"{name:34}{size:12}{one['imports_mb']!s:>11}{one['peak_mb']!s:>9}"
                  f"{one['cpu_s']!s:>8}  {one['outcome']}", flush=True)  # fmt: skip
    write_json("bombs", figures)
    return int(not all(_is_harmless(name, one) for name, one in figures.items()))


def _is_harmless(name: str, one: dict[str, Any]) -> bool:
    """Tell whether a file was refused, or read after all, without taking much."""
    if not one["outcome"].startswith(("refused", "read")):
        return False
    if name.endswith(".lemll") and (
        one["outcome"] == "read" or one["peak_mb"] - one["imports_mb"] > _MAX_MB_OF_MODELS
    ):
        return False
    return bool(one["peak_mb"] < _MAX_MB and one["cpu_s"] < _MAX_SECONDS)
