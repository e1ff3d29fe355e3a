"""Options that all commands on tables share, and how they print figures."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as RichTable

from lemll._types import MatrixLike
from lemll.cli.console import safe_text
from lemll.exceptions import LemllError, UnknownDatasetError

if TYPE_CHECKING:
    from lemll._types import FloatArray, Settings
    from lemll.datasets.dataset import Dataset
    from lemll.models.assess import Assessment
    from lemll.models.training import TableModel
    from lemll.tables.files import Table
    from lemll.tables.labels import LabelSpec

# The names of the learners of `lemll.models`; a list of options must not import them.
LEARNERS = ("TagPredictor", "LEMLL", "MSVR", "BinaryRelevance", "MultilabelForest")
_SHOWN_LABELS = 12
_MOST_OTHERS = 12
_INTERRUPTED = 130  # by convention, the exit code of a process that Ctrl-C ended

Data = Annotated[
    Path, typer.Argument(help="The table: .csv, .tsv, .parquet or .xlsx.", metavar="DATA")
]
Model = Annotated[Path, typer.Argument(help="A model file, .lemll.", metavar="MODEL")]
Tags = Annotated[
    str | None, typer.Option("--tags", help="The column with all tags of a row.", metavar="COL")
]
Sep = Annotated[
    str | None,
    typer.Option("--sep", help="What separates the tags in a cell; by default a semicolon."),
]
Untagged = Annotated[
    str | None,
    typer.Option(
        "--untagged",
        help="What an empty cell means: none (no tag applies) or unknown (the default for label "
        "columns).",
        metavar="none|unknown",
    ),
]
Merge = Annotated[
    str | None,
    typer.Option(
        "--merge",
        help="case: tags that differ only in case are one tag, in its most frequent spelling.",
        metavar="case",
    ),
]
LabelNames = Annotated[
    str | None,
    typer.Option(
        "--labels",
        help="The label columns (0/1, true/false, yes/no), or a count: 3 means the first three "
        "columns, -3 the last three.",
        metavar="A,B,C",
    ),
]
Id = Annotated[str | None, typer.Option("--id", help="The column of ids.", metavar="COL")]
Ignore = Annotated[
    str | None, typer.Option("--ignore", help="Columns that are not features.", metavar="A,B,C")
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of the text, if it is not recognised.")
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="What separates the cells, if it is in doubt.")
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", help="The decimal mark, '.' or ',', if it is in doubt.")
]
Sheet = Annotated[str | None, typer.Option("--sheet", help="The sheet of an Excel file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def names_of(text: str | None) -> tuple[str, ...]:
    """Return names that are separated by commas."""
    return () if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file is read: options of every command that reads a table."""

    encoding: Encoding = None
    delimiter: Delimiter = None
    decimal: Decimal = None
    sheet: Sheet = None

    @property
    def sign(self) -> str | None:
        """The sign between cells that the user means: a tab cannot be typed."""
        return "\t" if self.delimiter in (r"\t", "tab") else self.delimiter

    def table(self, path: Path, keep: Sequence[str] = ()) -> Table:
        """Read a table, and say so if there is no such file."""
        from lemll.tables.files import read_table

        check_input(path)
        return read_table(
            path,
            keep=list(keep),
            encoding=self.encoding,
            delimiter=self.sign,
            decimal=self.decimal,
            sheet=self.sheet,
        )


@dataclass(frozen=True, kw_only=True)
class Source(Reading):
    """How a file is read, and where its labels, ids and features are."""

    tags: Tags = None
    sep: Sep = None
    untagged: Untagged = None
    merge: Merge = None
    labels: LabelNames = None
    ids: Id = None
    ignore: Ignore = None

    @property
    def ignored(self) -> tuple[str, ...]:
        """The columns that are not features."""
        return names_of(self.ignore)

    def labelled(self, path: Path) -> tuple[Table, LabelSpec]:
        """Read a table, and return where its labels are."""
        from lemll.tables.labels import LabelSpec

        table = self.table(path, [name for name in (self.tags, self.ids) if name is not None])
        spec = LabelSpec(
            tags=self.tags,
            sep="\t" if self.sep == r"\t" else self.sep,
            untagged=self.untagged,
            labels=_counted(table, self.labels) or names_of(self.labels),
            merge=self.merge,
        )
        return table, spec


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Turn parameters of the types `Reading` and `Source` into one option per field.

    So a command declares ``source: Source``, and typer sees ``--tags``, ``--sep`` and the others.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Reading]] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if not (isinstance(kind, type) and issubclass(kind, Reading)):
            parameters.append(
                parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY)
            )
            continue
        groups[parameter.name] = kind
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
            for name, option in get_type_hints(kind, include_extras=True).items()
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _counted(table: Table, labels: str | None) -> tuple[str, ...]:
    """Return the first or last columns, if the option is a count."""
    columns = [str(name) for name in table.frame.columns]
    if labels is None or labels in columns or not labels.lstrip("-").isdigit():
        return ()
    count = int(labels)
    if not 0 < abs(count) < len(columns):
        raise LemllError(
            f"{table.source}: --labels {labels} must leave features among {len(columns)} columns; "
            "give the names of the label columns"
        )
    return tuple(columns[:count] if count > 0 else columns[count:])


