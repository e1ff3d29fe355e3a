"""The NPZ layout: one compressed archive of plain arrays, no pickle."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lemll._validation import is_sparse
from lemll.datasets._streams import atomic_write
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError

__all__ = ["read_npz", "write_npz"]

_CSR_PARTS = ("X_data", "X_indices", "X_indptr", "X_shape")
_MAX_RATIO = 200
_FLOOR_BYTES = 256 * 2**20


def read_npz(path: str | Path) -> Dataset:
    """Read a data set from the NPZ layout.

    Parameters
    ----------
    path : str or Path
        An archive with dense ``X``, or ``X_data, X_indices, X_indptr, X_shape`` of a CSR array;
        ``Y`` (0/1) or ``D`` (distribution); ``feature_names``, ``label_names``; optionally
        ``name``. Other arrays are left alone.

    Returns
    -------
    Dataset
        Named after the archive, or after the file if that has no name.
    """
    path = Path(path)
    arrays = _load(path)
    if "X" in arrays:
        X = arrays["X"]
    elif all(part in arrays for part in _CSR_PARTS):
        X = _csr(arrays, path)
    else:
        raise DatasetFormatError(
            f"neither X nor all of {', '.join(_CSR_PARTS)} in the archive", file=str(path)
        )
    if "Y" not in arrays and "D" not in arrays:
        raise DatasetFormatError("neither Y nor D in the archive", file=str(path))
    return Dataset(
        X=X,
        Y=arrays.get("Y"),
        D=arrays.get("D"),
        feature_names=_text(arrays, "feature_names"),
        label_names=_text(arrays, "label_names"),
        name=str(arrays["name"]) if "name" in arrays else path.stem,
        source=str(path),
    )


def _load(path: Path) -> dict[str, Any]:
    wanted = {"X", *_CSR_PARTS, "Y", "D", "feature_names", "label_names", "name"}
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        limit = max(_FLOOR_BYTES, _MAX_RATIO * path.stat().st_size)
        if size > limit:
            raise DatasetFormatError(
                f"expands to {size} bytes, more than the {limit} that a file of this size may",
                file=str(path),
            )
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files if key in wanted}
    except DatasetFormatError:
        raise
    except FileNotFoundError as error:
        raise DatasetFormatError("no such file", file=str(path)) from error
    except Exception as error:
        # zipfile, zlib and NumPy each have their own ways of saying that a file is damaged.
        raise DatasetFormatError(f"not a readable NPZ archive: {error}", file=str(path)) from error


def _csr(arrays: dict[str, Any], path: Path) -> Any:
    data, indices, indptr, shape = (arrays[part] for part in _CSR_PARTS)
    try:
        n_rows, n_columns = (int(size) for size in shape)
        X = sparse.csr_array((data, indices, indptr), shape=(n_rows, n_columns))
        X.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DatasetFormatError(f"the CSR parts do not fit: {error}", file=str(path)) from error
    return X


def _text(arrays: dict[str, Any], key: str) -> tuple[str, ...]:
    return tuple(str(text) for text in arrays[key].ravel()) if key in arrays else ()


def write_npz(dataset: Dataset, path: str | Path) -> None:
    """Write a data set in the NPZ layout; the file appears only when it is complete.

    Parameters
    ----------
    dataset : Dataset
        Dense or sparse, with logical labels or a distribution.
    path : str or Path
        Where to.
    """
    arrays: dict[str, Any] = {
        "feature_names": _strings(dataset.feature_names),
        "label_names": _strings(dataset.label_names),
        "name": np.array(dataset.name),
        "Y" if dataset.D is None else "D": dataset.labels,
    }
    if is_sparse(dataset.X):
        arrays |= {
            "X_data": dataset.X.data,
            "X_indices": dataset.X.indices,
            "X_indptr": dataset.X.indptr,
            "X_shape": np.array(dataset.X.shape, dtype=np.int64),
        }
    else:
        arrays["X"] = dataset.X
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    with atomic_write(Path(path)) as file:
        file.write(buffer.getvalue())


def _strings(names: Any) -> Any:
    for name in names:
        # NumPy pads fixed-width text with NUL and strips it again on reading.
        if name.endswith("\0"):
            raise ValueError(f"NPZ cannot hold the name {name!r}: it ends with a NUL character")
    return np.array(names, dtype=np.str_)
