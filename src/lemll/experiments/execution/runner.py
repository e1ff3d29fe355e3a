"""How a protocol is run: claim a cell, run it somewhere, store what became of it, go on.

::

    protocol.cells() -> tasks, each claimed just before it is dispatched
                     -> joblib: one thread a slot, each with a process of its own, here or at a
                        worker of a Dask cluster
                     -> outcomes come back to this process -> store.write -> claim released

Only the process that calls :func:`run` writes the store; workers return what they computed. Killed
at any moment, what is stored is whole, and claims are free again; running once more does what is
not stored yet.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import joblib

from lemll._plain_files import FileLock
from lemll._types import Settings
from lemll._validation import check_number, check_whole
from lemll.experiments.execution.dask import DaskCells
from lemll.experiments.execution.execute import Outcome, Task, execute
from lemll.experiments.execution.processes import Processes
from lemll.experiments.protocols.code import package_sha256
from lemll.experiments.protocols.protocol import Cell, Protocol
from lemll.experiments.stores.cell_files import cell_fields
from lemll.experiments.stores.records import Record, Status
from lemll.experiments.stores.store import Store

__all__ = ["RunProgress", "run"]

# How often to look whether another runner has finished, or left, the cells that it had claimed.
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is.

    Attributes
    ----------
    total, done, failed, timeout : int
        Of the protocol's cells: all, and those that ended so.
    running : tuple of str
        What this runner has under way.
    seconds_left : float or None
        Estimated from the cells that this run has finished; None before the first.
    last : Record or None
        The cell that has just ended, if this is what there is to tell.
    """

    total: int
    done: int
    failed: int
    timeout: int
    running: tuple[str, ...]
    seconds_left: float | None
    last: Record | None

    @property
    def ended(self) -> int:
        """How many cells have ended, in whatever way."""
        return self.done + self.failed + self.timeout


def run(
    protocol: Protocol,
    store: Store,
    *,
    n_jobs: int = 1,
    backend: str = "loky",
    client: Any = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    blas_threads: int | None = 1,
    retry: Collection[Status] = (),
    callback: Callable[[RunProgress], None] | None = None,
) -> RunProgress:
    """Run what a store does not hold yet.

    Several runners may work on one store at a time; each returns when all cells have ended.

    Parameters
    ----------
    protocol : Protocol
        What to run.
    store : Store
        Where results go.
    n_jobs : int, default=1
        How many cells to run at a time.
    backend : str, default="loky"
        "loky" runs each cell in a process of this machine. Any other name is a backend of joblib:
        cells then run in its workers, as they are, without limits.
    client : distributed.Client, optional
        Run the cells on the workers of this Dask cluster instead, as many at a time as it has
        threads. Data are sent to each worker once; a cell whose worker dies is run on another.
    time_limit : float, optional
        Seconds that a cell may take.
    memory_limit : float, optional
        GiB that a cell may take beyond what its process needs by itself.
    blas_threads : int or None, default=1
        Threads of the linear algebra for each cell; None leaves them as they are.
    retry : collection of {"failed", "timeout"}, default=()
        Run cells that ended so once more.
    callback : callable, optional
        Called with a `RunProgress` at the start, and when a cell begins or ends; from any thread,
        one call at a time.

    Returns
    -------
    RunProgress
        At the end.

    Raises
    ------
    StoreError
        If a result cannot be stored; what was stored before is safe.
    """
    n_jobs = check_whole("n_jobs", n_jobs, least=1)
    for name, limit in (("time_limit", time_limit), ("memory_limit", memory_limit)):
        if limit is not None:
            check_number(name, limit, above=0)
            if backend != "loky" or client is not None:
                where = "a Dask client" if client is not None else repr(backend)
                raise ValueError(f"{name} needs backend='loky', got {where}.")
    if memory_limit is not None and not sys.platform.startswith("linux"):
        raise ValueError("memory_limit needs Linux; leave it out on this system.")
    cluster = None if client is None else DaskCells(client)
    if cluster is not None:
        n_jobs = cluster.n_slots
    runner = _Run(protocol, store, retry, callback, n_jobs, blas_threads)
    runner.tell(None)
    if cluster is not None:
        runner.work_off(cluster, "threading", cluster.stop)
    elif backend == "loky":
        processes = Processes(time_limit, memory_limit, blas_threads)
        runner.work_off(processes, "threading", processes.stop)
    else:
        runner.work_off(execute, backend, lambda: None)
    return runner.progress(None)


