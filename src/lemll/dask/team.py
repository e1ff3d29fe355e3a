"""Blocks of rows on the workers of a Dask cluster, and what to do if workers are lost.

Each block is an actor: an object that stays on one worker. Dask does not rebuild actors, because
their state is lost with them. It does rebuild the rows of a lost worker on another one, so the team
makes a new actor from them. The solver then continues (see `lemll.solvers.BlocksLostError`).
"""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from typing import Any

import numpy as np

from lemll._types import Features, FloatArray, MatrixLike, Settings
from lemll._validation import check_finite, check_magnitude, is_sparse
from lemll.exceptions import LemllError
from lemll.solvers import BlocksLostError, RowBlock
from lemll.topology import reconstruction_weights

__all__ = ["ActorTeam", "TaggedRows"]

# How long to wait for the answer of a block before asking whether its worker still exists.
POLL_SECONDS = 2.0
# How long a scheduler may be silent before it counts as lost.
SCHEDULER_SECONDS = 30.0
# How long a worker that does not answer may stay on the list of the scheduler.
WORKER_SECONDS = 20.0


class TaggedRows(RowBlock):
    """A block of rows with logical labels 0/1, with a graph of its own.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_rows, n_features)
        Features.
    y : ndarray of shape (n_rows, n_labels)
        Logical labels, 0/1; NaN means that nobody observed the cell.
    number : int
        Number of the block, for messages.
    graph : dict
        The parameters n_neighbors, reg_policy and neighbors, as in `lemll.LEMLL`.
    """

    def __init__(self, X: MatrixLike, y: MatrixLike, number: int, graph: Settings) -> None:
        X, Y = _checked(X, y, number)
        n_neighbors = min(graph["n_neighbors"], len(Y) - 1)
        W = reconstruction_weights(
            X, n_neighbors, reg_policy=graph["reg_policy"], neighbors=graph["neighbors"]
        )
        seen = ~np.isnan(Y)
        weight = None if seen.all() else seen.astype(np.float64)
        super().__init__(X, np.where(seen, 2 * Y - 1, 0.0), W, weight)


def _checked(X: Features, y: MatrixLike, number: int) -> tuple[Features, FloatArray]:
    X = X if is_sparse(X) else np.asarray(X, dtype=np.float64)
    Y = np.asarray(y.toarray() if is_sparse(y) else y, dtype=np.float64)
    where = f"block {number} of the rows"
    if X.shape[0] != len(Y):
        raise ValueError(
            f"{where} has {X.shape[0]} rows in X and {len(Y)} in y; give both the same chunks."
        )
    if len(Y) < 2:
        raise ValueError(
            f"{where} has {len(Y)} rows, but a row is rebuilt from others of its block; rechunk X "
            "into larger blocks."
        )
    check_finite(X, name=f"X in {where}")
    check_magnitude(X)
    known = Y[~np.isnan(Y)]
    wrong = known[(known != 0) & (known != 1)]
    if len(wrong):
        raise ValueError(
            f"{where} has the label {wrong[0]:g}; labels must be 0 or 1, or NaN where nobody "
            "looked."
        )
    return X, Y


