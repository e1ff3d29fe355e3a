"""Run cells on a Dask cluster, where data are sent once per worker and workers may die.

joblib has a Dask backend. However, it waits forever for a task whose workers have died too often,
and for data that were lost together with their workers. Therefore each slot is a thread here, as
with processes on this machine. The thread submits one cell, waits for it, and knows its result.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as NotYetDone
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor

from lemll.datasets.dataset import Dataset
from lemll.exceptions import LemllError, import_extra
from lemll.lab.cells import Recent, Source, load_source
from lemll.lab.execute import Outcome, Task, execute, failure

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
    """

    def __init__(self, time_limit: float | None, memory_limit: float | None) -> None:
        self._time_limit = time_limit
        self._memory_limit = memory_limit
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
                self._all.append(_Process(self._memory_limit))
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

    def __init__(self, memory_limit: float | None) -> None:
        self._lock = threading.Lock()
        self._executor: Any = None
        self._stopped = False
        self._arguments = (os.getpid(), memory_limit)
        self._environment = dict.fromkeys(_THREAD_VARIABLES, "1")

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
                max_workers=1, initializer=_prepare, initargs=self._arguments, env=self._environment
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


_LOCAL = "local:"
_ENCRYPTED = ("tls://", "wss://")
_TLS_VARIABLE = "DASK_DISTRIBUTED__COMM__TLS__"
# Loggers of Dask and of the libraries that it uses.
_LOGGERS = ("distributed", "tornado", "asyncio")
_CONNECT_SECONDS = 15
# Number of data sets kept on the workers. The cells of one data set follow each other.
_MOST_DATASETS = 3
# Number of attempts per cell, because its data may be lost together with a worker.
_ATTEMPTS = 3


