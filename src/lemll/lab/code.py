"""Identify the code and the machine that produced a result."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import os
import platform
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder, all_suffixes
from pathlib import Path

import joblib
import numpy
import scipy
import sklearn
from threadpoolctl import threadpool_info

import lemll
from lemll._types import Estimator, Settings
from lemll.exceptions import ProtocolError

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
# The folders that modules were imported from. What a module can import from there counts as its
# code.
_FOLDERS: set[Path] = set()


def imported_names(given: object) -> list[str]:
    """Return the names of the key ``imports`` of a protocol, or raise a ValueError."""
    if not isinstance(given, list) or not all(
        isinstance(name, str) and _NAME.fullmatch(name) for name in given
    ):
        raise ValueError(
            f'imports must be a list of names of modules such as ["mymethods"], got {given!r}; '
            "leave out .py and folders."
        )
    return list(given)


def check_trust(names: list[str], file: Path, *, trust: bool) -> None:
    """Refuse modules that the user has not trusted; remember those that he trusts now.

    The trust is for a protocol file and the present content of everything that can be imported from
    its folder. It is kept in ``~/.config/lemll/trusted`` (or in ``$XDG_CONFIG_HOME/lemll``).

    Parameters
    ----------
    names : list of str
        Names of the modules.
    file : Path
        The protocol.
    trust : bool
        Whether the user trusts them now.

    Raises
    ------
    ValueError
        If they are not trusted.
    """
    folder = file.resolve().parent
    digest = hashlib.sha256(f"{file.resolve()}\0{' '.join(names)}".encode())
    for path in importable_files(folder):
        digest.update(f"\0{path.relative_to(folder).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    memory = _memory()
    known = memory.read_text(encoding="utf-8").split() if memory.is_file() else []
    if digest.hexdigest() in known:
        return
    if not trust:
        raise ValueError(
            f"it imports Python modules of its folder ({', '.join(names)}), which can run any "
            "code, and you have not trusted them, or they have changed since; if you trust them, "
            "pass --trust-imports once (in Python trust_imports=True)."
        )
    with suppress(OSError):  # without a place to remember it, the user is asked again
        memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with memory.open("a", encoding="utf-8") as stream:
            stream.write(f"{digest.hexdigest()}\n")


def _memory() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "lemll" / "trusted"


def importable_files(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Yield the files that can be imported from a folder, in a fixed order."""
    here = folder.resolve()
    if here in above:  # a link to a folder above it
        return
    try:
        paths = sorted(folder.iterdir())
    except PermissionError:  # Python cannot import from it either
        return
    for path in paths:
        if path.is_dir():
            if path.name.isidentifier() and path.name != "__pycache__":
                yield from importable_files(path, above | {here})
        elif path.name.endswith(tuple(all_suffixes())) and path.is_file():
            yield path


def own_files(file: Path) -> list[Path]:
    """Return all files that a module can import from the folder that it was imported from.

    Parameters
    ----------
    file : Path
        The file of the module.

    Returns
    -------
    list of Path
        Only the file itself if `import_from_folder` did not import it.
    """
    place = file.resolve()
    folders = [folder for folder in _FOLDERS if place.is_relative_to(folder)]
    return sorted({place, *(path for folder in folders for path in importable_files(folder))})


def place_in_own_code(error: BaseException, kind: type | None = None) -> str:
    """Return where an error came from in a module that `import_from_folder` imported.

    Parameters
    ----------
    error : BaseException
        The error.
    kind : type, optional
        The class of the method. A worker process has imported only the module of this class.

    Returns
    -------
    str
        The file and the line; empty if no such module is involved.
    """
    folders = set(_FOLDERS)
    if kind is not None and kind.__module__.partition(".")[0] not in {"lemll", "sklearn"}:
        with suppress(OSError, TypeError):  # a class typed into an interpreter has no file
            folders.add(Path(inspect.getfile(kind)).resolve().parent)
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next(
        (
            f"{frame.filename}, line {frame.lineno}"
            for frame in frames
            if any(Path(frame.filename).is_relative_to(folder) for folder in folders)
        ),
        "",
    )


def import_from_folder(names: list[str], folder: Path) -> None:
    """Import modules that lie in a folder, and make the folder importable.

    Worker processes get the same search path. The folder comes last in it, so that its files cannot
    replace modules of Python or of libraries.

    Parameters
    ----------
    names : list of str
        Names of the modules.
    folder : Path
        The folder that holds them.

    Raises
    ------
    ProtocolError
        If the folder has no such module, if another module has this name, or if it cannot be
        imported.
    """
    place = str(folder.resolve())
    for name in names:
        first = name.partition(".")[0]
        if PathFinder.find_spec(first, [place]) is None:
            raise ProtocolError(
                f"imports names {name!r}, but {folder} has no such module; put {first}.py beside "
                "the protocol"
            )
        if place not in sys.path:
            sys.path.append(place)
            importlib.invalidate_caches()
        _FOLDERS.add(Path(place))
        try:
            module = importlib.import_module(name)
        except (Exception, SystemExit) as error:  # the code of a user can raise anything
            where = place_in_own_code(error)
            raise ProtocolError(
                f"{name}.py cannot be imported: {type(error).__name__}: {error}"
                f"{where and f' ({where})'}; mend the module"
            ) from error
        origin = Path(getattr(module, "__file__", None) or "").resolve()
        if not origin.is_relative_to(place):
            raise ProtocolError(
                f"imports names {name!r}, but another module has this name ({origin}); rename yours"
            )


