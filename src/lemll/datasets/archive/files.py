"""Read and write data sets as NPZ: one compressed archive of plain arrays, without pickle."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lemll._budget import NAME_BYTES, Budget
from lemll._types import Array, Settings
from lemll._validation import is_sparse
from lemll.datasets._compressed import compressed_matrix
from lemll.datasets._names import NumberedNames
from lemll.datasets._options import Missing, check_missing
from lemll.datasets._streams import atomic_write, file_size, refuse_compression
from lemll.datasets.archive.members import BrokenArchiveError, read_members
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError

__all__ = ["read_npz", "write_npz"]

_CSR_PARTS = ("X_data", "X_indices", "X_indptr", "X_shape")
_WANTED = frozenset({"X", *_CSR_PARTS, "Y", "D", "feature_names", "label_names", "name"})


def read_npz(
    path: str | Path, *, missing: Missing = "error", max_expanded_bytes: int | None = None
) -> Dataset:
    """Read a data set from the NPZ layout.

    Parameters
    ----------
    path : str or Path
        An archive with dense ``X``, or ``X_data, X_indices, X_indptr, X_shape`` of a CSR array;
        ``Y`` (0/1) or ``D`` (distribution); optionally ``feature_names``, ``label_names``,
        ``name``. Other arrays are not read.
    missing : {"error", "nan"}, default="error"
        Whether NaN in a feature is an error or is kept.
    max_expanded_bytes : int, optional
        Largest size of the arrays. By default 200 times the size of the file, but at least
        256 MiB.

    Returns
    -------
    Dataset
        The data set. Its name is the array ``name``, or else the name of the file.
    """
    check_missing(missing)
    path = Path(path)
    refuse_compression(path)
    budget = Budget(str(path), file_size(path), max_expanded_bytes)
    try:
        arrays = read_members(path, _WANTED, budget)
    except BrokenArchiveError as error:
        raise DatasetFormatError(f"not a readable NPZ archive: {error}", file=str(path)) from error
    if "X" in arrays:
        X = arrays["X"]
    elif all(part in arrays for part in _CSR_PARTS):
        X = _csr(arrays, budget)
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
        feature_names=_text(arrays, "feature_names", budget),
        label_names=_text(arrays, "label_names", budget),
        name=next(iter(_text(arrays, "name", budget)), path.stem),
        source=str(path),
        allow_missing=missing == "nan",
    )


def _csr(arrays: dict[str, Array], budget: Budget) -> Any:
    data, indices, indptr, shape = (arrays[part] for part in _CSR_PARTS)
    try:
        n_rows, n_columns = (int(size) for size in shape)
        # The number of columns needs no memory in a sparse array, but one dense row must fit.
        budget.charge(8 * n_columns)
        return compressed_matrix(sparse.csr_array, data, indices, indptr, (n_rows, n_columns))
    except DatasetFormatError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise DatasetFormatError(f"the CSR parts do not fit: {error}", file=budget.file) from error


def _text(arrays: dict[str, Array], key: str, budget: Budget) -> tuple[str, ...]:
    if key not in arrays:
        return ()
    texts = arrays[key].ravel()
    budget.charge(texts.size * (NAME_BYTES + texts.dtype.itemsize // 4))
    try:
        if texts.dtype.kind != "U":
            raise ValueError(f"its dtype is {texts.dtype}")
        # NumPy stores 32 bits per character, and does not check that each is a valid code point.
        if texts.dtype.itemsize and texts.view(np.uint32).max(initial=0) > sys.maxunicode:
            raise ValueError("it contains invalid characters")
        names = tuple(texts.tolist())
        "".join(names).encode()  # raises an error for half a surrogate pair, which is not text
    except ValueError as error:
        raise DatasetFormatError(f"{key} must hold text: {error}", file=budget.file) from error
    return names


def write_npz(dataset: Dataset, path: str | Path) -> None:
    """Write a data set in the NPZ layout. The file appears only when it is complete.

    Parameters
    ----------
    dataset : Dataset
        Dense or sparse, with logical labels or a distribution.
    path : str or Path
        The file to write.
    """
    refuse_compression(Path(path))
    arrays: Settings = {
        "name": np.array(dataset.name),
        "Y" if dataset.D is None else "D": dataset.labels,
    }
    for key, prefix in (("feature_names", "x"), ("label_names", "y")):
        names = getattr(dataset, key)
        # Do not store default names: the reader creates them, and a wide set has millions of them.
        if names != NumberedNames(prefix, range(len(names))):
            arrays[key] = _strings(tuple(names))
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
        # NumPy pads text to a fixed width with NUL, and removes NUL at the end when it reads.
        if name.endswith("\0"):
            raise ValueError(f"NPZ cannot hold the name {name!r}: it ends with a NUL character")
    return np.array(names, dtype=np.str_)
