"""Small files that ask for much: how much memory and time each takes until it is refused.

Options: ``--only`` (names, separated by commas), ``--src`` (another source tree to measure).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._fuzz_bombs import BOMBS
from benchmarks._fuzz_run import measure
from benchmarks._measure import write_json

_MAX_MB = 1000
_MAX_SECONDS = 5


def main(options: list[str]) -> int:
    """Make each, read it in a fresh process, print and keep; return 1 if one took too much."""
    parser = argparse.ArgumentParser("python -m benchmarks bombs")
    parser.add_argument("--only", default=",".join(BOMBS))
    parser.add_argument("--src", type=Path, default=None)
    asked = parser.parse_args(options)
    chosen = asked.only.split(",")
    unknown = set(chosen) - set(BOMBS)
    if unknown:
        parser.error(f"no such bomb: {', '.join(sorted(unknown))}; known: {', '.join(BOMBS)}")
    figures = {}
    print(f"{'file':24}{'bytes':>9}{'peak MB':>9}{'CPU s':>8}  outcome")
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            make, read_options = BOMBS[name]
            path = Path(folder) / name
            make(path)
            size = path.stat().st_size
            one = measure(path, read_options, asked.src)
            path.unlink()
            figures[name] = {"bytes": size, **one}
            print(f"{name:24}{size:9}{one['peak_mb']!s:>9}{one['cpu_s']!s:>8}  {one['outcome']}",
                  flush=True)  # fmt: skip
    write_json("bombs", figures)
    return int(not all(_is_harmless(one) for one in figures.values()))


def _is_harmless(one: dict[str, Any]) -> bool:
    """Tell whether a file was refused, or read after all, without taking much."""
    if not one["outcome"].startswith(("refused", "read")):
        return False
    return bool(one["peak_mb"] < _MAX_MB and one["cpu_s"] < _MAX_SECONDS)
