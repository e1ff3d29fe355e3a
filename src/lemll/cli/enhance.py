"""``lemll enhance``: how much each label of your own data matters."""

from __future__ import annotations

import itertools
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as RichTable

from lemll._files import csv_text, safe_cell, write_output
from lemll._types import Features, FloatArray, Frame, MatrixLike
from lemll._validation import unknown_name
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
from lemll.enhancers.order import Comparison, RankedLabel, next_pairs
from lemll.exceptions import LemllError
from lemll.tables.columns import inspect_column, inspect_columns
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
            f"{table.source}: column {key!r} holds {what}, which is not a {key} of the data, such "
            f"as {names[0]!r} or {names[-1]!r}{numbers}; mend or leave out this line"
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


def read_comparisons(
    path: Path, Y: MatrixLike, label_names: Sequence[str], rows: RowNames
) -> list[Comparison]:
    """Read answers to the question which of two labels matters more in a row.

    Parameters
    ----------
    path : Path
        A table with the columns "more" and "less", and the ids of the rows in the column of ids, or
        their numbers, from 0, in a column "row".
    Y : ndarray of shape (n_rows, n_labels)
        The labels.
    label_names : sequence of str
        Their names.
    rows : RowNames
        The rows of the data.

    Returns
    -------
    list of Comparison
        The answers.
    """
    table = read_table(path, keep=[rows.title, "row", *_ANSWER])
    given = list(table.frame.columns)
    key = rows.title if rows.title in given else "row"
    absent = [name for name in (key, *_ANSWER) if name not in given]
    if absent:
        ids = f"the ids in {rows.title!r} or " if rows.are_ids else ""
        raise LemllError(
            f"--compared {path} lacks {', '.join(map(repr, absent))}; it needs {ids}the row "
            "numbers, counted from 0, in 'row', the label that matters more in 'more' and the "
            "other one in 'less'"
        )
    places = _places(rows) if key == rows.title else _places(numbered_rows(len(rows.names)))
    # lemll writes a label name that looks like a formula with an apostrophe before it.
    numbers = {str(safe_cell(name)): number for number, name in enumerate(label_names)}
    numbers |= {name: number for number, name in enumerate(label_names)}
    found = []
    for i, cell in enumerate(table.frame[key]):
        row = _row(table, key, cell, places)
        where = f"{table.source}, {key} {cell}"
        told = [table.frame[column].iloc[i] for column in _ANSWER]
        if any(map(is_missing, told)):
            raise LemllError(f"{where}: 'more' or 'less' is empty; name both labels")
        two = [str(label).strip() for label in told]
        for column, label in zip(_ANSWER, two, strict=True):
            if label not in numbers:
                raise LemllError(
                    f"{where}: column {column!r}: {unknown_name('label', label, label_names)}"
                )
        more, less = (numbers[label] for label in two)
        if more == less or Y[row, more] != 1 or Y[row, less] != 1:
            raise LemllError(
                f"{where}: {two[0]!r} and {two[1]!r} cannot be compared; a comparison needs two "
                "different labels that the row has"
            )
        found.append(Comparison(row, more, less))
    return found


