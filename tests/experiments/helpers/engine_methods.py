"""Methods for tests of the engine: quick, deterministic, and they can tell that they were run.

In a folder of its own, which conftest.py puts on the path: worker processes must find it too.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from lemll.lab import Method, Store, register, run
from lemll.lab.cells import Cell, Splits
from lemll.lab.methods import MethodSpec
from lemll.lab.protocol import Protocol
from lemll.lab.tables import ComparisonTable

LOG = "LEMLL_TEST_LOG"
ONCE = "LEMLL_TEST_ONCE"


def token(shift: float, X: Any) -> str:
    """Name an execution by what it was given."""
    return f"{shift:g}:{hashlib.sha256(np.ascontiguousarray(X).tobytes()).hexdigest()[:16]}"


class Logged(ClassifierMixin, BaseEstimator):
    """Scores by class means; writes a line to the log at every fit, before it works."""

    def __init__(self, shift: float = 0.0, seconds: float = 0.0, fault: str = "") -> None:
        self.shift = shift
        self.seconds = seconds
        self.fault = fault

    def fit(self, X: Any, y: Any) -> Logged:
        if LOG in os.environ:
            log = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(log, f"{token(self.shift, X)}\n".encode())
            os.close(log)
        time.sleep(self.seconds)
        if self.fault:
            self._fail()
        counts = np.maximum(y.sum(axis=0), 1)[:, None]
        self.means_ = (y.T @ X) / counts - X.mean(axis=0) + self.shift
        self.optimality_ = 1e-9
        return self

    def _fail(self) -> None:
        if self.fault == "raise":
            raise RuntimeError("this method always fails")
        if self.fault == "loud":
            raise RuntimeError("again and " * 100_000)
        if self.fault == "exit":
            raise SystemExit(3)
        if self.fault == "interrupt":
            raise KeyboardInterrupt
        if self.fault == "memory":
            np.ones(2**31)
        if self.fault == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "die-once" and not os.path.exists(os.environ[ONCE]):
            with open(os.environ[ONCE], "w", encoding="ascii"):
                os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "raise-once" and not os.path.exists(os.environ[ONCE]):
            with open(os.environ[ONCE], "w", encoding="ascii"):
                raise RuntimeError("fails the first time")
        if self.fault == "endless-c-call":
            np.linalg.svd(np.random.default_rng(0).normal(size=(3000, 3000)))

    def decision_function(self, X: Any) -> Any:
        return X @ self.means_.T

    def predict(self, X: Any) -> Any:
        return (self.decision_function(X) > 0).astype(np.uint8)


def _register() -> None:
    for name in ("Logged A", "Logged B"):
        shift = 0.0 if name.endswith("A") else 0.5
        register(Method(name, "learner", lambda shift=shift: Logged(shift), {}, "for tests"))


_register()


def with_helpers() -> dict[str, str]:
    """Return the environment of a process that can import the helpers."""
    folders = filter(None, (os.path.dirname(__file__), os.environ.get("PYTHONPATH")))
    return os.environ | {"PYTHONPATH": os.pathsep.join(folders)}


def plan(*methods: Any, splits: int | Splits | None = None, **options: Any) -> Protocol:
    """Make a protocol; by default a prediction on the digits. A number of splits means halves."""
    if isinstance(splits, int):
        splits = Splits("halves", splits)
    defaults = {"name": "p", "experiment": "prediction", "datasets": ("digit-tags",)}
    return Protocol(methods=methods, splits=splits, **defaults | options)


def ran(protocol: Protocol, folder: Path, *, done: int | None = None) -> Store:
    """Run a protocol in this process; return its store."""
    store = Store(folder)
    end = run(protocol, store, backend="sequential")
    assert done in (None, end.done)
    return store


def make_protocol(n_splits: int = 24, **parameters: Any) -> Protocol:
    """Make a protocol of two methods and twice as many short cells as splits."""
    methods = (MethodSpec(name, "", parameters) for name in ("Logged A", "Logged B"))
    return plan(*methods, splits=n_splits)


def with_fault(fault: str, n_splits: int = 2, **parameters: Any) -> Protocol:
    """Make a protocol whose first method has a fault and whose second has none."""
    return plan(
        MethodSpec("Logged A", "", {"fault": fault} | parameters), "Logged B", splits=n_splits
    )


def texts(protocol: Protocol, store: Store) -> tuple[str, str, str]:
    """Return the table of a store in all formats."""
    table = ComparisonTable.from_store(protocol, store)
    return table.to_markdown(), table.to_latex(), table.to_csv()


def expected_token(cell: Cell) -> str:
    """Name the execution that a cell of `make_protocol` must lead to."""
    from lemll.lab.cells import load_source

    data, _ = load_source(cell.source)
    rows = np.random.RandomState(cell.setting.number).permutation(len(data))[: len(data) // 2]
    return token(cell.parameters["shift"], data.X[rows])
