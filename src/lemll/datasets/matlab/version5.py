"""Read the variables of a MATLAB file of version 5, after a check of their headers.

Only requested numeric arrays at the top level are read. Cells, structs and their content are
skipped. A size in the file is used only after it was compared with the number of available bytes
and counted in the memory budget.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection
from io import BufferedReader
from typing import Any

from lemll._types import Settings
from lemll.datasets.matlab.parts import BrokenFileError, Cost, OddVariable, sparse_variable
from lemll.datasets.matlab.tags import Element, FileBytes

__all__ = ["read_mat5"]

_HEADER_BYTES = 128
_VERSION_5 = 1
_SPARSE = 5
# The classes of the format whose elements begin with flags, dimensions and a name.
_NAMED_CLASSES = {
    1: "cell", 2: "struct", 3: "object", 4: "char", _SPARSE: "float64", 6: "float64", 7: "float32",
    8: "int8", 9: "uint8", 10: "int16", 11: "uint16", 12: "int32", 13: "uint32", 14: "int64",
    15: "uint64",
}  # fmt: skip
_FIRST_NUMERIC = _SPARSE
_COMPLEX = 0x0800
_MAX_DIMENSIONS = 64
_MAX_NAME = 256


def read_mat5(file: BufferedReader, wanted: Collection[str], cost: Cost) -> Settings:
    """Read the wanted variables of a version 5 file.

    Parameters
    ----------
    file : binary file
        The file, at its beginning. It must be seekable.
    wanted : collection of str
        Names of the variables to read. Other variables are skipped.
    cost : callable
        Called with name, shape and stored bytes of each wanted matrix before its cells are read.

    Returns
    -------
    dict
        An array, a CSC array or an `OddVariable` for each wanted variable in the file.

    Raises
    ------
    BrokenFileError
        If the bytes are not a valid version 5 file.
    """
    order = _byte_order(file.read(_HEADER_BYTES))
    end = file.seek(0, os.SEEK_END)
    place = file.seek(_HEADER_BYTES)
    found: Settings = {}
    while place < end:
        kind, size = struct.unpack(order + "II", FileBytes(file, end - place).read(8))
        place += 8
        if size > end - place:
            raise BrokenFileError(
                f"an element has {size} bytes, but only {end - place} bytes are left"
            )
        variable = _read_variable(Element(file, kind, size, order), wanted, cost)
        if variable is not None:
            name, value = variable
            if name in found:
                raise BrokenFileError(f"the variable {name!r} occurs twice")
            found[name] = value
        # The size in the tag gives the next element, even if not all of this one was read.
        place = file.seek(place + size)
    return found


def _byte_order(header: bytes) -> str:
    # Version 5 begins with readable text. Version 4 begins with small integers of 4 bytes.
    if 0 in header[:4]:
        raise BrokenFileError("it looks like version 4; load it in MATLAB and save it with -v7")
    # The writer stores the number of the letters "MI", so swapped letters mean little-endian.
    order = {b"IM": "<", b"MI": ">"}.get(header[126:])
    if order is None or struct.unpack(order + "H", header[124:126])[0] >> 8 != _VERSION_5:
        raise BrokenFileError("its first 128 bytes are not the header of such a file")
    return order


def _read_variable(element: Element, wanted: Collection[str], cost: Cost) -> tuple[str, Any] | None:
    """Read class, dimensions and name; read the cells if the name is wanted."""
    flags = int(element.numbers(2, "u")[0])
    kind = flags & 0xFF
    if kind not in _NAMED_CLASSES:
        return None  # for example function handles, whose parts have another order
    shape = tuple(int(size) for size in element.numbers(None, "i", at_most=_MAX_DIMENSIONS))
    name = _name(element)
    if name is None or name not in wanted:
        return None
    if len(shape) < 2 or min(shape) < 0:
        raise BrokenFileError(f"the variable {name!r} has the dimensions {shape}")
    if kind < _FIRST_NUMERIC or flags & _COMPLEX or len(shape) > 2:
        type_ = "complex128" if flags & _COMPLEX else _NAMED_CLASSES[kind]
        return name, OddVariable(f"{len(shape)}-D, {type_}")
    n_rows, n_columns = shape
    value: Any
    if kind == _SPARSE:
        # Charge the bytes that are left, because the announced number of cells may be wrong.
        cost(name, shape, stored=element.left())
        rows, starts = element.numbers(None, "iu"), element.numbers(n_columns + 1, "iu")
        value = sparse_variable(name, element.numbers(None), rows, starts, n_rows)
    else:
        cost(name, shape)
        # MATLAB stores matrices by columns.
        value = element.numbers(n_rows * n_columns).reshape(shape, order="F")
    element.finish()
    return name, value


def _name(element: Element) -> str | None:
    """Read the name of a variable; return None if it is longer than every wanted name."""
    _, size, small = element.tag()
    return None if size > _MAX_NAME else bytes(element.data(size, small)).decode("latin-1")
