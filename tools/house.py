"""Count what makes the house easy or hard to enter: ``python tools/house.py [src/lemll]``.

Reads the source and, for the walk of a fit, runs one. Every figure can be compared between two
trees: pass the folder of the package to look at.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from pathlib import Path

_WALK = """
import sys
import numpy as np
from lemll import LEMLL
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4))
Y = (X[:, :3] > 0).astype(int)
seen = set()
def note(frame, event, argument):
    name = frame.f_globals.get("__name__", "")
    if event == "call" and name.startswith("lemll.") and frame.f_code.co_name != "<module>":
        seen.add(name)
sys.setprofile(note)
LEMLL().fit(X, Y)
sys.setprofile(None)
print("\\n".join(sorted(seen)))
"""


def imports_of(tree: ast.AST) -> set[str]:
    """Return the modules that a file imports, names of `from` imports included."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def module_name(path: Path, root: Path) -> str:
    """Return the dotted name of a file."""
    parts = (root.name, *path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def comment_share(text: str) -> tuple[int, int]:
    """Return how many lines hold a comment, and how many hold code."""
    comments, code = set(), set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in (
            tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
        ):  # fmt: skip
            code.add(token.start[0])
    return len(comments), len(code)


def private_crossings(module: str, imported: set[str], known: set[str]) -> list[str]:
    """Return the private modules of other rooms that a module imports."""
    room = module.split(".")[1] if module.count(".") else ""
    return sorted(
        other
        for other in imported & known
        if other.count(".") > 1
        and other.split(".")[1] != room
        and any(part.startswith("_") for part in other.split(".")[2:])
    )


def survey(root: Path) -> dict[str, object]:
    """Return the figures of a package."""
    files = sorted(root.rglob("*.py"))
    trees = {module_name(path, root): ast.parse(path.read_text("utf-8")) for path in files}
    known = set(trees)
    importers: dict[str, set[str]] = defaultdict(set)
    crossings = []
    names: Counter[str] = Counter()
    any_count = comments = code = 0
    for path in files:
        module = module_name(path, root)
        imported = imports_of(trees[module])
        for other in imported & known - {module}:
            importers[other].add(module)
        crossings += [f"{module} -> {o}" for o in private_crossings(module, imported, known)]
        for node in ast.walk(trees[module]):
            any_count += isinstance(node, ast.Name) and node.id == "Any"
        for node in trees[module].body:
            if isinstance(node, ast.ClassDef):
                names[node.name] += 1
        here = comment_share(path.read_text("utf-8"))
        comments, code = comments + here[0], code + here[1]
    private = [m for m in known if m.rsplit(".", 1)[-1].startswith("_")]
    walk = subprocess.run(
        [sys.executable, "-c", _WALK],
        env={"PYTHONPATH": str(root.parent), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return {
        "files": len(files),
        "lines": sum(path.read_text("utf-8").count("\n") for path in files),
        "modules on the way of LEMLL().fit": len(walk),
        "imports of another room's private modules": len(crossings),
        "private modules with one importer": sum(len(importers[m]) == 1 for m in private),
        "uses of Any": any_count,
        "comment lines per 100 lines of code": round(100 * comments / code, 1),
        "class names used twice": sorted(name for name, count in names.items() if count > 1),
        "the walk": walk,
        "crossings": crossings,
        "one importer": sorted(m for m in private if len(importers[m]) == 1),
    }


if __name__ == "__main__":
    for title, figure in survey(Path(sys.argv[1] if len(sys.argv) > 1 else "src/lemll")).items():
        shown = "\n    ".join(["", *figure]) if isinstance(figure, list) else figure
        sys.stdout.write(f"{title}: {shown}\n")
