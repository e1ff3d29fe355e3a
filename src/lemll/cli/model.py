"""The commands of a model: ``fit``, ``predict``, ``evaluate``, ``explain`` and ``export``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console

from lemll.cli.console import make_console
from lemll.cli.tables import (
    LEARNERS,
    AsJson,
    Data,
    Model,
    Reading,
    Sep,
    Source,
    Untagged,
    check_output,
    expand,
    interruptible,
    load_model,
    print_assessment,
    print_json,
    print_labels,
    say,
    say_labels,
    say_notes,
)
from lemll.exceptions import LemllError

if TYPE_CHECKING:
    from lemll.models.training import Predictions, TableModel
    from lemll.tables.columns import Column

_SHOWN_COLUMNS = 8


@expand
def fit(
    data: Data,
    *,
    model: Annotated[Path, typer.Option("--model", "-m", help="The model file to write.")],
    source: Source,
    learner: Annotated[
        str, typer.Option("--learner", help=f"One of {', '.join(LEARNERS)}.")
    ] = "TagPredictor",
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            help="Time budget, about, of both fits of TagPredictor, and of the search of LEMLL.",
        ),
    ] = 45.0,
    thresholds: Annotated[
        str | None,
        typer.Option(
            "--thresholds",
            help="Which labels are predicted: zero (probability above one half), or f1 or hamming "
            "(one threshold per label).",
            metavar="zero|f1|hamming",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit a model to a table, say how well it predicts unseen rows, and write it.

    One row in five is held out first, and no choice sees it: the figures come from these rows.
    Then the model is fitted to all rows.

    Examples: lemll fit photos.csv --tags tags --id file -m photos.lemll;
    lemll fit plants.csv --labels red,tall,edible -m plants.lemll --seconds 300
    """
    from lemll.models.files import SUFFIX, save
    from lemll.models.training import fit_table, make_learner

    if model.suffix.lower() != SUFFIX:
        raise LemllError(f"-m must name a file that ends in {SUFFIX}, got {model.name!r}")
    if not model.absolute().parent.is_dir():
        raise LemllError(f"there is no folder {model.absolute().parent} for {model.name}; make it")
    estimator = make_learner(learner, seconds=seconds, thresholds=thresholds)
    table, spec = source.labelled(data)
    with interruptible("no model was written"):
        say_notes(table)
        say_labels(table, spec, source)
        fitted, found = fit_table(
            table, spec, learner=estimator, ids=source.ids, ignore=source.ignored, progress=say
        )
        size = save(fitted, model)
    if as_json:
        print_json(
            {
                "model": str(model),
                "bytes": size,
                "labels": list(fitted.label_names),
                "ignored_columns": {c.name: c.why for c in _ignored(fitted)},
                "held_out": found.to_json(),
            }
        )
    else:
        console = make_console()
        print_assessment(console, found, f"{found.n_rows} rows that no choice has seen")
        print_labels(console, found, fitted.label_names)
        _print_ignored(console, _ignored(fitted))
        console.print(
            f"wrote {model}: {type(fitted.learner).__name__}, {fitted.n_rows} rows, "
            f"{len(fitted.label_names)} labels",
            soft_wrap=True,
        )
        again = shlex.join(["lemll", "explain", str(model), str(data)])
        console.print(f"next: lemll predict {model} NEW -o predictions.csv, or {again}",
                      soft_wrap=True)  # fmt: skip


@expand
def predict(
    model: Model,
    data: Data,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The CSV file to write.")],
    top: Annotated[
        int | None,
        typer.Option(
            "--top", help="Write only the most probable tags, so many per row.", min=1, metavar="N"
        ),
    ] = None,
    reading: Reading,
    as_json: AsJson = False,
) -> None:
    """Predict the tags of the rows of a table: ids, tags and probabilities, as CSV.

    Examples: lemll predict photos.lemll new.csv -o tags.csv;
    lemll predict photos.lemll new.csv -o best.csv --top 3
    """
    from lemll._files import csv_text, write_output

    fitted = load_model(model)
    table = reading.table(data, fitted.keep)
    say_notes(table)
    check_output(output, "-o", [data, model])
    found = fitted.predict(table)
    write_output(output, csv_text(_lines(fitted, found, top)))
    counts = found.labels.sum(axis=1)
    if as_json:
        print_json(
            {
                "output": str(output),
                "rows": len(found.ids),
                "rows_without_a_label": int((counts == 0).sum()),
                "labels": list(fitted.label_names),
            }
        )
        return
    console = make_console()
    console.print(
        f"wrote {output}: {len(found.ids)} rows, {counts.mean():.2f} labels per row", soft_wrap=True
    )
    if fitted.id_column is not None and fitted.id_column not in table.frame.columns:
        console.print(f"there is no column {fitted.id_column!r}; rows are numbered from 1")


