"""Read and write the two files of a cell: its record and its arrays."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from lemll._plain_files import check_plain
from lemll._types import Array, Settings
from lemll._validation import check_memory
from lemll.exceptions import NotEnoughMemoryError
from lemll.experiments.protocols.protocol import Cell
from lemll.experiments.stores.files import read_plain
from lemll.experiments.stores.records import Record, damage, decode

__all__ = ["cell_fields", "of_cell", "read_arrays", "read_record", "set_folder_aside"]

# Records have a few kilobytes, because the length of their texts is limited.
_MOST_RECORD_BYTES = 64 * 2**20


def read_record(folder: Path, cell_id: str) -> Record | None:
    """Read the record of a cell, and check the size of its arrays.

    Parameters
    ----------
    folder : Path
        The folder of the cells.
    cell_id : str
        The id of the cell.

    Returns
    -------
    Record or None
        The record, or None if it has no file.

    Raises
    ------
    StoreError
        If one of the files is not what was written for this cell.
    """
    # Strings are faster than Path: a store of ten thousand cells must open in a second.
    path = f"{folder}{os.sep}{cell_id}"
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


def read_arrays(folder: Path, record: Record) -> dict[str, Array]:
    """Read the arrays of a finished cell, and compare them with its record.

    Parameters
    ----------
    folder : Path
        The folder of the cells.
    record : Record
        The record of the cell.

    Returns
    -------
    dict of str to ndarray
        The arrays by name.

    Raises
    ------
    StoreError
        If the file is not what was written.
    """
    name = f"{record.id}.npz"
    if record.outputs is None:
        raise damage(name, "its record names no arrays")
    try:
        content = read_plain(folder / name, most=record.outputs["bytes"])
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
