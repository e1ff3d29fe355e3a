"""An overview of the records in a store that belong to a protocol."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from lemll.exceptions import StoreError
from lemll.experiments.protocols.protocol import Cell
from lemll.experiments.stores.cell_files import of_cell
from lemll.experiments.stores.records import Record, Status

__all__ = ["Overview", "look"]


@dataclass(frozen=True, slots=True)
class Overview:
    """The content of a store for one protocol.

    Attributes
    ----------
    records : mapping of str to Record
        The records of the protocol's cells that have ended, by id. Data sets and methods have their
        current names in the protocol.
    pending, running : list of Cell
        Pending cells have no record. Running cells are claimed by a process.
    damaged : list of Cell
        Cells with damaged files. They are also pending.
    reasons : mapping of str to str
        The problem of each damaged file by id, including files of other protocols.
    stale : list of Record
        Results of the protocol from another version of the code. Tables never contain them.
    unrelated : int
        Number of records of other protocols.
    """

    records: Mapping[str, Record]
    pending: list[Cell]
    running: list[Cell]
    damaged: list[Cell]
    reasons: Mapping[str, str]
    stale: list[Record]
    unrelated: int

    def count(self, status: Status) -> int:
        """Return the number of records with this status."""
        return sum(record.status == status for record in self.records.values())


def look(
    cells: Iterable[Cell],
    ids: Iterable[str],
    read: Callable[[str], Record | None],
    claimed: Callable[[], Collection[str]],
) -> Overview:
    """Assign the records of a store to the cells of a protocol.

    Parameters
    ----------
    cells : iterable of Cell
        The cells of the protocol.
    ids : iterable of str
        The ids of all records, from the names of their files.
    read : callable
        Reads the record of an id, or raises a StoreError.
    claimed : callable
        Returns the ids of running cells. It is called after the records were read.

    Returns
    -------
    Overview
        Every cell has a record or is pending.
    """
    wanted = {cell.id: cell for cell in cells}
    work = {cell.work for cell in wanted.values()}
    records: dict[str, Record] = {}
    reasons: dict[str, str] = {}
    stale, unrelated = [], 0
    for cell_id in ids:
        try:
            record = read(cell_id)
            if record is None:
                continue
            if cell_id in wanted:
                records[cell_id] = of_cell(record, wanted[cell_id])
            elif record.work in work:
                stale.append(record)
            else:
                unrelated += 1
        except StoreError as error:
            reasons[cell_id] = str(error)
    running = claimed()
    return Overview(
        records=records,
        pending=[cell for cell in wanted.values() if cell.id not in records],
        running=[cell for cell in wanted.values() if cell.id in running],
        damaged=[cell for cell in wanted.values() if cell.id in reasons],
        reasons=reasons,
        stale=stale,
        unrelated=unrelated,
    )