@expand
def evaluate(
    model: Model,
    data: Data,
    *,
    sep: Sep = None,
    untagged: Untagged = None,
    reading: Reading,
    as_json: AsJson = False,
) -> None:
    """Compare the predictions of a model with the labels of a table that it has not seen.

    Example: lemll evaluate photos.lemll more.csv
    """
    fitted = load_model(model)
    table = reading.table(data, fitted.keep)
    say_notes(table)
    spec = replace(
        fitted.spec,
        sep=fitted.spec.sep if sep is None else "\t" if sep == r"\t" else sep,
        untagged=untagged or fitted.spec.untagged,
    )
    found, unknown, n_seen = replace(fitted, spec=spec).evaluate(table)
    if as_json:
        seen = {"rows_left_out": n_seen, "unknown_tags": list(unknown)}
        print_json({**found.to_json(), **seen})
        return
    console = make_console()
    print_assessment(console, found, f"{found.n_rows} rows of {data}")
    print_labels(console, found, fitted.label_names)
    if n_seen:
        console.print(
            f"{n_seen} rows have the features of a training row and are left out", soft_wrap=True
        )
    if unknown:
        console.print(
            f"{len(unknown)} tags are not known to the model and are left out: "
            f"{', '.join(unknown[:5])}",
            soft_wrap=True,
        )


def _ignored(fitted: TableModel) -> list[Column]:
    return [column for column in fitted.pipeline[0].columns_ if column.kind == "ignored"]


def _print_ignored(console: Console, columns: list[Column]) -> None:
    if columns:
        shown = [f"{column.name} ({column.why})" for column in columns[:_SHOWN_COLUMNS]]
        more = len(columns) - len(shown)
        shown += [f"and {more} more (--json shows them)"] if more else []
        line = f"ignored columns ({len(columns)}): {'; '.join(shown)}"
        console.print(line, markup=False, soft_wrap=True)


def _lines(fitted: TableModel, found: Predictions, top: int | None) -> Iterator[list[object]]:

    from lemll.tables.edit import join_tags

    sep = fitted.spec.sep or ";"
    # A list keeps a tag that contains the sign between tags, or looks like a list itself.
    as_list = any(sep in name or name.startswith("[") for name in fitted.label_names)
    prefix = "p" if found.are_probabilities else "score"
    names = np.array(fitted.label_names, dtype=object)
    if top is None:
        columns = [f"{prefix}_{name}" for name in names]
    else:
        ranks = range(1, min(top, len(names)) + 1)
        columns = [title for k in ranks for title in (f"tag_{k}", f"{prefix}_{k}")]
    yield [fitted.id_column or "row", "tags", *columns]
    for name, chosen, values in zip(found.ids, found.labels, found.probabilities, strict=True):
        cells = [f"{value:.6f}" for value in values]
        if top is not None:
            best = np.argsort(-values, kind="stable")[:top]
            cells = [cell for j in best for cell in (names[j], cells[j])]
        yield [name, join_tags(names[chosen], sep, as_list=as_list), *cells]


@expand
def explain(
    model: Model,
    data: Data,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "explain.html"
    ),
    reading: Reading,
    as_json: AsJson = False,
) -> None:
    """Write a page that explains a table and its model.

    It shows how much each tag matters in each row, which features tell for a tag, which rows are
    near, which tags occur together, and how calibrated the probabilities are.

    Example: lemll explain photos.lemll photos.csv -o explain.html
    """
    from lemll.models.explain import explain_table
    from lemll.report.explain import write_explanation
    from lemll.report.page import template_environment

    template_environment()  # report a missing library now, not after the work
    fitted = load_model(model)
    table = reading.table(data, fitted.keep)
    say_notes(table)
    with interruptible("nothing was written"):
        found = explain_table(fitted, table, progress=say)
        write_explanation(output, found)
    if as_json:
        print_json(
            {
                "page": str(output),
                "rows": len(found.ids),
                "telling": {
                    name: [feature._asdict() for feature in features]
                    for name, features in zip(found.label_names, found.telling, strict=True)
                },
                "sensitivity": {
                    column: dict(zip(found.label_names, values.tolist(), strict=True))
                    for column, values in zip(found.columns, found.sensitivity, strict=True)
                },
            }
        )
        return
    make_console().print(f"open {output}", soft_wrap=True)


def export(
    model: Model,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The ONNX file to write.")],
) -> None:
    """Write a linear or kernel model of a table of numbers as ONNX, with scaling and thresholds.

    Example: lemll fit plants.csv --labels red,tall --learner LEMLL -m plants.lemll;
    lemll export plants.lemll -o plants.onnx
    """
    from lemll.models.onnx import to_onnx

    fitted = load_model(model)
    content = to_onnx(fitted, output)
    columns = [c.name for c in fitted.pipeline[0].columns_ if c.kind != "ignored"]
    console = make_console()
    console.print(f"wrote {output}: {len(content)} bytes", soft_wrap=True)
    console.print(f"input X, double, one row per example; columns: {', '.join(columns)}",
                  soft_wrap=True)  # fmt: skip
    console.print(f"outputs of shape (rows, labels); labels: {', '.join(fitted.label_names)}",
                  soft_wrap=True)  # fmt: skip
