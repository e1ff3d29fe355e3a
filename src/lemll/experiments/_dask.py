"""Cells on a Dask cluster: data are sent once to each worker, and a worker may die.

joblib has a Dask backend, but it waits for ever for a task whose workers have died too often, and
for data that were lost with all the workers that held them. So each slot is a thread here, as with
processes of this machine: it submits one cell, waits for it, and knows what became of it.
"""

from __future__ import annotations

import threading
import traceback
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lemll.datasets import Dataset
from lemll.exceptions import LemllError, import_extra
from lemll.experiments._execute import Outcome, Task, execute, failure
from lemll.experiments._processes import Stopped
from lemll.experiments._sources import Source, load_source

__all__ = ["DaskCells", "dask_client"]

_LOCAL = "local:"
_CONNECT_SECONDS = 15
# Data sets kept on the workers; the cells of a set come one after another.
_MOST_DATASETS = 3
# How often a cell is given to the cluster: its data may have been lost with their workers.
_ATTEMPTS = 3


@contextmanager
def dask_client(address: str) -> Iterator[Any]:
    """Connect to a cluster, or start one on this machine for as long as it is needed.

    Parameters
    ----------
    address : str
        Of a scheduler, such as ``tcp://host:8786``; or ``local:N`` for N worker processes here.

    Yields
    ------
    distributed.Client
        Connected.
    """
    distributed = import_extra("distributed", "dask", "Running on a Dask cluster")
    if address.startswith(_LOCAL):
        count = address.removeprefix(_LOCAL)
        if not count.isdecimal() or int(count) < 1:
            raise ValueError(f"--dask {address}: after 'local:' comes a number of workers, >= 1.")
        with (
            distributed.LocalCluster(
                n_workers=int(count),
                threads_per_worker=1,
                host="127.0.0.1",
                # Any free port: several runs may have clusters of their own.
                dashboard_address="127.0.0.1:0",
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
        return
    try:
        # A client that is given no address at all waits for half a minute before it ends.
        distributed.comm.get_address_host_port(address)
    except ValueError as error:
        raise ValueError(
            f"{address!r} is no address of a Dask scheduler: {error}; give one such as "
            "tcp://host:8786, or local:N for N workers on this machine."
        ) from error
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except OSError as error:
        raise LemllError(
            f"no Dask scheduler answers at {address!r}: {error}; start one with `dask scheduler`, "
            "or use local:N for N workers on this machine"
        ) from error
    with client:
        yield client


class DaskCells:
    """Runs tasks on the workers of a cluster, one for each caller at a time.

    Parameters
    ----------
    client : distributed.Client
        Connected; it stays open.
    """

    def __init__(self, client: Any) -> None:
        self._distributed = import_extra("distributed", "dask", "Running on a Dask cluster")
        self._client = client
        self._lock = threading.Lock()
        self._data: OrderedDict[Source, Any] = OrderedDict()
        self._running: set[Any] = set()
        self._stopped = False

    @property
    def n_slots(self) -> int:
        """How many tasks the workers can run at a time, at least 1."""
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        except TimeoutError as error:
            address = self._client.scheduler.address
            raise LemllError(
                f"the Dask scheduler at {address!r} has no worker after {_CONNECT_SECONDS} s; "
                f"start some with `dask worker {address}`"
            ) from error
        return max(1, int(sum(self._client.nthreads().values())))

    def __call__(self, task: Task) -> Outcome:
        """Run a task on some worker."""
        death = ""
        for _ in range(_ATTEMPTS):
            future = self._submit(task)
            try:
                outcome: Outcome = future.result()
                return outcome
            except self._distributed.KilledWorker as error:
                death = str(error)
                break
            except self._distributed.client.FutureCancelledError as error:
                if self._stopped:
                    raise Stopped from None
                # Its data were lost with the workers that held them, and must be sent again.
                death = str(error)
                self._forget(task.cell.source)
            except Exception as error:
                trace = traceback.format_exc()
                return failure(task.cell.id, "failed", type(error).__name__, str(error), trace)
            finally:
                with self._lock:
                    self._running.discard(future)
        message = f"the workers that were given this cell died, one after another: {death}"
        return failure(task.cell.id, "failed", "KilledWorker", message)

    def stop(self) -> None:
        """Cancel what is under way, and take nothing more."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
            self._data.clear()
        if running:
            self._client.cancel(running, force=True)

    def _submit(self, task: Task) -> Any:
        with self._lock:
            if self._stopped:
                raise Stopped
            source = task.cell.source
            if source not in self._data:
                while len(self._data) >= _MOST_DATASETS:
                    self._data.popitem(last=False)
                self._data[source] = self._send(load_source(source)[0])
            future = self._client.submit(execute, task, self._data[source], pure=False)
            self._running.add(future)
            return future

    def _send(self, dataset: Dataset) -> Any:
        return self._client.scatter(dataset, broadcast=True, hash=False)

    def _forget(self, source: Source) -> None:
        with self._lock:
            self._data.pop(source, None)
