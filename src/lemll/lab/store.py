"""The store of results: a folder with one record per cell, and its export as one flat table.

::

    STORE/cells/ID.npz    the arrays of the cell: scores and predictions, or a distribution
    STORE/cells/ID.json   its record, written last, with the hash of the arrays
    STORE/claims/ID       a file that is locked while the cell is running

A cell is done when its record says so and its arrays exist. Before that, it counts as not run.
Files are written under another name, flushed to the disk and then renamed, so a reader finds them
complete or not at all. A record is valid only for the cell in the name of its file: its id must be
that name, and its description of the cell must match the protocol. There is no index and no other
state, which could become inconsistent if a process is killed. A process that writes the files of a
cell holds its claim. A claim is a lock, and the system releases it when the process ends. Therefore
any number of processes can work on one store.

No file of a store is ever unpickled.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import secrets
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lemll._files import (
    FileLock,
    check_plain,
    csv_text,
    open_plain,
    take_lock,
    write_output,
    write_whole,
)
from lemll._types import Array, Settings
from lemll._validation import check_memory
from lemll.exceptions import NotEnoughMemoryError, StoreError, import_extra
from lemll.lab.cells import Cell
from lemll.lab.records import Record, Status, damage, decode, encode
from lemll.metrics.table import METRICS

_PLAIN = (
    "id", "code", "status", "experiment", "dataset", "method", "estimator", "criterion",
    "criterion_value",
    "attempt", "finished",
)  # fmt: skip


def _row(record: Record) -> Settings:
    return {
        **{name: getattr(record, name) for name in _PLAIN},
        "setting": str(record.setting[0]),
        "number": record.setting[-1],
        "hidden": record.hidden,
        "parameters": json.dumps(dict(record.parameters)),
        "chosen": None if record.chosen is None else json.dumps(dict(record.chosen)),
        "fit_seconds": record.seconds.get("fit"),
        "error": None if record.error is None else record.error["message"],
        **{name: record.metrics.get(name) for name in METRICS},
    }


def write_rows(records: Iterable[Record], path: Path) -> int:
    """Write records to a .csv or .parquet file, and return how many."""
    rows = [_row(record) for record in records]
    if not rows:
        raise ValueError("the store has no record to export; run the protocol first.")
    if path.suffix == ".parquet":
        write_output(path, _parquet(rows))
    elif path.suffix == ".csv":
        write_output(path, csv_text([list(rows[0]), *(row.values() for row in rows)]))
    else:
        raise ValueError(f"cannot export to {path.name!r}; the name must end in .csv or .parquet.")
    return len(rows)


def _parquet(rows: list[Settings]) -> bytes:
    stream = io.BytesIO()
    pyarrow = import_extra("pyarrow", "store", "Writing Parquet")
    parquet = import_extra("pyarrow.parquet", "store", "Writing Parquet")
    parquet.write_table(pyarrow.Table.from_pylist(rows), stream)
    return stream.getvalue()


# Records have a few kilobytes, because the length of their texts is limited.
_MOST_RECORD_BYTES = 64 * 2**20


def set_folder_aside(path: Path) -> None:
    """Rename a folder that has the name of a file of a cell. Do not delete foreign content."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f"{path.name}.{secrets.token_hex(8)}.aside"))


def cell_fields(cell: Cell) -> Settings:
    """Return the fields that describe a cell in its record, without names that users may change."""
    return {
        "id": cell.id,
        "work": cell.work,
        "code": cell.code,
        "experiment": cell.experiment,
        "estimator": cell.method.method,
        "parameters": cell.parameters,
        "setting": cell.setting.key,
        "data_sha256": cell.data_sha256,
        "rows_sha256": cell.setting.rows_sha256,
    }


def of_cell(record: Record, cell: Cell) -> Record:
    """Return a record with the current names of its data set and method in the protocol.

    Parameters
    ----------
    record : Record
        The stored record.
    cell : Cell
        The cell of the protocol.

    Returns
    -------
    Record
        The record. It is the same object if the names have not changed.

    Raises
    ------
    StoreError
        If the description of the cell in the record is not that of the protocol.
    """
    for field, wanted in cell_fields(cell).items():
        if getattr(record, field) != wanted:
            raise damage(f"{cell.id}.json", f"its field {field!r} is not that of its cell")
    dataset, method = cell.source.name, cell.method.label
    if (record.dataset, record.method) == (dataset, method):
        return record
    return replace(record, dataset=dataset, method=method)


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


# The name of an unfinished file of a cell.
_UNFINISHED = re.compile(r"([0-9a-f]{64})\.(json|npz)\.[0-9a-f]{16}\.tmp")


