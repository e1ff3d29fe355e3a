"""Where results live: a folder, one record a cell.

::

    STORE/cells/ID.npz    what the cell computed: scores and predictions, or a distribution
    STORE/cells/ID.json   its record, written last: it holds the hash of the arrays
    STORE/claims/ID       a locked file while the cell is being run

A cell is done when its record says so and its arrays are there; until then it is as if it had
never been run. Files are written under another name, forced to the disk and renamed, so a reader
finds them whole or not at all. Nothing else is kept: no index that could disagree, no state that a
killed process could leave wrong. Who writes a cell's files holds its claim, a lock that the system
drops when its holder dies; therefore any number of processes can work on one store.

No file of a store is ever unpickled.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lemll.exceptions import StoreError
from lemll.experiments._files import Claim, claim, is_claimed, write_whole
from lemll.experiments._records import Record, Status, decode, encode
from lemll.experiments.protocol import Cell

__all__ = ["Overview", "Record", "Status", "Store"]


@dataclass(frozen=True, slots=True)
class Overview:
    """A store as a protocol sees it.

    Attributes
    ----------
    records : mapping of str to Record
        By id, those of the protocol's cells that have ended.
    pending, running : list of Cell
        Cells without a record; running are those that someone has claimed.
    damaged : list of Cell
        Cells whose files are not what was written; they count as pending too.
    stale : list of Record
        The protocol's work, done by another version of the code: never part of a table.
    unrelated : int
        How many records belong to other protocols.
    """

    records: Mapping[str, Record]
    pending: list[Cell]
    running: list[Cell]
    damaged: list[Cell]
    stale: list[Record]
    unrelated: int

    def count(self, status: Status) -> int:
        """Count the records of a status."""
        return sum(record.status == status for record in self.records.values())


class Store:
    """A folder of results.

    Parameters
    ----------
    folder : str or Path
        Where; made if it does not exist.
    create : bool, default=True
        Whether it may be made; if not, it must exist.

    Raises
    ------
    StoreError
        If it cannot be made, or does not exist.
    """

    def __init__(self, folder: str | Path, *, create: bool = True) -> None:
        self.folder = Path(folder)
        self._cells = self.folder / "cells"
        self._claims = self.folder / "claims"
        if not create and not self._cells.is_dir():
            raise StoreError(f"{self.folder} is no store of results; run the protocol first")
        try:
            self._cells.mkdir(parents=True, exist_ok=True)
            self._claims.mkdir(exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot make a store in {self.folder}: {error.strerror}; choose another folder"
            ) from error

    def claim(self, cell_id: str) -> Claim | None:
        """Claim a cell, so that no other process runs it.

        Parameters
        ----------
        cell_id : str
            Which.

        Returns
        -------
        Claim or None
            None if another process has claimed it.
        """
        return claim(self._claims / cell_id)

    def write(self, record: Record, arrays: bytes | None) -> Record:
        """Store what became of a cell; the caller holds its claim.

        Parameters
        ----------
        record : Record
            Its `outputs` are filled in here.
        arrays : bytes or None
            An .npz file, if the cell is done.

        Returns
        -------
        Record
            As stored.
        """
        outputs = None
        if arrays is not None:
            outputs = {"sha256": hashlib.sha256(arrays).hexdigest(), "bytes": len(arrays)}
            write_whole(self._cells / f"{record.id}.npz", arrays)
        stored = replace(record, outputs=outputs)
        write_whole(self._cells / f"{record.id}.json", encode(stored))
        return stored

    def read(self, cell_id: str) -> Record | None:
        """Read the record of a cell.

        Parameters
        ----------
        cell_id : str
            Which.

        Returns
        -------
        Record or None
            None if the cell has none.

        Raises
        ------
        StoreError
            If the record, or the size of its arrays, is not what was written.
        """
        # Plain strings: a store of ten thousand cells must open in a second.
        path = f"{self._cells}{os.sep}{cell_id}"
        try:
            with open(f"{path}.json", "rb", buffering=0) as stream:
                record = decode(stream.read(), f"{cell_id}.json")
        except FileNotFoundError:
            return None
        if record.outputs is not None:
            try:
                size = os.stat(f"{path}.npz").st_size
            except FileNotFoundError:
                size = -1
            if size != record.outputs["bytes"]:
                raise StoreError(f"{cell_id}.npz is damaged or missing; its cell must run again")
        return record

    def finished(self, cell_id: str) -> Record | None:
        """Read the record of a cell; one that is damaged counts as none, for it is run again."""
        try:
            return self.read(cell_id)
        except StoreError:
            return None

    def records(self) -> Iterator[Record]:
        """Iterate over all sound records, whatever the protocol and code, in the order of ids."""
        for cell_id in self._ids():
            record = self.finished(cell_id)
            if record is not None:
                yield record

    def _ids(self) -> list[str]:
        with os.scandir(self._cells) as entries:
            return sorted(
                entry.name[:-5]
                for entry in entries
                if entry.name.endswith(".json") and entry.is_file()
            )

    def arrays(self, record: Record) -> dict[str, npt.NDArray[Any]]:
        """Read what a cell computed.

        Parameters
        ----------
        record : Record
            Of a cell that is done.

        Returns
        -------
        dict of str to ndarray
            Of a prediction ``scores``, ``predictions`` and ``test``, the test rows; of a
            reconstruction ``distribution`` and ``numerical_labels``.

        Raises
        ------
        StoreError
            If the file's hash is not the record's.
        """
        path = self._cells / f"{record.id}.npz"
        content = path.read_bytes() if path.is_file() else b""
        if (
            record.outputs is None
            or hashlib.sha256(content).hexdigest() != record.outputs["sha256"]
        ):
            raise StoreError(f"{path.name} is damaged or missing; its cell must run again")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    def discard(self, record: Record) -> None:
        """Forget a cell, so that it is pending again, unless someone is running it just now.

        Parameters
        ----------
        record : Record
            Of the cell.
        """
        held = self.claim(record.id)
        if held is None:
            return
        # The record first: without it the arrays mean nothing, without them it would lie.
        for suffix in (".json", ".npz"):
            (self._cells / f"{record.id}{suffix}").unlink(missing_ok=True)
        held.release()

    def overview(self, cells: Iterable[Cell]) -> Overview:
        """Look at the store with the eyes of a protocol.

        Parameters
        ----------
        cells : iterable of Cell
            The protocol's.

        Returns
        -------
        Overview
            Every cell has a record or is pending.
        """
        wanted = {cell.id: cell for cell in cells}
        work = {cell.work for cell in wanted.values()}
        records: dict[str, Record] = {}
        damaged, stale, unrelated = [], [], 0
        for cell_id in self._ids():
            try:
                record = self.read(cell_id)
            except StoreError:
                if cell_id in wanted:
                    damaged.append(wanted[cell_id])
                continue
            if record is None:
                continue
            if cell_id in wanted:
                records[cell_id] = record
            elif record.work in work:
                stale.append(record)
            else:
                unrelated += 1
        pending = [cell for cell in wanted.values() if cell.id not in records]
        claimed = self._claimed()
        running = [cell for cell in wanted.values() if cell.id in claimed]
        return Overview(records, pending, running, damaged, stale, unrelated)

    def _claimed(self) -> Collection[str]:
        with os.scandir(self._claims) as entries:
            return {entry.name for entry in entries if is_claimed(Path(entry.path))}

    def export(self, path: str | Path) -> int:
        """Write all sound records as a table, one row a cell, one column a metric.

        Parameters
        ----------
        path : str or Path
            ``.csv``, or ``.parquet`` with the extra ``store``.

        Returns
        -------
        int
            The number of rows.
        """
        from lemll.experiments._export import write_rows

        return write_rows(self.records(), Path(path))

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask the store in SQL, by DuckDB (extra ``store``).

        Parameters
        ----------
        sql : str
            The table is called ``cells``, with the columns of `export`.

        Returns
        -------
        list of tuple
            The rows of the answer.
        """
        from lemll.experiments._export import query_rows

        return query_rows(self.records(), sql)
