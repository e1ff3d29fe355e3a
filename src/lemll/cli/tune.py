"""``lemll tune``: parameters for a data file by cross-validation, with what they predict."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from lemll.cli._console import make_console
from lemll.cli.datasets import Labels, Missing, Nominal, load_named
from lemll.datasets import Dataset
from lemll.exceptions import LemllError
from lemll.metrics import METRICS
from lemll.model_selection import IterativeStratifiedKFold
from lemll.predictors import LEMLL, LEMLLCV, SearchProgress
from lemll.report.tuning import draw_label_movement, draw_scores, score_surface

__all__ = ["tune"]

_INTERRUPTED = 130  # by convention, what a process ended by Ctrl-C returns


class Search(StrEnum):
    """Which points are tried."""

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
        str, typer.Option(help="Measures with commas between; the first decides.")
    ] = "average_precision",
    search: Annotated[Search, typer.Option(help="All points, or from coarse to fine.")] = (
        Search.COARSE
    ),
    folds: Annotated[int, typer.Option(help="Number of folds.", min=2)] = 5,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Folds to work on at a time.")] = 1,
    output: Annotated[Path, typer.Option(help="Folder for tables and pictures.")] = Path(
        "tune-output"
    ),
) -> None:
    """Choose alpha, beta, gamma and the kernel by cross-validation; predict the held-out rows."""
    dataset = load_named(file, labels=labels, nominal=nominal, missing=missing)
    if dataset.Y is None:
        raise LemllError(f"{file} has no logical labels to learn from")
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
            model.set_params(callback=report).fit(dataset.X, dataset.Y)
        held_out = _held_out_scores(model, dataset, folds)
        _write(output, model, dataset, held_out, measures[0])
    except KeyboardInterrupt:
        console.print("stopped; nothing was written")
        raise typer.Exit(_INTERRUPTED) from None
    _print_summary(console, model, dataset, held_out, measures)
    console.print(f"wrote {output}", soft_wrap=True)


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[SearchProgress], None]]:
    """Show how many fits are done and how long the rest may take; only on a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} fits"),
               TimeElapsedColumn(), TextColumn("left about"), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("Searching", total=None)

        def report(progress: SearchProgress) -> None:
            bar.update(task, completed=progress.done, total=progress.expected)

        yield report


def _held_out_scores(model: LEMLLCV, dataset: Dataset, folds: int) -> Any:
    """Score every row by a model of the best parameters that has not seen it."""
    best = dict(model.best_params_)
    rows = Normalizer() if best.pop("normalize_rows") else FunctionTransformer()
    final = make_pipeline(rows, LEMLL(**best, tol=model.tol_final))
    cv = IterativeStratifiedKFold(folds)
    return cross_val_predict(final, dataset.X, dataset.Y, cv=cv, method="decision_function")


def _label_movement(
    model: LEMLLCV, dataset: Dataset
) -> tuple[list[tuple[float, float]], list[float]]:
    """Mean distance of U from Y at the best alpha and kernel, over beta and gamma."""
    best = dict(model.best_params_)
    rows = Normalizer().transform(dataset.X) if best.pop("normalize_rows") else dataset.X
    surface = score_surface(model.cv_results_, model.best_index_, model.scoring[0])
    points = [(float(b), float(g)) for b in surface.betas for g in surface.gammas]
    signs = 2.0 * np.asarray(dataset.Y) - 1.0
    distances = []
    for beta, gamma in points:
        fitted = LEMLL(**best | {"beta": beta, "gamma": gamma}, tol=1e-3).fit(rows, dataset.Y)
        distances.append(float(np.abs(fitted.numerical_labels_ - signs).mean()))
    return points, distances


def _write(output: Path, model: LEMLLCV, dataset: Dataset, held_out: Any, measure: str) -> None:
    """Write everything once all of it is there."""
    surface = draw_scores(score_surface(model.cv_results_, model.best_index_, measure))
    movement = draw_label_movement(*_label_movement(model, dataset))
    output.mkdir(parents=True, exist_ok=True)
    results = model.cv_results_
    _write_csv(output / "results.csv", list(results), zip(*results.values(), strict=True))
    names = list(dataset.label_names)
    for file, values in {"scores": held_out, "predictions": (held_out > 0).astype(int)}.items():
        numbered = ([row, *line] for row, line in enumerate(values.tolist()))
        _write_csv(output / f"held_out_{file}.csv", ["row", *names], numbered)
    (output / "scores.png").write_bytes(surface)
    (output / "label_movement.png").write_bytes(movement)


def _write_csv(path: Path, header: list[str], rows: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)


def _print_summary(
    console: Console, model: LEMLLCV, dataset: Dataset, held_out: Any, measures: list[str]
) -> None:
    """Print the best parameters, and how well they do beside labels by frequency."""
    best = Table("parameter", "value", title="Best of the points tried")
    for name, value in model.best_params_.items():
        best.add_row(name, f"{value:.6g}" if isinstance(value, float) else str(value))
    console.print(best)
    Y = np.asarray(dataset.Y)
    frequency = np.empty(Y.shape)
    for train, test in IterativeStratifiedKFold(model.n_splits_).split(dataset.X, Y):
        frequency[test] = Y[train].mean(axis=0) - 0.5
    scores = Table("measure", "LEMLL", "labels by frequency", title="Rows held out, all folds")
    for name in measures:
        metric = METRICS[name]
        values = [
            metric(Y, (s > 0).astype(int) if metric.prediction == "labels" else s)
            for s in (held_out, frequency)
        ]
        scores.add_row(f"{metric.title} {metric.arrow}", *(f"{value:.4f}" for value in values))
    console.print(scores)
    tried = len(model.cv_results_["optimality"])
    gap = float(model.cv_results_["optimality"].max())
    console.print(f"{tried} points in {model.n_splits_} folds, certified gaps up to {gap:.1e}")