def ask_comparisons(
    console: Console,
    enhancer: BlendEnhancer,
    data: LabelledRows,
    *,
    known: Sequence[Comparison],
    n_asked: int,
    learn: Callable[[list[Comparison]], None],
) -> list[Comparison]:
    """Ask which of two labels of a row matters more, first where an answer should change most.

    Parameters
    ----------
    console : Console
        Where to write.
    enhancer : BlendEnhancer
        The fitted enhancer.
    data : LabelledRows
        The rows and their labels.
    known : sequence of Comparison
        Earlier answers.
    n_asked : int
        How many answers are wanted.
    learn : callable
        Gets all answers after each one, keeps them, and lets the enhancer learn.

    Returns
    -------
    list of Comparison
        The earlier answers and the new ones.
    """
    console.print(
        "Which of the two labels matters more? Type 1 or 2; an empty line skips the question; "
        "Ctrl-C ends the questions, and the same command continues them.",
        markup=False,
        soft_wrap=True,
    )
    answers = list(known)
    skipped: set[int] = set()
    while len(answers) < len(known) + n_asked:
        # Rated rows are known.
        told = [*answers, *enhancer._compared]
        asked = next_pairs(enhancer.evidence_, enhancer.order_, len(skipped) + 1, told)
        question = next((pair for pair in asked if pair[0] not in skipped), None)
        if question is None:
            console.print("there is no other row with two labels to ask about", markup=False)
            break
        row, *two = question
        first, second = (data.label_names[label] for label in two)
        done = len(answers) - len(known) + 1
        rows = data.rows
        about = f" ({data.texts[row]})" if data.texts and data.texts[row] else ""
        text = f"{done}/{n_asked} {rows.title} {rows.names[row]}{about}: 1 = {first}, 2 = {second}"
        try:
            answer = typer.prompt(safe_text(text), default="", show_default=False).strip()
        except typer.Abort:
            break
        if answer in ("1", "2"):
            more, less = two if answer == "1" else two[::-1]
            answers.append(Comparison(row, more, less))
            learn(answers)
        elif answer:
            console.print(f"expected 1, 2 or an empty line, got {answer!r}", markup=False)
        else:
            skipped.add(row)
    return answers


class LabelledRows(NamedTuple):
    """What `lemll enhance` works on.

    Attributes
    ----------
    dataset : Dataset
        Features and labels.
    rows : RowNames
        How the user calls the rows.
    texts : sequence of str
        What a question shows of each row; empty if there are no texts.
    """

    dataset: Dataset
    rows: RowNames
    texts: Sequence[str]

    @property
    def label_names(self) -> Sequence[str]:
        """The names of the labels."""
        return self.dataset.label_names


