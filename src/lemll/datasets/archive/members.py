"""Read the arrays of an NPZ archive; each array is checked before it is unpacked."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np

from lemll._budget import Budget
from lemll._types import Array
from lemll.exceptions import DatasetFormatError

__all__ = ["BrokenArchiveError", "read_members"]

_BLOCK_BYTES = 2**20
_MAX_HEADER_BYTES = 10_000
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4}
# Complex numbers are allowed here, so that a later check can name them in its error message.
_KINDS = "biufcU"


class BrokenArchiveError(Exception):
    """The bytes are not an archive of arrays. The message says why."""


def read_members(path: Path, wanted: Collection[str], budget: Budget) -> dict[str, Array]:
    """Read the wanted arrays of an archive.

    Parameters
    ----------
    path : Path
        The archive.
    wanted : collection of str
        Names of the arrays to read. Other arrays are not read.
    budget : Budget
        Charged for each array before it is unpacked.

    Returns
    -------
    dict
        The wanted arrays that the archive contains.

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
        raise BrokenArchiveError("it needs more memory than is available") from error
    except Exception as error:
        # zipfile, zlib and NumPy raise different exceptions for a damaged file.
        raise BrokenArchiveError(str(error)) from error


def _read(archive: zipfile.ZipFile, name: str, budget: Budget) -> Array:
    method = archive.getinfo(f"{name}.npy").compress_type
    # Other compression methods could expand a few bytes to gigabytes. NumPy never uses them.
    if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BrokenArchiveError(f"{name} is packed by method {method}, expected deflate or none")
    with archive.open(f"{name}.npy") as member:
        shape, by_column, dtype = _header(member)
        if dtype.kind not in _KINDS:
            raise BrokenArchiveError(f"{name} must hold numbers or text, got dtype {dtype}")
        if min(shape, default=0) < 0:
            raise BrokenArchiveError(f"{name} has the negative shape {shape}")
        cells = int(np.prod(shape, dtype=object))
        # All types of numbers are later converted to float64, which has 8 bytes.
        budget.charge(cells * max(dtype.itemsize, 8))
        data = _exactly(member, cells * dtype.itemsize, name)
    array: Array = np.ndarray(shape, dtype, data, order="F" if by_column else "C")
    if dtype.kind == "b":
        # NumPy does not check that a stored boolean is 0 or 1; another byte gives wrong results.
        return np.not_equal(array.view(np.uint8), 0)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(member)
    if version not in _LENGTH_BYTES:
        raise BrokenArchiveError(f"arrays of format {version} are not read, save with plain dtypes")
    length = member.read(_LENGTH_BYTES[version])
    size = int.from_bytes(length, "little")
    # NumPy checks the length of the header only after it has read all of it.
    if size > _MAX_HEADER_BYTES:
        raise BrokenArchiveError(
            f"the header of an array has {size} bytes, expected at most {_MAX_HEADER_BYTES}"
        )
    text = io.BytesIO(length + member.read(size))
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(text)
    return np.lib.format.read_array_header_2_0(text)


def _exactly(member: IO[bytes], size: int, name: str) -> bytearray:
    """Read exactly `size` bytes and the end of the member, where zipfile compares the check sum."""
    data = bytearray()
    while chunk := member.read(min(_BLOCK_BYTES, size + 1 - len(data))):
        data += chunk
        if len(data) > size:
            break
    if len(data) != size:
        raise BrokenArchiveError(f"{name} does not have the {size} bytes that its shape requires")
    return data
