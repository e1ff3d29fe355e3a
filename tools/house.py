"""Count what makes the house easy or hard to enter: ``python tools/house.py [src/lemll]``.

`tests/test_house.py` keeps the limits below. Raising one is a change of its own, with its reason in
the commit.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

OUTSIDE = ("rivals", "lab")
# Rooms of one file.
DOORS = ("dask", "model_selection", "plots")
# The largest allowed value of each figure.
LIMITS: dict[str, float] = {
    "code lines of src": 32_300,
    "code lines of the product": 21_200,
    "files of src": 174,
    "imports and __all__, per cent of code": 10.5,
    "public names of the product": 160,
    "commands of the product": 11,
    "options of the product": 110,
    "parameters of LEMLL": 15,
    "parameters of LEMLLCV": 15,
    "parameters of MSVRCV": 15,
    "modules on the way of LEMLL().fit": 13,
    "modules on the way of TagPredictor().fit": 30,
    "modules on the way of lemll fit": 50,
    "modules on the way of lemll audit": 42,
    "files that name MLkNN": 8,
    "Any in src": 220,
    "code lines of tests": 24_370,
}
_WALK = """
import os, sys, tempfile, threading, warnings
import numpy as np
import lemll
what = sys.argv[1]
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4))
Y = (X[:, :3] > 0).astype(int)
seen = set()
def note(frame, event, argument):
    name = frame.f_globals.get("__name__", "")
    if event == "call" and name.startswith("lemll.") and frame.f_code.co_name != "<module>":
        seen.add(name)
if what in ("LEMLL", "TagPredictor"):
    import lemll.predictors
    work = lambda: getattr(lemll, what)().fit(X, Y)
else:
    import pandas
    from lemll.cli.app import app
    os.chdir(tempfile.mkdtemp())
    words = [f"a photo of sea and sky {i}" for i in range(60)]
    table = {"a": X[:, 0], "b": X[:, 1], "text": words, "s": Y[:, 0], "t": Y[:, 1]}
    pandas.DataFrame(table).to_csv("t.csv", index=False)
    extra = ["-m", "m.lemll"] if what == "fit" else []
    work = lambda: app([what, "t.csv", "--labels", "s,t", *extra], standalone_mode=False)
work()  # what is imported on the way is not called by it
sys.setprofile(note)
threading.setprofile(note)
work()
sys.setprofile(None)
print("modules:", len(seen), *sorted(seen))
"""


def code_lines(text: str) -> tuple[set[int], set[int]]:
    """Return the lines with code, and those of them that are imports or ``__all__``."""
    tree = ast.parse(text)
    prose: set[int] = set()
    imports: set[int] = set()
    for node in ast.walk(tree):
        lines = range(getattr(node, "lineno", 0), (getattr(node, "end_lineno", 0) or 0) + 1)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            prose |= set(lines) if isinstance(node.value.value, str) else set()
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ):
            imports |= set(lines)
    code = {
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#") and number not in prose
    }
    return code, code & imports


def _texts(paths: Iterable[Path]) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(paths)}


def promised(text: str) -> list[str]:
    """Return the names in ``__all__``."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def walk(root: Path, what: str) -> list[str]:
    """Return the modules that are called on the way of a fit or a command."""
    printed = subprocess.run(
        [sys.executable, "-c", _WALK, what],
        env={"PYTHONPATH": str(root.parent.resolve()), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return printed.rpartition("modules:")[2].split()[1:]


def commands() -> dict[str, int]:
    """Return how many options and arguments each command of the product has."""
    import importlib

    from lemll.cli.app import COMMANDS

    found = {}
    for name, (place, _) in COMMANDS.items():
        module, _, attribute = place.partition(":")
        command: Any = getattr(importlib.import_module(module), attribute)
        if callable(command) and not module.startswith("lemll.lab"):
            found[name] = len(inspect.signature(command).parameters)
    return found


def survey(root: Path) -> dict[str, float]:
    """Return all figures but the walks."""
    import lemll

    texts = _texts(root.rglob("*.py"))
    lines = {path: code_lines(text) for path, text in texts.items()}
    product = [p for p in texts if p.relative_to(root).parts[0] not in OUTSIDE]
    total = sum(len(code) for code, _ in lines.values())
    doors = [p for p in product if p.name == "__init__.py" or p.stem in DOORS]
    names = [name for p in doors if p.parent.name != "cli" for name in promised(texts[p])]
    options = commands()
    tests = _texts((root.parents[1] / "tests").rglob("*.py"))
    return {
        "code lines of src": total,
        "code lines of the product": sum(len(lines[p][0]) for p in product),
        "files of src": len(texts),
        "imports and __all__, per cent of code": round(
            100 * sum(len(imports) for _, imports in lines.values()) / total, 1
        ),
        "public names of the product": len(names),
        "commands of the product": len(options),
        "options of the product": sum(options.values()),
        **{
            f"parameters of {name}": len(inspect.signature(getattr(lemll, name)).parameters)
            for name in ("LEMLL", "LEMLLCV", "MSVRCV")
        },
        "files that name MLkNN": sum("MLkNN" in text for text in texts.values()),
        "Any in src": sum(
            isinstance(node, ast.Name) and node.id == "Any"
            for text in texts.values()
            for node in ast.walk(ast.parse(text))
        ),
        "code lines of tests": sum(len(code_lines(text)[0]) for text in tests.values()),
    }


def walks(root: Path) -> dict[str, float]:
    """Return the lengths of the four walks."""
    return {
        f"modules on the way of {title}": len(walk(root, what))
        for title, what in (
            ("LEMLL().fit", "LEMLL"),
            ("TagPredictor().fit", "TagPredictor"),
            ("lemll fit", "fit"),
            ("lemll audit", "audit"),
        )
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "src/lemll")
    for title, figure in {**survey(folder), **walks(folder)}.items():
        sys.stdout.write(f"{title}: {figure:g} (at most {LIMITS[title]:g})\n")
