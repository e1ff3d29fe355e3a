"""The cells of the first experiment as one committed table, without a store.

A folder holds protocols (``*.toml``), which say what was planned, and ``cells.csv``, which says
what was measured: one row per data set, method and split.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lemll._files import csv_text, write_texts
from lemll.datasets.registry import list_datasets
from lemll.exceptions import ProtocolError, StoreError
from lemll.lab.cells import Cell, Hide, Splits, Tuning
from lemll.lab.methods import list_methods
from lemll.lab.protocol import Protocol
from lemll.lab.published import paper_name, published_prediction
from lemll.lab.studies.sections import printed_entries
from lemll.lab.tables import ComparisonTable
from lemll.metrics.table import METRICS

# The columns of Tables II and III.
PAPER_METHODS = ("LEMLL", "MLFE", "ML2", "RELIAB", "MSVR", "ML-kNN", "CLR", "ECC")
N_SPLITS = 10
# One data set with few labels and one with many, which together take about a minute.
QUICK_PREDICTION = ("medical", "yeast")
# Our splits differ from the paper's, so the means of the same method differ. We accept a difference
# of two of the paper's standard deviations, which are printed to three decimals.
WITHIN = 2.0
SMALLEST_STD = 0.001


def paper_prediction(
    datasets: Sequence[str] | None = None,
    *,
    methods: Sequence[str] | None = None,
    n_splits: int = N_SPLITS,
    tuned: bool = True,
) -> Protocol:
    """Return the protocol of Tables II and III.

    Parameters
    ----------
    datasets : sequence of str, optional
        Names in the registry; by default the fourteen public data sets of the paper.
    methods : sequence of str, optional
        Registered learners; by default all: first the paper's in its order, then the others.
    n_splits : int, default=10
        Number of halves.
    tuned : bool, default=True
        Choose each method's parameters from its grid by the average precision in five folds of
        the training half. The paper also tunes, but does not say how. If False, the methods have
        their default parameters.

    Returns
    -------
    Protocol
        The protocol, ready to run.

    Examples
    --------
    >>> from lemll.lab.studies.prediction import paper_prediction
    >>> paper_prediction(["yeast"], methods=["LEMLL", "MSVR"]).splits.n_splits
    10
    """
    names = tuple(datasets or (info.name for info in list_datasets(table="I") if info.path))
    registered = [method.name for method in list_methods("learner")]
    known = [name for name in PAPER_METHODS if name in registered]
    known += [name for name in registered if name not in PAPER_METHODS]
    labels = tuple(known if methods is None else methods)
    return Protocol(
        name="prediction",
        experiment="prediction",
        datasets=names,
        methods=labels,
        splits=Splits("halves", n_splits),
        tuning=Tuning() if tuned else None,
        control="LEMLL" if "LEMLL" in labels else "",
    )


def printed_prediction() -> ComparisonTable:
    """Return Tables II and III as printed, so that our tests can be applied to them.

    Returns
    -------
    ComparisonTable
        One value per entry, the printed mean. The paper does not print the values of the splits.

    Examples
    --------
    >>> from lemll.lab.studies.prediction import printed_prediction
    >>> len(printed_prediction().panels[0].ranked)
    15
    """
    values: dict[tuple[str, float | None, str, str], list[float]] = {
        (cell.metric, None, cell.dataset, cell.method): [cell.mean]
        for cell in published_prediction()
    }
    return ComparisonTable.from_values(values, control="LEMLL", methods=PAPER_METHODS)


@dataclass(frozen=True, slots=True)
class PredictionAgreement:
    """Comparison of a method's means with the printed ones.

    Attributes
    ----------
    method : str
        Name of the method.
    cells, within, better, worse : int
        Number of means; of those within two of the paper's standard deviations of the printed mean
        (a standard deviation below .001 counts as .001); of those that are further away and better;
        and of those that are further away and worse.
    as_good : int
        Number of means that are better than the printed mean, or worse by at most one of the
        paper's standard deviations.
    misses : tuple of str
        The means that are further away: measure, data set, and our mean minus the printed one.
    """

    method: str
    cells: int
    within: int
    better: int
    worse: int
    as_good: int
    misses: tuple[str, ...]


def agreement(table: ComparisonTable) -> list[PredictionAgreement]:
    """Compare the means of a table with the printed ones.

    Parameters
    ----------
    table : ComparisonTable
        The table of a prediction.

    Returns
    -------
    list of PredictionAgreement
        One per method that the paper prints.
    """
    found = []
    for method, entries in printed_entries(table):
        better, as_good, misses = 0, 0, []
        for panel, dataset, entry in entries:
            direction = 1 if panel.metric.greater_is_better else -1
            mean, std = entry.published
            difference = round(entry.figures[0], 3) - mean
            unit = max(std, SMALLEST_STD)
            as_good += difference * direction >= -unit - 1e-9
            if abs(difference) > WITHIN * unit + 1e-9:
                misses.append(f"{panel.metric.title} {dataset}: {difference:+.3f}")
                better += difference * direction > 0
        cells, off = len(entries), len(misses)
        counts = (cells, cells - off, better, off - better, as_good)
        found.append(PredictionAgreement(method, *counts, misses=tuple(misses)))
    return found


@dataclass(frozen=True, slots=True)
class Significance:
    """How often the control is significantly better or worse than a method.

    Attributes
    ----------
    method : str
        Name of the method.
    cells : int
        Number of comparisons.
    better, worse : int
        Number of comparisons in which the control is better or worse, by our figures.
    published_better, published_worse : int
        The same numbers, by the paper's marks.
    """

    method: str
    cells: int
    better: int
    worse: int
    published_better: int
    published_worse: int


def significances(table: ComparisonTable) -> list[Significance]:
    """Count the marks of a table, and the paper's marks for the same cells.

    Parameters
    ----------
    table : ComparisonTable
        The table of a prediction with LEMLL as its control.

    Returns
    -------
    list of Significance
        One per other method that the paper prints.
    """
    printed = {(c.metric, c.dataset, c.method): c.mark for c in published_prediction()}
    found = []
    for method, entries in printed_entries(table):
        if method == table.control:
            continue
        ours = [entry.mark for _, _, entry in entries]
        theirs = [printed[p.metric.name, paper_name(name), method] for p, name, _ in entries]
        counts = (marks.count(mark) for marks in (ours, theirs) for mark in "•∘")
        found.append(Significance(method, len(entries), *counts))
    return found


CELLS_FILE = "cells.csv"
_MULTILABEL = tuple(name for name, metric in METRICS.items() if metric.kind == "multilabel")
# The measures come between these two groups of columns.
_BEFORE = ("dataset", "method", "split", "status", "chosen")
_AFTER = ("seconds", "code", "finished")
# A folder whose protocols hide labels has one more column.
_HIDDEN = "hidden"
# A mean of fewer halves says too little.
_FEWEST_HALVES = 3


class CellKey(NamedTuple):
    """What identifies a cell in the table. `hidden` is the key of the rule that hides labels."""

    dataset: str
    method: str
    split: int
    hidden: str = ""

    def __str__(self) -> str:
        where = f"{self.method} on {self.dataset}, half {self.split}"
        return f"{where}, {self.hidden} hidden" if self.hidden else where

    @classmethod
    def of(cls, cell: Cell) -> CellKey:
        """Return the key of a cell of a protocol."""
        setting = cell.setting
        hidden = "" if setting.hide is None else setting.hide.key
        return cls(cell.source.name, cell.method.label, int(setting.key[-1]), hidden)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCell:
    """One row of the table.

    Attributes
    ----------
    key : CellKey
        Data set, label of the method, number of the half, and the labels that are hidden.
    status : str
        "done", "failed" or "timeout".
    chosen : str
        The tuned parameters as JSON; empty if the method is not tuned.
    metrics : mapping of str to float or None
        The measures of the protocol. None if a measure is not defined.
    seconds : float
        Wall time of fitting, with the tuning.
    code : str
        The first digits of the hash of the code.
    finished : str
        Date and time, UTC.
    """

    key: CellKey
    status: str
    chosen: str
    metrics: Mapping[str, float | None]
    seconds: float
    code: str
    finished: str


def read_protocols(folder: Path) -> list[Protocol]:
    """Read the protocols of a folder.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    list of Protocol
        In the order of the file names.

    Raises
    ------
    ProtocolError
        If there is none.
    """
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise ProtocolError(f"{folder} has no protocol (*.toml); give a folder of results.")
    return [Protocol.from_toml(file) for file in files]


def planned_cells(protocols: Iterable[Protocol]) -> list[CellKey]:
    """List the cells that protocols plan, without loading data.

    Parameters
    ----------
    protocols : iterable of Protocol
        Predictions by random halves.

    Returns
    -------
    list of CellKey
        Each cell once.
    """
    keys = [
        CellKey(source.name, spec.label, protocol.splits.random_state + number, hidden)
        for protocol in protocols
        if protocol.splits is not None
        for source in protocol.datasets
        for spec in protocol.methods
        for number in range(protocol.splits.n_splits)
        for hidden in [rule.key for rule in protocol.hide] or [""]
    ]
    return list(dict.fromkeys(keys))


def ended_and_done(
    folder: Path, planned: Collection[CellKey], *, of: str = ""
) -> tuple[list[MeasuredCell], list[MeasuredCell]]:
    """Return the planned cells that have ended, and those of them that are done.

    Parameters
    ----------
    folder : Path
        A folder of results.
    planned : collection of CellKey
        The cells of its protocols.
    of : str, optional
        The label of a method that must have a finished cell.

    Returns
    -------
    ended, done : list of MeasuredCell
        The rows of the table.

    Raises
    ------
    StoreError
        If no cell is done.
    """
    known = set(planned)
    ended = [cell for cell in read_cells(folder) if cell.key in known]
    done = [cell for cell in ended if cell.status == "done"]
    if not any(cell.key.method == of or not of for cell in done):
        whose, what = (of, "the protocols beside it") if of else ("the protocols beside it", "them")
        raise StoreError(
            f"{folder / CELLS_FILE} has no finished cell of {whose}; run {what} and collect the "
            "cells (--collect)."
        )
    return ended, done


def read_cells(folder: Path) -> list[MeasuredCell]:
    """Read the table of a folder.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    list of MeasuredCell
        One per row; empty if there is no table yet.

    Raises
    ------
    StoreError
        If the table is not what `write_cells` writes.
    """
    path = folder / CELLS_FILE
    if not path.exists():
        return []
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is not text in UTF-8: {error}.") from error
    measures = _measures(rows[0]) if rows else ()
    if not measures or tuple(rows[0]) not in (_header(measures), (*_header(measures), _HIDDEN)):
        found = ",".join(rows[0])[:80] if rows else "an empty file"
        wanted = ",".join([*_BEFORE, "MEASURES", *_AFTER])
        raise StoreError(f"{path}: the first line must be {wanted}, got {found}.")
    cells: dict[CellKey, MeasuredCell] = {}
    for number, row in enumerate(rows[1:], start=2):
        try:
            cell = _cell(rows[0], row)
            if cell.key in cells:
                raise ValueError(f"a second row of {cell.key}; delete one of them")
        except ValueError as error:
            raise StoreError(f"{path}, line {number}: {error}.") from error
        cells[cell.key] = cell
    return list(cells.values())


def _header(measures: Sequence[str]) -> tuple[str, ...]:
    return (*_BEFORE, *measures, *_AFTER)


def _measures(names: Iterable[str]) -> tuple[str, ...]:
    """Return the measures among names, in the order of the table of metrics."""
    found = set(names)
    return tuple(name for name in _MULTILABEL if name in found)


def _cell(header: Sequence[str], values: Sequence[str]) -> MeasuredCell:
    if len(values) != len(header):
        raise ValueError(f"{len(values)} values, but the first line has {len(header)} names")
    row = dict(zip(header, values, strict=True))
    if row["status"] not in ("done", "failed", "timeout"):
        raise ValueError(f"status must be done, failed or timeout, got {row['status']!r}")
    numbers = [float(row[name]) for name in (*_measures(header), "seconds") if row[name]]
    if not all(map(math.isfinite, numbers)):
        raise ValueError("measures and seconds must be finite numbers, or empty")
    return MeasuredCell(
        key=CellKey(row["dataset"], row["method"], int(row["split"]), row.get(_HIDDEN, "")),
        status=row["status"],
        chosen=row["chosen"],
        metrics={name: float(row[name]) if row[name] else None for name in _measures(header)},
        seconds=float(row["seconds"]),
        code=row["code"],
        finished=row["finished"],
    )


def write_cells(folder: Path, cells: Iterable[MeasuredCell]) -> Path:
    """Write the table of a folder, sorted by data set, method, split and hidden labels.

    Parameters
    ----------
    folder : Path
        The folder; it is created if it does not exist.
    cells : iterable of MeasuredCell
        The rows.

    Returns
    -------
    Path
        The file.
    """
    ordered = sorted(cells, key=lambda cell: cell.key)
    hides = any(cell.key.hidden for cell in ordered)
    measures = _measures(name for cell in ordered for name in cell.metrics)
    rows: list[Sequence[object]] = [[*_header(measures), *[_HIDDEN] * hides]]
    for cell in ordered:
        values = [cell.metrics.get(name) for name in measures]
        shown = ["" if value is None else f"{value:.6f}" for value in values]
        rows.append(
            [*cell.key[:3], cell.status, cell.chosen, *shown, f"{cell.seconds:.1f}", cell.code,
             cell.finished, *[cell.key.hidden] * hides]
        )  # fmt: skip
    (path,) = write_texts(folder, {CELLS_FILE: csv_text(rows)})
    return path


def cells_table(
    cells: Iterable[MeasuredCell],
    planned: Iterable[CellKey],
    *,
    control: str = "LEMLL",
    hide: Hide | None = None,
    fewest: int = _FEWEST_HALVES,
) -> ComparisonTable:
    """Make the tables of the paper from measured cells.

    Parameters
    ----------
    cells : iterable of MeasuredCell
        The rows of a table.
    planned : iterable of CellKey
        All cells of the protocols. An entry has the halves up to the first that is not done.
    control : str, default="LEMLL"
        The method that the marks compare with the others.
    hide : Hide, optional
        Take the cells in which this rule hid labels; by default those with complete labels.
    fewest : int, default=3
        An entry is complete if this number of halves is done, or all if fewer are planned.

    Returns
    -------
    ComparisonTable
        The paper's data sets first, in its order, and its methods if no labels are hidden.
    """
    hidden = "" if hide is None else hide.key
    by_entry: dict[tuple[str, str], list[int]] = {}
    for key in planned:
        if key.hidden == hidden:
            by_entry.setdefault((key.dataset, key.method), []).append(key.split)
    done = {cell.key: cell.metrics for cell in cells if cell.status == "done"}
    measures = _measures(name for metrics in done.values() for name in metrics)
    datasets = _in_order((d for d, _ in by_entry), [info.name for info in list_datasets()])
    # The paper has no incomplete labels, so their contestants have the order of the protocol.
    methods = _in_order((m for _, m in by_entry), PAPER_METHODS if hide is None else ())
    values: dict[tuple[str, float | None, str, str], list[float]] = {}
    wanted = {}
    for (dataset, method), splits in by_entry.items():
        keys = [CellKey(dataset, method, split, hidden) for split in sorted(splits)]
        found = [done[key] for key in itertools.takewhile(done.__contains__, keys)]
        wanted[dataset, method] = max(len(found), min(fewest, len(splits)))
        for measure in measures:
            kept = [metrics.get(measure) for metrics in found]
            values[measure, None, dataset, method] = [value for value in kept if value is not None]
    ordered: dict[tuple[str, float | None, str, str], list[float]] = {
        (measure, None, dataset, method): values.get((measure, None, dataset, method), [])
        for measure in measures
        for dataset in datasets
        for method in methods
    }
    condition = "" if hide is None else str(hide)
    return ComparisonTable.from_values(
        ordered, control=control, wanted=wanted, methods=methods, condition=condition
    )


def _in_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Return different names: first those of the given order, then the others."""
    found = list(dict.fromkeys(names))
    return sorted(found, key=lambda name: order.index(name) if name in order else len(order))