_SHOWN = 5
# How many labels that a row has not are named as the nearest.
_NEAREST = 3
_ANSWER = ("more", "less")
_LONGEST_TEXT = 100
# With so small a share of right pairs, the order is hardly better than chance.
_NEAR_CHANCE = 0.58
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
    compared: Annotated[
        Path | None,
        typer.Option(
            help="Table of comparisons: columns 'more' and 'less' with labels, and the ids (as "
            "--id) or a column 'row', from 0."
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
    compare: Annotated[
        int,
        typer.Option(
            min=0,
            help="Ask so many times which of two labels of a row matters more. The answers improve "
            "the order and are kept beside the output; the same command continues.",
        ),
    ] = 0,
    source: Source,
) -> None:
    """Recover how much each label matters in each row.

    It writes the degrees of all labels to OUTPUT, and beside it, in OUTPUT_order.csv, the labels of
    each row in their order and the three nearest others. The default method, Blend, had the best
    order in our comparison, and the best degrees if some rows are rated. Other methods have the
    settings of their papers.

    Examples: lemll enhance photos.csv --tags tags --id file --compare 20; lemll enhance emotions
    """
    console = make_console()
    enhancer = _enhancer(method)
    blend = enhancer if isinstance(enhancer, BlendEnhancer) else None
    order = _beside(output, "order")
    _check_files([output, order], Path(name), {"--rated": rated, "--compared": compared})
    if (compare or compared) and blend is None:
        raise LemllError(f"comparisons need --method Blend, got --method {method}")
    data = _labelled_rows(console, name, source, enhancer)
    dataset, rows, _ = data
    # Before the fit, so that a mistake in the answers is reported without a long wait.
    ratings = _ratings(console, data, rated, rate, _beside(output, "ratings"))
    # Rows without ids have the same numbers in all tables, so the file has the name of the table.
    comparisons = output.with_name(f"{Path(name).stem}_comparisons.csv")
    answers = _answers(console, data, compared, compare, comparisons)
    _fit(enhancer, dataset)
    if blend is not None:
        _calibrate(blend, ratings, answers)
        if compare:
            _compare(console, blend, data, ratings, answers, n_asked=compare, path=comparisons)
    elif ratings:
        enhancer.calibrate(list(ratings), np.array(list(ratings.values())), random_state=0)
    text = _found(enhancer, len(ratings)) if ratings else ""
    console.print(text or _without_ratings(method, enhancer, dataset), markup=False, soft_wrap=True)
    degrees = enhancer.label_distribution_
    write_output(output, csv_text(_lines(rows, dataset.label_names, degrees)))
    ranked = [_ranked(enhancer, dataset.Y, row) for row in range(len(dataset))]
    write_output(order, csv_text(_order_lines(rows, dataset.label_names, ranked)))
    if blend is not None:
        console.print(_about_order(blend, data), markup=False, soft_wrap=True)
    _show(console, dataset, rows, ranked)
    console.print(f"wrote {output}: {len(dataset)} rows, {len(dataset.label_names)} labels",
                  soft_wrap=True)  # fmt: skip
    console.print(f"wrote {order}: the labels of each row in their order", soft_wrap=True)


def _check_files(written: list[Path], table: Path, read: Mapping[str, Path | None]) -> None:
    """Refuse to replace a file that is read, and files that are not there."""
    inputs = [table, *(path for path in read.values() if path is not None)]
    for path in written:
        check_output(path, "-o", inputs)
    for option, given in read.items():
        if given is not None:
            check_input(given, option)


def _ratings(
    console: Console, data: LabelledRows, rated: Path | None, n_asked: int, path: Path
) -> dict[int, FloatArray]:
    """Read rated rows, and ask for more."""
    names, rows = data.label_names, data.rows
    ratings = {} if rated is None else read_ratings(console, rated, names, rows)
    if n_asked:
        kept = _answers_file(path, rated, "--rated")
        asked = ask_ratings(console, data.dataset.Y, names, rows, n_asked, rated=ratings)
        ratings |= asked
        if asked:
            _keep_ratings(console, kept, rows, names, ratings)
    return ratings


def _answers(
    console: Console, data: LabelledRows, compared: Path | None, n_asked: int, path: Path
) -> list[Comparison]:
    """Read comparisons: from the file that is named, or to go on with the questions."""
    if n_asked and compared is not None:
        _answers_file(path, compared, "--compared")
    if compared is None and not path.exists():
        return []
    if compared is None and not n_asked:
        console.print(f"{path} is not used; pass --compared {path} to use its answers",
                      soft_wrap=True)  # fmt: skip
        return []
    Y = data.dataset.Y
    return read_comparisons(path if compared is None else compared, Y, data.label_names, data.rows)


def _compare(
    console: Console,
    blend: BlendEnhancer,
    data: LabelledRows,
    ratings: Mapping[int, FloatArray],
    answers: list[Comparison],
    *,
    n_asked: int,
    path: Path,
) -> None:
    """Ask for comparisons, and keep each answer."""

    def learn(told: list[Comparison]) -> None:
        _keep_comparisons(path, data.rows, data.label_names, told)
        _calibrate(blend, ratings, told)

    told = ask_comparisons(console, blend, data, known=answers, n_asked=n_asked, learn=learn)
    if told:
        console.print(f"{len(told)} comparisons in {path}; the same command continues",
                      soft_wrap=True)  # fmt: skip


def _calibrate(
    blend: BlendEnhancer, ratings: Mapping[int, FloatArray], answers: Sequence[Comparison]
) -> None:
    if ratings:
        blend.calibrate(list(ratings), np.array(list(ratings.values())), pairs=answers)
    elif answers:
        blend.calibrate(pairs=answers)


def _labelled_rows(
    console: Console, name: str, source: Source, enhancer: BaseEnhancer
) -> LabelledRows:
    """Read the rows and their names from a table, or from a data set."""
    rows = None
    texts: Sequence[str] = ()
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
        texts = _shown_texts(data.X, source.ids)
    else:
        refuse_table_options(name, source)
        dataset = load_named(name, labels=source.labels)
    rows = rows or numbered_rows(len(dataset))
    _check_labels(name, dataset, rows)
    return LabelledRows(dataset, rows, texts)


def _shown_texts(frame: Frame, ids: str | None) -> list[str]:
    """Return the beginning of the texts of each row, to show in a question."""
    named = [name for name in frame.columns if name != ids and frame[name].dtype == object]
    texts = [name for name in named if inspect_column(name, frame[name]).kind == "text"]
    shown = [""] * len(frame)
    for name in texts[:1]:
        for row, cell in enumerate(frame[name]):
            text = "" if is_missing(cell) else " ".join(str(cell).split())
            cut = text[:_LONGEST_TEXT]
            shown[row] = cut if cut == text else f"{cut} ..."
    return shown


def _enhancer(method: str) -> BaseEnhancer:
    """Return an enhancer of lemll by its name, or one of any class as module:Class."""
    kind = _METHODS.get(method) or named_class("--method", method, _METHODS)
    made = kind()
    if not callable(getattr(made, "fit_enhance", None)):
        raise LemllError(f"--method {method}: {kind.__name__} has no method fit_enhance")
    return made  # type: ignore[no-any-return]


def _beside(output: Path, what: str) -> Path:
    """Return the file beside the degrees that has the order, the ratings or the comparisons."""
    return output.with_name(f"{output.stem}_{what}.csv")


def _keep_comparisons(
    path: Path, rows: RowNames, label_names: Sequence[str], answers: Sequence[Comparison]
) -> None:
    lines = [[rows.names[row], label_names[more], label_names[less]] for row, more, less in answers]
    write_output(path, csv_text([[rows.title, *_ANSWER], *lines]))


def _answers_file(path: Path, given: Path | None, option: str) -> Path:
    """Return the file for answers that will be typed; refuse to replace others."""
    if path.exists() and (given is None or path.resolve() != given.resolve()):
        raise LemllError(
            f"{path} has earlier answers; pass {option} {path} to add to them, or remove the file"
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
            " So the degrees differ little on purpose, and labels that a row lacks have a share."
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


def _check_labels(name: str, dataset: Dataset, rows: RowNames) -> None:
    if dataset.Y is None:
        raise LemllError(f"{name} has a label distribution already; there is nothing to recover")
    if rows.title in dataset.label_names:
        ids = "ids" if rows.are_ids else "row numbers"
        raise LemllError(
            f"{name} has a label called {rows.title!r}, as the column of {ids}; rename it"
        )


def _lines(
    rows: RowNames, label_names: Sequence[str], distribution: FloatArray
) -> Iterator[list[object]]:
    yield [rows.title, *label_names]
    for name, degrees in zip(rows.names, distribution, strict=True):
        yield [name, *(f"{degree:.6g}" for degree in degrees)]


class _Ranked(NamedTuple):
    """The labels of a row for people.

    Attributes
    ----------
    given : list of RankedLabel
        The labels that the row has, in order.
    nearest : list of int
        Those of the others with the largest degrees.
    nothing : str
        What to show if the row has no known label.
    signs : list of str
        What stands between the labels: ">" if the order is sure, "~" if it is a toss-up, "=" if the
        degrees are equal, "," if the method does not tell.
    """

    given: list[RankedLabel]
    nearest: list[int]
    nothing: str
    signs: list[str]


def _ranked(enhancer: BaseEnhancer, Y: MatrixLike, row: int) -> _Ranked:
    """Return the labels of a row; shares are degrees if rows are rated."""
    degrees, given = enhancer.label_distribution_[row], np.asarray(Y[row]) == 1
    if isinstance(enhancer, BlendEnhancer):
        ranked = enhancer.ranked_labels(row)
        signs = [">" if label.sure else "~" for label in ranked[:-1]]
    else:
        labels = np.flatnonzero(given)
        ordered = labels[np.argsort(-degrees[labels], kind="stable")]
        ranked = [RankedLabel(int(label), 0.0, True) for label in ordered]
        signs = ["=" if degrees[a] == degrees[b] else "," for a, b in itertools.pairwise(ordered)]
    if not isinstance(enhancer, BlendEnhancer) or enhancer.blend_ is not None:
        total = max(float(degrees[given].sum()), np.finfo(np.float64).tiny)
        ranked = [one._replace(share=float(degrees[one.label]) / total) for one in ranked]
    others = np.flatnonzero(np.asarray(Y[row]) == 0)
    nearest = others[np.argsort(-degrees[others], kind="stable")][:_NEAREST]
    if len(others) and np.ptp(degrees[others]) == 0:
        nearest = others[:0]  # none is nearer than another
    nothing = "none" if len(others) == len(given) else "none known"
    return _Ranked(ranked, nearest.tolist(), nothing, signs)


def _order_lines(
    rows: RowNames, label_names: Sequence[str], ranked: Sequence[_Ranked]
) -> Iterator[list[object]]:
    yield [rows.title, "rank", "label", "given", "share", "before the next"]
    for name, one in zip(rows.names, ranked, strict=True):
        for rank, (label, sign) in enumerate(zip(one.given, [*one.signs, ""], strict=False), 1):
            sure = {">": "sure", "~": "toss-up", "=": "equal"}.get(sign, "")
            yield [name, rank, label_names[label.label], 1, f"{label.share:.3f}", sure]
        for number in one.nearest:
            yield [name, "", label_names[number], 0, "", ""]


def _about_order(enhancer: BlendEnhancer, data: LabelledRows) -> str:
    """Say how well the order of the given labels is known, and what would help."""
    estimate = enhancer.order_estimate_
    if np.isnan(estimate.expected):
        return "No row has two labels, so there is no order to find."
    text = (
        f"Order of the labels of a row: the method expects {estimate.expected:.0%} of their pairs "
        f"to be right (chance is 50%); {estimate.sure:.0%} of the pairs are sure (>), the others "
        "are a toss-up (~)."
    )
    poor = estimate.expected < _NEAR_CHANCE
    if estimate.left_out is not None:
        text += (
            f" Of {estimate.n_pairs} known pairs, {estimate.left_out:.0%} were ordered right "
            "without them."
        )
        if estimate.left_out < _NEAR_CHANCE:
            text += " So labels and features hardly explain the answers."
            poor = False
    asked = enhancer.next_pairs(1) if poor else []
    if asked:
        names = list(enhancer.label_names_)
        row, *two = asked[0]
        first, second = (data.label_names[names.index(label)] for label in two)
        text += (
            " This is near chance; ten comparisons may help: --compare 10 asks for them, such as "
            f"{data.rows.names[row]}: {first} or {second}?"
        )
    shares = (
        "the probability that a label matters most among those of its row"
        if enhancer.blend_ is None
        else "the degree of a label, divided by the sum over the labels of its row"
    )
    return f"{text} Shares are {shares}."


def _show(console: Console, dataset: Dataset, rows: RowNames, ranked: Sequence[_Ranked]) -> None:
    table = RichTable(rows.title, "its labels in order, with shares", "nearest others",
                      title="The first rows")  # fmt: skip
    names = dataset.label_names
    for name, one in list(zip(rows.names, ranked, strict=True))[:_SHOWN]:
        shown = ""
        for label, sign in zip(one.given, [*one.signs, ""], strict=False):
            after = sign + " " if sign == "," else f" {sign} " if sign else ""
            shown += f"{names[label.label]} {label.share:.0%}{after}"
        nearest = ", ".join(names[label] for label in one.nearest)
        table.add_row(name, shown or one.nothing, nearest)
    console.print(table)
