"""Run a protocol: claim a cell, run it, store its result, and continue with the next cell.

::

    protocol.cells() -> tasks; each is claimed immediately before it starts
                     -> joblib: one thread per slot; each thread uses its own process, or a worker
                        of a Dask cluster
                     -> outcomes return to this process -> store.write -> the claim is released

Only the process that calls :func:`run` writes to the store; workers return their results. The run
can be killed at any time. Then all stored results are complete, and all claims are released. A
second run computes only the cells that are not stored yet.
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

import joblib

from lemll._files import FileLock
from lemll._types import Settings, SettingsView
from lemll._validation import check_number, check_whole
from lemll.exceptions import StoreError
from lemll.lab.cells import Cell, Hide
from lemll.lab.code import package_sha256
from lemll.lab.execute import Outcome, Task, execute
from lemll.lab.protocol import Protocol
from lemll.lab.records import Record, Status
from lemll.lab.store import Store, cell_fields
from lemll.lab.workers import DaskCells, Processes

# Interval of the checks whether another runner has finished or abandoned its claimed cells.
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run.

    Attributes
    ----------
    total, done, failed, timeout : int
        Number of all cells of the protocol, and of the cells with each result.
    running : tuple of str
        The cells that this runner is running.
    seconds_left : float or None
        Estimate from the cells that this run has finished. None before the first one.
    last : Record or None
        The record of the cell that has just ended, if this report is about an ended cell.
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
        """The number of cells that have ended, with any result."""
        return self.done + self.failed + self.timeout


def run(
    protocol: Protocol,
    store: Store,
    *,
    n_jobs: int = 1,
    backend: str = "loky",
    client: object = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    retry: Collection[Status] = (),
    only: Callable[[Cell], bool] | None = None,
    chosen: Callable[[Cell], SettingsView | None] | None = None,
    callback: Callable[[RunProgress], None] | None = None,
) -> RunProgress:
    """Run all cells of a protocol that the store does not contain yet.

    Several runners may work on one store at the same time. Each returns when all cells have ended.

    Parameters
    ----------
    protocol : Protocol
        The experiment to run.
    store : Store
        The store of the results.
    n_jobs : int, default=1
        Number of cells that run at the same time, each with one thread of linear algebra.
    backend : str, default="loky"
        "loky" runs each cell in a process on this machine. Any other name is a backend of joblib;
        then cells run in its workers without limits of time and memory.
    client : distributed.Client, optional
        Run the cells on the workers of this Dask cluster instead, one cell per thread of the
        cluster. Data are sent once per worker. If a worker dies, its cell runs on another worker.
    time_limit : float, optional
        Largest time of a cell, in seconds.
    memory_limit : float, optional
        Largest memory of a cell in GiB, in addition to the memory of its process.
    retry : collection of {"failed", "timeout"}, default=()
        Run cells with these results again.
    only : callable, optional
        Tells whether a cell takes part. By default all cells of the protocol do.
    chosen : callable, optional
        Returns the parameters that the first split has selected for a cell, or None. It is asked
        if the first split selects the parameters of all splits and the store does not have it.
    callback : callable, optional
        Called with a `RunProgress` at the start, and when a cell starts or ends. Calls come from
        any thread, one at a time.

    Returns
    -------
    RunProgress
        The progress at the end.

    Raises
    ------
    StoreError
        If a result cannot be stored. Results stored before are safe.
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
    runner = _Run(protocol, store, retry, only, chosen, callback, n_jobs)
    runner.tell(None)
    if cluster is not None:
        runner.work_off(cluster, "threading", cluster.stop)
    elif backend == "loky":
        processes = Processes(time_limit, memory_limit)
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
    only: Callable[[Cell], bool] | None
    chosen: Callable[[Cell], SettingsView | None] | None
    callback: Callable[[RunProgress], None] | None
    n_jobs: int
    claimed: dict[str, tuple[Cell, FileLock]] = field(init=False, default_factory=dict)
    error: Exception | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        planned = list(self.protocol.cells())
        # The cells whose choice of parameters may serve the other splits.
        self.firsts = {_across_splits(cell): cell for cell in planned if not cell.setting.number}
        cells = {cell.id: cell for cell in filter(self.only or bool, planned)}
        self.store.sweep()
        records = self.store.overview(cells.values()).records
        again = {key: record for key, record in records.items() if record.status in self.retry}
        # How often each cell has ended before. If the number is higher when we claim the cell,
        # another runner has run it meanwhile.
        self.attempts = {key: record.attempt for key, record in again.items()}
        self.todo = {key: cells[key] for key in cells if key not in records or key in again}
        self.counts = Counter(record.status for key, record in records.items() if key not in again)
        self.total = len(cells)
        self.finished_here = 0
        self.start = time.monotonic()
        # joblib requests tasks from its own threads, while this thread stores results.
        self.lock = threading.RLock()

    def work_off(
        self, work: Callable[[Task], Outcome], backend: str, stop: Callable[[], None]
    ) -> None:
        """Run all cells until each has ended, here or in another runner."""
        try:
            while self.todo:
                before = len(self.todo)
                parallel = joblib.Parallel(
                    self.n_jobs,
                    backend=backend,
                    return_as="generator_unordered",
                    # Claim a cell only when it can start, and return each result immediately.
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
        """Yield tasks that this runner has claimed; joblib may request them from any thread."""
        with self.lock:
            cells = list(self.todo.values())
        for cell in cells:
            try:
                task = self._claimed_task(cell)
            except Exception as error:
                # An exception here would be lost in a thread of joblib. End the run instead.
                self.error = error
                return
            if task is not None:
                yield task

    def _claimed_task(self, cell: Cell) -> Task | None:
        claim = self.store.claim(cell.id)
        if claim is None:
            return None
        # Another runner may have run the cell after we read the store and before this claim.
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
        return Task(
            cell,
            package_sha256(),
            self.protocol.estimator(cell.method),
            self.protocol.metrics,
            self._chosen_on_first(cell),
        )

    def _chosen_on_first(self, cell: Cell) -> SettingsView | None:
        """Return the parameters that the first split has selected for all, if they are known."""
        first = self.firsts.get(_across_splits(cell))
        if cell.tuning is None or cell.tuning.splits == "all" or first is None or first == cell:
            return None
        record = self.store.finished(first)
        if record is not None and record.status == "done":
            return record.chosen
        return None if self.chosen is None else self.chosen(cell)

    def _store_all(
        self, outcomes: Generator[Outcome, None, None], stop: Callable[[], None]
    ) -> None:
        try:
            for outcome in outcomes:
                if outcome.refused:
                    # A record would claim that the method failed, and the next run would skip it.
                    raise StoreError(outcome.refused)
                self._store(outcome)
        except BaseException:
            # Stop the workers first, or joblib would wait for them. Then ignore the errors of the
            # stopped workers, because the first exception is the reason.
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
        """Report the progress to the caller."""
        if self.callback is not None:
            with self.lock:
                self.callback(self.progress(last))

    def progress(self, last: Record | None) -> RunProgress:
        """Return the progress of the run."""
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


def _across_splits(cell: Cell) -> tuple[str, str, Hide | None]:
    """Return what the cells of all splits have in common."""
    return cell.source.name, cell.method.label, cell.setting.hide


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