class ActorTeam:
    """The blocks of a Dask array, each an actor on the worker that holds its rows.

    Parameters
    ----------
    client : distributed.Client
        A connected client.
    parts : list of tuple
        The futures of X and y of each block.
    graph : dict
        The parameters of the graphs, as in `TaggedRows`.

    Attributes
    ----------
    actors : list of Actor
        One per block.
    """

    def __init__(self, client: Any, parts: list[tuple[Any, Any]], graph: Settings) -> None:
        self._client, self._parts, self._graph = client, parts, graph
        self.actors: list[Any] = [None] * len(parts)
        self._futures: list[Any] = [None] * len(parts)
        self._build(range(len(parts)))

    def call(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        """Return the results of all blocks; replace lost blocks, and raise `BlocksLostError`."""
        pending: list[Any] = []
        for actor in self.actors:
            try:
                pending.append(getattr(actor, method)(*arguments, **options))
            except RuntimeError:  # Dask knows already that the worker is lost
                pending.append(None)
        results: list[Any] = []
        lost = []
        for number, future in enumerate(pending):
            found = _LOST if future is None else self._result(number, future)
            results.append(found)
            if found is _LOST:
                lost.append(number)
        if lost:
            self._build(lost)
            raise BlocksLostError
        return results

    def _build(self, numbers: Any) -> None:
        """Make the actors of these blocks, from rows that Dask computes again if necessary."""
        for number in numbers:
            X, y = self._parts[number]
            self._futures[number] = self._client.submit(
                TaggedRows, X, y, number, self._graph, actor=True, pure=False
            )
        for number in numbers:
            actor = self._wait(self._futures[number])
            # Dask binds an actor to the default client of the process, which may be another one.
            actor._worker, actor._client = None, self._client
            actor._future = self._futures[number]
            self.actors[number] = actor

    def wait(self, futures: list[Any]) -> None:
        """Wait for one task per block, on the worker of the block.

        Parameters
        ----------
        futures : list of Future
            In the order of the blocks.
        """
        for actor, future in zip(self.actors, futures, strict=True):
            while not future.done():
                if actor._address not in self._workers():
                    raise LemllError(
                        f"the Dask worker {actor._address} was lost after the search, with the "
                        "numerical labels of its rows; fit again"
                    )
                time.sleep(POLL_SECONDS / 40)
            # A client that loses its scheduler cancels its futures, which are then done.
            if future.cancelled():
                raise _scheduler_lost("has closed the connection")

    def _wait(self, future: Any) -> Any:
        """Wait for an actor as long as the scheduler answers and there is a worker."""
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except TimeoutError:
                if not self._workers():
                    raise LemllError(
                        "the Dask cluster has no worker, or has lost all of them; start workers, "
                        "with more memory if the blocks of rows were too large, and fit again"
                    ) from None
            except CancelledError as error:
                if self._client.status == "running":
                    raise LemllError(
                        f"the tasks of the fit were cancelled: {error}; fit again"
                    ) from error
                # The client cancels all futures when it loses its scheduler.
                raise _scheduler_lost("has closed the connection") from error

    def _result(self, number: int, future: Any) -> Any:
        """Return the result of one block, or `_LOST` if its worker does not exist any more."""
        address = self.actors[number]._address
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except TimeoutError:
                if address not in self._workers():
                    return _LOST
            except OSError as error:
                # The scheduler may need a moment to notice that a worker has gone.
                deadline = time.monotonic() + WORKER_SECONDS
                while address in self._workers():
                    if time.monotonic() > deadline:
                        raise LemllError(
                            f"the Dask worker {address} does not answer: {error}; restart it, and "
                            "fit again"
                        ) from error
                    time.sleep(POLL_SECONDS / 4)
                return _LOST

    def _workers(self) -> set[str]:
        """Return the addresses of the workers, or say that the scheduler is lost."""
        client = self._client
        silent = f"does not answer after {SCHEDULER_SECONDS:.0f} s"
        deadline = time.monotonic() + SCHEDULER_SECONDS
        while client.status != "running":
            if client.status == "closed":
                raise _scheduler_lost("has closed the connection")
            if time.monotonic() > deadline:
                raise _scheduler_lost(silent)
            time.sleep(POLL_SECONDS / 4)
        try:
            # A scheduler whose machine hangs keeps its connections but never answers.
            found = client.sync(client.scheduler.ncores, callback_timeout=SCHEDULER_SECONDS)
        except TimeoutError:
            raise _scheduler_lost(silent) from None
        except OSError as error:
            raise _scheduler_lost("has closed the connection") from error
        return set(found)


def _scheduler_lost(how: str) -> LemllError:
    return LemllError(
        f"the Dask scheduler was lost during the fit: it {how}; start it again, and fit again"
    )


class _Lost:
    """What stands for the result of a block that does not exist any more."""


_LOST = _Lost()
