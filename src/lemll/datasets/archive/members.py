"""Read the arrays of an NPZ archive; each array is checked before it is unpacked."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np

from lemll._types import Array
from lemll.datasets._budget import Budget
from lemll.exceptions import DatasetFormatError

__all__ = ["BrokenArchiveError", "read_members"]

_BLOCK_BYTES = 2**20
_MAX_HEADER_BYTES = 10_000
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4}
# Complex numbers are read so that they can be refused by name.
_KINDS = "biufcU"


class BrokenArchiveError(Exception):
    """The bytes are not an archive of arrays; the text says why."""


def read_members(path: Path, wanted: Collection[str], budget: Budget) -> dict[str, Array]:
    """Read the wanted arrays of an archive.

    Parameters
    ----------
    path : Path
        The archive.
    wanted : collection of str
        Names of arrays; all others are left alone.
    budget : Budget
        Charged for each array before it is unpacked.

    Returns
    -------
    dict
        The arrays that are there.

    Raises
    ------
    BrokenArchiveError
        If the archive or an array in it is damaged, or holds Python objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name: _read(archive, name, budget)
                for name in sorted(wanted)
                if f"{name}.npy" in archive.NameToInfo
            }
    except (DatasetFormatError, BrokenArchiveError):
        raise
    except MemoryError as error:
        raise BrokenArchiveError("it asks for more memory than there is") from error
    except Exception as error:
        # zipfile, zlib and NumPy each have their own ways of saying that a file is damaged.
        raise BrokenArchiveError(str(error)) from error


def _read(archive: zipfile.ZipFile, name: str, budget: Budget) -> Array:
    method = archive.getinfo(f"{name}.npy").compress_type
    # Other compression methods could expand a few bytes to gigabytes. NumPy never uses them.
    if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BrokenArchiveError(f"{name} is packed by method {method}, want deflate or none")
    with archive.open(f"{name}.npy") as member:
        shape, by_column, dtype = _header(member)
        if dtype.kind not in _KINDS:
            raise BrokenArchiveError(f"{name} must hold numbers or text, got dtype {dtype}")
        if min(shape, default=0) < 0:
            raise BrokenArchiveError(f"{name} has the negative shape {shape}")
        cells = int(np.prod(shape, dtype=object))
        # Numbers become float64, whatever they are stored as.
        budget.charge(cells * max(dtype.itemsize, 8))
        data = _exactly(member, cells * dtype.itemsize, name)
    array: Array = np.ndarray(shape, dtype, data, order="F" if by_column else "C")
    if dtype.kind == "b":
        # A byte that is neither 0 nor 1 would go on as it is.
        return np.not_equal(array.view(np.uint8), 0)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(member)
    if version not in _LENGTH_BYTES:
        raise BrokenArchiveError(f"arrays of format {version} are not read, save with plain dtypes")
    length = member.read(_LENGTH_BYTES[version])
    size = int.from_bytes(length, "little")
    # NumPy would read the whole header before it finds that it is too long.
    if size > _MAX_HEADER_BYTES:
        raise BrokenArchiveError(f"an array is described by {size} bytes, more than any needs")
    text = io.BytesIO(length + member.read(size))
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(text)
    return np.lib.format.read_array_header_2_0(text)


def _exactly(member: IO[bytes], size: int, name: str) -> bytearray:
    """Read the cells and the end of the member, where its check sum is compared."""
    data = bytearray()
    while chunk := member.read(min(_BLOCK_BYTES, size + 1 - len(data))):
        data += chunk
        if len(data) > size:
            break
    if len(data) != size:
        raise BrokenArchiveError(f"{name} does not have the {size} bytes that its shape wants")
    return data
