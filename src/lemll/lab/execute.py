"""Run one cell in the current process and return arrays and numbers, without writing files."""

from __future__ import annotations

import io
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from lemll._types import Array, Estimator, Features, SettingsView
from lemll.datasets.dataset import Dataset
from lemll.datasets.describe import binarize_distribution
from lemll.lab.cells import Cell, load_source
from lemll.lab.code import environment, package_sha256, place_in_own_code
from lemll.lab.methods import plain
from lemll.lab.protocol import Protocol
from lemll.lab.records import Status
from lemll.lab.searches import Graphs, fit_models, own_arrays, split_rows, training_rows
from lemll.metrics.scorers import label_probabilities, label_scores
from lemll.metrics.table import METRICS

Arrays = Mapping[str, Array]

# Stopping criteria of estimators. The attributes of estimators have a trailing underscore.
_CRITERIA = ("optimality", "gradient_norm", "kkt_residual")
_MAX_WARNINGS = 20
# Largest length of a message and of a traceback. The end of a traceback is kept.
_MAX_TEXT = 2_000
_MAX_TRACE = 20_000


@dataclass(frozen=True, slots=True)
class Task:
    """A cell and the objects that run it. `package` is the hash of the source files of lemll.

    `chosen` holds the parameters that the first split has selected, if they are known.
    """

    cell: Cell
    package: str
    estimator: Estimator
    metrics: tuple[str, ...]
    chosen: SettingsView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a task. `arrays` is the content of an .npz file.

    `refused` is the reason why the task was not run here. Such an outcome must not be stored.
    """

    cell_id: str
    status: Status
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    criterion: str | None = None
    criterion_value: float | None = None
    chosen: SettingsView | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    error: Mapping[str, str] | None = None
    environment: SettingsView = field(default_factory=dict)
    arrays: bytes | None = None
    refused: str = ""


class _Result(NamedTuple):
    """The results of a cell before the metrics are computed."""

    estimators: list[Estimator]
    arrays: Arrays
    seconds: dict[str, float]
    chosen: SettingsView | None = None


def failure(cell_id: str, status: Status, kind: str, message: str, trace: str = "") -> Outcome:
    """Return the outcome of a cell that did not give a result."""
    if len(trace) > _MAX_TRACE:
        trace = f"({len(trace) - _MAX_TRACE} characters cut) ... {trace[-_MAX_TRACE:]}"
    error = {"type": _cut(kind), "message": _cut(message), "traceback": trace}
    return Outcome(cell_id=cell_id, status=status, error=error, environment=environment())


def _cut(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    return f"{text[:_MAX_TEXT]} ... ({len(text) - _MAX_TEXT} characters cut)"


def execute(task: Task, dataset: Dataset | None = None) -> Outcome:
    """Run a cell; an exception becomes a part of the outcome.

    Parameters
    ----------
    task : Task
        The task to run.
    dataset : Dataset, optional
        The data, if they were sent with the task. By default they are loaded in this process.

    Returns
    -------
    Outcome
        Done with arrays and metrics, or failed with a traceback.
    """
    if package_sha256() != task.package:
        refusal = (
            "the source files of lemll have changed since the run began, so a new process has "
            "other code than the ids of the cells say: start the run again."
        )
        return Outcome(cell_id=task.cell.id, status="failed", refused=refusal)
    try:
        with _controller().limit(limits=1), _caught_warnings() as caught:
            return _run(task, dataset, caught)
    except MemoryError as error:
        message = f"not enough memory, or the memory limit was reached: {error}"
        kind, trace = type(error).__name__, traceback.format_exc()
        return failure(task.cell.id, "failed", kind, message.removesuffix(": "), trace)
    except BaseException as error:
        # If a method raises SystemExit or KeyboardInterrupt, the cell fails; the worker continues.
        if not isinstance(error, Exception) and _signals_arrive_here():
            raise
        kind, trace = type(error).__name__, traceback.format_exc()
        where = place_in_own_code(error, type(task.estimator))
        text = f"{kind}: {error} ({where}); mend your module" if where else str(error)
        return failure(task.cell.id, "failed", kind, text, trace)


def run_cell(protocol: Protocol, cell: Cell) -> Outcome:
    """Run one cell of a protocol here, without a store.

    Parameters
    ----------
    protocol : Protocol
        The protocol.
    cell : Cell
        One of its cells.

    Returns
    -------
    Outcome
        As of `execute`, with one BLAS thread.
    """
    estimator = protocol.estimator(cell.method)
    return execute(Task(cell, package_sha256(), estimator, protocol.metrics))


def _signals_arrive_here() -> bool:
    """Tell whether Ctrl-C raises KeyboardInterrupt in this thread. In workers it does not."""
    if threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def _run(task: Task, dataset: Dataset | None, caught: list[warnings.WarningMessage]) -> Outcome:
    cell = task.cell
    if dataset is None:
        dataset = _loaded(cell)
    result = (_predict if cell.experiment == "prediction" else _recover)(task, dataset)
    metrics, undefined = measure(cell, dataset, result.arrays, task.metrics)
    criterion, value = _criterion(result.estimators)
    texts = dict.fromkeys(_cut(f"{w.category.__name__}: {w.message}") for w in caught)
    return Outcome(
        cell_id=cell.id,
        status="done",
        metrics=metrics,
        criterion=criterion,
        criterion_value=value,
        chosen=None if result.chosen is None else plain(result.chosen),
        seconds=result.seconds,
        warnings=[*list(texts)[:_MAX_WARNINGS], *undefined],
        environment=environment(),
        arrays=_npz(result.arrays),
    )


def _criterion(estimators: list[Estimator]) -> tuple[str | None, float | None]:
    """Return the stopping criterion of fitted estimators and its (largest) value."""
    for name in _CRITERIA:
        # fmax ignores NaN, the value of models without this criterion.
        value = float(np.fmax.reduce([np.max(getattr(e, f"{name}_", np.nan)) for e in estimators]))
        if np.isfinite(value):
            return name, value
    return None, None


def _loaded(cell: Cell) -> Dataset:
    dataset, sha256 = load_source(cell.source)
    if sha256 != cell.data_sha256:
        raise ValueError(
            f"data set {cell.source.name!r} is not the one the protocol was expanded with; its "
            "file has changed since: start the run again."
        )
    return dataset


def _predict(task: Task, dataset: Dataset) -> _Result:
    cell = task.cell
    train, test = split_rows(cell, dataset)
    cell.setting.check_rows(train, test)
    X, Y, scaling = training_rows(cell, dataset)
    rows = scaling(dataset.X[test])
    start = time.perf_counter()
    models = fit_models(task.estimator, cell, dataset, (X, Y), task.chosen)
    fitted = time.perf_counter()
    estimator = models.first
    arrays: dict[str, Array] = {
        "scores": _scores(estimator, rows),
        "predictions": _predictions(estimator, rows),
        "test": np.asarray(test, dtype=np.int64),
    }
    for name, method in (
        ("scores", "decision_function or predict_proba"),
        ("predictions", "predict"),
    ):
        if arrays[name].shape != (len(test), Y.shape[1]):
            raise ValueError(
                f"{method} of {type(estimator).__name__} returned an array of shape "
                f"{arrays[name].shape}, and {(len(test), Y.shape[1])} is wanted: one row per row "
                "of X and one column per label; mend the method."
            )
    for metric, name in own_arrays(cell, models.chosen).items():
        model = models.others[metric]
        decides = METRICS[metric].prediction == "labels"
        arrays[name] = _predictions(model, rows) if decides else _scores(model, rows)
    seconds = {"fit": fitted - start, "predict": time.perf_counter() - fitted}
    wanted = any(METRICS[name].prediction == "probabilities" for name in task.metrics)
    if wanted and hasattr(estimator, "predict_proba"):
        found = label_probabilities(estimator, rows, "a prediction")
        arrays["probabilities"] = np.asarray(found, dtype=np.float64)
    fits = [getattr(e, "best_estimator_", e) for e in (estimator, *models.others.values())]
    return _Result(fits, arrays, seconds, models.chosen)


def _scores(model: Estimator, rows: Features) -> Array:
    return np.asarray(label_scores(model, rows, "a prediction"), dtype=np.float64)


def _predictions(model: Estimator, rows: Features) -> Array:
    return np.asarray(model.predict(rows), dtype=np.uint8)


_GRAPHS = Graphs()


def _recover(task: Task, dataset: Dataset) -> _Result:
    threshold = task.cell.setting.threshold
    if threshold is None:
        raise ValueError("a reconstruction needs a threshold.")
    Y = binarize_distribution(dataset.D, threshold)
    start = time.perf_counter()
    graph = _GRAPHS.of(task.estimator, dataset)
    if graph is not None:
        task.estimator.set_params(graph=graph)
    built = time.perf_counter()
    recovered = task.estimator.fit_enhance(dataset.X, Y)
    seconds = {"graph": built - start, "fit": time.perf_counter() - built}
    arrays = {
        "distribution": np.asarray(recovered, dtype=np.float64),
        # The numerical labels give the distribution at another scale without a new fit.
        "numerical_labels": np.asarray(task.estimator.numerical_labels_, dtype=np.float64),
    }
    return _Result([task.estimator], arrays, seconds)


def measure(
    cell: Cell, dataset: Dataset, arrays: Arrays, metrics: tuple[str, ...]
) -> tuple[dict[str, float | None], list[str]]:
    """Compute the metrics from the arrays of a cell. This is the only place that does so.

    Parameters
    ----------
    cell : Cell
        The cell.
    dataset : Dataset
        Its data.
    arrays : mapping of str to ndarray
        The arrays, as in the store.
    metrics : tuple of str
        Names in ``lemll.metrics.METRICS``.

    Returns
    -------
    values : dict
        The values by name. None if the metric is not defined on these rows.
    undefined : list of str
        The reasons for undefined metrics.
    """
    prediction = {"labels": "predictions"}
    truth = dataset.labels[arrays["test"]] if cell.experiment == "prediction" else dataset.D
    values: dict[str, float | None] = {}
    undefined = []
    for name in metrics:
        kind = METRICS[name].prediction
        if kind == "probabilities" and kind not in arrays:
            values[name] = None
            undefined.append(f"{name}: {cell.method.label} has no predict_proba.")
            continue
        array = prediction.get(kind, kind)
        try:
            # A metric that selected its own parameters has arrays of its own.
            value = float(METRICS[name](truth, arrays.get(f"{array}.{name}", arrays[array])))
        except ValueError as error:
            value = float("nan")
            undefined.append(f"{name}: {error}")
        values[name] = value if np.isfinite(value) else None
    return values, undefined


def _npz(arrays: Arrays) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def _caught_warnings() -> Iterator[list[warnings.WarningMessage]]:
    # Warning filters are global to the process, so only the main thread may change them.
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
