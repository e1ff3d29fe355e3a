"""Small files that ask for much: how much memory and time each takes until it is refused.

Data sets and model files are read by the library, tables by ``lemll info``, ``fit`` and
``predict``. Model files were made to do harm, by what they expand to or by what they hold.

Options: ``--only`` (names or suffixes, separated by commas), ``--src`` (another source tree to
measure), ``--seconds`` (when to stop a file).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._fuzz_bombs import BOMBS, TABLES, Bomb
from benchmarks._fuzz_models import crafted
from benchmarks._fuzz_run import measure
from benchmarks._measure import write_json

_MAX_MB = 1000
# Above the memory of the imports.
_MAX_MB_OF_MODELS = 200
_MAX_SECONDS = 5
_FIT = ["fit", "--tags", "y", "--learner", "BinaryRelevance"]


def main(options: list[str]) -> int:
    """Make each, read it in a fresh process, print and keep; return 1 if one took too much."""
    parser = argparse.ArgumentParser("python -m benchmarks bombs")
    bombs: dict[str, Bomb] = {
        **{name: (make, {}) for name, make in (TABLES | crafted()).items()},
        **BOMBS,
    }
    parser.add_argument("--only", default=",".join(bombs))
    parser.add_argument("--src", type=Path, default=None)
    parser.add_argument("--seconds", type=float, default=120)
    asked = parser.parse_args(options)
    wanted = tuple(asked.only.split(","))
    chosen = [name for name in bombs if name.endswith(wanted)]
    if not chosen:
        parser.error(f"no such bomb: {asked.only}; known: {', '.join(bombs)}")
    figures = {}
    header = f"{'file':34}{'bytes':>10}  {'by':8}{'imports MB':>11}{'peak MB':>8}{'CPU s':>7}"
    print(f"{header}  outcome")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.lemll"
        _fit_model(model, asked.src)
        for name in chosen:
            make, read_options = bombs[name]
            path = Path(folder) / name
            make(path)
            size = path.stat().st_size
            for way, command in _ways(name, path, model).items():
                one = measure(path, read_options, asked.src, command=command, seconds=asked.seconds)
                figures[f"{name} {way}"] = {"bytes": size, **one}
                print(f"{name:34}{size:10}  {way:8}{one['imports_mb']!s:>11}{one['peak_mb']!s:>8}"
                      f"{one['cpu_s']!s:>7}  {one['outcome']}", flush=True)  # fmt: skip
            path.unlink()
    write_json("bombs", figures)
    return int(not all(_is_harmless(key.split()[0], one) for key, one in figures.items()))


def _ways(name: str, path: Path, model: Path) -> dict[str, list[str]]:
    """Return the commands that read a file; the library itself is an empty one."""
    output = str(path.with_suffix(".out.csv"))
    commands = {
        "info": ["info", str(path)],
        "fit": [*_FIT, str(path), "-m", str(path.with_suffix(".lemll"))],
        "predict": ["predict", str(model), str(path), "-o", output],
    }
    only_a_table = name in TABLES and name not in BOMBS
    return ({} if only_a_table else {"library": []}) | (commands if name in TABLES else {})


def _fit_model(path: Path, source: Path | None) -> None:
    table = path.with_suffix(".csv")
    rows = "".join(f"{i * i % 23},{'ab'[i % 2]}\n" for i in range(60))
    table.write_text(f"x,y\n{rows}", encoding="utf-8")
    found = measure(table, {}, source, command=[*_FIT, str(table), "-m", str(path)])
    if found["outcome"] != "read":
        raise RuntimeError(f"no model was made: {found['outcome']}")


def _is_harmless(name: str, one: dict[str, Any]) -> bool:
    """Tell whether a file was refused, or read after all, without taking much."""
    if not one["outcome"].startswith(("refused", "read")):
        return False
    if name.endswith(".lemll") and (
        one["outcome"] == "read" or one["peak_mb"] - one["imports_mb"] > _MAX_MB_OF_MODELS
    ):
        return False
    return bool(one["peak_mb"] < _MAX_MB and one["cpu_s"] < _MAX_SECONDS)
