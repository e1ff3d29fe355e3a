"""The rules of the house, checked by reading the code."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import lemll

ROOT = Path(lemll.__file__).parent

# A room may import the rooms listed for it, itself, and the ground floor.
GROUND = {
    "__init__",
    "_budget",
    "_formulas",
    "_labels",
    "_plain_files",
    "_sparse",
    "_types",
    "_validation",
    "_warnings",
    "exceptions",
}
ALLOWED: dict[str, set[str]] = {
    "datasets": {"tables"},
    "metrics": set(),
    "model_selection": set(),
    "topology": set(),
    "objective": {"topology"},
    "solvers": {"objective", "topology"},
    "fitting": {"solvers", "objective", "topology"},
    "enhancers": {"fitting", "solvers", "objective", "topology"},
    "predictors": {
        "fitting",
        "enhancers",
        "solvers",
        "objective",
        "topology",
        "metrics",
        "model_selection",
    },
    "audit": {"predictors", "fitting", "topology", "model_selection"},
    "tables": set(),
    "models": {"tables", "predictors", "topology", "metrics", "model_selection"},
    "experiments": {
        "predictors",
        "enhancers",
        "topology",
        "datasets",
        "metrics",
        "model_selection",
    },
    "comparison": {"experiments", "datasets", "metrics"},
    "paper": {"comparison", "experiments", "enhancers", "fitting", "datasets", "metrics"},
    "report": {"audit", "comparison", "models", "tables", "experiments", "datasets", "metrics"},
    "demo": {
        "report",
        "comparison",
        "experiments",
        "predictors",
        "enhancers",
        "datasets",
        "metrics",
    },
    "testing": set(),
    "dask": {"solvers", "topology", "fitting"},
    "__main__": {"cli"},
    "cli": {
        "audit",
        "demo",
        "models",
        "tables",
        "report",
        "paper",
        "comparison",
        "experiments",
        "predictors",
        "enhancers",
        "datasets",
        "metrics",
        "model_selection",
    },
}


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
            if parts[0] == "lemll" and len(parts) > 2 and parts[1] in rooms:
                assert parts[1] == room_of(path), f"{path} imports {module}"


def test_solvers_and_topology_know_no_estimators():
    for path in ROOT.rglob("*.py"):
        if room_of(path) in {"solvers", "topology", "objective"}:
            assert "BaseEstimator" not in path.read_text(encoding="utf-8"), path


def test_importing_lemll_is_light():
    optional = {"matplotlib", "typer", "rich", "pooch", "h5py", "pyarrow", "jinja2", "requests"}
    optional |= {"pandas", "skops", "openpyxl"}
    # scikit-learn brings some of them in by itself, where they are installed.
    code = (
        "import sys, scipy.io, scipy.sparse, sklearn.datasets, sklearn.metrics; "
        "before = set(sys.modules); import lemll, lemll.datasets, lemll.metrics; "
        f"print(sorted({optional!r} & (set(sys.modules) - before)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_nothing_is_read_by_pickle():
    for path in ROOT.rglob("*.py"):
        assert not imported_modules(path) & {"pickle", "cloudpickle", "dill", "shelve"}, path
        assert "allow_pickle=True" not in path.read_text(encoding="utf-8"), path


def test_public_names_and_packages_are_found_when_they_are_used():
    code = (
        "import lemll, sys; assert 'sklearn' not in sys.modules; lemll.metrics.hamming_loss; "
        "lemll.LEMLL; assert 'LEMLL' in dir(lemll); assert not hasattr(lemll, 'nothing')\n"
        "from lemll import *; print(TagPredictor.__name__)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "TagPredictor\n"