class Store:
    """A folder of results.

    Parameters
    ----------
    folder : str or Path
        The folder. It is created if it does not exist.
    create : bool, default=True
        Whether the folder may be created. If False, it must exist.

    Raises
    ------
    StoreError
        If the folder cannot be created, or does not exist.
    """

    def __init__(self, folder: str | Path, *, create: bool = True) -> None:
        self.folder = Path(folder)
        self._cells = self.folder / "cells"
        self._claims = self.folder / "claims"
        if not create and not self._cells.is_dir():
            raise StoreError(f"{self.folder} is not a store of results; run the protocol first")
        try:
            self._cells.mkdir(parents=True, exist_ok=True)
            self._claims.mkdir(exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot create a store in {self.folder}: {error.strerror}; choose another folder"
            ) from error

    def claim(self, cell_id: str) -> FileLock | None:
        """Claim a cell, so that no other process runs it.

        Parameters
        ----------
        cell_id : str
            The id of the cell.

        Returns
        -------
        FileLock or None
            The claim, or None if another process holds it.
        """
        path = self._claims / cell_id
        try:
            return take_lock(path)
        except ImportError as error:
            raise StoreError(
                "a store needs the file locks of a POSIX system; use Linux or macOS"
            ) from error
        except OSError as error:
            raise _refused(path, error) from error

    def write(self, record: Record, arrays: bytes | None) -> Record:
        """Store the result of a cell. The caller must hold its claim.

        Parameters
        ----------
        record : Record
            The record. Its field `outputs` is filled in here.
        arrays : bytes or None
            The content of an .npz file, if the cell is done.

        Returns
        -------
        Record
            The stored record.
        """
        outputs = None
        if arrays is not None:
            outputs = {"sha256": hashlib.sha256(arrays).hexdigest(), "bytes": len(arrays)}
            self._write(f"{record.id}.npz", arrays)
        stored = replace(record, outputs=outputs)
        self._write(f"{record.id}.json", encode(stored))
        return stored

    def _write(self, name: str, content: bytes) -> None:
        path = self._cells / name
        try:
            set_folder_aside(path)
            write_whole(path, content)
        except OSError as error:
            raise _refused(path, error) from error

    def read(self, cell_id: str) -> Record | None:
        """Read the record of a cell.

        Parameters
        ----------
        cell_id : str
            The id of the cell.

        Returns
        -------
        Record or None
            The record, or None if the cell has none.

        Raises
        ------
        StoreError
            If the record, or the size of its arrays, is not what was written for this cell.
        """
        # Strings are faster than Path: a store of ten thousand cells must open in a second.
        path = f"{self._cells}{os.sep}{cell_id}"
        try:
            content = read_plain(f"{path}.json", most=_MOST_RECORD_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise damage(f"{cell_id}.json", f"{error.strerror}") from error
        record = decode(content, cell_id)
        if record.outputs is not None:
            try:
                found = os.lstat(f"{path}.npz")
                check_plain(found.st_mode)
            except FileNotFoundError as error:
                raise damage(f"{cell_id}.npz", "it is missing") from error
            except OSError as error:
                raise damage(f"{cell_id}.npz", f"{error.strerror}") from error
            if found.st_size != record.outputs["bytes"]:
                raise damage(f"{cell_id}.npz", "it does not have the size that its record says")
        return record

    def finished(self, cell: Cell) -> Record | None:
        """Read the record of a cell. A damaged record is ignored, because the cell will run again.

        Parameters
        ----------
        cell : Cell
            The cell of a protocol.

        Returns
        -------
        Record or None
            The record, or None if the cell must run.
        """
        try:
            record = self.read(cell.id)
            return None if record is None else of_cell(record, cell)
        except StoreError:
            return None

    def records(self) -> Iterator[Record]:
        """Iterate over all valid records of all protocols and versions of the code, by id."""
        return (found for _, found in self._all() if isinstance(found, Record))

    def _all(self) -> Iterator[tuple[str, Record | StoreError | None]]:
        for cell_id in self._ids():
            try:
                yield cell_id, self.read(cell_id)
            except StoreError as error:
                yield cell_id, error

    def damaged(self) -> dict[str, str]:
        """Return the problems of all damaged files, of this and other protocols.

        Returns
        -------
        dict of str to str
            The problems by the id in the name of the file.
        """
        return {
            cell_id: str(found) for cell_id, found in self._all() if isinstance(found, StoreError)
        }

    def _ids(self) -> list[str]:
        # A folder, a link or a FIFO in the place of a record also counts as damage.
        with os.scandir(self._cells) as entries:
            return sorted(entry.name[:-5] for entry in entries if entry.name.endswith(".json"))

    def sweep(self) -> None:
        """Remove incomplete files of killed processes, except for cells that are running."""
        with os.scandir(self._cells) as entries:
            found = [match for entry in entries if (match := _UNFINISHED.fullmatch(entry.name))]
        for match in found:
            held = self.claim(match[1])
            if held is not None:
                with suppress(OSError):  # lemll does not create folders with such a name
                    (self._cells / match[0]).unlink()
                held.release()

    def arrays(self, record: Record) -> dict[str, Array]:
        """Read the arrays that a cell computed.

        Parameters
        ----------
        record : Record
            The record of a finished cell.

        Returns
        -------
        dict of str to ndarray
            For a prediction: ``scores``, ``predictions`` and ``test`` (the test rows). For a
            reconstruction: ``distribution`` and ``numerical_labels``.

        Raises
        ------
        StoreError
            If the file does not match the record.
        """
        name = f"{record.id}.npz"
        if record.outputs is None:
            raise damage(name, "its record names no arrays")
        try:
            content = read_plain(self._cells / name, most=record.outputs["bytes"])
        except OSError as error:
            raise damage(name, f"{error.strerror}") from error
        if hashlib.sha256(content).hexdigest() != record.outputs["sha256"]:
            raise damage(name, "it is not what its record says")
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                size = sum(member.file_size for member in archive.infolist())
            check_memory(size, "Reading the arrays of a cell", "a cell does not write such arrays")
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                return {key: archive[key] for key in archive.files}
        except NotEnoughMemoryError as error:
            raise damage(name, str(error)) from error
        except Exception as error:
            # zipfile, zlib and NumPy raise different exceptions for a damaged file.
            raise damage(name, f"it contains no arrays ({error})") from error

    def discard(self, record: Record) -> None:
        """Remove the files of a cell, so that it is pending again. A running cell is not changed.

        Parameters
        ----------
        record : Record
            The record of the cell.
        """
        held = self.claim(record.id)
        if held is None:
            return
        # Remove the record first. Arrays without a record are ignored, but a record without arrays
        # would be wrong.
        for suffix in (".json", ".npz"):
            path = self._cells / f"{record.id}{suffix}"
            set_folder_aside(path)
            path.unlink(missing_ok=True)
        held.release()

    def overview(self, cells: Iterable[Cell]) -> Overview:
        """Return an overview of the store for the cells of a protocol.

        Parameters
        ----------
        cells : iterable of Cell
            The cells of the protocol.

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
        for cell_id in self._ids():
            try:
                record = self.read(cell_id)
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
        # Look for claims last: a cell that ends meanwhile must not be missing.
        running = self._claimed()
        return Overview(
            records=records,
            pending=[cell for cell in wanted.values() if cell.id not in records],
            running=[cell for cell in wanted.values() if cell.id in running],
            damaged=[cell for cell in wanted.values() if cell.id in reasons],
            reasons=reasons,
            stale=stale,
            unrelated=unrelated,
        )

    def _claimed(self) -> Collection[str]:
        with os.scandir(self._claims) as entries:
            return {entry.name for entry in entries if is_locked(Path(entry.path))}

    def export(self, path: str | Path) -> int:
        """Write all valid records as a table, with one row per cell and one column per metric.

        Parameters
        ----------
        path : str or Path
            ``.csv``, or ``.parquet`` with the extra ``store``.

        Returns
        -------
        int
            The number of rows.
        """
        return write_rows(self.records(), Path(path))


def _refused(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot write {path.name} in {path.parent}: {error.strerror}. Results stored before are "
        "safe; free some space or allow writing, then resume"
    )


def is_locked(path: Path) -> bool:
    """Return whether the lock of this file is held; False if it is not a plain file."""
    import fcntl

    try:
        descriptor = open_plain(path)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


_BLOCK_BYTES = 2**20


def read_plain(path: str | Path, *, most: int, follow: bool = False) -> bytes:
    """Read a plain file up to a limit of its size.

    Parameters
    ----------
    path : str or Path
        The file.
    most : int
        Largest number of bytes.
    follow : bool, default=False
        Whether the path may be a symbolic link.

    Returns
    -------
    bytes
        The content of the file.

    Raises
    ------
    OSError
        If the file cannot be read. The attribute `strerror` gives the reason.
    """
    descriptor = open_plain(path, follow=follow)
    try:
        size = os.fstat(descriptor).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it has {size} bytes, but at most {most} are allowed")
        content = os.read(descriptor, size)
        # One call may return less than requested, and the size may change during the reading.
        while len(content) < size and (more := os.read(descriptor, _BLOCK_BYTES)):
            content += more
        return content
    finally:
        os.close(descriptor)
