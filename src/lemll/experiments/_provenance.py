"""Which code, on which machine: what a result must say of itself."""

from __future__ import annotations

import hashlib
import inspect
import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy
import scipy
import sklearn
from threadpoolctl import threadpool_info

import lemll

__all__ = ["code_version", "environment", "package_sha256"]

# These rooms print results and make none; a new plot must not make old results stale.
_WITHOUT_INFLUENCE = ("cli", "report", "testing")


@cache
def package_sha256() -> str:
    """Hash the source files of lemll that results can depend on."""
    root = Path(lemll.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith(_WITHOUT_INFLUENCE):
            digest.update(f"{name}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@cache
def _file_sha256(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def code_version(estimator: Any) -> str:
    """Hash the code that a result depends on.

    That is lemll's source files, and the file of the estimator's class where that is not one of
    lemll's.

    Parameters
    ----------
    estimator : object
        The method's estimator.

    Returns
    -------
    str
        Hexadecimal SHA-256.
    """
    if type(estimator).__module__.partition(".")[0] == "lemll":
        return package_sha256()
    try:
        own = _file_sha256(inspect.getsourcefile(type(estimator)) or "")
    except (OSError, TypeError):  # a class typed into an interpreter has no file
        own = ""
    return hashlib.sha256(f"{package_sha256()}{own}".encode()).hexdigest()


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@cache
def environment() -> dict[str, Any]:
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
