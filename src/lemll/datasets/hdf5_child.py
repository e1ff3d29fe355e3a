"""Run as a program: read variables of a MATLAB 7.3 file and write them to standard output.

The HDF5 library crashes on some damaged files. In this process, with limited memory, a crash does
not affect the process of the user. The output is one line of JSON that describes the variables,
followed by the cells of every part in order. Errors of a file are written to standard error.
"""

from __future__ import annotations

import json
import sys
from typing import Any, BinaryIO

import h5py
import numpy as np

__all__ = ["main"]

_SLAB_BYTES = 4 * 2**20
# What Python, NumPy and HDF5 need themselves: address space, and processor time for a small file.
_BASE_BYTES = 2**30
_BASE_SECONDS = 30
# gzip, shuffle and the check sum, which MATLAB and h5py write. Other filters may need plug-ins.
_ORDINARY_FILTERS = frozenset(
    {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
)
_SIZES = {h5py.h5t.INTEGER: (1, 2, 4, 8), h5py.h5t.FLOAT: (2, 4, 8)}
_TYPE_NAMES = {
    h5py.h5t.STRING: "text",
    h5py.h5t.BITFIELD: "bit field",
    h5py.h5t.OPAQUE: "opaque",
    h5py.h5t.COMPOUND: "compound",
    h5py.h5t.REFERENCE: "reference",
    h5py.h5t.ENUM: "enumeration",
    h5py.h5t.VLEN: "variable length",
    h5py.h5t.ARRAY: "array",
}


def main(arguments: list[str]) -> int:
    """Read ``path limit name ...``; return the exit code."""
    path, limit, *names = arguments
    _limit_resources(int(limit))
    try:
        with h5py.File(path, "r") as file:
            variables = [_describe(file, name) for name in names if _is_there(file, name)]
            described = [{k: v for k, v in one.items() if k != "sets"} for one in variables]
            sys.stdout.buffer.write(json.dumps(described).encode() + b"\n")
            sys.stdout.buffer.flush()
            for one in variables:
                for dataset in one["sets"]:
                    _write(dataset, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except Exception as error:  # every error of a file is reported as one line of text
        sys.stderr.write(f"{error}"[:500] or type(error).__name__)
        return 1
    return 0


def _limit_resources(limit: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    # A damaged file can make the library allocate or loop without end. No core files are written.
    for kind, most in (
        (resource.RLIMIT_AS, _BASE_BYTES + limit),
        (resource.RLIMIT_CPU, _BASE_SECONDS + limit // 2**24),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, hard))


def _is_there(group: Any, name: str) -> bool:
    """Tell whether a name is in the group. A link to another place or file is refused."""
    link = group.get(name, getlink=True)
    if link is not None and not isinstance(link, h5py.HardLink):
        raise ValueError(
            f"{name!r} is a {type(link).__name__}; only data inside the file are read, so copy "
            "them into it"
        )
    return link is not None


def _describe(file: Any, name: str) -> dict[str, Any]:
    item = file[name]
    about: dict[str, Any] = {"name": name, "odd": None, "n_rows": None, "sets": []}
    if isinstance(item, h5py.Dataset):
        about["odd"] = _odd(item, 2)
        about["sets"] = [item] if about["odd"] is None else []
    elif isinstance(item, h5py.Group):
        # A sparse matrix is a group: the values by columns, their row numbers, and the start of
        # each column. The number of rows is an attribute of the group.
        about["n_rows"] = _sparse_rows(item, name)
        about["sets"] = [_sparse_part(item, key) for key in ("data", "ir", "jc")]
    else:
        raise ValueError(f"{name!r} is neither a data set nor a sparse matrix")
    return about | {"parts": [_part(one) for one in about["sets"]]}


def _sparse_rows(group: Any, name: str) -> int:
    if "MATLAB_sparse" not in group.attrs:
        raise ValueError(f"{name!r} is a group without the attribute MATLAB_sparse")
    attribute = group.attrs.get_id("MATLAB_sparse")
    if attribute.get_type().get_class() != h5py.h5t.INTEGER or int(np.prod(attribute.shape)) != 1:
        raise ValueError(f"the attribute MATLAB_sparse of {name!r} is not a whole number")
    return int(np.ravel(group.attrs["MATLAB_sparse"])[0])


def _sparse_part(group: Any, key: str) -> Any:
    if not _is_there(group, key) or not isinstance(group[key], h5py.Dataset):
        raise ValueError(f"{group.name!r} has no data set {key!r}")
    odd = _odd(group[key], 1)
    if odd is not None:
        raise ValueError(f"{key!r} of {group.name!r} must be a vector of numbers, got {odd}")
    return group[key]


def _odd(dataset: Any, n_dimensions: int) -> str | None:
    """Return None for an array of plain numbers with that many dimensions, else a description."""
    type_ = dataset.id.get_type()
    kind, size = type_.get_class(), type_.get_size()
    # h5py stores booleans as an enumeration. h5py builds the dtype only after the checks of size
    # and number of members, so this step is safe and small.
    plain = size in _SIZES.get(kind, ()) or (
        kind == h5py.h5t.ENUM and size == 1 and type_.get_nmembers() == 2 and dataset.dtype == bool
    )
    if plain and len(dataset.shape or ()) == n_dimensions:
        return None
    name = str(dataset.dtype) if plain else f"{_TYPE_NAMES.get(kind, 'number')} of {size} bytes"
    return f"{len(dataset.shape or ())}-D, {name}"


def _part(dataset: Any) -> dict[str, Any]:
    """Describe a data set, after a check of how and where it is stored."""
    name = dataset.name
    plist = dataset.id.get_create_plist()
    if plist.get_layout() == h5py.h5d.VIRTUAL or plist.get_external_count():
        raise ValueError(
            f"{name!r} keeps its cells in other files; only data inside the file are read, so copy "
            "them into it"
        )
    filters = {plist.get_filter(i)[0] for i in range(plist.get_nfilters())}
    if not filters <= _ORDINARY_FILTERS:
        raise ValueError(
            f"{name!r} is stored with the filters {sorted(filters)}; only gzip, shuffle and "
            "fletcher32 are read, save it with -v7.3"
        )
    chunk = int(np.prod(dataset.chunks or (0,), dtype=object)) * dataset.dtype.itemsize
    dtype = dataset.dtype.newbyteorder("<").str
    return {"shape": dataset.shape, "dtype": dtype, "chunk": chunk}


def _write(dataset: Any, out: BinaryIO) -> None:
    """Write the cells in slabs of whole chunks, so that no chunk is unpacked twice."""
    if 0 in dataset.shape:
        return
    row_bytes = dataset.dtype.itemsize * int(np.prod(dataset.shape[1:], dtype=object))
    chunk_rows = dataset.chunks[0] if dataset.chunks else 1
    step = chunk_rows * max(1, _SLAB_BYTES // (row_bytes * chunk_rows))
    little = dataset.dtype.newbyteorder("<")
    for start in range(0, dataset.shape[0], step):
        slab = dataset[start : start + step]
        out.write(np.ascontiguousarray(slab, dtype=little).data)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
