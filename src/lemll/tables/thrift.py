"""Read the compact protocol of Thrift, as far as footers and page headers of Parquet use it.

The library that reads Parquet ends the process on some damaged footers. Therefore this module reads
the sizes in the footer itself.
"""

from __future__ import annotations

from typing import Any

__all__ = ["CompactReader", "Wanted"]

# The fields of a struct to keep, with the fields to keep inside each of them; None for a number.
Wanted = dict[int, "Wanted | None"]

_BYTE, _DOUBLE, _TEXT, _LIST, _SET, _STRUCT = 3, 7, 8, 9, 10, 12
_BOOLEANS = (1, 2)
_NUMBERS = (4, 5, 6)
_MAX_DEPTH = 12
_NOTHING: Wanted = {}


class CompactReader:
    """Reads structs and keeps the wanted fields.

    Parameters
    ----------
    data : bytes
        Data in the compact protocol.

    Attributes
    ----------
    place : int
        Number of bytes read so far.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    def struct(self, wanted: Wanted, depth: int = _MAX_DEPTH) -> dict[int, Any]:
        """Read a struct; return its wanted fields: numbers, structs (dict) and lists of structs.

        Raises
        ------
        ValueError
            If the bytes are not a struct.
        """
        if depth == 0:
            raise ValueError("its structs are nested too deeply")
        found: dict[int, Any] = {}
        field = 0
        # A zero byte ends a struct. In other cases the high four bits are the step to the number of
        # the field, or 0 if the number itself follows. The low four bits are the type.
        while first := self._byte():
            field = field + (first >> 4) if first >> 4 else self._number()
            value = self._value(first & 15, wanted.get(field), depth)
            if field in wanted:
                found[field] = value
        return found

    def _value(self, kind: int, wanted: Wanted | None, depth: int) -> Any:
        if kind in _NUMBERS:
            return self._number()
        if kind == _TEXT:
            self._step(self._varint())
        elif kind == _STRUCT:
            return self.struct(wanted or _NOTHING, depth - 1)
        elif kind in (_LIST, _SET):
            return self._list(wanted, depth)
        elif kind in (_BYTE, _DOUBLE):
            self._step(1 if kind == _BYTE else 8)
        elif kind not in _BOOLEANS:
            raise ValueError(f"a field has the unknown type {kind}")
        return None

    def _list(self, wanted: Wanted | None, depth: int) -> list[Any]:
        first = self._byte()
        count, kind = first >> 4, first & 15
        if count == 15:
            count = self._varint()
        if kind in _BOOLEANS:  # one byte each, although in a struct the type itself is the value
            self._step(count)
            return []
        if depth == 0 or count > len(self._data):
            raise ValueError("a list does not end")
        values = (self._value(kind, wanted, depth - 1) for _ in range(count))
        if wanted is None:
            for _ in values:
                pass
            return []
        return list(values)

    def _byte(self) -> int:
        self._step(1)
        return self._data[self.place - 1]

    def _step(self, size: int) -> None:
        self.place += size
        if self.place > len(self._data):
            raise ValueError("it is cut short")

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number does not end")

    def _number(self) -> int:
        """Read a number in zigzag coding, in which small negative numbers also need few bytes."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
