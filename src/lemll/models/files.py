"""Model files ``*.lemll``: a zip archive of a pipeline and its metadata, and no pickle.

The archive holds ``metadata.json`` (versions, columns, labels, checksum) and the estimator as skops
writes it: ``schema.json`` and arrays. Only types of a fixed list are loaded and their contents are
checked, so a file cannot run code, open another file or read outside of an array.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from lemll._files import open_plain, whole_file
from lemll._types import Estimator, Settings, SettingsView
from lemll.exceptions import ModelFileError, import_extra
from lemll.models.training import TableModel
from lemll.models.trusted import SCHEMA, TRUSTED, canonical, check_content, check_schema

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


SUFFIX = ".lemll"
FORMAT = 2
_METADATA = "metadata.json"
_TEXTS = frozenset({_METADATA, SCHEMA})


def save(model: Estimator | TableModel, path: str | Path) -> int:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : estimator or TableModel
        A fitted learner of lemll, a pipeline of transformers of scikit-learn and one, or what
        `fit_table` returns.
    path : str or Path
        The file to write. It appears only when it is complete and can be loaded. The same model
        gives the same bytes.

    Returns
    -------
    int
        The size of its content in bytes.

    See Also
    --------
    load : Read the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import lemll
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = lemll.LEMLL().fit(digits.X[:200], digits.Y[:200])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = lemll.save(model, Path(folder) / "digits.lemll")
    ...     again = lemll.load(Path(folder) / "digits.lemll")
    >>> bool((again.predict(digits.X) == model.predict(digits.X)).all())
    True
    """
    from lemll import __version__

    skops = import_extra("skops.io", "tables", "Writing a model file")
    path = Path(path)
    if path.suffix.lower() != SUFFIX:
        raise ModelFileError(f"a model file must end in {SUFFIX}, got {path.name!r}; rename it")
    table = model if isinstance(model, TableModel) else None
    estimator = model.pipeline if isinstance(model, TableModel) else model
    check_is_fitted(estimator)
    try:
        parts = dict(canonical(skops.dumps(estimator)))
    except Exception as error:
        # skops raises many kinds of errors for functions and foreign objects.
        raise ModelFileError(
            f"{type(estimator).__name__} cannot be saved: {error}; it must not hold callbacks, "
            "functions or connections, as learners of lemll.dask do"
        ) from error
    try:
        check_schema(json.loads(parts[SCHEMA]), parts)
        check_content(estimator)
    except ValueError as error:
        raise ModelFileError(
            f"{type(estimator).__name__} cannot be saved: it holds {error}, which a model "
            "file must not contain; use learners of lemll (a graph as a file or as a matrix) and "
            "transformers of scikit-learn that hold numbers or words, as StandardScaler"
        ) from error
    metadata: Settings = {
        "format": FORMAT,
        "lemll": __version__,
        "scikit-learn": sklearn.__version__,
        "learner": type(estimator[-1] if hasattr(estimator, "steps") else estimator).__name__,
        "columns": [str(name) for name in getattr(estimator, "feature_names_in_", [])],
        "labels": _label_names(estimator) if table is None else list(table.label_names),
        "bytes": sum(map(len, parts.values())),
        "table": None if table is None else table.to_json(),
    }
    metadata["checksum"] = _checksum(metadata, checksum_of(parts))
    _write(path, {_METADATA: json.dumps(metadata, indent=1).encode(), **parts})
    return int(metadata["bytes"])


def load(path: str | Path) -> Estimator | TableModel:
    """Read a model from a file that `save` wrote.

    The content of a file is read if it is at most 100 times as large as the file, or 4 MiB.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    estimator or TableModel
        The model. Its predictions are those of the saved one, to the bit.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged or too new, expands too much, or holds anything
        that a model does not need.
    """
    skops = import_extra("skops.io", "tables", "Reading a model file")
    with _opened(Path(path)) as raw:
        metadata, archive = _read(Path(path), raw)
        with _reasons(f"{path} holds {{}}, which no model of lemll needs; do not use it"):
            check_schema(json.loads(archive.texts[SCHEMA]), archive.arrays)
        raw.seek(0)
        # The checksum is right, so another version of a library wrote the file.
        with _reasons(
            f"{path} was written by lemll {metadata.get('lemll')} with scikit-learn "
            f"{metadata.get('scikit-learn')}, and cannot be read here, with scikit-learn "
            f"{sklearn.__version__} ({{}}); install that version, or fit the model again"
        ):
            estimator = skops.load(raw, trusted=sorted(TRUSTED))
            check_is_fitted(estimator)
            table = metadata["table"]
            model = estimator if table is None else TableModel.from_json(table, estimator)
    with _reasons(f"{path} holds {{}}, which no model of lemll needs; do not use it"):
        check_content(estimator)
    return model


def read_metadata(path: str | Path) -> Settings:
    """Return the metadata of a model file, without loading the model.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    dict
        Versions, learner, columns, labels, size, and what is known about the table.
    """
    with _opened(Path(path)) as raw:
        return _read(Path(path), raw)[0]


@contextmanager
def _reasons(message: str) -> Iterator[None]:
    """Turn an error into a ModelFileError whose message gives the reason.

    Broken files fail in many ways: ValueError, KeyError, RecursionError, zlib.error and others.
    """
    try:
        yield
    except ModelFileError:
        raise
    except Exception as error:
        reason = str(error)[:200] or type(error).__name__
        raise ModelFileError(message.replace("{}", reason)) from error


def _label_names(estimator: Estimator) -> list[str]:
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    return [str(name) for name in getattr(last, "label_names_", [])]


def _checksum(metadata: SettingsView, parts: Mapping[str, str]) -> str:
    """Return the SHA-256 of everything in a file except the checksum itself."""
    rest = {name: value for name, value in metadata.items() if name != "checksum"}
    others = {name: digest for name, digest in parts.items() if name != _METADATA}
    return hashlib.sha256(json.dumps([rest, others], sort_keys=True).encode()).hexdigest()


def _write(path: Path, parts: Mapping[str, bytes]) -> None:
    """Replace a file by an archive, when the archive is complete and has been read again."""
    with whole_file(path) as raw:
        with _reasons("the model cannot be saved: it has {}"):
            write_archive(raw, parts)
        raw.flush()
        _read(path, raw)


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(open_plain(path, follow=True), "rb")


def _read(path: Path, raw: BinaryIO) -> tuple[Settings, Archive]:
    """Return the metadata and the parts of a file after all checks that need no loading."""
    with _reasons(f"{path} is damaged or not a model file ({{}}); copy or fit it again"):
        archive = read_archive(raw, _TEXTS)
        metadata = json.loads(archive.texts[_METADATA])
    if not isinstance(metadata, dict) or not isinstance(metadata.get("format"), int):
        raise ModelFileError(f"{path} is damaged: its metadata have no format; fit it again")
    if metadata["format"] != FORMAT:
        raise ModelFileError(
            f"{path} has format {metadata['format']}, written by lemll {metadata.get('lemll')}, "
            f"and this version reads format {FORMAT}; update lemll, or fit the model again"
        )
    if metadata.get("checksum") != _checksum(metadata, archive.checksums):
        raise ModelFileError(
            f"{path} is damaged: its checksum is not that of its content; copy or fit it again"
        )
    return metadata, archive
