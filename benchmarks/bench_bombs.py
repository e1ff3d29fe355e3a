"""Small files that ask for much: how much memory and time each takes until it is refused.

Data sets are read by the library, tables by ``lemll info``, ``fit`` and ``predict``.

Options: ``--only`` (names, separated by commas), ``--src`` (another source tree to measure),
``--seconds`` (when to stop a file).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._fuzz_bombs import BOMBS, TABLES
from benchmarks._fuzz_run import measure
from benchmarks._measure import write_json

_MAX_MB = 1000
_MAX_SECONDS = 5
_FIT = ["fit", "--tags", "y", "--learner", "BinaryRelevance"]


def main(options: list[str]) -> int:
    """Make each, read it in a fresh process, print and keep; return 1 if one took too much."""
    parser = argparse.ArgumentParser("python -m benchmarks bombs")
    known = [*BOMBS, *(name for name in TABLES if name not in BOMBS)]
    parser.add_argument("--only", default=",".join(known))
    parser.add_argument("--src", type=Path, default=None)
    parser.add_argument("--seconds", type=float, default=120)
    asked = parser.parse_args(options)
    chosen = asked.only.split(",")
    unknown = set(chosen) - set(known)
    if unknown:
        parser.error(f"no such bomb: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    figures = {}
    print(f"{'file':22}{'bytes':>9}  {'by':8}{'peak MB':>8}{'CPU s':>7}  outcome")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.lemll"
        _fit_model(model, asked.src)
        for name in chosen:
            path = Path(folder) / name
            make, read_options = BOMBS[name] if name in BOMBS else (TABLES[name], {})
            make(path)
            size = path.stat().st_size
            for way, command in _ways(name, path, model).items():
                one = measure(path, read_options, asked.src, command=command, seconds=asked.seconds)
                figures[f"{name} {way}"] = {"bytes": size, **one}
                print(f"{name:22}{size:9}  {way:8}{one['peak_mb']!s:>8}{one['cpu_s']!s:>7}  "
                      f"{one['outcome']}", flush=True)  # fmt: skip
            path.unlink()
    write_json("bombs", figures)
    return int(not all(_is_harmless(one) for one in figures.values()))


def _ways(name: str, path: Path, model: Path) -> dict[str, list[str]]:
    """Return the commands that read a file; the library itself is an empty one."""
    output = str(path.with_suffix(".out.csv"))
    commands = {
        "info": ["info", str(path)],
        "fit": [*_FIT, str(path), "-m", str(path.with_suffix(".lemll"))],
        "predict": ["predict", str(model), str(path), "-o", output],
    }
    return ({"library": []} if name in BOMBS else {}) | (commands if name in TABLES else {})


def _fit_model(path: Path, source: Path | None) -> None:
    table = path.with_suffix(".csv")
    rows = "".join(f"{i * i % 23},{'ab'[i % 2]}\n" for i in range(60))
    table.write_text(f"x,y\n{rows}", encoding="utf-8")
    found = measure(table, {}, source, command=[*_FIT, str(table), "-m", str(path)])
    if found["outcome"] != "read":
        raise RuntimeError(f"no model was made: {found['outcome']}")


def _is_harmless(one: dict[str, Any]) -> bool:
    """Tell whether a file was refused, or read after all, without taking much."""
    if not one["outcome"].startswith(("refused", "read")):
        return False
    return bool(one["peak_mb"] < _MAX_MB and one["cpu_s"] < _MAX_SECONDS)
