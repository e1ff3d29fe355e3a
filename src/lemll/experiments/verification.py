"""Every figure of a table, computed once more from what the cells left behind."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lemll.exceptions import StoreError
from lemll.experiments._execute import measure
from lemll.experiments._sources import load_source
from lemll.experiments.protocol import Protocol
from lemll.experiments.store import Store
from lemll.experiments.tables import ComparisonTable

__all__ = ["Verification", "verify"]

# Metrics are sums over rows: another version of NumPy may add in another order.
_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found.

    Attributes
    ----------
    figures : int
        Metrics that were computed again.
    problems : tuple of str
        Where the store holds something else; empty if all is well.
    missing : int
        Cells that are not done, so that there is nothing to verify.
    """

    figures: int
    problems: tuple[str, ...]
    missing: int


def verify(protocol: Protocol, store: Store, *, discard: bool = False) -> Verification:
    """Compute every metric, and the whole table, again from the stored arrays, and compare.

    Parameters
    ----------
    protocol : Protocol
        Whose cells.
    store : Store
        Where they are.
    discard : bool, default=False
        Remove the cells whose arrays are damaged, so that the next run does them again.

    Returns
    -------
    Verification
        Each problem names the cell.
    """
    cells = {cell.id: cell for cell in protocol.cells()}
    overview = store.overview(cells.values())
    problems = [f"{cell}: its files are not what was written" for cell in overview.damaged]
    figures = 0
    for record in overview.records.values():
        if record.status != "done":
            continue
        cell = cells[record.id]
        try:
            arrays = store.arrays(record)
        except StoreError as error:
            problems.append(f"{cell}: {error}")
            if discard:
                store.discard(record)
            continue
        names = tuple(record.metrics)
        again, _ = measure(cell, load_source(cell.source)[0], arrays, names)
        for name in names:
            figures += 1
            if not _equal(record.metrics[name], again[name]):
                problems.append(
                    f"{cell}: {name} is stored as {record.metrics[name]}, and is {again[name]}"
                )
    if not problems:
        stored = ComparisonTable.from_store(protocol, store)
        if stored.to_csv() != ComparisonTable.from_store(protocol, store, recompute=True).to_csv():
            problems.append("the table of the stored metrics is not that of the stored arrays")
    return Verification(figures, tuple(problems), len(cells) - overview.count("done"))


def _equal(stored: float | None, again: float | None) -> bool:
    if stored is None or again is None:
        return stored is again
    return math.isclose(stored, again, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
