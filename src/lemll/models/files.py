"""Model files ``*.lemll``: a zip archive of a pipeline and its metadata, and no pickle.

The archive holds ``metadata.json`` (versions, columns, labels, checksum) and the estimator as skops
writes it: ``schema.json`` and arrays. Only types of a fixed list are loaded and their contents are
checked, so a file cannot run code, open another file or read outside of an array.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import sklearn
from sklearn.utils.validation import check_is_fitted

from lemll._plain_files import open_plain
from lemll._types import Estimator, Settings, SettingsView
from lemll.exceptions import ModelFileError, import_extra
from lemll.models.archive import Archive, checksum_of, read_archive, write_archive
from lemll.models.checks import check_content
from lemll.models.schema import SCHEMA, canonical, check_schema
from lemll.models.training import TableModel
from lemll.models.trusted import TRUSTED

__all__ = ["SUFFIX", "load", "read_metadata", "save"]

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
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with temporary.open("xb+") as raw:
            with _reasons("the model cannot be saved: it has {}"):
                write_archive(raw, parts)
            raw.flush()
            _read(path, raw)
            os.fsync(raw.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


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
