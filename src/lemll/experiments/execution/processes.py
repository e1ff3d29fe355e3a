"""Worker processes with limits of time and memory, each controlled by its own thread.

Each slot is a loky executor with a single worker, and a cell runs in this worker. This has three
advantages. If a worker dies, its cell is known. A cell that exceeds its time limit can be stopped
without an effect on other cells. A long call into compiled code cannot keep its process alive.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import traceback
from concurrent.futures import TimeoutError as NotYetDone
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor

from lemll.exceptions import LemllError
from lemll.experiments.execution.execute import Outcome, Task, execute, failure

__all__ = ["Processes"]

_GIB = 2**30
_PARENT_CHECK_SECONDS = 1.0
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Processes:
    """A pool with one process per concurrent caller.

    Parameters
    ----------
    time_limit : float, optional
        Largest time of a cell, in seconds.
    memory_limit : float, optional
        Largest memory of a cell in GiB, in addition to the memory of the process itself.
    blas_threads : int, optional
        Number of linear algebra threads per process.
    """

    def __init__(
        self, time_limit: float | None, memory_limit: float | None, blas_threads: int | None
    ) -> None:
        self._time_limit = time_limit
        self._memory_limit = memory_limit
        self._threads = blas_threads
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._all: list[_Process] = []
        self._stopped = False

    def __call__(self, task: Task) -> Outcome:
        """Run a task in a process that no other task uses at the same time."""
        process = self._take()
        try:
            return self._run(process, task)
        finally:
            with self._lock:
                self._idle.append(process)

    def _take(self) -> _Process:
        with self._lock:
            if self._stopped:
                raise Stopped
            if not self._idle:
                self._all.append(_Process(self._memory_limit, self._threads))
                return self._all[-1]
            return self._idle.pop()

    def _run(self, process: _Process, task: Task) -> Outcome:
        for _ in range(2):
            try:
                return process.run(task, self._time_limit)
            except NotYetDone:
                process.kill()
                message = f"took longer than the time limit of {self._time_limit:g} s"
                return failure(task.cell.id, "timeout", "TimeoutError", message)
            except BrokenProcessPool as error:
                process.kill()
                death = str(error)
            except Stopped:
                raise
            except Exception as error:  # the task or its result cannot be pickled
                kind, trace = type(error).__name__, traceback.format_exc()
                return failure(task.cell.id, "failed", kind, str(error), trace)
        # If the process was killed once, another process may be the cause, for example by using
        # too much memory. If it is killed twice, this cell is assumed to be the cause.
        message = (
            "its process died twice, because the system ran out of memory or compiled code "
            f"crashed: {death}"
        )
        return failure(task.cell.id, "failed", "ProcessDied", message)

    def stop(self) -> None:
        """End all processes, including running ones."""
        with self._lock:
            self._stopped = True
            processes = list(self._all)
        for process in processes:
            process.stop()


class Stopped(LemllError):
    """The run was stopped while this cell was running."""


class _Process:
    """One worker process. It starts when it is needed, and again after it has died."""

    def __init__(self, memory_limit: float | None, threads: int | None) -> None:
        self._lock = threading.Lock()
        self._executor: Any = None
        self._stopped = False
        self._arguments = (os.getpid(), memory_limit)
        self._environment = dict.fromkeys(_THREAD_VARIABLES, str(threads)) if threads else None

    def run(self, task: Task, time_limit: float | None) -> Outcome:
        try:
            executor = self._started()
            outcome: Outcome = executor.submit(execute, task).result(timeout=time_limit)
        except Exception:
            if self._stopped:
                raise Stopped from None
            raise
        return outcome

    def _started(self) -> Any:
        with self._lock:
            if self._stopped:
                raise Stopped
            if self._executor is not None:
                return self._executor
            executor = self._executor = ProcessPoolExecutor(
                max_workers=1,
                initializer=_prepare,
                initargs=self._arguments,
                env=self._environment,
            )
        # The start and the imports of the process do not count as time of the cell.
        executor.submit(os.getpid).result()
        return executor

    def kill(self) -> None:
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, kill_workers=True)

    def stop(self) -> None:
        """Kill the process, and do not start another one."""
        with self._lock:
            self._stopped = True
        self.kill()


def _prepare(parent: int, memory_limit: float | None) -> None:
    """Set up a new worker process."""
    # loky collects garbage every second. Frozen objects, here all imported modules, are skipped.
    gc.freeze()
    # Ctrl-C is sent to all processes of the group. Only the parent handles it, and ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if memory_limit is not None:
        _limit_memory(int(memory_limit * _GIB))


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even during a long computation."""
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_SECONDS)
    os._exit(1)


def _limit_memory(allowance: int) -> None:
    """Limit the address space of this process to its current size plus `allowance` bytes."""
    import resource

    with open("/proc/self/statm", encoding="ascii") as stream:
        used = int(stream.read().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = used + allowance
    resource.setrlimit(
        resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
    )
