"""Read and write data sets as NPZ: one compressed archive of plain arrays, without pickle."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from lemll._files import NAME_BYTES, Budget
from lemll._types import Array, DType, Settings, SparseMatrix
from lemll._validation import is_sparse
from lemll.datasets._columns import Missing, NumberedNames, check_missing
from lemll.datasets._streams import atomic_write, compressed_matrix, file_size, refuse_compression
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError

_BLOCK_BYTES = 2**20
_MAX_HEADER_BYTES = 10_000
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4}
# Complex numbers are allowed here, so that a later check can name them in its error message.
_KINDS = "biufcU"


class BrokenArchiveError(Exception):
    """The bytes are not an archive of arrays. The message says why."""


def read_members(path: Path, wanted: Collection[str], budget: Budget) -> dict[str, Array]:
    """Read the wanted arrays of an archive.

    Parameters
    ----------
    path : Path
        The archive.
    wanted : collection of str
        Names of the arrays to read. Other arrays are not read.
    budget : Budget
        Charged for each array before it is unpacked.

    Returns
    -------
    dict
        The wanted arrays that the archive contains.

    Raises
    ------
    BrokenArchiveError
        If the archive or an array in it is damaged, or holds Python objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name: _read(archive, name, budget)
                for name in sorted(wanted)
                if f"{name}.npy" in archive.NameToInfo
            }
    except (DatasetFormatError, BrokenArchiveError):
        raise
    except MemoryError as error:
        raise BrokenArchiveError("it needs more memory than is available") from error
    except Exception as error:
        # zipfile, zlib and NumPy raise different exceptions for a damaged file.
        raise BrokenArchiveError(str(error)) from error


def _read(archive: zipfile.ZipFile, name: str, budget: Budget) -> Array:
    method = archive.getinfo(f"{name}.npy").compress_type
    # Other compression methods could expand a few bytes to gigabytes. NumPy never uses them.
    if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BrokenArchiveError(f"{name} is packed by method {method}, expected deflate or none")
    with archive.open(f"{name}.npy") as member:
        shape, by_column, dtype = _header(member)
        if dtype.kind not in _KINDS:
            raise BrokenArchiveError(f"{name} must hold numbers or text, got dtype {dtype}")
        if min(shape, default=0) < 0:
            raise BrokenArchiveError(f"{name} has the negative shape {shape}")
        cells = int(np.prod(shape, dtype=object))
        # All types of numbers are later converted to float64, which has 8 bytes.
        budget.charge(cells * max(dtype.itemsize, 8))
        data = _exactly(member, cells * dtype.itemsize, name)
    array: Array = np.ndarray(shape, dtype, data, order="F" if by_column else "C")
    if dtype.kind == "b":
        # NumPy does not check that a stored boolean is 0 or 1; another byte gives wrong results.
        return np.not_equal(array.view(np.uint8), 0)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], bool, DType]:
    version = np.lib.format.read_magic(member)
    if version not in _LENGTH_BYTES:
        raise BrokenArchiveError(f"arrays of format {version} are not read, save with plain dtypes")
    length = member.read(_LENGTH_BYTES[version])
    size = int.from_bytes(length, "little")
    # NumPy checks the length of the header only after it has read all of it.
    if size > _MAX_HEADER_BYTES:
        raise BrokenArchiveError(
            f"the header of an array has {size} bytes, expected at most {_MAX_HEADER_BYTES}"
        )
    text = io.BytesIO(length + member.read(size))
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(text)
    return np.lib.format.read_array_header_2_0(text)


def _exactly(member: IO[bytes], size: int, name: str) -> bytearray:
    """Read exactly `size` bytes and the end of the member, where zipfile compares the check sum."""
    data = bytearray()
    while chunk := member.read(min(_BLOCK_BYTES, size + 1 - len(data))):
        data += chunk
        if len(data) > size:
            break
    if len(data) != size:
        raise BrokenArchiveError(f"{name} does not have the {size} bytes that its shape requires")
    return data


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


def _csr(arrays: dict[str, Array], budget: Budget) -> SparseMatrix:
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
