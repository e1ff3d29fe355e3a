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


def _parquet_repeat(value: Any, rows: int, columns: int = 1) -> Callable[[Path], None]:
    """Repeat one value: a dictionary of one entry, and one run."""

    def make(path: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        one = pyarrow.array([value]).dictionary_encode()
        column = pyarrow.DictionaryArray.from_arrays(
            pyarrow.array(np.zeros(rows, dtype=np.int32)), one.dictionary
        )
        table = pyarrow.table({f"c{j}": column for j in range(columns)} | {"y": column})
        pyarrow.parquet.write_table(table, path, row_group_size=rows, compression="zstd")

    return make


def _parquet_beginnings(path: Path) -> None:
    """Write texts that repeat the beginning of the one before."""
    import pyarrow
    import pyarrow.parquet

    column = pyarrow.array(["a" * 20_000] * 60_000)
    pyarrow.parquet.write_table(
        pyarrow.table({"x": column, "y": column}), path, use_dictionary=False, compression="zstd",
        column_encoding={"x": "DELTA_BYTE_ARRAY", "y": "DELTA_BYTE_ARRAY"},
        write_statistics=False,
    )  # fmt: skip


def _parquet_list(path: Path) -> None:
    """Write one row whose list has fifty million elements."""
    import pyarrow
    import pyarrow.parquet

    count = 50_000_000
    elements = pyarrow.array(np.ones(count, dtype=np.int8))
    column = pyarrow.ListArray.from_arrays(pyarrow.array([0, count], pyarrow.int32()), elements)
    pyarrow.parquet.write_table(pyarrow.table({"x": [1], "y": column}), path, compression="zstd")


_NAMESPACE = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_CELL = '<c r="{}" t="inlineStr"><is><t>{}</t></is></c>'
_HEADER = f'<row r="1">{_CELL.format("A1", "x")}{_CELL.format("B1", "y")}</row>'
_SHEET_PART, _STRINGS_PART, _BOOK_PART = (
    "xl/worksheets/sheet1.xml",
    "xl/sharedStrings.xml",
    "xl/workbook.xml",
)


_SHARED_STRINGS = (
    b'<Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-'
    b'officedocument.spreadsheetml.sharedStrings+xml"/>'
)


def _sheet(rows: str, head: str = "", dimension: str = "A1:B2") -> bytes:
    return (
        f'{head}<worksheet xmlns="{_NAMESPACE}"><dimension ref="{dimension}"/><sheetData>{_HEADER}'
        f"{rows}</sheetData></worksheet>"
    ).encode()


def _strings(text: str) -> bytes:
    return f'<sst xmlns="{_NAMESPACE}">{text}</sst>'.encode()


def _xlsx(changed: dict[str, Callable[[], bytes]]) -> Callable[[Path], None]:
    """Write a workbook, and put other parts into it."""

    def make(path: Path) -> None:
        import openpyxl

        book = openpyxl.Workbook()
        book.active.append(["x", "y"])
        book.active.append(["a", "b"])
        buffer = io.BytesIO()
        book.save(buffer)
        parts = {_STRINGS_PART: lambda: _strings(""), **changed}
        with (
            zipfile.ZipFile(buffer) as old,
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new,
        ):
            for name in {*old.namelist(), *parts}:
                content = parts[name]() if name in parts else old.read(name)
                if name == "[Content_Types].xml":
                    content = content.replace(b"</Types>", _SHARED_STRINGS + b"</Types>")
                new.writestr(name, content)

    return make


def _far_row(column: str, row: int) -> Callable[[Path], None]:
    cell = f'<row r="{row}">{_CELL.format(f"{column}{row}", "z")}</row>'
    return _xlsx({_SHEET_PART: lambda: _sheet(cell, dimension=f"A1:{column}{row}")})


def _far_column(path: Path) -> None:
    rows = "".join(f'<row r="{i}">{_CELL.format(f"XFD{i}", "z")}</row>' for i in range(2, 20_000))
    _xlsx({_SHEET_PART: lambda: _sheet(rows)})(path)


def _entities(path: Path) -> None:
    """Write entities of which each contains ten of the one before."""
    lines = ['<!ENTITY e0 "aaaaaaaaaa">']
    lines += [f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 9)]
    head = f"<!DOCTYPE w [{''.join(lines)}]>"
    row = f'<row r="2">{_CELL.format("A2", "&e8;")}</row>'
    _xlsx({_SHEET_PART: lambda: _sheet(row, head)})(path)


def _many_sheets() -> bytes:
    sheets = "".join(f'<sheet name="s{i}" sheetId="{i + 1}" r:id="rId1"/>' for i in range(30_000))
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    return (
        f'<workbook xmlns="{_NAMESPACE}" xmlns:r="{office}"><sheets>{sheets}</sheets></workbook>'
    ).encode()


def _long_text_rows() -> bytes:
    rows = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(2, 20_000))
    return _sheet(rows)


def _csv(text: Callable[[], str]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.write_text(text(), encoding="utf-8")

    return make


_CSV = {"labels": ["y"]}
# Small tables, for the commands that read tables of any columns.
TABLES: dict[str, Callable[[Path], None]] = {
    "rows.parquet": _parquet_lie({}, 200_000_000),
    "pages.parquet": _parquet_lie(
        {"compression": "zstd", "use_dictionary": False, "data_page_size": 2**30}, 120_000_000
    ),
    "repeat.parquet": _parquet_repeat(1.5, 100_000_000),
    "fits.parquet": _parquet_repeat(1.5, 2_000_000),
    "longtext.parquet": _parquet_repeat("a" * 1_000_000, 2_000_000),
    "wide.parquet": _parquet_repeat(1.5, 1, columns=30_000),
    "beginnings.parquet": _parquet_beginnings,
    "list.parquet": _parquet_list,
    "farcell.xlsx": _far_row("XFD", 20_000),
    "farrow.xlsx": _far_row("A", 1_048_576),
    "farcolumn.xlsx": _far_column,
    "strings.xlsx": _xlsx({_STRINGS_PART: lambda: _strings("<si><t>a</t></si>" * 10_000_000)}),
    "longstring.xlsx": _xlsx(
        {_STRINGS_PART: lambda: _strings(f"<si><t>{'a' * 2**19}</t></si>"),
         _SHEET_PART: _long_text_rows}
    ),
    "spaces.xlsx": _xlsx({_SHEET_PART: lambda: _sheet(" " * 2**28)}),
    "cells.xlsx": _xlsx({_SHEET_PART: lambda: _sheet("<row><c/><c/></row>" * 10_000_000)}),
    "entities.xlsx": _entities,
    "sheets.xlsx": _xlsx({_BOOK_PART: _many_sheets}),
    "wide.csv": _csv(lambda: ",".join(f"{j:x}" for j in range(400_000)) + "\n" + "1," * 399_999),
    "longline.csv": _csv(lambda: "x,y\n" + "1," * 2**20),
    "quote.csv": _csv(lambda: 'x,y\n"' + "1," * 2**20),
    "brackets.csv": _csv(lambda: "x,y\n" + f"1,{'[' * 20_000}\n" * 40),
}  # fmt: skip
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
    "names.npz": (_npz({"label_names": ("<U0", (200_000_000,))}), {}),
    "longhead.npz": (_npz_long_head, {}),
    "bzip2.npz": (_npz_bzip2, {}),
    "members.npz": (_npz_many_members, {}),
    "rows.parquet": (TABLES["rows.parquet"], _CSV),
    "pages.parquet": (TABLES["pages.parquet"], _CSV),
}
