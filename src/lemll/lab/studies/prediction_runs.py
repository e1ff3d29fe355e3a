"""What a committed table of cells still lacks, and whether its cells can be repeated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lemll._types import SettingsView
from lemll.exceptions import ProtocolError, StoreError
from lemll.lab.cells import Cell
from lemll.lab.execute import run_cell
from lemll.lab.methods import plain
from lemll.lab.protocol import Protocol
from lemll.lab.records import Record
from lemll.lab.store import Store
from lemll.lab.studies.prediction import (
    CELLS_FILE,
    CellKey,
    MeasuredCell,
    read_cells,
    read_protocols,
    write_cells,
)

# Another machine adds in another order, and a solver then stops at another point within its
# tolerance. This may exchange two labels with nearly equal scores.
_TOLERANCE = 5e-4

# Tells whether a cell has to be run.
Lacking = Callable[[Cell], bool]


def collect(folder: Path, store: Store) -> int:
    """Add the finished cells of a store to the table of a folder.

    A record counts if its work (data, method, parameters, rows, tuning) is in a protocol of the
    folder. The version of the code does not matter. The latest result of a cell wins.

    Parameters
    ----------
    folder : Path
        The folder with the protocols.
    store : Store
        The store.

    Returns
    -------
    int
        Number of cells that are new or replaced.
    """
    planned = {
        cell.work: (CellKey.of(cell), protocol.metrics)
        for protocol in read_protocols(folder)
        for cell in protocol.cells()
    }
    known = {cell.key: cell for cell in read_cells(folder)}
    before = dict(known)
    for record in store.records():
        if record.work not in planned:
            continue
        key, metrics = planned[record.work]
        old = known.get(key)
        # A result is never replaced by a failure; otherwise the later record wins.
        if old is None or (
            (record.status == "done" or old.status != "done") and old.finished < record.finished
        ):
            known[key] = _measured(key, record, metrics)
    if known:  # a table without rows would have no measures
        write_cells(folder, known.values())
    return sum(known[key] != before.get(key) for key in known)


def lacking(folder: Path, *, methods: Sequence[str] = (), n_splits: int | None = None) -> Lacking:
    """Return a test that tells whether the table of a folder lacks a cell.

    Parameters
    ----------
    folder : Path
        The folder.
    methods : sequence of str, default=()
        Labels of methods; cells of other methods count as present. By default all methods.
    n_splits : int, optional
        Cells of later halves count as present. By default all halves.

    Returns
    -------
    callable
        From a cell to whether it has to be run.
    """
    present = {cell.key for cell in read_cells(folder)}

    def lacks(cell: Cell) -> bool:
        key = CellKey.of(cell)
        wanted = (not methods or key.method in methods) and (
            n_splits is None or cell.setting.number < n_splits
        )
        return wanted and key not in present

    return lacks


def choices(folder: Path) -> Callable[[Cell], SettingsView | None]:
    """Return the parameters that the first splits of a table have selected.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    callable
        From a cell to the parameters that the first split of its data set, method and hidden
        labels has selected. None if that split is not done, or if the choice is not a point of
        the present grid. The folds and the measure of the choice are not compared.
    """
    done = {cell.key: cell for cell in read_cells(folder) if cell.status == "done"}

    def chosen(cell: Cell) -> SettingsView | None:
        key = CellKey.of(cell)
        first = done.get(key._replace(split=key.split - cell.setting.number))
        if first is None or not first.chosen or cell.tuning is None:
            return None
        try:
            found = json.loads(first.chosen)
        except json.JSONDecodeError as error:
            raise StoreError(
                f"{folder / CELLS_FILE}: the parameters of {first.key} are not JSON: {error}; run "
                "this cell again."
            ) from error
        if not isinstance(found, dict):
            return None
        several = len(cell.tuning.metrics) > 1
        selected = [found.get(metric) for metric in cell.tuning.metrics] if several else [found]
        return found if all(_in_grid(values, cell.grid) for values in selected) else None

    return chosen


def _in_grid(values: object, grid: SettingsView) -> bool:
    """Tell whether values, as a table shows them, are a point of a grid."""
    shown = plain(grid)
    return (
        isinstance(values, dict)
        and values.keys() == shown.keys()
        and all(value in shown[name] for name, value in values.items())
    )


def _measured(key: CellKey, record: Record, metrics: Sequence[str]) -> MeasuredCell:
    chosen = "" if record.chosen is None else json.dumps(dict(record.chosen), sort_keys=True)
    return MeasuredCell(
        key=key,
        status=record.status,
        chosen=chosen,
        metrics={name: record.metrics.get(name) for name in metrics},
        seconds=record.seconds.get("fit", 0.0),
        code=record.code[:12],
        finished=record.finished,
    )


@dataclass(frozen=True, slots=True)
class Repetition:
    """A cell that was run again.

    Attributes
    ----------
    key : CellKey
        The cell.
    differences : tuple of str
        Measures that differ from the table by more than the tolerance.
    """

    key: CellKey
    differences: tuple[str, ...]


def repeat(folder: Path, number: int, *, random_state: int = 0) -> Iterable[Repetition]:
    """Run random cells of a folder again, with the present code, and compare.

    Parameters
    ----------
    folder : Path
        The folder.
    number : int
        Number of cells; all if there are fewer.
    random_state : int, default=0
        Seed of the choice.

    Yields
    ------
    Repetition
        One per cell. Measures differ if they are more than 0.0005 apart.
    """
    protocols = read_protocols(folder)
    done = [cell for cell in read_cells(folder) if cell.status == "done"]
    order = np.random.RandomState(random_state).permutation(len(done))[:number]
    for measured in (done[i] for i in order):
        cell, protocol = _cell_of(measured.key, protocols)
        outcome = run_cell(protocol, cell)
        found = list(_differences(measured, outcome.metrics))
        if outcome.error is not None:
            found = [f"it failed now: {outcome.error['message']}"]
        yield Repetition(measured.key, tuple(found))


def _cell_of(key: CellKey, protocols: Iterable[Protocol]) -> tuple[Cell, Protocol]:
    for protocol in protocols:
        small = protocol.restricted(key.dataset, key.method)
        if small is None:
            continue
        for cell in small.cells():
            if CellKey.of(cell) == key:
                return cell, small
    raise ProtocolError(f"no protocol plans {key}.")


def _differences(measured: MeasuredCell, metrics: Mapping[str, float | None]) -> Iterable[str]:
    for name, before in measured.metrics.items():
        now = metrics.get(name)
        if before is None or now is None:
            same = before is now
        else:
            same = abs(now - before) <= _TOLERANCE
        if not same:
            yield f"{name}: {before} in the table, {now} now"
