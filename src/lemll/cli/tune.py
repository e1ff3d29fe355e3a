"""``lemll tune``: choose parameters for a data file by cross-validation, and predict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.preprocessing import Normalizer

from lemll._types import Array, Features, MatrixLike
from lemll.cli._console import make_console
from lemll.cli.datasets import Labels, Missing, Nominal, load_named
from lemll.exceptions import LemllError
from lemll.experiments import csv_text
from lemll.metrics import METRICS
from lemll.model_selection import IterativeStratifiedKFold
from lemll.predictors import LEMLL, LEMLLCV, SearchProgress
from lemll.report import draw_label_movement, draw_scores, score_surface

__all__ = ["tune"]

_INTERRUPTED = 130  # by convention, the exit code of a process that Ctrl-C ended


class SearchKind(StrEnum):
    """The points that the search tries."""

    GRID = "grid"
    COARSE = "coarse"


def tune(
    file: Annotated[str, typer.Argument(help="A file, or the name of a registered data set.")],
    *,
    labels: Labels = None,
    nominal: Nominal = None,
    missing: Missing = None,
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
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Number of folds to run at the same time.")
    ] = 1,
    output: Annotated[Path, typer.Option(help="Folder for tables and pictures.")] = Path(
        "tune-output"
    ),
) -> None:
    """Choose alpha, beta, gamma and the kernel by cross-validation, and score the choice.

    The score is that of rows that had no part in the search. The score of the folds would be too
    optimistic, because the folds chose the best of many points.
    """
    dataset = load_named(file, labels=labels, nominal=nominal, missing=missing)
    if dataset.Y is None:
        raise LemllError(f"{file} has no logical labels to learn from")
    if len(dataset.Y) < 2 * holdout:
        raise LemllError(
            f"--holdout {holdout} needs at least {2 * holdout} rows, and {file} has "
            f"{len(dataset.Y)}; pass a smaller --holdout, or more rows"
        )
    searched, held_out = next(IterativeStratifiedKFold(holdout).split(dataset.X, dataset.Y))
    console = make_console()
    measures = [name.strip() for name in scoring.split(",")]
    model = LEMLLCV(
        scoring=measures,
        kernel=kernel,
        normalize_rows="auto" if kernel == "auto" else False,
        search=search.value,
        cv=folds,
        n_jobs=jobs,
    )
    try:
        with _progress(console) as report:
            model.set_params(callback=report).fit(dataset.X[searched], dataset.Y[searched])
        scores = model.decision_function(dataset.X[held_out])
        movement = _label_movement(model, dataset.X[searched], dataset.Y[searched])
        _write(output, model, movement, measures[0])
        _write_held_out(output, held_out, scores, list(dataset.label_names))
    except KeyboardInterrupt:
        console.print("stopped; nothing was written")
        raise typer.Exit(_INTERRUPTED) from None
    # The share of each label in the cells that were observed; 0 if nobody observed the label.
    observed = ~np.isnan(dataset.Y[searched])
    positives = np.nansum(dataset.Y[searched], axis=0)
    shares = positives / np.maximum(observed.sum(axis=0), 1)
    frequency = np.tile(shares - 0.5, (len(held_out), 1))
    _print_summary(console, model)
    _print_scores(console, dataset.Y[held_out], scores, frequency, measures)
    console.print(f"wrote {output}", soft_wrap=True)


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[SearchProgress], None]]:
    """Show, on a terminal only, how many fits are done and how long the rest may take."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} fits"),
               TimeElapsedColumn(), TextColumn("left about"), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("Searching", total=None)

        def report(progress: SearchProgress) -> None:
            bar.update(task, completed=progress.done, total=progress.expected)

        yield report


def _label_movement(
    model: LEMLLCV, X: Features, Y: Array
) -> tuple[list[tuple[float, float]], list[float]]:
    """Mean distance of U from Y at the best alpha and kernel, over beta and gamma."""
    best = dict(model.best_params_)
    rows = Normalizer().transform(X) if best.pop("normalize_rows") else X
    surface = score_surface(model.cv_results_, model.best_index_, model.scoring[0])
    points = [(float(b), float(g)) for b in surface.betas for g in surface.gammas]
    signs = 2.0 * Y - 1.0
    distances = []
    for beta, gamma in points:
        fitted = LEMLL(**best | {"beta": beta, "gamma": gamma}, tol=1e-3).fit(rows, Y)
        distances.append(float(np.nanmean(np.abs(fitted.numerical_labels_ - signs))))
    return points, distances


def _write(
    output: Path,
    model: LEMLLCV,
    movement: tuple[list[tuple[float, float]], list[float]],
    measure: str,
) -> None:
    """Write the table and the pictures of the search when all of them are complete."""
    surface = draw_scores(score_surface(model.cv_results_, model.best_index_, measure))
    moved = draw_label_movement(*movement)
    output.mkdir(parents=True, exist_ok=True)
    results = model.cv_results_
    _write_csv(output / "results.csv", list(results), zip(*results.values(), strict=True))
    (output / "scores.png").write_bytes(surface)
    (output / "label_movement.png").write_bytes(moved)


def _write_held_out(output: Path, rows: Features, scores: MatrixLike, names: list[str]) -> None:
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


def _print_scores(
    console: Console, Y: MatrixLike, scores: MatrixLike, frequency: Any, measures: list[str]
) -> None:
    """Print how well the best parameters predict new rows, beside prediction by frequency."""
    title = f"{len(Y)} rows that had no part in the search"
    table = Table("measure", "LEMLL", "labels by frequency", title=title)
    for name in measures:
        metric = METRICS[name]
        values = [
            metric(Y, (s > 0).astype(int) if metric.prediction == "labels" else s)
            for s in (scores, frequency)
        ]
        table.add_row(f"{metric.title} {metric.arrow}", *(f"{value:.4f}" for value in values))
    console.print(table)