@dataclass
class _Run:
    """The state of one call of :func:`run`."""

    protocol: Protocol
    store: Store
    retry: Collection[Status]
    callback: Callable[[RunProgress], None] | None
    n_jobs: int
    blas_threads: int | None
    claimed: dict[str, tuple[Cell, FileLock]] = field(init=False, default_factory=dict)
    error: Exception | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        cells = {cell.id: cell for cell in self.protocol.cells()}
        self.store.sweep()
        records = self.store.overview(cells.values()).records
        again = {key: record for key, record in records.items() if record.status in self.retry}
        # How often a cell has ended before: more, once it is claimed, was another runner's work.
        self.attempts = {key: record.attempt for key, record in again.items()}
        self.todo = {key: cells[key] for key in cells if key not in records or key in again}
        self.counts = Counter(record.status for key, record in records.items() if key not in again)
        self.total = len(cells)
        self.finished_here = 0
        self.start = time.monotonic()
        # joblib asks for tasks in threads of its own, while this one stores results.
        self.lock = threading.RLock()

    def work_off(
        self, work: Callable[[Task], Outcome], backend: str, stop: Callable[[], None]
    ) -> None:
        """Run all cells that are to be run, until each has ended, here or at another runner."""
        try:
            while self.todo:
                before = len(self.todo)
                parallel = joblib.Parallel(
                    self.n_jobs,
                    backend=backend,
                    return_as="generator_unordered",
                    # No cell is claimed, and none returned, before its time.
                    batch_size=1,
                    pre_dispatch=self.n_jobs,
                )
                outcomes = parallel(joblib.delayed(work)(task) for task in self._tasks())
                self._store_all(outcomes, stop)
                if self.error is not None:
                    raise self.error
                if self.todo and len(self.todo) == before:
                    time.sleep(_POLL_SECONDS)
        finally:
            stop()
            for _, claim in self.claimed.values():
                claim.release()
            self.claimed.clear()

    def _tasks(self) -> Iterator[Task]:
        """Yield tasks whose claim is ours; joblib may ask for them from any thread."""
        with self.lock:
            cells = list(self.todo.values())
        for cell in cells:
            try:
                task = self._claimed_task(cell)
            except Exception as error:
                # Raised here it would be lost in a thread of joblib's; it ends the run instead.
                self.error = error
                return
            if task is not None:
                yield task

    def _claimed_task(self, cell: Cell) -> Task | None:
        claim = self.store.claim(cell.id)
        if claim is None:
            return None
        # Between our look at the store and this claim another runner may have run it.
        record = self.store.finished(cell)
        if record is not None and record.attempt > self.attempts.get(cell.id, 0):
            claim.release()
            with self.lock:
                del self.todo[cell.id]
                self.counts[record.status] += 1
            return None
        with self.lock:
            self.claimed[cell.id] = cell, claim
        self.tell(None)
        estimator = self.protocol.estimator(cell.method)
        return Task(cell, package_sha256(), estimator, self.protocol.metrics, self.blas_threads)

    def _store_all(
        self, outcomes: Generator[Outcome, None, None], stop: Callable[[], None]
    ) -> None:
        try:
            for outcome in outcomes:
                self._store(outcome)
        except BaseException:
            # Whoever waits for a worker must not wait for ever; what it says then is not news.
            stop()
            with suppress(Exception):
                outcomes.close()
            raise

    def _store(self, outcome: Outcome) -> None:
        cell, claim = self.claimed[outcome.cell_id]
        record = _record(cell, outcome, self.attempts.get(cell.id, 0) + 1)
        record = self.store.write(record, outcome.arrays)
        claim.release()
        with self.lock:
            del self.claimed[cell.id], self.todo[cell.id]
            self.counts[record.status] += 1
            self.finished_here += 1
        self.tell(record)

    def tell(self, last: Record | None) -> None:
        """Let the caller know how far the run is."""
        if self.callback is not None:
            with self.lock:
                self.callback(self.progress(last))

    def progress(self, last: Record | None) -> RunProgress:
        """Say how far the run is."""
        with self.lock:
            left = None
            if self.finished_here:
                left = (time.monotonic() - self.start) / self.finished_here * len(self.todo)
            return RunProgress(
                total=self.total,
                done=self.counts["done"],
                failed=self.counts["failed"],
                timeout=self.counts["timeout"],
                running=tuple(str(cell) for cell, _ in self.claimed.values()),
                seconds_left=left,
                last=last,
            )


def _record(cell: Cell, outcome: Outcome, attempt: int) -> Record:
    fields: Settings = {
        name: getattr(outcome, name)
        for name in (
            "status", "metrics", "criterion", "criterion_value", "chosen", "seconds", "warnings",
            "error", "environment",
        )
    }  # fmt: skip
    return Record(
        **cell_fields(cell),
        dataset=cell.source.name,
        method=cell.method.label,
        attempt=attempt,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        outputs=None,
        **fields,
    )