def check_input(path: Path, option: str = "") -> None:
    """Refuse a file that does not exist, and a folder."""
    given = f"{option} {path}: " if option else ""
    if not path.exists():
        raise LemllError(f"{given}there is no file {path}; check its name")
    if path.is_dir():
        raise LemllError(f"{given}{path} is a folder; give the name of a file")


# Endings of names under which nobody expects a text file.
_OTHER_FORMATS = (".xlsx", ".xls", ".ods", ".parquet", ".npz", ".arff", ".mat", ".json", ".pdf")


def check_output(path: Path, option: str, inputs: Sequence[Path]) -> None:
    """Refuse to replace an input, a folder, and names of other formats; before long work."""
    if path.is_dir():
        raise LemllError(f"{option} {path} is a folder; give the name of a file")
    if path.exists() and any(other.exists() and path.samefile(other) for other in inputs):
        raise LemllError(f"{option} {path} would replace an input; choose another name")
    if path.suffix.lower() in _OTHER_FORMATS:
        raise LemllError(
            f"{option} {path}: lemll does not write this format; give a name that ends in .csv"
        )


def is_table(file: str, source: Source) -> bool:
    """Return whether a file is a table of any columns, rather than a data set of numbers."""
    from lemll.datasets.tables import names_its_labels
    from lemll.tables.files import SUFFIXES

    suffix = Path(file).suffix.lower()
    if suffix not in SUFFIXES or (source.labels or "").lower().endswith(".xml"):
        return False
    named = source.labels is not None or source.tags is not None
    return suffix != ".parquet" or named or not names_its_labels(file)


def refuse_table_options(file: str, source: Source) -> None:
    """Refuse options of tables for other files."""
    from lemll.tables.files import SUFFIXES

    given = {"--tags": source.tags, "--id": source.ids, "--ignore": source.ignore}
    wrong = next((name for name, value in given.items() if value is not None), None)
    if wrong is not None:
        raise LemllError(
            f"{wrong} needs a table ({', '.join(SUFFIXES)}), and {file} is none; leave it out"
        )


def load_model(path: Path) -> TableModel:
    """Load a model that was fitted to a table."""
    from lemll.models.files import load
    from lemll.models.training import TableModel

    if not path.exists():
        raise LemllError(f"there is no file {path}; fit a model with lemll fit")
    model = load(path)
    if not isinstance(model, TableModel):
        raise LemllError(
            f"{path} holds a {type(model).__name__} without its table; use lemll.load in Python, "
            "or fit the table with lemll fit"
        )
    return model


def say(line: str) -> None:
    """Print a line about the progress where it does not mix with results."""
    typer.echo(safe_text(line), err=True)


def say_notes(table: Table) -> None:
    """Say how a file was read, where it was not obvious."""
    if table.notes:
        say(f"{table.source}: {', '.join(table.notes)}")


def say_labels(table: Table, spec: LabelSpec, source: Source) -> None:
    """Say which labels are unknown or only mark rows, and which features look like labels."""
    from lemll.tables.columns import survey
    from lemll.tables.labels import read_truth

    Y, names = read_truth(table, spec)
    unknown = np.isnan(Y)
    if unknown.any():
        say(
            f"{int(unknown.sum())} of {Y.size} cells of labels are unknown; "
            f"{int(unknown.all(axis=1).sum())} of {len(Y)} rows have no known label"
        )
    if not spec.labels:
        return
    never = [
        name for name, y in zip(names, Y.T, strict=True) if (y == 0).any() and not (y == 1).any()
    ]
    if never:
        say(
            f"no row has these labels, so they are never predicted: {_listed(never)}; leave them "
            "out"
        )
    marked = [name for name, y in zip(names, Y.T, strict=True) if _only_relevant(y)]
    if marked and spec.untagged is None:
        say(
            f"all known cells of these labels say that the label applies: {_listed(marked)}; if "
            "the file only marks the labels that apply, pass --untagged none"
        )
    used = {*spec.labels, *source.ignored, source.ids}
    # A survey of a wide table takes long, and labels have two values.
    two = [name for name, cells in table.frame.items() if name not in used and _has_two(cells)]
    # If there are more, the table holds many indicators that are features.
    if 0 < len(two) <= _MOST_OTHERS:
        others = survey(replace(table, frame=table.frame[two])).label_columns
        if others:
            say(
                f"these columns look like labels and are used as features: {', '.join(others)}; "
                "name them in --ignore if new rows lack them"
            )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_LABELS
    return ", ".join(names[:_SHOWN_LABELS]) + (f" and {more} more" if more > 0 else "")


def _only_relevant(y: FloatArray) -> bool:
    """Tell whether the known cells of a label with unknown cells are all relevant."""
    unknown = np.isnan(y)
    return bool(unknown.any() and (y[~unknown] == 1).all())


