"""Read the same table from CSV in three dialects, Excel and Parquet, and compare.

Tables of random columns are written in five ways. Labels, ids, encoded features and predictions of
a model must be equal. Options: ``--count`` (number of tables), ``--seed`` (of the first one).
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lemll import BinaryRelevance
from lemll.exceptions import LemllError
from lemll.tables import LabelSpec, TableEncoder, read_table, split_table

_WORDS = (
    "sea",
    "sky",
    "Forlì",
    "naïve",
    "été",
    "blue; green",
    "old, grey",
    'a "quote"',
    "7",
    "née",
)
_TAGS = (
    "None",
    "NA",
    "null",
    "7",
    "sea",
    "Sky",
    "été",
    "null island",
    "?",
    "n/a",
    "-1",
    "café, bar",
)
_GREEK = ("Ελλάδα", "北京", "ßtraße")

Random = np.random.RandomState


class Sample(NamedTuple):
    """A table of typed columns, and how to read it."""

    columns: dict[str, list[Any]]
    spec: LabelSpec
    ids: str | None


def make_sample(seed: int) -> Sample:
    """Make a random table.

    Parameters
    ----------
    seed : int
        Of the random numbers.

    Returns
    -------
    Sample
        A table of 40 to 70 rows.
    """
    random = Random(seed)
    n_rows = int(random.randint(40, 70))
    columns: dict[str, list[Any]] = {}
    if random.rand() < 0.8:
        columns["key"] = _ids(random, n_rows)
    kinds = [_floats, _whole, _odd, _dates, _times, _categories, _sentences, _booleans, _large]
    for number in range(int(random.randint(2, 7))):
        make = kinds[random.randint(len(kinds))]
        columns[f"{make.__name__[1:]} {number}"] = make(random, n_rows)
    columns["always"] = [float(value) for value in random.randn(n_rows).round(3)]
    spec = _with_tags(random, n_rows, columns)
    return Sample(columns, spec, "key" if "key" in columns else None)


def _with_gaps(random: Random, cells: list[Any]) -> list[Any]:
    share = random.choice([0, 0.1])
    return [None if random.rand() < share else cell for cell in cells]


def _ids(random: Random, n_rows: int) -> list[Any]:
    kind = random.randint(3)
    if kind == 0:
        return [f"{number:04d}" for number in random.permutation(n_rows).tolist()]
    if kind == 1:
        return [9007199254740993 + 2 * number for number in range(n_rows)]
    return [f"{'é' if number % 2 else 'null'} {number}" for number in range(n_rows)]


def _floats(random: Random, n_rows: int) -> list[Any]:
    scale = random.choice([1e-6, 1, 1e7])
    return _with_gaps(random, [float(value) for value in (random.randn(n_rows) * scale).round(8)])


def _whole(random: Random, n_rows: int) -> list[Any]:
    return _with_gaps(random, random.randint(-50, 2000, n_rows).tolist())


def _large(random: Random, n_rows: int) -> list[Any]:
    return _with_gaps(random, [2**53 + int(step) for step in random.randint(0, 10**6, n_rows)])


def _odd(random: Random, n_rows: int) -> list[Any]:
    cells = [float(value) for value in random.randn(n_rows).round(2)]
    return [*cells[:-1], "unknown"]


def _dates(random: Random, n_rows: int) -> list[Any]:
    first = datetime.date(2020, 1, 1)
    days = [first + datetime.timedelta(days=int(day)) for day in random.randint(0, 2000, n_rows)]
    days[0] = random.choice([days[0], datetime.date(9999, 12, 31)])
    return _with_gaps(random, days)


def _times(random: Random, n_rows: int) -> list[Any]:
    first = datetime.datetime(2021, 5, 1)
    steps = random.randint(0, 10**6, n_rows)
    return _with_gaps(random, [first + datetime.timedelta(minutes=int(step)) for step in steps])


def _categories(random: Random, n_rows: int) -> list[Any]:
    return _with_gaps(random, [str(word) for word in random.choice(_WORDS, n_rows)])


def _sentences(random: Random, n_rows: int) -> list[Any]:
    rows = [" ".join(random.choice(_WORDS[:7], 6)) for _ in range(n_rows)]
    return _with_gaps(random, rows)


def _booleans(random: Random, n_rows: int) -> list[Any]:
    return _with_gaps(random, [bool(value) for value in random.randint(0, 2, n_rows)])


def _with_tags(random: Random, n_rows: int, columns: dict[str, list[Any]]) -> LabelSpec:
    """Add a column of tags, or label columns."""
    untagged = str(random.choice(["none", "unknown"]))
    kind = random.randint(3)
    if kind == 0:
        pool = [*_TAGS, *(_GREEK if random.rand() < 0.5 else ())]
        rows = [random.choice(pool, random.randint(0, 4), replace=False) for _ in range(n_rows)]
        columns["tags"] = [";".join(row) or None for row in rows]
        return LabelSpec(tags="tags", sep=";", untagged=untagged)
    if kind == 1:
        columns["tags"] = [None, *random.randint(5, 9, n_rows - 1).tolist()]
        return LabelSpec(tags="tags", untagged=untagged)
    gaps = [[None], [None, "?", "NA", "null"]][random.randint(2)]
    names = ("label a", "label b")
    for name in names:
        values = random.randint(0, 2, n_rows).tolist()
        hidden = random.rand(n_rows) < 0.2
        columns[name] = [
            gaps[random.randint(len(gaps))] if hide else value
            for hide, value in zip(hidden, values, strict=True)
        ]
    return LabelSpec(labels=names, untagged=untagged)


def _text(cell: object, comma: bool) -> str:
    if cell is None:
        return ""
    text = str(cell)
    return text.replace(".", ",") if comma and isinstance(cell, float) else text


def _write_text(sample: Sample, path: Path, sign: str, encoding: str, comma: bool = False) -> None:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=sign)
    writer.writerow(sample.columns)
    for row in zip(*sample.columns.values(), strict=True):
        writer.writerow([_text(cell, comma) for cell in row])
    path.write_bytes(buffer.getvalue().encode(encoding))


def _write_excel(sample: Sample, path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(list(sample.columns))
    for row in zip(*sample.columns.values(), strict=True):
        # A number of Excel has 15 digits, so longer ones are kept as text.
        book.active.append([str(c) if isinstance(c, int) and c > 2**53 else c for c in row])
    for cells in book.active.iter_rows():
        for cell in cells:
            # The library takes a text such as =1 or #N/A for something else.
            cell.data_type = "s" if isinstance(cell.value, str) else cell.data_type
    book.save(path)


def _write_parquet(sample: Sample, path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    arrays = {}
    for name, cells in sample.columns.items():
        kinds = {type(cell) for cell in cells if cell is not None}
        same = cells if len(kinds) == 1 else [None if c is None else str(c) for c in cells]
        arrays[name] = pyarrow.array(same)
    pyarrow.parquet.write_table(pyarrow.table(arrays), path)


class Reading(NamedTuple):
    """What is read from a file."""

    names: tuple[str, ...]
    ids: tuple[str, ...] | None
    Y: Any
    X: Any
    predicted: Any


def _read(sample: Sample, path: Path, **options: str) -> Reading:
    keep = [name for name in (sample.spec.tags, sample.ids) if name is not None]
    data = split_table(read_table(path, keep=keep, **options), sample.spec, ids=sample.ids)
    X = TableEncoder().fit_transform(data.X)
    X = X if isinstance(X, np.ndarray) else X.toarray()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows without a known label are meant
        predicted = BinaryRelevance().fit(X, data.Y).predict_proba(X)
    return Reading(data.label_names, data.ids, data.Y, X, np.asarray(predicted))


def differences(sample: Sample, folder: Path, seed: int) -> Iterator[str]:
    """Write a table in all ways, and say what is read in another way than from the first.

    Parameters
    ----------
    sample : Sample
        The table.
    folder : Path
        Where to write.
    seed : int
        Chooses the encoding.

    Yields
    ------
    str
        The file and the part that differs.
    """
    encodings = ["utf-16", "latin-1"] if seed % 2 else ["latin-1", "utf-16"]
    text = "".join(str(cell) for cells in sample.columns.values() for cell in cells)
    fits = [name for name in encodings if name != "latin-1" or _encodes(text)]
    ways: dict[str, tuple[Callable[[Path], None], dict[str, str]]] = {
        "comma.csv": (lambda path: _write_text(sample, path, ",", "utf-8"), {"delimiter": ","}),
        "semicolon.csv": (
            lambda path: _write_text(sample, path, ";", fits[0], comma=True),
            {"delimiter": ";", "decimal": ","},
        ),
        "tab.tsv": (lambda path: _write_text(sample, path, "\t", "utf-8-sig"), {}),
        "sheet.xlsx": (lambda path: _write_excel(sample, path), {}),
        "columns.parquet": (lambda path: _write_parquet(sample, path), {}),
    }
    first: Reading | None = None
    for name, (write, options) in ways.items():
        write(folder / name)
        try:
            found = _read(sample, folder / name, **options)
        except (ValueError, LemllError) as error:
            yield f"{name}: {error}"
            continue
        first = found if first is None else first
        for part, ours, theirs in zip(Reading._fields, first, found, strict=True):
            if not np.array_equal(ours, theirs, equal_nan=part in ("Y", "X", "predicted")):
                yield f"{name}: other {part}"


def _encodes(text: str) -> bool:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


def main(options: list[str]) -> int:
    """Compare tables, print what differs; return 1 if something does."""
    parser = argparse.ArgumentParser("python -m benchmarks tables")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(options)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(asked.seed, asked.seed + asked.count):
            found = list(differences(make_sample(seed), Path(folder), seed))
            failed += bool(found)
            for line in found:
                print(f"table {seed}, {line}", flush=True)
    print(f"{asked.count} tables in 5 files each: {asked.count - failed} equal, {failed} differ")
    return int(failed > 0)
