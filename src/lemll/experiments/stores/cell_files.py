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
    """Read the record of a cell, and look at the size of its arrays.

    Parameters
    ----------
    folder : Path
        Of the cells.
    cell_id : str
        Which.

    Returns
    -------
    Record or None
        None if there is no file.

    Raises
    ------
    StoreError
        If one of the files is not what was written for this cell.
    """
    # Plain strings: a store of ten thousand cells must open in a second.
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
            raise damage(f"{cell_id}.npz", "it has another size than its record says")
    return record


def read_arrays(folder: Path, record: Record) -> dict[str, Array]:
    """Read the arrays of a cell that is done, if they are those that its record names.

    Parameters
    ----------
    folder : Path
        Of the cells.
    record : Record
        Of the cell.

    Returns
    -------
    dict of str to ndarray
        By name.

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
        check_memory(size, "Reading the arrays of a cell", "they are not what a cell leaves")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except NotEnoughMemoryError as error:
        raise damage(name, str(error)) from error
    except Exception as error:
        # zipfile, zlib and NumPy each have their own ways of saying that a file is damaged.
        raise damage(name, f"it holds no arrays ({error})") from error


def set_folder_aside(path: Path) -> None:
    """Rename a directory that has the name of a file of a cell; its content is not ours."""
    if path.is_dir() and not path.is_symlink():
        path.rename(path.with_name(f"{path.name}.{secrets.token_hex(8)}.aside"))


def cell_fields(cell: Cell) -> Settings:
    """Return what a record says of its cell, apart from names that a user may change."""
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
    """Return a record under the names that the protocol gives to its data set and method now.

    Parameters
    ----------
    record : Record
        As stored.
    cell : Cell
        As the protocol expands to it.

    Returns
    -------
    Record
        The same, if the names have not changed since.

    Raises
    ------
    StoreError
        If the record says something else of its cell than the protocol does.
    """
    for field, wanted in cell_fields(cell).items():
        if getattr(record, field) != wanted:
            raise damage(f"{cell.id}.json", f"its field {field!r} is not that of its cell")
    dataset, method = cell.source.name, cell.method.label
    if (record.dataset, record.method) == (dataset, method):
        return record
    return replace(record, dataset=dataset, method=method)
