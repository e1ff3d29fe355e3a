"""``lemll tune``: choose parameters for a data file by cross-validation, and predict."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.base import clone
from sklearn.preprocessing import Normalizer

from lemll._files import csv_text
from lemll._types import Features, FloatArray, IndexArray, MatrixLike
from lemll.cli.console import make_console
from lemll.cli.tables import (
    AsJson,
    Source,
    expand,
    interruptible,
    is_table,
    load_named,
    print_assessment,
    print_json,
    refuse_table_options,
    say,
    say_labels,
)
from lemll.datasets.dataset import Dataset
from lemll.exceptions import LemllError
from lemll.model_selection import equal_row_groups
from lemll.models.assess import assess, label_shares
from lemll.models.training import stratified_splits
from lemll.predictors.folds import SearchProgress
from lemll.predictors.lemll import LEMLL
from lemll.predictors.lemll_cv import LEMLLCV
from lemll.report.tuning import draw_label_movement, draw_scores, score_surface
from lemll.tables.columns import inspect_columns
from lemll.tables.encoder import TableEncoder
from lemll.tables.labels import LabelledTable, split_table

__all__ = ["tune"]

# Share of the time budget for the search; the final fit and the pictures need the rest.
_SEARCH_SHARE = 0.6
# In a pipe, a line about the progress is printed at most this often.
_SECONDS_BETWEEN_LINES = 5.0


class SearchKind(StrEnum):
    """The points that the search tries."""

    GRID = "grid"
    COARSE = "coarse"


@expand
def tune(
    file: Annotated[str, typer.Argument(help="A file, or the name of a registered data set.")],
    *,
    source: Source,
    kernel: Annotated[str, typer.Option(help="auto, linear, rbf, poly, sigmoid, cosine.")] = "auto",
    scoring: Annotated[
        str, typer.Option(help="Measures, separated by commas; the first one decides.")
    ] = "average_precision",
    search: Annotated[
        SearchKind, typer.Option(help="All points, or a search from coarse to fine.")
    ] = (SearchKind.COARSE),
    folds: Annotated[int, typer.Option(help="Number of folds.", min=2)] = 5,
    holdout: Annotated[
        int,
        typer.Option(help="One row in this number stays out of the search, to score it.", min=2),
    ] = 5,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Time budget, about; 0 means no limit.", min=0)
    ] = 45.0,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Number of folds to run at the same time.")
    ] = 1,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for tables and pictures.")
    ] = Path("tune-output"),
    as_json: AsJson = False,
) -> None:
    """Choose alpha, beta, gamma and the kernel by cross-validation, and score the choice.

    The score is that of rows that had no part in the search. The score of the folds would be too
    optimistic, because the folds chose the best of many points. Ctrl-C ends the search, and the
    best so far is scored and written.

    Examples: lemll tune photos.csv --tags tags --id file; lemll tune yeast
    """
    console = make_console()
    clock = _Clock(seconds)
    if is_table(file, source):
        table, spec = source.labelled(Path(file))
        say_labels(table, spec, source)
        split = _split_table(
            split_table(table, spec, ids=source.ids, ignore=source.ignored), holdout
        )
    else:
        refuse_table_options(file, source)
        dataset = load_named(file, labels=source.labels)
        split = _split_dataset(dataset, holdout)
    measures = [name.strip() for name in scoring.split(",")]
    model = LEMLLCV(
        scoring=measures,
        kernel=kernel,
        normalize_rows="auto" if kernel == "auto" else False,
        search=search.value,
        cv=folds,
        n_jobs=jobs,
        max_seconds=clock.share(_SEARCH_SHARE),
    )
    with interruptible("nothing was written"):
        with _stoppable() as stopped, _progress(console, stopped) as report:
            model.set_params(callback=report).fit(split.X, split.Y)
        scores = model.decision_function(split.X_new)
        movement = _label_movement(model, split.X, split.Y, clock)
        _write(output, model, movement, measures[0])
        _write_held_out(output, split.rows, scores, list(split.names))
    shares = label_shares(split.Y)
    groups = equal_row_groups(split.X_new, 1)
    found = assess(split.Y_new, scores, scores > 0, shares, groups=groups)
    if as_json:
        print_json(
            {
                "best_parameters": model.best_params_,
                "points": len(model.cv_results_["optimality"]),
                "stopped": stopped(),
                "held_out": found.to_json(),
                "output": str(output),
            }
        )
        return
    _print_summary(console, model)
    print_assessment(console, found, f"{found.n_rows} rows that had no part in the search")
    if stopped():
        console.print("The search was stopped; these are the best parameters so far.")
    if movement is None:
        console.print("label_movement.png was left out: the time was used up (--seconds)")
    console.print(f"wrote {output}", soft_wrap=True)


@contextmanager
def _stoppable() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C end the search with the best so far, and the second end the command."""
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        say("stopping after this part of the search; press Ctrl-C again to write nothing")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


class _Split(NamedTuple):
    """Rows of the search, and rows that have no part in it."""

    X: Features
    Y: FloatArray
    X_new: Features
    Y_new: FloatArray
    rows: Sequence[object]
    names: Sequence[str]


