"""Small files that ask for much memory or time, and some that used to end the process."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io as scipy_io
from scipy import sparse

_X = np.array([[1.5, 0.0], [0.0, 2.0], [3.0, 1.0]])
_Y = np.array([[1, 0], [1, 1], [0, 1]], dtype=np.uint8)
_ARFF = b"@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute c {a,b}\n@data\n"
_TEXT_BYTES = 60 * 2**20

Bomb = tuple[Callable[[Path], None], dict[str, Any]]


def _text(head: bytes, row: bytes, pack: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_bytes(pack(head + row * (_TEXT_BYTES // len(row))))

    return make


def _fast_xz(text: bytes) -> bytes:
    return lzma.compress(text, preset=1)


def _names_xml(path: Path) -> None:
    labels = "".join(f"<label name='{j:x}'/>" for j in range(1_000_000))
    path.write_bytes(_fast_xz(f"<labels>{labels}</labels>".encode()))


def _huge_dictionary(path: Path) -> None:
    """Write an XZ stream whose head asks for a dictionary of 4 GiB."""
    data = bytearray(lzma.compress(_ARFF + b"0,a\n"))
    size = (data[12] + 1) * 4
    data[data.index(b"\x21\x01", 12) + 2] = 40
    data[12 + size - 4 : 12 + size] = struct.pack("<I", zlib.crc32(data[12 : 12 + size - 4]))
    path.write_bytes(data)


def _zeros(size: int) -> Iterator[bytes]:
    for start in range(0, size, 2**20):
        yield bytes(min(2**20, size - start))


def _deflated(pieces: Iterator[bytes]) -> bytes:
    packer = zlib.compressobj(1)
    return b"".join([*(packer.compress(piece) for piece in pieces), packer.flush()])


def _mat5_header() -> bytes:
    return b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"


def _mat5_sparse(path: Path) -> None:
    """Announce one stored cell, and store two hundred millions."""
    count = 200_000_000
    head = struct.pack("<IIII", 6, 8, 5, 1) + struct.pack("<IIii", 5, 8, 3, 2)
    head += struct.pack("<HHi", 1, 1, ord("X"))

    def pieces() -> Iterator[bytes]:
        body = len(head) + 8 + 4 * count + 8 + 16 + 8 + count
        yield struct.pack("<II", 14, body) + head + struct.pack("<II", 5, 4 * count)
        yield from _zeros(4 * count)
        yield struct.pack("<IIiiii", 5, 12, 0, count // 2, count, 0)
        yield struct.pack("<II", 2, count)
        yield from _zeros(count)

    packed = _deflated(pieces())
    labels = io.BytesIO()
    scipy_io.savemat(labels, {"Y": _Y})
    element = struct.pack("<II", 15, len(packed)) + packed
    path.write_bytes(_mat5_header() + element + labels.getvalue()[128:])


def _mat5_out_of_bounds(path: Path) -> None:
    buffer = io.BytesIO()
    scipy_io.savemat(buffer, {"X": sparse.csc_array(_X), "Y": _Y})
    data = buffer.getvalue().replace(
        struct.pack("<4i", 0, 2, 1, 2), struct.pack("<4i", 0, 2**30, 1, 2)
    )
    path.write_bytes(data)


def _mat5_flipped(path: Path) -> None:
    buffer = io.BytesIO()
    scipy_io.savemat(buffer, {"X": _X, "Y": _Y})
    data = bytearray(buffer.getvalue())
    data[176] = 100
    path.write_bytes(data)


def _mat5_nested(path: Path) -> None:
    """Write a hundred thousand cells, each in the one before."""
    head = struct.pack("<IIII", 6, 8, 1, 0) + struct.pack("<IIii", 5, 8, 1, 1)
    head += struct.pack("<HHi", 1, 1, ord("X"))
    step = 8 + len(head)
    sizes = range(100_000 * step - 8, 0, -step)
    path.write_bytes(
        _mat5_header() + b"".join(struct.pack("<II", 14, size) + head for size in sizes)
    )


def _hdf5(create: Callable[[Any], None]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        import h5py

        with h5py.File(path, "w") as file:
            create(file)
            file["Y"] = _Y.T

    return make


def _hdf5_array_type(file: Any) -> None:
    file.create_dataset("X", (2, 3), dtype=np.dtype(("f8", (10_000, 9_000))), chunks=None)


def _hdf5_text(file: Any) -> None:
    file.create_dataset("X", (2, 3), dtype="S700000000")


def _hdf5_large_chunk(file: Any) -> None:
    shape = (2**14, 2**13)
    one = file.create_dataset("X", (2, 3), "f8", chunks=shape, maxshape=shape, compression="gzip")
    one.id.write_direct_chunk((0, 0), _deflated(_zeros(8 * shape[0] * shape[1])))


def _hdf5_overfull_chunk(file: Any) -> None:
    """Pack two gigabytes into a chunk of six numbers."""
    one = file.create_dataset("X", (2, 3), "f8", chunks=(2, 3), compression="gzip")
    one.id.write_direct_chunk((0, 0), _deflated(_zeros(2**31)))


def _npz(members: dict[str, tuple[str, tuple[int, ...]]]) -> Callable[[Path], None]:
    """Write arrays of no bytes: only the heads say how many cells they have."""

    def make(path: Path) -> None:
        np.savez(path, X=_X, Y=_Y)
        with zipfile.ZipFile(path, "a") as archive:
            for name, (dtype, shape) in members.items():
                head = io.BytesIO()
                np.lib.format.write_array_header_1_0(
                    head, {"descr": dtype, "fortran_order": False, "shape": shape}
                )
                archive.writestr(f"{name}.npy", head.getvalue())

    return make


def _npz_long_head(path: Path) -> None:
    np.savez(path, X=_X)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("Y.npy", "w") as member:
            member.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**30))
            for piece in _zeros(2**30):
                member.write(piece.replace(b"\0", b" "))


def _npz_bzip2(path: Path) -> None:
    np.savez(path, X=_X)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_BZIP2) as archive:
        with archive.open("Y.npy", "w") as member:
            for piece in _zeros(2**30):
                member.write(piece)


def _npz_many_members(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for j in range(100_000):
            archive.writestr(f"{j:x}", b"")


def _parquet_lie(options: dict[str, Any], rows: int) -> Callable[[Path], None]:
    """Write many rows, and say in the footer that there are two."""

    def make(path: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        ones = pyarrow.array(np.ones(rows))
        table = pyarrow.table({"x": ones, "y": ones})
        pyarrow.parquet.write_table(table, path, row_group_size=rows, **options)
        data = path.read_bytes()
        (size,) = struct.unpack("<I", data[-8:-4])
        true = _varint(2 * rows)
        lie = bytearray(_varint(4).ljust(len(true), b"\0"))
        for place in range(len(lie) - 1):
            lie[place] |= 128
        footer = data[-8 - size : -8].replace(true, lie, 1)
        path.write_bytes(data[: -8 - size] + footer + data[-8:])

    return make


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


_CSV = {"labels": ["y"]}
BOMBS: dict[str, Bomb] = {
    "numbers.svm.xz": (_text(b"", b"0 1:1\n", _fast_xz), {}),
    "labels.svm.gz": (_text(b"", b"0\n", gzip.compress), {}),
    "numbers.csv.xz": (_text(b"x,y\n", b"1,0\n", _fast_xz), _CSV),
    "numbers.csv.bz2": (_text(b"x,y\n", b"1,0\n", bz2.compress), _CSV),
    "onelongline.csv.xz": (_text(b"y", b",a", _fast_xz), _CSV),
    "nominal.arff.xz": (_text(_ARFF, b"0,a\n", _fast_xz), {}),
    "nominal.arff.gz": (_text(_ARFF, b"0,a\n", gzip.compress), {}),
    "quoted.arff.xz": (_text(_ARFF, b"'0','a'\n", _fast_xz), {}),
    "sparse.arff.xz": (_text(_ARFF, b"{1 a}\n", _fast_xz), {}),
    "attributes.arff.xz": (_text(b"", b"@attribute a {0,1}\n", _fast_xz), {}),
    "dictionary.arff.xz": (_huge_dictionary, {}),
    "names.xml.xz": (_names_xml, {}),
    "sparse.mat": (_mat5_sparse, {}),
    "outofbounds.mat": (_mat5_out_of_bounds, {}),
    "flipped.mat": (_mat5_flipped, {}),
    "nested.mat": (_mat5_nested, {}),
    "arraytype_hdf5.mat": (_hdf5(_hdf5_array_type), {}),
    "text_hdf5.mat": (_hdf5(_hdf5_text), {}),
    "largechunk_hdf5.mat": (_hdf5(_hdf5_large_chunk), {}),
    "overfullchunk_hdf5.mat": (_hdf5(_hdf5_overfull_chunk), {}),
    "names.npz": (_npz({"label_names": ("<U0", (200_000_000,))}), {}),
    "longhead.npz": (_npz_long_head, {}),
    "bzip2.npz": (_npz_bzip2, {}),
    "members.npz": (_npz_many_members, {}),
    "rows.parquet": (_parquet_lie({}, 200_000_000), {"labels": ["y"]}),
    "pages.parquet": (
        _parquet_lie(
            {"compression": "zstd", "use_dictionary": False, "data_page_size": 2**30}, 120_000_000
        ),
        {"labels": ["y"]},
    ),
}