def _has_two(cells: MatrixLike) -> bool:
    """Tell whether a column has two different values, as 0/1 or yes/no have."""
    try:
        return bool(cells.nunique() == 2)
    except TypeError:  # lists cannot be compared
        return False


def print_json(content: Settings) -> None:
    """Print plain data."""
    typer.echo(json.dumps(content, indent=1))


def print_assessment(console: Console, found: Assessment, title: str) -> None:
    """Print the measures with their intervals, beside the baseline, and a verdict."""
    from lemll.metrics.table import METRICS
    from lemll.models.assess import plain_figures

    table = RichTable("measure", "model", "95 % interval", "labels by frequency", title=title)
    for score in found.scores:
        metric = METRICS[score.measure]
        low, high = score.interval
        table.add_row(
            f"{metric.title} {metric.arrow}",
            f"{score.value:.3f}",
            f"{low:.3f} to {high:.3f}",
            f"{score.baseline:.3f}",
        )
    console.print(table)
    if found.labels.calibration_error is not None:
        console.print(
            f"Probabilities are off by {found.labels.calibration_error:.3f} on average "
            "(calibration error)."
        )
    console.print(plain_figures(found.labels.figures), soft_wrap=True)
    console.print(found.verdict, soft_wrap=True)
    if found.mostly_untagged:
        console.print(
            f"{found.n_untagged} of {found.n_rows} rows get no label, and {found.n_tagged} have "
            "one: no score is above its threshold. To predict more labels, use lemll fit with "
            "--thresholds f1 (in Python thresholds='f1'). The scores rank the labels in any case.",
            soft_wrap=True,
        )


def print_labels(console: Console, found: Assessment, names: Sequence[str]) -> None:
    """Print the figures of the most frequent labels."""
    figures = sorted(
        zip(names, found.labels.figures, strict=True), key=lambda pair: -pair[1]["relevant"]
    )
    title = "Labels, the most frequent first"
    table = RichTable(
        "label", "known", "relevant", "predicted", "precision", "recall", "F1", "AUC", title=title
    )
    for name, figure in figures[:_SHOWN_LABELS]:
        shares = (figure[key] for key in ("precision", "recall", "f1", "auc"))
        table.add_row(
            name,
            str(figure["observed"]),
            str(figure["relevant"]),
            str(figure["predicted"]),
            *("" if share is None else f"{share:.3f}" for share in shares),
        )
    console.print(table)
    if len(figures) > _SHOWN_LABELS:
        console.print(f"and {len(figures) - _SHOWN_LABELS} more labels; --json shows them")


@contextmanager
def interruptible(effect: str) -> Iterator[None]:
    """Turn Ctrl-C into a line and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"stopped; {effect}")
        raise typer.Exit(_INTERRUPTED) from None


def load_named(
    name: str, *, labels: str | None = None, nominal: str | None = None, missing: str | None = None
) -> Dataset:
    """Read a file if the name is or looks like a file; otherwise load a registered set."""
    from lemll.datasets.files import find_reader, looks_like_a_file
    from lemll.datasets.registry import load_dataset

    options = {"labels": _parse_labels(labels), "nominal": nominal, "missing": missing}
    given = {key: value for key, value in options.items() if value is not None}
    path = Path(name)
    is_path = "/" in name or looks_like_a_file(path)
    if path.is_dir() and (is_path or not is_registered(name)):
        raise LemllError(
            f"{name} is a folder; give the name of a file, or of a data set "
            "(lemll bench datasets list)"
        )
    if path.is_file() or is_path:
        reader = find_reader(path)
        unknown = given.keys() - inspect.signature(reader).parameters.keys()
        if unknown:
            raise LemllError(
                f"{name}: files of this format take no --{', --'.join(sorted(unknown))}"
            )
        return reader(path, **given)
    if given:
        raise LemllError(f"--{', --'.join(sorted(given))} given, but {name} is not a file")
    return load_dataset(name)


def is_registered(name: str) -> bool:
    """Tell whether there is a data set of this name."""
    from lemll.datasets.registry import dataset_info

    try:
        dataset_info(name)
    except UnknownDatasetError:
        return False
    return True


def _parse_labels(text: str | None) -> str | int | list[str] | None:
    if text is None or text.lower().endswith(".xml"):
        return text
    try:
        return int(text)
    except ValueError:
        return [name.strip() for name in text.split(",")]


def named_class(option: str, name: str, known: Collection[str]) -> type:
    """Return a class that the user names as module:Class."""
    from lemll._validation import unknown_name

    module, _, kind = name.partition(":")
    if not kind:
        raise LemllError(f"{option}: {unknown_name('name', name, known)} Or give module:Class")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # a module of the user is in the present folder
    try:
        found = getattr(importlib.import_module(module), kind)
    except Exception as error:  # the code of a user can raise anything
        raise LemllError(
            f"{option} {name}: {type(error).__name__}: {error}; give a class as module:Class, and "
            "put the folder of the module on PYTHONPATH"
        ) from error
    if not isinstance(found, type):
        raise LemllError(f"{option} {name}: {kind} is not a class; give a class as module:Class")
    return found