class _Clock:
    """The time budget of the command."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds or float("inf")
        self._begin = time.perf_counter()

    def share(self, share: float) -> float | None:
        """Return a share of the budget; None if there is no limit."""
        return None if self._seconds == float("inf") else share * self._seconds

    def is_over(self) -> bool:
        """Return whether the budget is used up."""
        return time.perf_counter() - self._begin > self._seconds


def _split_table(data: LabelledTable, holdout: int) -> _Split:
    # All rows decide what a column holds, as in lemll fit; the labels have no part in it.
    encoder = TableEncoder(columns=inspect_columns(data.X))
    searched, held_out = _hold_out(clone(encoder).fit_transform(data.X), data.Y, holdout)
    X = encoder.fit_transform(data.X.iloc[searched])
    X_new = encoder.transform(data.X.iloc[held_out])
    rows = held_out.tolist() if data.ids is None else [data.ids[row] for row in held_out]
    return _Split(X, data.Y[searched], X_new, data.Y[held_out], rows, data.label_names)


def _split_dataset(dataset: Dataset, holdout: int) -> _Split:
    if dataset.Y is None:
        raise LemllError(f"{dataset.source} has no logical labels to learn from")
    searched, held_out = _hold_out(dataset.X, dataset.Y, holdout)
    return _Split(
        dataset.X[searched],
        dataset.Y[searched].astype(np.float64),
        dataset.X[held_out],
        dataset.Y[held_out].astype(np.float64),
        held_out.tolist(),
        dataset.label_names,
    )


def _hold_out(X: Features, Y: MatrixLike, holdout: int) -> tuple[IndexArray, IndexArray]:
    if len(Y) < 2 * holdout:
        raise LemllError(
            f"--holdout {holdout} needs at least {2 * holdout} rows, and there are {len(Y)}; pass "
            "a smaller --holdout, or more rows"
        )
    return next(stratified_splits(X, Y, holdout, say=say))


@contextmanager
def _progress(
    console: Console, stopped: Callable[[], bool]
) -> Iterator[Callable[[SearchProgress], bool]]:
    """Show how many fits are done: a bar on a terminal, otherwise a line now and then."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} fits"),
               TimeElapsedColumn(), TextColumn("left about"), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("Searching", total=None)
        said = 0.0

        def report(progress: SearchProgress) -> bool:
            nonlocal said
            bar.update(task, completed=progress.done, total=progress.expected)
            if not console.is_terminal and progress.elapsed - said >= _SECONDS_BETWEEN_LINES:
                said = progress.elapsed
                say(f"searching: {progress.done} of about {progress.expected} fits, {said:.0f} s")
            return stopped()

        yield report


def _label_movement(
    model: LEMLLCV, X: Features, Y: FloatArray, clock: _Clock
) -> tuple[list[tuple[float, float]], list[float]] | None:
    """Mean distance of U from Y at the best alpha and kernel, over beta and gamma.

    It is None if the time was used up.
    """
    best = dict(model.best_params_)
    best["kernel_params"] = {"gamma": best.pop("kernel_gamma")}
    rows = Normalizer().transform(X) if best.pop("normalize_rows") else X
    surface = score_surface(model.cv_results_, model.best_index_, model.scoring[0])
    points = [(float(b), float(g)) for b in surface.betas for g in surface.gammas]
    signs = 2.0 * Y - 1.0
    distances = []
    for beta, gamma in points:
        if clock.is_over():
            return None
        fitted = LEMLL(**best | {"beta": beta, "gamma": gamma}, tol=1e-3).fit(rows, Y)
        distances.append(float(np.nanmean(np.abs(fitted.numerical_labels_ - signs))))
    return points, distances


def _write(
    output: Path,
    model: LEMLLCV,
    movement: tuple[list[tuple[float, float]], list[float]] | None,
    measure: str,
) -> None:
    """Write the table and the pictures of the search when all of them are complete."""
    surface = draw_scores(score_surface(model.cv_results_, model.best_index_, measure))
    moved = None if movement is None else draw_label_movement(*movement)
    output.mkdir(parents=True, exist_ok=True)
    results = model.cv_results_
    _write_csv(output / "results.csv", list(results), zip(*results.values(), strict=True))
    (output / "scores.png").write_bytes(surface)
    if moved is not None:
        (output / "label_movement.png").write_bytes(moved)


def _write_held_out(
    output: Path, rows: Sequence[object], scores: MatrixLike, names: list[str]
) -> None:
    """Write scores and predictions of the rows that had no part in the search."""
    for file, values in {"scores": scores, "predictions": (scores > 0).astype(int)}.items():
        numbered = ([row, *line] for row, line in zip(rows, values.tolist(), strict=True))
        _write_csv(output / f"held_out_{file}.csv", ["row", *names], numbered)


def _write_csv(path: Path, header: list[str], rows: Iterable[Iterable[object]]) -> None:
    path.write_text(csv_text([header, *rows]), encoding="utf-8", newline="")


def _print_summary(console: Console, model: LEMLLCV) -> None:
    """Print the best parameters, and how many points were tried."""
    best = Table("parameter", "value", title="Best of the points tried")
    for name, value in model.best_params_.items():
        best.add_row(name, f"{value:.6g}" if isinstance(value, float) else str(value))
    console.print(best)
    tried = len(model.cv_results_["optimality"])
    gap = float(model.cv_results_["optimality"].max())
    console.print(f"{tried} points in {model.n_splits_} folds, certified gaps up to {gap:.1e}")
