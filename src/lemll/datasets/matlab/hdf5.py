"""Read MATLAB 7.3 files, which are HDF5 files, in a separate process.

The HDF5 library can crash on damaged files, so it must not run in the process of the user.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO, Any

import numpy as np

from lemll._types import Array, Settings
from lemll.datasets.matlab.parts import BrokenFileError, Cost, OddVariable, sparse_variable

__all__ = ["read_hdf5"]

_CHILD = Path(__file__).with_name("hdf5_child.py")
_MAX_DESCRIPTION = 2**16


def read_hdf5(path: Path, wanted: Collection[str], cost: Cost, limit: int) -> Settings:
    """Read the wanted variables of a version 7.3 file.

    Parameters
    ----------
    path : Path
        The file.
    wanted : collection of str
        Names of the variables to read. Other variables are not read.
    cost : callable
        Called with name, shape and stored bytes of each wanted matrix before its cells are read.
    limit : int
        Bytes of memory that the child process may use in addition to its basic needs.

    Returns
    -------
    dict
        An array, a CSC array or an `OddVariable` for each wanted variable in the file.

    Raises
    ------
    BrokenFileError
        If the file is not a valid version 7.3 file, or if the HDF5 library crashes.
    """
    # A file can request a plug-in, which is foreign code; the value "::" forbids plug-ins. Threads
    # of OpenBLAS would only use memory, which is limited in the child.
    environment = os.environ | {"HDF5_PLUGIN_PRELOAD": "::", "OPENBLAS_NUM_THREADS": "1"}
    # -P keeps the folder of the script out of the import path, where its modules could hide others.
    command = [sys.executable, "-P", str(_CHILD), str(path.absolute()), str(limit), *sorted(wanted)]
    with (
        tempfile.TemporaryFile() as complaints,
        Popen(command, stdout=PIPE, stderr=complaints, env=environment) as child,
    ):
        assert child.stdout is not None
        try:
            return _receive(child.stdout, cost)
        except EOFError as error:
            child.stdout.close()
            raise BrokenFileError(_reason(child.wait(), complaints)) from error
        finally:
            # After an error the child may still wait to write, or run in an endless loop.
            child.kill()


def _reason(code: int, complaints: IO[bytes]) -> str:
    complaints.seek(0)
    text = complaints.read(_MAX_DESCRIPTION).decode("utf-8", "replace").strip()
    if code == 1 and text:
        return text
    return f"the HDF5 library ended with code {code} while reading it"


@dataclass(frozen=True, slots=True)
class _Part:
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk: int

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    odd: str | None
    n_rows: int | None
    parts: tuple[_Part, ...]


def _receive(stream: IO[bytes], cost: Cost) -> Settings:
    variables = _description(stream)
    for variable in variables:
        _charge(variable, cost)
    return {variable.name: _value(variable, stream) for variable in variables}


def _description(stream: IO[bytes]) -> list[_Variable]:
    """Read the child's description of the variables, and check it: the child may have crashed."""
    try:
        return [_variable(one) for one in json.loads(stream.readline(_MAX_DESCRIPTION))]
    except (ValueError, KeyError, TypeError) as error:
        raise EOFError from error


def _variable(one: Settings) -> _Variable:
    parts = tuple(
        _Part(tuple(map(int, part["shape"])), np.dtype(part["dtype"]), int(part["chunk"]))
        for part in one["parts"]
    )
    n_rows = None if one["n_rows"] is None else int(one["n_rows"])
    odd = None if one["odd"] is None else str(one["odd"])
    # A dense variable is one matrix. A sparse one has three vectors: values, rows and starts.
    dimensions = [] if odd is not None else [2] if n_rows is None else [1, 1, 1]
    sound = [len(part.shape) for part in parts] == dimensions and all(
        part.dtype.kind in "biuf" and min(*part.shape, part.chunk) >= 0 for part in parts
    )
    if not sound:
        raise ValueError("this is not the description of a variable")
    return _Variable(str(one["name"]), odd, n_rows, parts)


def _charge(variable: _Variable, cost: Cost) -> None:
    # The library unpacks whole chunks, so one chunk is needed in addition to the cells.
    if variable.n_rows is not None:
        stored = sum(part.size + part.chunk for part in variable.parts)
        cost(variable.name, (variable.n_rows, variable.parts[2].shape[0] - 1), stored=stored)
    for part in variable.parts if variable.n_rows is None else ():
        cost(variable.name, part.shape, extra=part.chunk)


def _value(variable: _Variable, stream: IO[bytes]) -> Any:
    if variable.odd is not None:
        return OddVariable(variable.odd)
    arrays = [_array(part, stream) for part in variable.parts]
    if variable.n_rows is None:
        return arrays[0].T  # MATLAB stores matrices by columns, HDF5 by rows
    values, rows, starts = arrays
    return sparse_variable(variable.name, values, rows, starts, variable.n_rows)


def _array(part: _Part, stream: IO[bytes]) -> Array:
    data = bytearray(part.size)
    view, filled = memoryview(data), 0
    while filled < len(data):
        # A pipe may return fewer bytes than requested. No bytes mean that the child has ended.
        # The pipe of a process is a BufferedReader, but its declared type has no readinto.
        count = stream.readinto(view[filled:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        filled += count
    array = np.frombuffer(data, part.dtype).reshape(part.shape)
    return array.astype(part.dtype.newbyteorder("="), copy=False)
