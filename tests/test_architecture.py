"""The rules of the house, checked by reading the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support import in_process

import lemll

ROOT = Path(lemll.__file__).parent

# A room may import the rooms listed for it, itself, and the ground floor.
GROUND = {"__init__", "_files", "_labels", "_sparse", "_types", "_validation", "exceptions"}
FIT = {"fitting", "solvers", "topology"}
LEARN = {*FIT, "enhancers", "predictors", "metrics", "model_selection"}
PRODUCT = {*LEARN, "audit", "datasets", "models", "report", "tables"}
ALLOWED: dict[str, set[str]] = {
    "tables": set(),
    "metrics": set(),
    "model_selection": set(),
    "plots": {"audit", "metrics"},
    "datasets": {"tables"},
    "topology": set(),
    "solvers": {"topology"},
    "fitting": {"solvers", "topology"},
    "enhancers": FIT,
    "predictors": LEARN,
    "audit": LEARN,
    "models": {*LEARN, "tables"},
    "report": {"audit", "metrics", "models", "tables"},
    "dask": FIT,
    "cli": PRODUCT,
    "__main__": {"cli"},
    # The outer rings: methods of others, and the laboratory.
    "rivals": LEARN,
    "lab": {*PRODUCT, "cli", "rivals"},
}
# Their modules may import modules of the product; all others meet at the doors.
RINGS = {"cli", "fitting", "lab", "report", "rivals"}
# Rooms without a door: what they hold is no interface for users.
CELLARS = {"fitting", "report"}


def imported_modules(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
    return modules


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_imports_point_one_way():
    checked = 0
    for path in ROOT.rglob("*.py"):
        room = room_of(path)
        if room in GROUND:
            continue
        rooms = {
            module.split(".")[1] for module in imported_modules(path) if module.startswith("lemll.")
        }
        assert rooms <= ALLOWED[room] | {room} | GROUND, path
        checked += 1
    assert checked > 20


def test_rooms_meet_at_their_doors():
    """A room imports another by its package, whose `__all__` is what the room promises."""
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    for path in ROOT.rglob("*.py"):
        for module in imported_modules(path):
            parts = module.split(".")
            if parts[0] == "lemll" and len(parts) > 2 and parts[1] in rooms - CELLARS:
                assert room_of(path) in {parts[1], *RINGS}, f"{path} imports {module}"


def test_the_product_imports_neither_rivals_nor_the_laboratory():
    for path in ROOT.rglob("*.py"):
        if room_of(path) not in {"rivals", "lab"}:
            found = {
                m for m in imported_modules(path) if m.startswith(("lemll.rivals", "lemll.lab"))
            }
            assert not found, path


def test_solvers_and_topology_know_no_estimators():
    for path in ROOT.rglob("*.py"):
        if room_of(path) in {"solvers", "topology"}:
            assert "BaseEstimator" not in path.read_text(encoding="utf-8"), path


@pytest.mark.slow
def test_importing_lemll_is_light():
    optional = {"matplotlib", "typer", "rich", "pooch", "pyarrow", "jinja2", "requests"}
    optional |= {"pandas", "skops", "openpyxl"}
    # scikit-learn brings some of them in by itself, where they are installed.
    code = (
        "import sys, scipy.io, scipy.sparse, sklearn.datasets, sklearn.metrics; "
        "before = set(sys.modules); import lemll, lemll.datasets, lemll.metrics; "
        f"print(sorted({optional!r} & (set(sys.modules) - before)))"
    )
    result = in_process(code)
    assert result.stdout.strip() == "[]"


def test_nothing_is_read_by_pickle():
    for path in ROOT.rglob("*.py"):
        assert not imported_modules(path) & {"pickle", "cloudpickle", "dill", "shelve"}, path
        assert "allow_pickle=True" not in path.read_text(encoding="utf-8"), path


@pytest.mark.slow
def test_public_names_and_packages_are_found_when_they_are_used():
    code = (
        "import lemll, sys; assert 'sklearn' not in sys.modules; lemll.metrics.hamming_loss; "
        "lemll.LEMLL; assert 'LEMLL' in dir(lemll); assert not hasattr(lemll, 'nothing')\n"
        "from lemll import *; print(TagPredictor.__name__)"
    )
    ended = in_process(code)
    assert ended.stdout == "TagPredictor\n"


def test_only_the_command_line_names_its_options():
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value[:60]}"
        for path in sorted(ROOT.rglob("*.py"))
        if room_of(path) not in {"cli", "lab"}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.search(r"(?<![-\w])--[a-z]", node.value) and "\n" not in node.value
    ]
    assert not named