@contextmanager
def dask_client(address: str) -> Iterator[Any]:
    """Connect to a cluster, or start one on this machine for the duration of the context.

    Results of workers are unpickled here, and a scheduler can run any code on its workers. The
    user must trust both. Log messages of Dask are not printed; errors are raised.

    Parameters
    ----------
    address : str
        Of a scheduler, such as ``tcp://host:8786``, or ``tls://host:8786`` with the certificates
        of Dask's own configuration; or ``local:N`` for N worker processes here.

    Yields
    ------
    distributed.Client
        Connected.
    """
    distributed = import_extra("distributed", "dask", "Running on a Dask cluster")
    if address.startswith(_LOCAL):
        count = address.removeprefix(_LOCAL)
        if not count.isdecimal() or int(count) < 1:
            raise ValueError(f"--dask {address}: 'local:' needs a number of workers, at least 1.")
        with (
            _started(
                lambda: distributed.LocalCluster(
                    n_workers=int(count),
                    threads_per_worker=1,
                    host="127.0.0.1",
                    # Use any free port, because several runs may each have their own cluster.
                    dashboard_address="127.0.0.1:0",
                )
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    with _quiet(), _connected(distributed, address) as client:
        yield client


def _connected(distributed: ModuleType, address: str) -> Any:
    try:
        # Check the address first: a client with an invalid address waits for half a minute.
        distributed.comm.get_address_host_port(address)
    except ValueError as error:
        raise ValueError(
            f"{address!r} is not the address of a Dask scheduler: {error}; give an address such as "
            "tcp://host:8786, or local:N for N workers on this machine."
        ) from error
    security = _certificates(distributed, address) if address.startswith(_ENCRYPTED) else None
    try:
        return _started(
            lambda: distributed.Client(
                address, timeout=_CONNECT_SECONDS, security=security, set_as_default=False
            )
        )
    # The configuration of Dask may require encryption. Without it, Dask raises RuntimeError.
    except (OSError, RuntimeError) as error:
        raise LemllError(
            f"no Dask scheduler answers at {address!r}: {error}; start one with `dask scheduler`, "
            "or use local:N for N workers on this machine"
        ) from error


def _started(start: Callable[[], Any]) -> Any:
    """Start a client or a cluster while no garbage is collected.

    A client that could not connect is closed when it is collected. Closing it needs a lock that
    Dask holds while it starts the next client, so a collection at this moment would wait forever.
    """
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        return start()
    finally:
        if enabled:
            gc.enable()


def _certificates(distributed: ModuleType, address: str) -> Any:
    """Return the certificates in the configuration of Dask, or name those that are missing."""
    security = distributed.Security()
    wanted = {"CA_FILE": security.tls_ca_file, "CLIENT__CERT": security.tls_client_cert}
    absent = [f"{_TLS_VARIABLE}{name}" for name, value in wanted.items() if not value]
    remedy = (
        f"set {_TLS_VARIABLE}CA_FILE, {_TLS_VARIABLE}CLIENT__CERT and {_TLS_VARIABLE}CLIENT__KEY "
        "to files in PEM, or distributed.comm.tls in Dask's configuration"
    )
    if absent:
        raise LemllError(f"{address!r} needs certificates, but {', '.join(absent)} is not set; "
                         f"{remedy}")  # fmt: skip
    try:
        security.get_connection_args("client")
    except (OSError, ValueError) as error:
        raise LemllError(
            f"{address!r} needs certificates, but those in the configuration of Dask cannot be "
            f"used: {error}; {remedy}"
        ) from error
    return security


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the loggers of Dask. A lost scheduler gives many messages, and also an exception."""
    names = [
        name
        for name in (*_LOGGERS, *logging.root.manager.loggerDict)
        if name.partition(".")[0] in _LOGGERS
    ]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


class DaskCells:
    """Runs tasks on the workers of a cluster, one task per caller at a time.

    Parameters
    ----------
    client : distributed.Client
        A connected client. It is not closed.
    """

    def __init__(self, client: Any) -> None:
        self._distributed = import_extra("distributed", "dask", "Running on a Dask cluster")
        self._client = client
        self._address = client.scheduler.address
        self._lock = threading.Lock()
        self._data = Recent(_MOST_DATASETS)
        self._running: set[Any] = set()
        self._stopped = False

    @property
    def n_slots(self) -> int:
        """The number of tasks that the workers can run at the same time, at least 1."""
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        except TimeoutError as error:
            address = self._address
            raise LemllError(
                f"the Dask scheduler at {address!r} has no worker after {_CONNECT_SECONDS} s; "
                f"start some with `dask worker {address}`"
            ) from error
        return max(1, int(sum(self._client.nthreads().values())))

    def __call__(self, task: Task) -> Outcome:
        """Run a task on any worker."""
        death = ""
        for _ in range(_ATTEMPTS):
            try:
                future = self._submit(task)
            except OSError as error:
                raise self._lost() from error
            try:
                outcome: Outcome = future.result()
                return outcome
            except self._distributed.KilledWorker as error:
                death = str(error)
                break
            except self._distributed.client.FutureCancelledError as error:
                if self._stopped:
                    raise Stopped from None
                # The data were lost together with their workers, so send them again.
                death = str(error)
                self._forget(task.cell.source)
            except Exception as error:
                if self._client.status != "running":
                    raise self._lost() from error
                trace = traceback.format_exc()
                return failure(task.cell.id, "failed", type(error).__name__, str(error), trace)
            finally:
                with self._lock:
                    self._running.discard(future)
        message = f"the workers that ran this cell died, one after another: {death}"
        return failure(task.cell.id, "failed", "KilledWorker", message)

    def _lost(self) -> Exception:
        """Return the error for a lost scheduler. It ends the run, and no cell counts as failed."""
        if self._stopped:
            return Stopped()
        return LemllError(
            f"the Dask scheduler at {self._address!r} was lost and does not answer after "
            f"{_CONNECT_SECONDS} s; finished cells are stored. Start it again, then resume"
        )

    def stop(self) -> None:
        """Cancel the running tasks, and accept no new tasks."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
            self._data.clear()
        # A lost scheduler runs no tasks, and a call to it would wait for an answer.
        if running and self._client.status == "running":
            self._client.cancel(running, force=True)

    def _submit(self, task: Task) -> Any:
        with self._lock:
            if self._stopped:
                raise Stopped
            source = task.cell.source
            data = self._data.of(source, lambda: self._send(load_source(source)[0]))
            future = self._client.submit(execute, task, data, pure=False)
            self._running.add(future)
            return future

    def _send(self, dataset: Dataset) -> Any:
        return self._client.scatter(dataset, broadcast=True, hash=False)

    def _forget(self, source: Source) -> None:
        with self._lock:
            self._data.pop(source, None)
