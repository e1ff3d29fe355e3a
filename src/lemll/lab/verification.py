"""Compute every figure of a table again from the stored outputs of the cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from lemll.exceptions import StoreError
from lemll.lab.cells import Cell, load_source
from lemll.lab.execute import measure
from lemll.lab.protocol import Protocol
from lemll.lab.records import Record
from lemll.lab.store import Store
from lemll.lab.tables import ComparisonTable, sound_outputs
from lemll.metrics.table import METRICS

# Metrics are sums over rows, and another version of NumPy may add in another order.
_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `verify`.

    Attributes
    ----------
    figures : int
        Number of metrics that were computed again.
    problems : tuple of str
        Differences between the store and the computed figures; empty if there are none.
    missing : int
        Number of cells that are not done, and so cannot be verified.
    absent : tuple of str
        Those of these cells that have no record.
    """

    figures: int
    problems: tuple[str, ...]
    missing: int
    absent: tuple[str, ...] = ()


def verify(protocol: Protocol, store: Store, *, discard: bool = False) -> Verification:
    """Compute every metric and the whole table again from the stored arrays, and compare.

    Parameters
    ----------
    protocol : Protocol
        The cells to verify.
    store : Store
        The store with their results.
    discard : bool, default=False
        Remove cells with damaged arrays, so that the next run computes them again. Cells with
        damaged records are run again in any case.

    Returns
    -------
    Verification
        The result; each problem names its cell.
    """
    cells = {cell.id: cell for cell in protocol.cells()}
    overview = store.overview(cells.values())
    problems = [
        f"{cell}: its files are not what was written: {overview.reasons[cell.id]}"
        for cell in overview.damaged
    ]
    figures = 0
    for record in overview.records.values():
        if record.status != "done":
            continue
        cell = cells[record.id]
        figures += len(record.metrics)
        try:
            problems += [f"{cell}: {problem}" for problem in _differences(cell, record, store)]
        except StoreError as error:
            problems.append(f"{cell}: {error}")
            if discard:
                store.discard(record)
    if not problems:
        stored = ComparisonTable.from_store(protocol, store)
        if stored.to_csv() != ComparisonTable.from_store(protocol, store, recompute=True).to_csv():
            problems.append("the table of the stored metrics is not that of the stored arrays")
    absent = tuple(str(cell) for cell in overview.pending if cell.id not in overview.reasons)
    missing = len(cells) - overview.count("done")
    return Verification(figures, tuple(problems), missing, absent)


def _differences(cell: Cell, record: Record, store: Store) -> Iterator[str]:
    """Yield the metrics of a record that differ from those of its arrays."""
    dataset, _ = load_source(cell.source)
    arrays = sound_outputs(cell, record, dataset, store.arrays)
    kind = "multilabel" if cell.experiment == "prediction" else "distribution"
    for name, stored in record.metrics.items():
        if name not in METRICS or METRICS[name].kind != kind:
            yield f"{name} is not a metric of a {cell.experiment}"
            continue
        again = measure(cell, dataset, arrays, (name,))[0][name]
        if not _equal(stored, again):
            yield f"{name} is stored as {stored}, and is {again}"


def _equal(stored: float | None, again: float | None) -> bool:
    if stored is None or again is None:
        return stored is again
    return math.isclose(stored, again, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
