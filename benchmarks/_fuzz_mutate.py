"""Damage to files: bytes anywhere, and inside of what a container packs.

Damage to packed bytes is nearly always found by a check sum, so the containers are unpacked,
damaged within, and packed again.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import struct
import warnings
import zipfile
import zlib

from benchmarks._fuzz_seeds import PACKERS, Seed

_SPECIAL_BYTES = (0, 1, 2, 4, 14, 15, 127, 128, 254, 255)
_SPECIAL_NUMBERS = (
    0,
    1,
    2,
    255,
    2**15,
    2**16,
    2**24,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63,
    2**64 - 1,
)
_WORDS = (
    b"\n", b",", b" ", b"{", b"}", b"'", b'"', b"?", b"%", b"0", b"1", b"-1", b"1e999", b"nan",
    b"99999999999", b"2147483647", b"@data\n", b"@attribute z {0,1}\n", b"{0 1}\n", b":", b"#",
    b"<label name='z'/>", b"<!DOCTYPE a []>", b"&a;", b"\xff\xfe", b"\0", b"\xc3\xa9",
    b"'<f8'", b"'|O'", b"'<U9'", b"(3,)", b"(0, 4)", b"True",
)  # fmt: skip


def mutate(seed: Seed, chance: random.Random) -> bytes:
    """Return damaged bytes of a seed."""
    within = chance.random() < 0.75
    packing = "." + seed.suffix.rpartition(".")[2]
    if within and packing in PACKERS:
        return _repacked(seed.data, packing, chance)
    if within and seed.suffix == ".npz":
        return _archive(seed.data, chance)
    if within and seed.suffix == ".mat" and seed.data[126:128] == b"IM":
        return _elements(seed.data, chance)
    if within and seed.suffix == ".parquet":
        return _footer(seed.data, chance)
    return damage(seed.data, chance)


def damage(data: bytes, chance: random.Random) -> bytes:
    """Change a few bytes."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        if changed:
            chance.choice(_STEPS)(changed, chance)
    return bytes(changed)


def _place(data: bytearray, chance: random.Random) -> int:
    """Choose a byte, rather one that is not zero: most zeros are padding."""
    place = chance.randrange(len(data))
    for _ in range(3):
        if data[place]:
            break
        place = chance.randrange(len(data))
    return place


def _flip(data: bytearray, chance: random.Random) -> None:
    data[_place(data, chance)] ^= 1 << chance.randrange(8)


def _set(data: bytearray, chance: random.Random) -> None:
    value = chance.choice(_SPECIAL_BYTES) if chance.random() < 0.5 else chance.randrange(256)
    data[_place(data, chance)] = value


def _set_number(data: bytearray, chance: random.Random) -> None:
    width = chance.choice((2, 4, 8))
    number = chance.choice(_SPECIAL_NUMBERS) if chance.random() < 0.7 else chance.randrange(300)
    place = _place(data, chance) // chance.choice((1, 4, 8)) * chance.choice((1, 4))
    order = "little" if chance.random() < 0.8 else "big"
    stop = min(len(data), place + width)
    written = (number % 2 ** (8 * width)).to_bytes(width, order)
    data[place:stop] = written[: max(0, stop - place)]


def _copy(data: bytearray, chance: random.Random) -> None:
    size = chance.choice((1, 4, 8, 16, 64))
    source, place = chance.randrange(len(data)), chance.randrange(len(data))
    piece = data[source : source + size]
    data[place : place + (len(piece) if chance.random() < 0.7 else 0)] = piece


def _cut(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data))
    size = len(data) if chance.random() < 0.1 else chance.choice((1, 2, 4, 8, 40))
    del data[place : place + size]


def _insert(data: bytearray, chance: random.Random) -> None:
    place = chance.randrange(len(data) + 1)
    data[place:place] = chance.choice(_WORDS) * chance.choice((1, 1, 1, 2, 50))


_STEPS = (_flip, _flip, _set, _set, _set_number, _set_number, _copy, _cut, _insert)


def _repacked(data: bytes, packing: str, chance: random.Random) -> bytes:
    unpack = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}
    return PACKERS[packing](damage(unpack[packing](data), chance))


def _archive(data: bytes, chance: random.Random) -> bytes:
    """Damage one member of a ZIP archive, or its name, and pack it again."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        members = old.infolist()
        chosen = chance.randrange(len(members))
        for place, member in enumerate(members):
            content, name = old.read(member), member.filename
            if place == chosen:
                # Half the time only the text that describes the array, which is most telling.
                head = 128 if chance.random() < 0.5 else len(content)
                content = damage(content[:head], chance) + content[head:]
                if chance.random() < 0.05:
                    name = chance.choice(members).filename
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a name that occurs twice, as is meant here
                method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
                new.writestr(name, content, method)
    return buffer.getvalue()


def _elements(data: bytes, chance: random.Random) -> bytes:
    """Damage one variable of a version 5 file, compressed or not, and correct its size."""
    pieces: list[tuple[int, bytes]] = []
    place = 128
    while place < len(data):
        kind, size = struct.unpack_from("<II", data, place)
        pieces.append((kind, data[place + 8 : place + 8 + size]))
        place += 8 + size
    chosen = chance.randrange(len(pieces))
    kind, content = pieces[chosen]
    if kind == 15:
        content = zlib.compress(damage(zlib.decompress(content), chance))
    else:
        content = damage(content, chance)
    pieces[chosen] = (kind, content)
    if chance.random() < 0.05:
        pieces.append(chance.choice(pieces))
    return data[:128] + b"".join(struct.pack("<II", k, len(c)) + c for k, c in pieces)


def _footer(data: bytes, chance: random.Random) -> bytes:
    """Damage the footer of a Parquet file and correct its size, or the pages before it."""
    (size,) = struct.unpack_from("<I", data, len(data) - 8)
    pages, footer = data[: -8 - size], data[-8 - size : -8]
    if chance.random() < 0.6:
        footer = damage(footer, chance)
    else:
        pages = b"PAR1" + damage(pages[4:], chance)
    return pages + footer + struct.pack("<I", len(footer)) + b"PAR1"
