"""LEMLL for rows that do not fit on one machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lemll._types import Array, Features, FloatArray, LabelArray, MatrixLike, Settings
from lemll._validation import (
    check_finite,
    check_magnitude,
    check_number,
    check_settings,
    check_whole,
    is_sparse,
    warn_caller,
)
from lemll.exceptions import LemllError, import_extra
from lemll.fitting.equation9 import GRAPH_SETTINGS
from lemll.fitting.scaling import normalize
from lemll.solvers import BlocksLostError, RowBlock, solve_blocks
from lemll.topology import reconstruction_weights

__all__ = ["LEMLL"]

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


@dataclass(eq=False, repr=False)
class LEMLL(BaseEstimator):
    r"""LEMLL on Dask arrays and frames.

    Minimises the same objective as `lemll.LEMLL` with a linear model,

    .. math::
        \sum_i L_\varepsilon(\|u_i-\Theta x_i-b\|)+\alpha\|\Theta\|_F^2
        +\beta\|U-Y\|_F^2+\gamma\,\mathrm{tr}(U^\top MU),

    with one difference: the neighbours of a row are searched in its own block of rows. The result
    is that of `lemll.LEMLL` with the graph of all blocks together, up to the tolerance. The rows
    of a block stay on the worker that holds them. In each iteration, arrays of n_features x
    n_labels and numbers travel between the workers and this process.

    If a worker is lost, its rows are computed again on another worker, their numerical labels start
    again from the logical labels, and the fit continues. The problem is convex, so the result is
    the same.

    Parameters
    ----------
    alpha, beta, gamma : float, default=1.0
        Weights of the three last terms, as in `lemll.LEMLL`.
    epsilon : float, default=0.1
        Radius of the tube.
    n_neighbors : int, default=10
        Number of neighbours that rebuild a row.
    graph : dict, optional
        Settings of the graphs of the blocks, any of ``neighbors`` and ``reg_policy``, as in
        `lemll.LEMLL`. It cannot be a graph itself.
    tol : float, default=1e-4
        The solver stops when the certified relative duality gap is at most this.
    max_iter : int, default=1000
        Largest number of iterations.
    client : distributed.Client, optional
        The client of the cluster. By default the current client of Dask.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        :math:`\Theta`.
    intercept_ : ndarray of shape (n_labels,)
        b.
    numerical_labels_ : dask.array.Array of shape (n_samples, n_labels)
        U of the training rows, on the workers.
    label_distribution_ : dask.array.Array of shape (n_samples, n_labels)
        The logistic function of U, divided by the sum of each row.
    objective_ : float
        The objective at the solution.
    objective_trace_ : ndarray
        The objective at the start and after each iteration.
    optimality_ : float
        Certified relative duality gap.
    n_iter_ : int
        Number of iterations.
    n_blocks_ : int
        Number of blocks of rows.
    n_losses_ : int
        Number of times that blocks were lost and built again.
    label_names_ : ndarray of str
        The names of the labels: the columns of a frame, or ``y0, y1, ...``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        The names of the columns of X. Set only if X is a frame.

    See Also
    --------
    lemll.LEMLL : The same for arrays in memory, also with kernels.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from lemll.dask import LEMLL
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> X, Y = da.from_array(digits.X, chunks=(600, -1)), da.from_array(digits.Y, chunks=(600, -1))
    >>> with Client(processes=False, dashboard_address="127.0.0.1:0") as client:
    ...     model = LEMLL(client=client).fit(X, Y)
    ...     relevant = model.predict(X).compute()
    >>> bool(model.optimality_ <= 1e-4), relevant.shape
    (True, (1797, 8))
    """

    alpha: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    _: KW_ONLY
    epsilon: float = 0.1
    n_neighbors: int = 10
    graph: Settings | None = None
    tol: float = 1e-4
    max_iter: int = 1000
    client: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn to predict labels.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
            Features. The blocks of an array may be scipy sparse arrays.
        y : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_labels)
            Logical labels, 0/1; NaN means that nobody observed the cell. They get the blocks of X.

        Returns
        -------
        self
            The fitted classifier.
        """
        weights: Settings = {
            "alpha": check_number("alpha", self.alpha, above=0),
            "beta": check_number("beta", self.beta, above=0),
            "gamma": check_number("gamma", self.gamma, above=0, inclusive=True),
            "epsilon": check_number("epsilon", self.epsilon, above=0, inclusive=True),
        }
        tol = check_number("tol", self.tol, above=0)
        max_iter = check_whole("max_iter", self.max_iter, least=1)
        graph: Settings = {
            "n_neighbors": check_whole("n_neighbors", self.n_neighbors, least=1),
            **check_settings("graph", self.graph, GRAPH_SETTINGS),
        }
        client = self._find_client()
        rows, labels, names = _row_blocks(X, y)
        columns = _column_names(X)
        rows, labels = client.persist((rows, labels))
        of_rows, of_labels = (
            [client.compute(part) for part in array.to_delayed().ravel()]
            for array in (rows, labels)
        )
        team = ActorTeam(client, list(zip(of_rows, of_labels, strict=True)), graph)
        solution = solve_blocks(team, **weights, tol=tol, max_iter=max_iter)
        _warn_constant(solution.constant, names)
        if solution.status != "converged":
            warn_caller(
                f"LEMLL stopped ({solution.status}) after {solution.n_iter} iterations with the "
                f"certified gap {solution.optimality:.1e}, which is above tol={tol:.1e}; increase "
                "max_iter or tol, or scale the features.",
                UserWarning,
            )
        self.coef_, self.intercept_ = solution.coef, solution.intercept
        self.objective_, self.objective_trace_ = solution.objective, solution.objective_trace
        self.optimality_, self.n_iter_ = solution.optimality, solution.n_iter
        self.n_losses_, self.n_blocks_ = solution.n_losses, len(of_rows)
        self.n_features_in_ = solution.coef.shape[1]
        if columns:
            self.feature_names_in_ = np.array(columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.label_names_ = np.array(names, dtype=object)
        self.numerical_labels_ = _labels_on_workers(client, team, solution.constant, rows.chunks[0])
        self.label_distribution_ = self.numerical_labels_.map_blocks(normalize, dtype=np.float64)
        return self

    def decision_function(self, X: Any) -> Any:
        """Score every label. A higher score means more relevant.

        Parameters
        ----------
        X : dask.array.Array, dask.dataframe.DataFrame, ndarray or sparse array
            Features, of shape (n_samples, n_features).

        Returns
        -------
        dask.array.Array of shape (n_samples, n_labels)
            The scores, not yet computed; an ndarray if X is in memory.
        """
        return self._by_blocks(X, _scores, np.float64)

    def predict(self, X: Any) -> Any:
        """Predict the relevant labels.

        Parameters
        ----------
        X : dask.array.Array, dask.dataframe.DataFrame, ndarray or sparse array
            Features, of shape (n_samples, n_features).

        Returns
        -------
        dask.array.Array of shape (n_samples, n_labels), int8
            0/1, not yet computed; an ndarray if X is in memory.
        """
        return self._by_blocks(X, _relevant, np.int8)

    def predict_distribution(self, X: Any) -> Any:
        """Estimate how much each label matters in new rows.

        Parameters
        ----------
        X : dask.array.Array, dask.dataframe.DataFrame, ndarray or sparse array
            Features, of shape (n_samples, n_features).

        Returns
        -------
        dask.array.Array of shape (n_samples, n_labels)
            The logistic function of the scores, divided by the sum of each row; an ndarray if X is
            in memory.
        """
        return self._by_blocks(X, _distribution, np.float64)

    def _by_blocks(self, X: Any, function: Any, dtype: Any) -> Any:
        check_is_fitted(self)
        in_memory = isinstance(X, np.ndarray) or is_sparse(X)
        rows = X if in_memory and X.ndim == 2 else _as_array(X, "X")
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {rows.shape[1]} features, but LEMLL was fitted with {self.n_features_in_}; "
                "give the same columns as in fit."
            )
        columns, fitted = _column_names(X), list(getattr(self, "feature_names_in_", ()))
        if columns and fitted and columns != fitted:
            place = next(i for i, name in enumerate(fitted) if columns[i] != name)
            raise ValueError(
                f"column {place} of X is {columns[place]!r}, but it was {fitted[place]!r} in fit; "
                "give the same columns in the same order: X[list(model.feature_names_in_)]."
            )
        if in_memory:
            return function(rows, self.coef_, self.intercept_)
        return rows.map_blocks(
            function,
            self.coef_,
            self.intercept_,
            dtype=dtype,
            chunks=(rows.chunks[0], (len(self.intercept_),)),
            meta=np.empty((0, 0), dtype=dtype),
        )

    def __sklearn_clone__(self) -> Self:
        # A client has connections, which cannot be copied; copies of the learner share it.
        return type(self)(**self.get_params(deep=False))

    def _find_client(self) -> Any:
        distributed = import_extra("distributed", "dask", "lemll.dask")
        if self.client is not None:
            if not isinstance(self.client, distributed.Client):
                raise TypeError(
                    f"client must be a dask.distributed.Client, got {self.client!r}; for an address"
                    " of a scheduler, give Client(address)."
                )
            return self.client
        try:
            return distributed.get_client()
        except ValueError:
            raise ValueError(
                "there is no Dask client; create one before fit, for example with "
                "`from dask.distributed import Client; client = Client()`, or give client=."
            ) from None


