"""``lemll enhance``: how much each label of your own data matters."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from lemll._types import Features, FloatArray, MatrixLike
from lemll.cli._console import make_console
from lemll.cli._imports import Imports, import_modules
from lemll.cli._ratings import RowNames, ask_ratings, numbered_rows, read_ratings
from lemll.cli._tables import (
    Decimal,
    Delimiter,
    Encoding,
    Id,
    Ignore,
    LabelNames,
    Merge,
    Sep,
    Sheet,
    Tags,
    Untagged,
    check_input,
    check_output,
    is_table,
    label_spec,
    names_of,
    read_data,
    refuse_table_options,
)
from lemll.cli.datasets import Missing, Nominal, load_named
from lemll.datasets import Dataset
from lemll.enhancers import BaseEnhancer, BlendEnhancer, absent_labels
from lemll.exceptions import LemllError
from lemll.experiments import csv_text, get_method, list_methods, write_output
from lemll.tables import Frame, TableEncoder, inspect_columns, split_table

__all__ = ["enhance"]


_SHOWN = 5
# With few rated rows, ratings at wrong rows often have an error that is lower by this share.
_CLEARLY_LOWER = 0.25
# A larger ratio of the ends of the interval of a scale is worth a sentence.
_WIDE = 8


def enhance(
    name: Annotated[str, typer.Argument(help="A file, or a registered name.", metavar="FILE")],
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV file to write.")] = Path(
        "label_distribution.csv"
    ),
    method: Annotated[
        str,
        typer.Option(
            help=f"One of {', '.join(m.name for m in list_methods('enhancer'))}, or one of your "
            "own (--import)."
        ),
    ] = "Blend",
    rated: Annotated[
        Path | None,
        typer.Option(
            help="Table of rated rows: one column per label, and the ids (as --id) or a column "
            "'row', from 0."
        ),
    ] = None,
    *,
    rate: Annotated[
        int,
        typer.Option(
            min=0,
            help="Ask for the degrees of so many rows; they fix how steep the degrees are.",
        ),
    ] = 0,
    tags: Tags = None,
    sep: Sep = None,
    untagged: Untagged = None,
    merge: Merge = None,
    labels: LabelNames = None,
    ids: Id = None,
    ignore: Ignore = None,
    modules: Imports = None,
    nominal: Nominal = None,
    missing: Missing = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    sheet: Sheet = None,
) -> None:
    """Recover how much each label matters in each row.

    The default method, Blend, was the best in our comparison if some rows are rated. If none is, it
    was better than equal degrees of all labels. Other methods have the settings of their papers.

    Examples: lemll enhance photos.csv --tags tags --id file --rate 10; lemll enhance emotions
    """
    console = make_console()
    import_modules(modules)
    enhancer = get_method("enhancer", method).make()
    check_output(output, "-o", [Path(name), *([] if rated is None else [rated])])
    if rated is not None:
        check_input(rated, "--rated")
    rows = None
    if is_table(name, labels, tags):
        reading = {"encoding": encoding, "delimiter": delimiter, "decimal": decimal, "sheet": sheet}
        table = read_data(Path(name), [c for c in (tags, ids) if c is not None], reading)
        spec = label_spec(table, tags=tags, sep=sep, untagged=untagged, labels=labels, merge=merge)
        data = split_table(
            table,
            spec,
            ids=ids,
            ignore=names_of(ignore),
            # Enhancers of the user's own (--import) may not know this attribute.
            needs_features=getattr(enhancer, "needs_features", True),
        )
        dataset = Dataset(X=_features(console, data.X), Y=data.Y, label_names=data.label_names)
        rows = None if data.ids is None else RowNames(str(ids), data.ids, are_ids=True)
    else:
        refuse_table_options(name, {"--tags": tags, "--id": ids, "--ignore": ignore})
        dataset = load_named(name, labels=labels, nominal=nominal, missing=missing)
    rows = rows or numbered_rows(len(dataset))
    Y = _check_labels(name, dataset, rows)
    # Before the fit, so that a mistake in the ratings is reported without a long wait.
    ratings = {} if rated is None else read_ratings(console, rated, dataset.label_names, rows)
    if rate:
        kept = _ratings_file(output, rated)
        asked = ask_ratings(console, Y, dataset.label_names, rows, rate, rated=ratings)
        ratings |= asked
        if asked:
            _keep_ratings(console, kept, rows, dataset.label_names, ratings)
    _fit(enhancer, dataset)
    if ratings:
        enhancer.calibrate(list(ratings), np.array(list(ratings.values())), random_state=0)
        text = _found(enhancer, len(ratings))
    else:
        text = _without_ratings(method, enhancer, dataset)
    console.print(text, markup=False, soft_wrap=True)
    degrees = enhancer.label_distribution_
    write_output(output, csv_text(_lines(rows, dataset.label_names, degrees)))
    _show(console, dataset, rows, degrees)
    console.print(f"wrote {output}: {len(dataset)} rows, {len(dataset.label_names)} labels",
                  soft_wrap=True)  # fmt: skip


def _ratings_file(output: Path, rated: Path | None) -> Path:
    """Return the file for the ratings that will be typed; refuse to replace other ratings."""
    path = output.with_name(f"{output.stem}_ratings.csv")
    if path.exists() and (rated is None or path.resolve() != rated.resolve()):
        raise LemllError(
            f"{path} has earlier ratings; pass --rated {path} to add to them, or remove the file"
        )
    return path


def _keep_ratings(
    console: Console,
    path: Path,
    rows: RowNames,
    label_names: Sequence[str],
    ratings: Mapping[int, FloatArray],
) -> None:
    """Write all ratings, so that the user need not type them again."""
    named = rows._replace(names=[rows.names[row] for row in ratings])
    write_output(path, csv_text(_lines(named, label_names, np.array(list(ratings.values())))))
    console.print(
        f"wrote {path}: {_rows(len(ratings))}; pass --rated {path} to use the ratings again",
        markup=False,
        soft_wrap=True,
    )


def _fit(enhancer: BaseEnhancer, dataset: Dataset) -> None:
    with warnings.catch_warnings():
        # `_without_ratings` says it with the names of the labels, if no row is rated.
        warnings.filterwarnings("ignore", message="no row has the labels")
        enhancer.fit(dataset.X, dataset.Y)


def _without_ratings(method: str, enhancer: BaseEnhancer, dataset: Dataset) -> str:
    """Say what the degrees mean, and which labels have some although no row has these labels."""
    text = f"{method} without rated rows: labels tell which matters more, not how much more."
    if isinstance(enhancer, BlendEnhancer):
        text += (
            " So the degrees differ little on purpose, labels that a row lacks have a share, and "
            "rows with the same labels have the same degrees: the features count only with rated "
            "rows."
        )
    degrees = enhancer.label_distribution_.mean(axis=0)
    absent = [
        f"{dataset.label_names[label]} ({degrees[label]:.2f})"
        for label in absent_labels(np.asarray(dataset.Y), degrees)
    ]
    if absent:
        text += (
            f" No row has the labels {', '.join(absent)}, but they have these mean degrees; leave "
            "them out, or rate some rows."
        )
    return f"{text} Rate a few rows (--rate 10, or --rated FILE) to fix how steep the degrees are."


def _rows(n_rated: int) -> str:
    return "1 rated row" if n_rated == 1 else f"{n_rated} rated rows"


def _found(enhancer: BaseEnhancer, n_rated: int) -> str:
    """Say what rated rows decided, and how sure it is."""
    blend = enhancer.blend_
    source = _rows(n_rated)
    if blend is None:
        if enhancer.scale_interval_ is None:
            return f"scale {enhancer.scale_:.3g} from {source} (one row gives no interval)"
        low, high = enhancer.scale_interval_
        text = f"scale {enhancer.scale_:.3g} from {source} (95 % interval {low:.3g} to {high:.3g})"
        if high > _WIDE * low:
            text += (
                ". The interval is wide: the ratings hardly fix the scale, and small degrees may "
                "vanish; --method Blend, the default, fits more than a scale"
            )
        return text
    weights = ", ".join(
        f"{name} {weight:.2f}"
        for name, weight in sorted(blend.weights.items(), key=lambda item: -abs(item[1]))
        if abs(weight) >= 0.005
    )
    text = f"weights from {source}: {weights or 'none'}."
    if blend.error is None or blend.error_of_mean is None:
        return f"{text} Rate at least 3 rows to know how good they are."
    text += (
        f" Rated rows that were left out have the error {blend.error:.3f} (Kullback-Leibler), and "
        f"{blend.error_of_mean:.3f} if the mean of the other rated rows is taken."
    )
    lower = 1 - blend.error / max(blend.error_of_mean, np.finfo(np.float64).tiny)
    if lower < _CLEARLY_LOWER:
        return (
            f"{text} So the labels hardly explain the ratings; look whether each rating is at its "
            "row."
        )
    return f"{text} So the error is {lower:.0%} lower: labels and features explain the ratings."


def _features(console: Console, frame: Frame) -> Features:
    """Return numbers as they are, as the methods' settings want them; encode other columns."""
    if not frame.shape[1]:
        # A method that does not look at features gets a column that is the same in all rows.
        return np.zeros((len(frame), 1))
    columns = inspect_columns(frame)
    numbers = all(column.kind == "number" and not column.gaps for column in columns)
    if numbers and not frame.isna().to_numpy().any():
        return frame.to_numpy(dtype=np.float64)
    console.print("columns are encoded as lemll info shows", soft_wrap=True)
    return TableEncoder(columns=columns).fit_transform(frame)


