"""``lemll enhance``: how much each label of your own data matters."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from lemll._types import FloatArray
from lemll.cli._console import make_console, safe_text
from lemll.cli._imports import Imports, import_modules
from lemll.cli._tables import (
    Decimal,
    Delimiter,
    Encoding,
    Id,
    Ignore,
    LabelNames,
    Sep,
    Sheet,
    Tags,
    Untagged,
    is_table,
    label_spec,
    names_of,
    read_data,
    refuse_table_options,
)
from lemll.cli.datasets import Missing, Nominal, load_named
from lemll.datasets import Dataset
from lemll.enhancers import BaseEnhancer
from lemll.exceptions import DatasetFormatError
from lemll.experiments import csv_text, get_method, list_methods, safe_cell
from lemll.tables import LabelledTable, TableEncoder, split_table

__all__ = ["enhance"]


_SHOWN = 5
_LARGEST_DEGREE = 1e100


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
        typer.Option(help="CSV of rated rows: a column 'row', from 0, and one column per label."),
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

    The default method, Blend, was the best in our comparison if some rows are rated, and better
    than equal degrees if none is. Other methods have the settings of their papers.

    Examples: lemll enhance photos.csv --tags tags --id file --rate 10; lemll enhance emotions
    """
    console = make_console()
    import_modules(modules)
    # The methods' own settings are for features as they are, so a file of numbers is not encoded.
    plain = tags is None and ids is None and ignore is None
    dataset = _numbers(name, labels, nominal, missing) if plain else None
    row_names: Sequence[object] = ()
    if dataset is None:
        if not is_table(name, labels, tags):
            refuse_table_options(name, {"--tags": tags, "--id": ids, "--ignore": ignore})
        reading = {"encoding": encoding, "delimiter": delimiter, "decimal": decimal, "sheet": sheet}
        table = read_data(Path(name), [c for c in (tags, ids) if c is not None], reading)
        spec = label_spec(table, tags=tags, sep=sep, untagged=untagged, labels=labels)
        dataset, row_names = _encoded(split_table(table, spec, ids=ids, ignore=names_of(ignore)))
        console.print("columns are encoded as lemll info shows", soft_wrap=True)
    row_names = row_names or range(len(dataset))
    if dataset.Y is None:
        raise ValueError(f"{name} has a label distribution already; there is nothing to recover.")
    if "row" in dataset.label_names:
        raise ValueError(
            f"{name} has a label called 'row', as the column of row numbers; rename it."
        )
    enhancer = get_method("enhancer", method).make()
    first = ids if isinstance(row_names, tuple) and ids is not None else "row"
    # Before the fit, so that a mistake in the ratings is reported without a long wait.
    ratings = {} if rated is None else _read_ratings(rated, dataset)
    if rate:
        ratings |= _ask(console, dataset, rate)
    enhancer.fit(dataset.X, dataset.Y)
    if ratings:
        enhancer.calibrate(list(ratings), np.array(list(ratings.values())), random_state=0)
        console.print(_found(enhancer, len(ratings)), markup=False, soft_wrap=True)
    else:
        console.print(
            f"{method} without rated rows: labels tell which matters more, not how much more. "
            "Rate a few rows (--rate 10, or --rated FILE) to fix how steep the degrees are.",
            markup=False,
            soft_wrap=True,
        )
    _write(output, [first, *dataset.label_names], row_names, enhancer.label_distribution_)
    _show(console, dataset, row_names, enhancer.label_distribution_)
    console.print(f"wrote {output}: {len(dataset)} rows, {len(dataset.label_names)} labels",
                  soft_wrap=True)  # fmt: skip


def _found(enhancer: BaseEnhancer, n_rated: int) -> str:
    """Say what rated rows decided, and how sure it is."""
    blend = enhancer.blend_
    if blend is None:
        sure = "one row gives no interval"
        if enhancer.scale_interval_ is not None:
            low, high = enhancer.scale_interval_
            sure = f"95 % interval {low:.3g} to {high:.3g}"
        return f"scale {enhancer.scale_:.3g} from {n_rated} rated rows ({sure})"
    weights = ", ".join(
        f"{name} {weight:.2f}"
        for name, weight in sorted(blend.weights.items(), key=lambda item: -abs(item[1]))
        if abs(weight) >= 0.005
    )
    text = f"weights from {n_rated} rated rows: {weights or 'none'}."
    if blend.error is None or blend.error_of_mean is None:
        return f"{text} Rate at least 3 rows to know how good they are."
    text += (
        f" Rated rows that were left out have the error {blend.error:.3f} (Kullback-Leibler), and "
        f"{blend.error_of_mean:.3f} if the mean of the other rated rows is taken."
    )
    if blend.error >= blend.error_of_mean:
        text += " So the labels do not explain the ratings; look at the ratings."
    return text