def _row_blocks(X: Any, y: Any) -> tuple[Any, Any, list[str]]:
    """Return X and y as Dask arrays with the same blocks of whole rows, and the label names."""
    rows, labels = _as_array(X, "X"), _as_array(y, "y")
    if rows.shape[0] != labels.shape[0]:
        raise ValueError(
            f"X has {rows.shape[0]} rows and y has {labels.shape[0]}; give one row of labels for "
            "each row of X."
        )
    names = [str(name) for name in getattr(y, "columns", ())]
    if not names:
        names = [f"y{number}" for number in range(labels.shape[1])]
    # Filtered frames have empty parts.
    sizes = tuple(size for size in rows.chunks[0] if size)
    rows, labels = (
        array if array.chunks[0] == sizes else array.rechunk({0: sizes}) for array in (rows, labels)
    )
    return rows, labels, names


def _column_names(X: Any) -> list[str]:
    """Return the names of the columns of a frame; none for an array."""
    return [str(name) for name in getattr(X, "columns", ())]


def _warn_constant(constant: Array, names: Sequence[str]) -> None:
    """Say which labels were never observed, and which are relevant wherever they are known."""
    # The constant is 0 without an observed cell, -1 or 1 if all observed cells are the same.
    if (constant == 0).all():
        raise ValueError("no cell of y is observed; at least one label needs an observed row.")
    for kind, which in (
        ("labels without an observed cell are never predicted", constant == 0),
        ("labels whose known cells are all relevant look relevant in every row", constant == 1),
    ):
        if which.any():
            found = ", ".join(names[j] for j in np.flatnonzero(which)[:5])
            warn_caller(
                f"{kind}: {found} ({int(which.sum())} of {len(which)}); leave them out, or tag "
                "more rows.",
                UserWarning,
            )


