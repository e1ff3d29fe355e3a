"""MATLAB files of version 5: their variables, looked at before they are read.

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
        Open at its beginning, and seekable.
    wanted : collection of str
        Names of variables; all others are stepped over.
    cost : callable
        Called with name, shape and stored bytes of each wanted matrix before its cells are read.

    Returns
    -------
    dict
        An array, a CSC array or an `OddVariable` for each wanted name that is there.

    Raises
    ------
    BrokenFileError
        If the bytes are not such a file.
    """
    order = _byte_order(file.read(_HEADER_BYTES))
    end = file.seek(0, os.SEEK_END)
    place = file.seek(_HEADER_BYTES)
    found: Settings = {}
    while place < end:
        kind, size = struct.unpack(order + "II", FileBytes(file, end - place).read(8))
        place += 8
        if size > end - place:
            raise BrokenFileError(f"an element of {size} bytes, and {end - place} are left")
        variable = _read_variable(Element(file, kind, size, order), wanted, cost)
        if variable is not None:
            name, value = variable
            if name in found:
                raise BrokenFileError(f"the variable {name!r} occurs twice")
            found[name] = value
        place = file.seek(place + size)
    return found


def _byte_order(header: bytes) -> str:
    if 0 in header[:4]:
        raise BrokenFileError("it looks like version 4; load it in MATLAB and save it with -v7")
    order = {b"IM": "<", b"MI": ">"}.get(header[126:])
    if order is None or struct.unpack(order + "H", header[124:126])[0] >> 8 != _VERSION_5:
        raise BrokenFileError("its first 128 bytes are not the header of such a file")
    return order


def _read_variable(element: Element, wanted: Collection[str], cost: Cost) -> tuple[str, Any] | None:
    """Look at class, dimensions and name; read the cells if the name is wanted."""
    flags = int(element.numbers(2, "u")[0])
    kind = flags & 0xFF
    if kind not in _NAMED_CLASSES:
        return None  # function handles and the like, whose parts stand in another order
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
        # Not the announced number of cells, which the parts need not keep to.
        cost(name, shape, stored=element.left())
        rows, starts = element.numbers(None, "iu"), element.numbers(n_columns + 1, "iu")
        value = sparse_variable(name, element.numbers(None), rows, starts, n_rows)
    else:
        cost(name, shape)
        value = element.numbers(n_rows * n_columns).reshape(shape, order="F")
    element.finish()
    return name, value


def _name(element: Element) -> str | None:
    """Read the name of a variable; None for one that is too long to be wanted."""
    _, size, small = element.tag()
    return None if size > _MAX_NAME else bytes(element.data(size, small)).decode("latin-1")