def _check_labels(name: str, dataset: Dataset, rows: RowNames) -> MatrixLike:
    if dataset.Y is None:
        raise LemllError(f"{name} has a label distribution already; there is nothing to recover")
    if rows.title in dataset.label_names:
        ids = "ids" if rows.are_ids else "row numbers"
        raise LemllError(
            f"{name} has a label called {rows.title!r}, as the column of {ids}; rename it"
        )
    return dataset.Y


def _lines(
    rows: RowNames, label_names: Sequence[str], distribution: FloatArray
) -> Iterator[list[object]]:
    yield [rows.title, *label_names]
    for name, degrees in zip(rows.names, distribution, strict=True):
        yield [name, *(f"{degree:.6g}" for degree in degrees)]


def _show(console: Console, dataset: Dataset, rows: RowNames, distribution: FloatArray) -> None:
    assert dataset.Y is not None
    table = Table(rows.title, "relevant labels, by degree", title="The first rows")
    for row in range(min(_SHOWN, len(dataset))):
        order = np.argsort(-distribution[row], kind="stable")
        shown = [
            f"{dataset.label_names[label]} {distribution[row, label]:.2f}"
            for label in order
            if dataset.Y[row, label] == 1
        ]
        nothing = "none" if (dataset.Y[row] == 0).all() else "none known"
        table.add_row(rows.names[row], ", ".join(shown) or nothing)
    console.print(table)
