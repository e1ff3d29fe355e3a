"""Model files ``*.lemll``: a zip archive with metadata and a pipeline, and no pickle.

The archive holds ``metadata.json`` (versions, columns, labels, checksum) and ``pipeline.skops``,
the estimator as skops writes it. Only types of a fixed list are loaded, so a file cannot run code.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import zipfile
from pathlib import Path

import sklearn
from sklearn.utils.validation import check_is_fitted

from lemll._plain_files import open_plain
from lemll._types import Estimator, Settings
from lemll.exceptions import ModelFileError, import_extra
from lemll.models.training import TableModel
from lemll.models.trusted import TRUSTED

__all__ = ["LARGEST", "SUFFIX", "load", "read_metadata", "save"]

SUFFIX = ".lemll"
FORMAT = 1
# Largest size of the content of a file, in bytes, by default.
LARGEST = 200 * 2**20
_METADATA, _PIPELINE = "metadata.json", "pipeline.skops"
_LARGEST_METADATA = 16 * 2**20
# The pipeline is an archive, too. One entry per array; a forest has three per tree.
_MOST_ENTRIES = 200_000
_STAMP = (1980, 1, 1, 0, 0, 0)  # the same model gives the same bytes


def save(model: Estimator | TableModel, path: str | Path) -> int:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : estimator or TableModel
        A fitted learner of lemll, a pipeline of scikit-learn with one, or what `fit_table` returns.
    path : str or Path
        The file to write. It appears only when it is complete.

    Returns
    -------
    int
        The size of its content in bytes. Above 200 MiB, `load` needs `max_bytes`.

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
        content: bytes = skops.dumps(estimator, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
        odd = set(skops.get_untrusted_types(data=content)) - TRUSTED
    except Exception as error:
        # skops raises many kinds of errors for functions and foreign objects.
        raise ModelFileError(
            f"{type(estimator).__name__} cannot be saved: {error}; it must not hold callbacks, "
            "functions or connections, as learners of lemll.dask do"
        ) from error
    if odd:
        raise ModelFileError(
            f"{type(estimator).__name__} cannot be saved: it holds {sorted(odd)[0]}, which a model "
            "file must not contain; use learners of lemll (a graph as a file or as a matrix) and "
            "transformers of scikit-learn"
        )
    metadata: Settings = {
        "format": FORMAT,
        "lemll": __version__,
        "scikit-learn": sklearn.__version__,
        "learner": type(estimator[-1] if hasattr(estimator, "steps") else estimator).__name__,
        "columns": [str(name) for name in getattr(estimator, "feature_names_in_", [])],
        "labels": _label_names(estimator) if table is None else list(table.label_names),
        "bytes": _expanded(content, "the model"),
        "table": None if table is None else table.to_json(),
    }
    metadata["checksum"] = _checksum(metadata, content)
    _write(path, metadata, content)
    return int(metadata["bytes"])


def load(path: str | Path, *, max_bytes: int = LARGEST) -> Estimator | TableModel:
    """Read a model from a file that `save` wrote.

    Parameters
    ----------
    path : str or Path
        The file.
    max_bytes : int, default=200 MiB
        Largest size of the content of the file. Forests of many rows can be larger.

    Returns
    -------
    estimator or TableModel
        The model. Its predictions are those of the saved one, to the bit.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, too large or too new, or holds a type that a
        model does not need.
    """
    skops = import_extra("skops.io", "tables", "Reading a model file")
    metadata, content = _read(Path(path), max_bytes)
    try:
        odd = set(skops.get_untrusted_types(data=content)) - TRUSTED
        if odd:
            raise ModelFileError(
                f"{path} holds {sorted(odd)[0]}, which no model of lemll needs; do not use it"
            )
        estimator = skops.loads(content, trusted=sorted(TRUSTED))
        check_is_fitted(estimator)
        table = metadata["table"]
        return estimator if table is None else TableModel.from_json(table, estimator)
    except ModelFileError:
        raise
    except Exception as error:
        # The checksum is right, so another version of a library wrote the file.
        raise ModelFileError(
            f"{path} was written by lemll {metadata['lemll']} with scikit-learn "
            f"{metadata['scikit-learn']}, and cannot be read here, with scikit-learn "
            f"{sklearn.__version__} ({error}); install that version, or fit the model again"
        ) from error


def read_metadata(path: str | Path, *, max_bytes: int = LARGEST) -> Settings:
    """Return the metadata of a model file, without loading the model.

    Parameters
    ----------
    path : str or Path
        The file.
    max_bytes : int, default=200 MiB
        Largest size of the content of the file.

    Returns
    -------
    dict
        Versions, learner, columns, labels, size, and what is known about the table.
    """
    return _read(Path(path), max_bytes)[0]


def _label_names(estimator: Estimator) -> list[str]:
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    return [str(name) for name in getattr(last, "label_names_", [])]


def _checksum(metadata: Settings, content: bytes) -> str:
    """Return the SHA-256 of everything in a file except the checksum itself."""
    rest = {name: value for name, value in metadata.items() if name != "checksum"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    digest.update(content)
    return digest.hexdigest()


def _expanded(content: bytes, name: str) -> int:
    """Return the size of the entries of an archive, by its directory."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
    if len(entries) > _MOST_ENTRIES:
        raise ModelFileError(
            f"{name} has {len(entries)} parts, and at most {_MOST_ENTRIES} are read; use fewer "
            "trees"
        )
    return sum(entry.file_size for entry in entries)