# These files only print results, so processes may have different versions of them.
_WITHOUT_INFLUENCE = ("cli/", "report/", "lab/cli/", "lab/demo", "lab/studies/", "lab/testing/")
# What turns an estimator into a stored result: split, search, fit, measure.
_ENGINE_ROOM = "lemll.lab."
# The engine imports all methods, but a result depends only on one of them.
_KNOWN_TO_ALL = (_ENGINE_ROOM, "lemll.predictors.", "lemll.enhancers.", "lemll.rivals.")
_ENGINE = (
    "lemll.lab.execute",
    "lemll.lab.searches",
    "lemll.lab.cells",
    "lemll.metrics.table",
    "lemll.model_selection",
)
# The versions of these libraries are recorded with the result; their code is not hashed.
_LIBRARIES = {*sys.stdlib_module_names, "joblib", "numpy", "scipy", "sklearn"}
# Learners whose searches are in another module.
_SEARCHES = {"lemll.predictors.msvr": ("lemll.predictors.msvr_cv",)}


@cache
def package_sha256() -> str:
    """Return the hash of the source files of lemll that results can depend on."""
    root = Path(lemll.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith(_WITHOUT_INFLUENCE):
            digest.update(f"{name}\0{_file_sha256(path)}".encode())
    return digest.hexdigest()


@cache
def _file_sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def code_version(estimator: Estimator) -> str:
    """Return the hash of the files that a result depends on.

    These are the files of the estimator, of the estimators inside it, of the search that tunes it,
    and of everything that they import. They also include the parts of the engine that split, fit
    and measure. A change of a table, a page or another method does not change the hash. For a class
    that is not part of lemll, its whole file counts, with everything that can be imported from the
    folder of its protocol, and the modules of lemll that these files import. Modules that are
    installed elsewhere do not count.

    Parameters
    ----------
    estimator : object
        The estimator of the method.

    Returns
    -------
    str
        Hexadecimal SHA-256.
    """
    classes = {type(estimator)}
    if hasattr(estimator, "get_params"):
        classes |= {type(value) for value in estimator.get_params().values()}
    parts: set[str] = set()
    roots = set(_ENGINE)
    for base in {base for kind in classes for base in kind.__mro__}:
        package = base.__module__.partition(".")[0]
        if package == "lemll":
            roots |= {base.__module__, *_SEARCHES.get(base.__module__, ())}
        elif package not in _LIBRARIES:
            try:
                files = own_files(Path(inspect.getsourcefile(base) or ""))
                parts.update(map(_file_sha256, files))
            except (OSError, TypeError):  # a class typed into an interpreter has no file
                parts.add(f"{base.__module__}.{base.__qualname__}")
                continue
            roots.update(*map(_imports, files))
    files_of = {module: _file_of(module) for module in _closure(frozenset(roots))}
    parts |= {f"{module} {_file_sha256(file)}" for module, file in files_of.items()}
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


@cache
def _closure(roots: frozenset[str]) -> frozenset[str]:
    """Return modules of lemll with all that they import, directly or not.

    For modules of the engine, imports of methods and of other parts of the engine are not followed.
    """
    found: set[str] = set()
    waiting = set(roots)
    while waiting:
        module = waiting.pop()
        found.add(module)
        blocked = _KNOWN_TO_ALL if module.startswith(_ENGINE_ROOM) else _ENGINE_ROOM
        imported = {name for name in _imports(_file_of(module)) if not name.startswith(blocked)}
        waiting |= imported - found
    return frozenset(found)


@cache
def _imports(file: Path) -> frozenset[str]:
    """Return the modules of lemll that define what a file imports."""
    found = set()
    for node in _nodes(file):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("lemll."):
            found |= {_defining_module(str(node.module), alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("lemll.")}
    return frozenset(found)


@cache
def _defining_module(module: str, name: str) -> str:
    """Follow a name through the packages that hand it on, to the module that defines it.

    So a package whose `__init__` lists many methods does not connect these methods.
    """
    if _file_of(f"{module}.{name}").exists():
        return f"{module}.{name}"
    if _file_of(module).name == "__init__.py":
        for node in _nodes(_file_of(module)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if name == (alias.asname or alias.name):
                        return _defining_module(node.module, alias.name)
    return module


@cache
def _nodes(file: Path) -> list[ast.AST]:
    """Return the import statements of a file; none if it is compiled or not finished."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def _file_of(module: str) -> Path:
    path = Path(lemll.__file__).parent.joinpath(*module.split(".")[1:])
    package = path / "__init__.py"
    return package if package.exists() else path.with_suffix(".py")


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@cache
def environment() -> Settings:
    """Describe the libraries and the machine that this process computes with.

    Returns
    -------
    dict
        Ready for JSON.
    """
    return {
        "lemll": lemll.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "joblib": joblib.__version__,
        "blas": sorted(
            {
                f"{library['internal_api']} {library['version']}"
                for library in threadpool_info()
                if library["user_api"] == "blas"
            }
        ),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "platform": platform.platform(),
    }
