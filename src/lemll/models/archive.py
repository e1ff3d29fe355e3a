"""The archive of a model file: texts and plain arrays that are not much larger than the file.

What a part expands to is counted while it is read in pieces, because the directory of an archive
can lie.
"""

from __future__ import annotations

import copy
import hashlib
import io
import math
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

import numpy as np

__all__ = ["Archive", "checksum_of", "read_archive", "write_archive"]

# The content may be this many times as large as the file, and a text as large as the file.
_EXPANSION = 100
# The content of a small file may be this large in any case. The objects of a text can take 25
# times as much.
_ALWAYS = 4 * 2**20
# A tree has three parts.
_MOST_PARTS = 100_000
_PIECE = 2**16
_STAMP = (1980, 1, 1, 0, 0, 0)  # the same model gives the same bytes
_ARRAY = re.compile(r"[0-9]{1,9}\.np[yz]")
_SPARSE = frozenset(
    f"{name}.npy" for name in ("data", "indices", "indptr", "shape", "format", "_is_array")
)
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class Archive(NamedTuple):
    """What an archive holds: the texts, the names of the arrays, and the checksum of each part."""

    texts: dict[str, bytes]
    arrays: frozenset[str]
    checksums: dict[str, str]


def write_archive(raw: BinaryIO, parts: Mapping[str, bytes]) -> None:
    """Write parts to an empty file, so that `read_archive` accepts it.

    Parameters
    ----------
    raw : file
        The file, open for writing and reading.
    parts : mapping of str to bytes
        Texts (names that end in ".json") and arrays (".npy", ".npz").
    """
    if len(parts) > _MOST_PARTS:
        raise ValueError(f"{len(parts)} parts, and at most {_MOST_PARTS} are read; use fewer trees")
    size = sum(map(len, parts.values()))
    text = max(len(part) for name, part in parts.items() if name.endswith(".json"))
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        raw.seek(0)
        raw.truncate()
        with zipfile.ZipFile(raw, "w", method, compresslevel=1) as archive:
            for name, part in parts.items():
                archive.writestr(zipfile.ZipInfo(name, _STAMP), part, method, 1)
        # What shrinks very much is written as it is: a reader could not tell it from a bomb.
        if size <= _most_content(raw.tell()) and text <= _longest_text(raw.tell()):
            break


def read_archive(raw: BinaryIO, texts: frozenset[str]) -> Archive:
    """Check every part of an archive, in memory that does not depend on what it expands to.

    Parameters
    ----------
    raw : file
        The file, open for reading.
    texts : frozenset of str
        The texts that it must hold. All other parts must be arrays.

    Returns
    -------
    Archive
        The texts and the names of the arrays.

    Raises
    ------
    ValueError, zipfile.BadZipFile
        If it holds anything else, or more than its size allows.
    """
    size = os.fstat(raw.fileno()).st_size
    found: dict[str, bytes] = {}
    checksums: dict[str, str] = {}
    left = _most_content(size)
    with zipfile.ZipFile(raw) as archive:
        entries = archive.infolist()
        names = {entry.filename for entry in entries}
        odd = sorted(name for name in names ^ texts if not _ARRAY.fullmatch(name))
        if odd:
            raise ValueError(f"it must hold {' and '.join(sorted(texts))}, not {odd[0][:40]!r}")
        if len(names) < len(entries) or len(entries) > _MOST_PARTS:
            raise ValueError(f"it has {len(entries)} parts with {len(names)} names")
        for entry in entries:
            name = entry.filename
            kept = name in texts or name.endswith(".npz")
            if name in texts and entry.file_size > _longest_text(size):
                raise ValueError(f"{name} expands to more than {_longest_text(size)} bytes")
            digest = hashlib.sha256()
            pieces: list[bytes] = []
            for piece in _pieces(archive, entry, left):
                digest.update(piece)
                left -= len(piece)
                if kept or not pieces:  # the head of an array is in its first piece
                    pieces.append(piece)
            content = b"".join(pieces)
            if name in texts:
                found[name] = content
            elif name.endswith(".npz"):
                _check_sparse(content)
            else:
                _check_array(content, entry.file_size)
            checksums[name] = digest.hexdigest()
    return Archive(found, frozenset(names - texts), checksums)


def checksum_of(parts: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of each part."""
    return {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()}


def _most_content(size: int) -> int:
    return max(_ALWAYS, _EXPANSION * size)


def _longest_text(size: int) -> int:
    return max(_ALWAYS, size)


def _pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, left: int) -> Iterator[bytes]:
    """Yield what a part expands to, and raise ValueError if that is not what it says."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{entry.filename} is packed by method {entry.compress_type}")
    # zipfile stops at the size that the directory gives. One byte more shows whether it is true.
    longer = copy.copy(entry)
    longer.file_size += 1
    count = 0
    with archive.open(longer) as part:
        while piece := part.read(_PIECE):
            count += len(piece)
            if count > min(left, entry.file_size):
                raise ValueError(f"{entry.filename} expands to more than it says, or than is read")
            yield piece
    if count < entry.file_size:
        raise ValueError(f"{entry.filename} is cut off")


def _check_array(head: bytes, size: int) -> None:
    """Refuse an array whose head does not agree with its size, or that holds objects."""
    stream = io.BytesIO(head)
    shape, _, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
    cells = math.prod(shape) if all(length >= 0 for length in shape) else -1
    if dtype.hasobject or not dtype.itemsize or cells * dtype.itemsize + stream.tell() != size:
        raise ValueError(f"an array of shape {shape} and type {dtype} has {size} bytes")


def _check_sparse(content: bytes) -> None:
    """Refuse a sparse array that is packed once more, or has other parts than a sparse array."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        names = {entry.filename for entry in entries}
        if not names <= _SPARSE or len(names) < len(entries):
            raise ValueError("a sparse array has parts that it does not need")
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError("a sparse array is packed")
            head, *_ = _pieces(archive, entry, len(content))
            _check_array(head, entry.file_size)
