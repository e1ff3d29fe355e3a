"""The table of the comparison of enhancers: regimes, rows, reading and writing."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lemll.exceptions import StoreError
from lemll.experiments import csv_text, write_texts
from lemll.metrics import METRICS
from lemll.paper.prediction_cells import CELLS_FILE

__all__ = [
    "FAILED_FILE",
    "NO_TRUTH",
    "N_DRAWS",
    "N_RATED",
    "ORACLE_GRID",
    "ORACLE_SCALE",
    "OTHERS_FILE",
    "RATED_MEAN",
    "EnhancementKey",
    "FailedFit",
    "MeasuredRegime",
    "rated_regime",
    "read_enhancement",
    "read_failed",
    "regimes",
    "write_enhancement",
    "write_failed",
]

N_RATED = (5, 10, 20)
# Each draw rates other rows. All methods see the same draws.
N_DRAWS = 10
NO_TRUTH = "no truth"
# Both use the true distributions of all rows, which their names say wherever they are shown.
ORACLE_SCALE, ORACLE_GRID = "oracle scale (truth)", "oracle grid (truth)"
# The trivial baseline of rated rows: their mean is the distribution of every other row.
RATED_MEAN = "Rated mean"
# Rows of methods of other libraries, and the fits of them that gave no result.
OTHERS_FILE, FAILED_FILE = "others.csv", "others_failed.csv"
_FIXED = ("dataset", "threshold", "method", "regime")


def regimes() -> tuple[str, ...]:
    """Return the names of the regimes: no truth, rated rows, the truth in view."""
    return (NO_TRUTH, *map(rated_regime, N_RATED), ORACLE_SCALE, ORACLE_GRID)


def rated_regime(number: int) -> str:
    """Return the name of the regime with a number of rated rows."""
    return f"{number} rated rows"


class EnhancementKey(NamedTuple):
    """What identifies a row of the table."""

    dataset: str
    threshold: float
    method: str
    regime: str


@dataclass(frozen=True, slots=True)
class MeasuredRegime:
    """One row of the table.

    Attributes
    ----------
    key : EnhancementKey
        Data set, threshold, label of the method, regime.
    metrics : dict of str to float
        The measures on the rows that are not rated; means over the draws.
    seconds : float
        CPU time of the fit, on one thread. In the regime `ORACLE_GRID`, of the whole search.
    setting : str
        The parameters that the search changed, as "name=value" with spaces between them.
    """

    key: EnhancementKey
    metrics: dict[str, float]
    seconds: float
    setting: str = ""


class FailedFit(NamedTuple):
    """A fit of another library that gave no result.

    Attributes
    ----------
    dataset : str
        The data set.
    threshold : float
        The threshold of its labels.
    method : str
        Label of the method.
    reason : str
        What happened, to be read after the name of the method.
    """

    dataset: str
    threshold: float
    method: str
    reason: str


def read_enhancement(folder: Path, name: str = CELLS_FILE) -> list[MeasuredRegime]:
    """Read the table of a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    name : str, default="cells.csv"
        The file in it.

    Returns
    -------
    list of MeasuredRegime
        Empty if there is no table yet.
    """
    path = folder / name
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        names = [metric for metric in reader.fieldnames or () if metric in METRICS]
        if not names or not {*_FIXED, "seconds"} <= set(reader.fieldnames or ()):
            raise StoreError(
                f"{path}: the first line must be {','.join(_FIXED)},MEASURES,seconds, "
                f"got {','.join(reader.fieldnames or ())[:80]}."
            )
        try:
            return [
                MeasuredRegime(
                    EnhancementKey(
                        row["dataset"], float(row["threshold"]), row["method"], row["regime"]
                    ),
                    {metric: float(row[metric]) for metric in names},
                    float(row["seconds"]),
                    row.get("setting", ""),
                )
                for row in reader
            ]
        except (TypeError, ValueError) as error:
            raise StoreError(f"{path}, line {reader.line_num}: {error}.") from error


def write_enhancement(
    folder: Path, name: str, rows: Iterable[MeasuredRegime], metrics: Sequence[str]
) -> None:
    """Write a table.

    Parameters
    ----------
    folder : Path
        The folder.
    name : str
        The file in it.
    rows : iterable of MeasuredRegime
        The rows.
    metrics : sequence of str
        The measures, in the order of their columns.
    """
    lines: list[Sequence[object]] = [[*_FIXED, *metrics, "seconds", "setting"]]
    for row in sorted(rows, key=lambda row: row.key):
        shown = [f"{row.metrics[metric]:.6f}" for metric in metrics]
        lines.append([*row.key, *shown, f"{row.seconds:.3f}", row.setting])
    write_texts(folder, {name: csv_text(lines)})


def read_failed(folder: Path) -> list[FailedFit]:
    """Read the fits of other libraries that gave no result.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    list of FailedFit
        Empty if there is no such file.
    """
    path = folder / FAILED_FILE
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        first, *lines = [*csv.reader(stream)] or [[]]
        if first != list(FailedFit._fields):
            raise StoreError(
                f"{path}: the first line must be {','.join(FailedFit._fields)}, "
                f"got {','.join(first)[:80]}."
            )
    found = []
    for number, line in enumerate(lines, start=2):
        try:
            dataset, threshold, method, reason = line
            found.append(FailedFit(dataset, float(threshold), method, reason))
        except ValueError as error:
            raise StoreError(f"{path}, line {number}: {error}.") from error
    return found


def write_failed(folder: Path, fits: Iterable[FailedFit]) -> None:
    """Write the fits of other libraries that gave no result.

    Parameters
    ----------
    folder : Path
        The folder.
    fits : iterable of FailedFit
        The fits.
    """
    write_texts(folder, {FAILED_FILE: csv_text([list(FailedFit._fields), *sorted(fits)])})