def _as_array(values: Any, name: str) -> Any:
    """Return a Dask array of known shape whose blocks hold whole rows."""
    dask_array = import_extra("dask.array", "dask", "lemll.dask")
    if hasattr(values, "to_dask_array"):
        if any(not isinstance(kind, np.dtype) or kind.kind == "O" for kind in values.dtypes):
            # Columns with pandas.NA, or of Python objects: NA becomes NaN.
            values = values.astype("float64")
        values = values.to_dask_array(lengths=True)
    if not isinstance(values, dask_array.Array):
        raise TypeError(
            f"{name} must be a Dask array or frame, got {type(values).__name__}; convert it with "
            "dask.array.from_array(values, chunks=(rows_per_block, -1)), or use lemll.LEMLL for "
            "arrays in memory."
        )
    if values.ndim != 2:
        raise ValueError(f"{name} must have 2 dimensions, got {values.ndim}; reshape it.")
    if any(np.isnan(size) for size in values.shape):
        values = values.compute_chunk_sizes()
    return values if values.numblocks[1] == 1 else values.rechunk({1: -1})


def _scores(X: Any, coef: FloatArray, intercept: FloatArray) -> FloatArray:
    return np.asarray(X @ coef.T + intercept)


def _relevant(X: Any, coef: FloatArray, intercept: FloatArray) -> LabelArray:
    return (_scores(X, coef, intercept) > 0).astype(np.int8)


def _distribution(X: Any, coef: FloatArray, intercept: FloatArray) -> FloatArray:
    return normalize(_scores(X, coef, intercept))


def _labels_on_workers(client: Any, team: ActorTeam, constant: Array, sizes: Any) -> Any:
    """Return U as a Dask array. Its blocks stay on the workers of their rows."""
    dask_array = import_extra("dask.array", "dask", "lemll.dask")
    delayed = import_extra("dask", "dask", "lemll.dask").delayed
    parts = [
        client.submit(_all_labels, actor, constant, pure=False, workers=[actor._address])
        for actor in team.actors
    ]
    team.wait(parts)
    return dask_array.concatenate(
        [
            dask_array.from_delayed(delayed(part), (size, len(constant)), dtype=np.float64)
            for part, size in zip(parts, sizes, strict=True)
        ]
    )


def _all_labels(actor: Any, constant: Array) -> Array:
    """Return U of a block with the constant columns, as a task on its worker."""
    varying = actor.numerical_labels().result()
    labels = np.tile(constant, (len(varying), 1))
    labels[:, np.isnan(constant)] = varying
    return labels
