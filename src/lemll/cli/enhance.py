"""``lemll enhance``: how much each label of your own data matters."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as RichTable

from lemll._files import csv_text, safe_cell, write_output
from lemll._types import Features, FloatArray, Frame, MatrixLike
from lemll.cli.console import make_console, safe_text
from lemll.cli.tables import (
    Source,
    check_input,
    check_output,
    expand,
    is_table,
    load_named,
    named_class,
    refuse_table_options,
)
from lemll.datasets.dataset import Dataset
from lemll.enhancers import ENHANCERS, BaseEnhancer, BlendEnhancer
from lemll.enhancers.base import absent_labels
from lemll.exceptions import LemllError
from lemll.tables.columns import inspect_columns
from lemll.tables.encoder import TableEncoder
from lemll.tables.files import Table, read_table
from lemll.tables.labels import split_table
from lemll.tables.text import is_missing

__all__ = [
    "RowNames",
    "ask_ratings",
    "enhance",
    "numbered_rows",
    "read_ratings",
]

_LARGEST_DEGREE = 1e100
# Ends an answer that leaves out the labels that a row lacks.
_REST = "*"


class RowNames(NamedTuple):
    """How a user calls the rows.

    Attributes
    ----------
    title : str
        The column of ids, or "row".
    names : sequence of str
        The ids, or the numbers from 0.
    are_ids : bool
        Which of the two.
    """

    title: str
    names: Sequence[str]
    are_ids: bool


def read_ratings(
    console: Console, path: Path, label_names: Sequence[str], rows: RowNames
) -> dict[int, FloatArray]:
    """Read rated rows; say which columns are not used.

    Parameters
    ----------
    console : Console
        The user's console.
    path : Path
        A table with one row per rated row, one column per label, and the ids of the rows in the
        column of ids, or their numbers, from 0, in a column "row".
    label_names : sequence of str
        The labels.
    rows : RowNames
        The rows of the data.

    Returns
    -------
    dict of int to ndarray
        The degrees of each rated row. They sum to 1.
    """
    # No sum of degrees needs a sign between thousands, so a comma is a decimal mark.
    table = read_table(path, keep=[rows.title], decimal=",")
    given = list(table.frame.columns)
    key = rows.title if rows.title in given else "row"
    # Programs write a letter with an accent as one sign or as two.
    composed = {unicodedata.normalize("NFC", str(name)): name for name in given}
    # lemll writes a label name that looks like a formula with an apostrophe before it.
    columns = {
        name: name if name in given else composed.get(
            unicodedata.normalize("NFC", name), str(safe_cell(name)))
        for name in label_names
    }  # fmt: skip
    absent = [name for name in columns.values() if name not in given]
    if key not in given or absent:
        ids = f"the ids in {rows.title!r} or " if rows.are_ids else ""
        lacks = ", ".join(map(repr, [*([] if key in given else [rows.title]), *absent]))
        hint = "" if rows.are_ids else "; to rate by ids, pass --id COL"
        raise LemllError(
            f"--rated {path} lacks {lacks}; it needs {ids}the row numbers, counted "
            f"from 0, in 'row', and one column per label{hint}"
        )
    unused = [str(name) for name in given if name not in (key, *columns.values())]
    if unused:
        console.print(
            f"--rated {path}: not used, because the data have no such label: {', '.join(unused)}",
            markup=False,
            soft_wrap=True,
        )
    places = _places(rows) if key == rows.title else _places(numbered_rows(len(rows.names)))
    ratings: dict[int, FloatArray] = {}
    for i, cell in enumerate(table.frame[key]):
        row = _row(table, key, cell, places)
        where = f"{table.source}, {key} {cell}"
        if row in ratings:
            raise LemllError(f"{where} is rated twice; leave one line out")
        degrees = [_degree(table.frame[columns[name]].iloc[i], where, columns[name])
                   for name in label_names]  # fmt: skip
        ratings[row] = _shares(degrees, where)
    return ratings


def numbered_rows(n_rows: int) -> RowNames:
    """Return the names of rows without ids: their numbers, from 0."""
    return RowNames("row", [str(row) for row in range(n_rows)], are_ids=False)


def _places(rows: RowNames) -> dict[str, int]:
    # An id that looks like a formula may be as lemll writes it.
    safe = {str(safe_cell(name)): row for row, name in enumerate(rows.names)}
    return safe | {name: row for row, name in enumerate(rows.names)}


def _row(table: Table, key: str, cell: object, places: dict[str, int]) -> int:
    found = None if is_missing(cell) else places.get(str(cell).strip())
    if found is None:
        what = "an empty cell" if is_missing(cell) else repr(str(cell))
        names = list(places)
        numbers = "; rows are counted from 0" if names[0] == "0" else ""
        raise LemllError(
            f"{table.source}: column {key!r} holds {what}, which is no {key} of the data, such as "
            f"{names[0]!r} or {names[-1]!r}{numbers}; mend or leave out this line"
        )
    return found


def _degree(cell: MatrixLike, where: str, column: str) -> float:
    if is_missing(cell):
        raise LemllError(
            f"{where}: column {column!r} is empty; write 0 if this label does not matter there"
        )
    try:
        degree = float(str(cell).strip().removesuffix("%").replace(",", "."))
    except ValueError:
        degree = np.nan
    if not 0 <= degree < _LARGEST_DEGREE:
        raise LemllError(
            f"{where}: column {column!r} must hold a degree, a number from 0, got {str(cell)!r}; "
            "write for example 0.5, or 50 for 50 of 100 points"
        )
    return degree


def _shares(degrees: list[float], where: str) -> FloatArray:
    values = np.array(degrees, dtype=np.float64)
    if not values.max() > 0:
        raise LemllError(
            f"{where}: all degrees are 0; give the labels that matter a number above 0, or leave "
            "the row out"
        )
    return np.asarray(values / values.sum())


def ask_ratings(
    console: Console,
    Y: MatrixLike,
    label_names: Sequence[str],
    rows: RowNames,
    n_asked: int,
    *,
    rated: Collection[int] = (),
) -> dict[int, FloatArray]:
    """Ask for the degrees of random rows; their sum may be any positive number, as 10 or 100.

    Parameters
    ----------
    console : Console
        Where to write.
    Y : ndarray of shape (n_rows, n_labels)
        The labels, which are shown.
    label_names : sequence of str
        Their names.
    rows : RowNames
        The rows.
    n_asked : int
        How many rows to ask for.
    rated : collection of int, default=()
        Rows that are rated already.

    Returns
    -------
    dict of int to ndarray
        The degrees of each rated row. They sum to 1.
    """
    counted = "" if rows.are_ids else " Rows are counted from 0; to see their ids, pass --id COL."
    console.print(
        f"Type the degrees of {', '.join(label_names)}, separated by blanks; their sum may be any "
        "number, as 1 or 100. Or type those of the labels that the question shows, in its order, "
        f"and then {_REST}: the other labels get 0. An empty line skips the row; Ctrl-C ends the "
        f"questions.{counted}",
        markup=False,
        soft_wrap=True,
    )
    ratings: dict[int, FloatArray] = {}
    order = np.random.RandomState(0).permutation(len(Y)).tolist()
    for row in [row for row in order if row not in rated][:n_asked]:
        where = f"{rows.title} {rows.names[row]}"
        relevant = [name for name, on in zip(label_names, Y[row], strict=True) if on == 1]
        while True:
            try:
                answer = typer.prompt(
                    safe_text(f"{where} ({', '.join(relevant) or 'no label'})"),
                    default="",
                    show_default=False,
                )
            except typer.Abort:  # no more answers; use those given so far
                return ratings
            if not answer.strip():
                break
            try:
                ratings[row] = _shares(_answered(answer, where, label_names, relevant), where)
            except LemllError as error:
                console.print(str(error), markup=False, soft_wrap=True)
                continue
            break
    return ratings


def _answered(
    answer: str, where: str, label_names: Sequence[str], relevant: Sequence[str]
) -> list[float]:
    texts = answer.split()
    # A forgotten number must not pass for a short answer, hence the sign.
    short = bool(relevant) and texts[-1] == _REST
    if short:
        texts.pop()
    rated = relevant if short else label_names
    if len(texts) != len(rated):
        other = f", or for each of {', '.join(relevant)} and then {_REST}" if relevant else ""
        raise LemllError(
            f"{where}: expected {len(rated)} numbers, got {len(texts)}; give one for each of "
            f"{', '.join(label_names)}, separated by blanks{other}"
        )
    given = {name: _degree(text, where, name) for name, text in zip(rated, texts, strict=True)}
    return [given.get(name, 0.0) for name in label_names]


_SHOWN = 5
_METHODS = {kind.__name__.removesuffix("Enhancer"): kind for kind in ENHANCERS}
# With few rated rows, ratings at wrong rows often have an error that is lower by this share.
_CLEARLY_LOWER = 0.25
# A larger ratio of the ends of the interval of a scale is worth a sentence.
_WIDE = 8


@expand
def enhance(
    name: Annotated[str, typer.Argument(help="A file, or a registered name.", metavar="FILE")],
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV file to write.")] = Path(
        "label_distribution.csv"
    ),
    method: Annotated[
        str,
        typer.Option(
            help=f"One of {', '.join(_METHODS)}, or another class: lemll.rivals:GLLEEnhancer, or "
            "your_module:YourEnhancer."
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
    source: Source,
) -> None:
    """Recover how much each label matters in each row.

    The default method, Blend, was the best in our comparison if some rows are rated. If none is, it
    was better than equal degrees of all labels. Other methods have the settings of their papers.

    Examples: lemll enhance photos.csv --tags tags --id file --rate 10; lemll enhance emotions
    """
    console = make_console()
    enhancer = _enhancer(method)
    check_output(output, "-o", [Path(name), *([] if rated is None else [rated])])
    if rated is not None:
        check_input(rated, "--rated")
    rows = None
    if is_table(name, source):
        table, spec = source.labelled(Path(name))
        data = split_table(
            table,
            spec,
            ids=source.ids,
            ignore=source.ignored,
            # Enhancers of the user's own may not know this attribute.
            needs_features=getattr(enhancer, "needs_features", True),
        )
        dataset = Dataset(X=_features(console, data.X), Y=data.Y, label_names=data.label_names)
        rows = None if data.ids is None else RowNames(str(source.ids), data.ids, are_ids=True)
    else:
        refuse_table_options(name, source)
        dataset = load_named(name, labels=source.labels)
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


def _enhancer(method: str) -> BaseEnhancer:
    """Return an enhancer of lemll by its name, or one of any class as module:Class."""
    kind = _METHODS.get(method) or named_class("--method", method, _METHODS)
    made = kind()
    if not callable(getattr(made, "fit_enhance", None)):
        raise LemllError(f"--method {method}: {kind.__name__} has no method fit_enhance")
    return made  # type: ignore[no-any-return]


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
    table = RichTable(rows.title, "relevant labels, by degree", title="The first rows")
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