def _write(path: Path, metadata: Settings, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with temporary.open("xb") as raw:
            with zipfile.ZipFile(raw, "w") as archive:
                text = json.dumps(metadata, indent=1).encode()
                archive.writestr(
                    zipfile.ZipInfo(_METADATA, _STAMP), text, compress_type=zipfile.ZIP_DEFLATED
                )
                archive.writestr(zipfile.ZipInfo(_PIPELINE, _STAMP), content)
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _read(path: Path, max_bytes: int) -> tuple[Settings, bytes]:
    """Return metadata and pipeline of a file after all checks that need no loading."""
    with os.fdopen(open_plain(path, follow=True), "rb") as raw:
        size = os.fstat(raw.fileno()).st_size
        if size > max_bytes:
            raise _too_large(path, size, max_bytes)
        try:
            with zipfile.ZipFile(raw) as archive:
                sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
                if sorted(sizes) != [_METADATA, _PIPELINE]:
                    raise ModelFileError(
                        f"{path} is not a model file: it must hold {_METADATA} and {_PIPELINE}, "
                        f"got {', '.join(sorted(sizes)[:3]) or 'nothing'}; write it with lemll.save"
                    )
                if sizes[_METADATA] > _LARGEST_METADATA or sizes[_PIPELINE] > max_bytes:
                    raise _too_large(path, sum(sizes.values()), max_bytes)
                metadata = _checked_metadata(path, archive.read(_METADATA))
                content = archive.read(_PIPELINE)
            expanded = _expanded(content, str(path))
        except ModelFileError:
            raise
        except Exception as error:
            # Broken archives fail in many ways: zlib, struct, unicode and others.
            raise ModelFileError(
                f"{path} is damaged or not a model file ({error}); copy or fit it again"
            ) from error
    if metadata["checksum"] != _checksum(metadata, content):
        raise ModelFileError(
            f"{path} is damaged: its checksum is not that of its content; copy or fit it again"
        )
    if expanded > max_bytes:
        raise _too_large(path, expanded, max_bytes)
    return metadata, content


def _checked_metadata(path: Path, text: bytes) -> Settings:
    metadata = json.loads(text)
    if not isinstance(metadata, dict) or not isinstance(metadata.get("format"), int):
        raise ModelFileError(f"{path} is damaged: its metadata have no format; fit it again")
    if metadata["format"] != FORMAT:
        raise ModelFileError(
            f"{path} has format {metadata['format']}, written by lemll {metadata.get('lemll')}, "
            f"and this version reads format {FORMAT}; update lemll, or fit the model again"
        )
    return metadata


def _too_large(path: Path, size: int, max_bytes: int) -> ModelFileError:
    return ModelFileError(
        f"{path} holds {size / 2**20:.0f} MiB, and at most {max_bytes / 2**20:.0f} MiB are read; "
        "if you trust it, pass a larger --max-size (MiB; in Python max_bytes=)"
    )