def _numbers(
    name: str, labels: str | None, nominal: str | None, missing: str | None
) -> Dataset | None:
    """Load a data set of numbers; return None if the file is a table of other columns."""
    try:
        return load_named(name, labels=labels, nominal=nominal, missing=missing)
    except (DatasetFormatError, ValueError):
        if not is_table(name, labels, None) or not Path(name).exists():
            raise
        return None


def _encoded(data: LabelledTable) -> tuple[Dataset, Sequence[object]]:
    """Return the encoded columns and the labels of a table, and the ids of its rows."""
    X = TableEncoder().fit_transform(data.X)
    return Dataset(X=X, Y=data.Y, label_names=data.label_names), data.ids or ()


def _read_ratings(path: Path, dataset: Dataset) -> dict[int, FloatArray]:
    try:
        return _parse_ratings(path, dataset)
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8: {error}.") from error


def _parse_ratings(path: Path, dataset: Dataset) -> dict[int, FloatArray]:
    # Spreadsheets may put a byte order mark at the beginning.
    with path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.DictReader(stream)
        columns = reader.fieldnames or []
        # lemll writes a label name that looks like a formula with an apostrophe before it.
        named = {
            name: name if name in columns else str(safe_cell(name)) for name in dataset.label_names
        }
        absent = [name for name in ("row", *named.values()) if name not in columns]
        if absent:
            raise ValueError(
                f"{path} lacks the columns {', '.join(absent)}; it needs 'row', counted from 0, "
                "and one column per label."
            )
        ratings: dict[int, FloatArray] = {}
        for line, entry in enumerate(reader, start=2):
            where = f"{path}, line {line}"
            row = _number(entry["row"], where, int)
            if not 0 <= row < len(dataset) or row in ratings:
                problem = "is rated twice" if row in ratings else f"is not one of {len(dataset)}"
                raise ValueError(f"{where}: row {row} {problem}; rows are counted from 0.")
            degrees = [_number(entry[named[name]], where, float) for name in dataset.label_names]
            ratings[row] = _shares(degrees, where)
    if not ratings:
        raise ValueError(f"{path} holds no rated row; write one line per rated row.")
    return ratings


def _number(text: Any, where: str, kind: Any) -> Any:
    try:
        return kind(text)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: expected a number, got {text!r}.") from None


def _shares(degrees: list[float], where: str) -> FloatArray:
    values = np.array(degrees, dtype=np.float64)
    if not ((values >= 0).all() and 0 < values.max() < _LARGEST_DEGREE):
        raise ValueError(
            f"{where}: degrees must be numbers, not negative and not all zero, got {degrees}."
        )
    return np.asarray(values / values.sum())


def _ask(console: Console, dataset: Dataset, n_rows: int) -> dict[int, FloatArray]:
    """Ask for the degrees of random rows; their sum may be any positive number, as 10 or 100."""
    assert dataset.Y is not None
    names = dataset.label_names
    console.print(
        f"Type the degrees of {', '.join(names)}, separated by blanks; an empty line skips the row."
    )
    ratings: dict[int, FloatArray] = {}
    for row in np.random.RandomState(0).permutation(len(dataset))[:n_rows].tolist():
        relevant = ", ".join(
            name for name, on in zip(names, dataset.Y[row], strict=True) if on == 1
        )
        while True:
            try:
                answer = typer.prompt(
                    safe_text(f"row {row} ({relevant or 'no label'})"),
                    default="",
                    show_default=False,
                )
            except typer.Abort:  # no more answers; use those given so far
                return ratings
            if not answer.strip():
                break
            try:
                degrees = [_number(text, f"row {row}", float) for text in answer.split()]
                if len(degrees) != len(names):
                    raise ValueError(f"expected {len(names)} numbers, got {len(degrees)}.")
                ratings[row] = _shares(degrees, f"row {row}")
            except ValueError as error:
                console.print(str(error), soft_wrap=True)
                continue
            break
    return ratings


def _write(
    path: Path, header: list[str], row_names: Sequence[object], distribution: FloatArray
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = ([row, *(f"{degree:.6g}" for degree in degrees)]
            for row, degrees in zip(row_names, distribution, strict=True))  # fmt: skip
    path.write_text(csv_text([header, *rows]), encoding="utf-8", newline="")


def _show(
    console: Console, dataset: Dataset, row_names: Sequence[object], distribution: FloatArray
) -> None:
    assert dataset.Y is not None
    table = Table("row", "relevant labels, by degree", title="The first rows")
    for row in range(min(_SHOWN, len(dataset))):
        order = np.argsort(-distribution[row], kind="stable")
        shown = [
            f"{dataset.label_names[label]} {distribution[row, label]:.2f}"
            for label in order
            if dataset.Y[row, label] == 1
        ]
        table.add_row(str(row_names[row]), ", ".join(shown) or "none")
    console.print(table)
