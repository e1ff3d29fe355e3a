"""MATLAB files, in which label-distribution data usually come."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io as scipy_io
from scipy import sparse

from lemll._validation import is_sparse
from lemll.datasets._options import Kind, check_kind
from lemll.datasets._streams import check_expansion, file_size, refuse_compression
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError, import_extra

__all__ = ["read_mat"]

# Newer releases of SciPy want to be told, older ones do not know the question.
_AS_ARRAYS: dict[str, Any] = (
    {"spmatrix": False} if "spmatrix" in inspect.signature(scipy_io.loadmat).parameters else {}
)

# Pairs of variable names in use, the most telling first. The third says whether the label matrix
# is stored label by row, as the multi-label MATLAB codes do with `target`.
_LAYOUTS = (
    ("features", "label_distribution", False),
    ("features", "labels", False),
    ("data", "target", True),
    ("X", "Y", False),
)
_TEST_PART = ("Xt", "Yt", False)
_KNOWN = frozenset(name for layout in (*_LAYOUTS, _TEST_PART) for name in layout[:2])
_LABELS = frozenset(layout[1] for layout in (*_LAYOUTS, _TEST_PART))
_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def read_mat(
    path: str | Path,
    *,
    kind: Kind = "auto",
    name: str | None = None,
    max_expanded_bytes: int | None = None,
) -> Dataset:
    """Read a data set from a MATLAB file.

    Known pairs of variables: ``features`` with ``label_distribution`` or ``labels``; ``data`` with
    ``target`` (stored labels x rows); ``X`` with ``Y``, followed by ``Xt`` and ``Yt`` if there.
    Labels coded -1/+1, as MATLAB codes like them, are turned into 0/1.

    Parameters
    ----------
    path : str or Path
        A version 5 file (read by SciPy) or a version 7.3 file (read by h5py, extra ``data``).
    kind : {"auto", "logical", "distribution"}, default="auto"
        What the label matrix holds; by default logical labels if it has only two codes.
    name : str, optional
        The set's name; by default the file's.
    max_expanded_bytes : int, optional
        Cap on the size of the arrays, a sparse label matrix counted as the dense one it becomes;
        by default 200 times the file's size, and never below 256 MiB.

    Returns
    -------
    Dataset
        With `Y` or `D`, as the file has it.
    """
    check_kind(kind)
    path = Path(path)
    refuse_compression(path)
    cap = _Cap(path, max_expanded_bytes)
    variables = _load_hdf5(path, cap) if _is_hdf5(path) else _load_v5(path, cap)
    X, labels = _pick(variables, str(path))
    codes = np.unique(labels)
    if kind == "auto":
        # No distribution holds -1; as logical labels it gets the fitting message.
        kind = "logical" if np.isin(codes, (-1, 0, 1)).all() else "distribution"
    if kind == "logical":
        if np.isin(codes, (-1, 1)).all():
            labels = labels > 0
        return Dataset(X=X, Y=labels, name=name or path.stem, source=str(path))
    return Dataset(X=X, D=labels, name=name or path.stem, source=str(path))


class _Cap:
    """Adds up what the variables would take, before any is read."""

    def __init__(self, path: Path, limit: int | None) -> None:
        self.file = str(path)
        self.packed = file_size(path)
        self.limit = limit
        self.size = 0

    def add(self, variable: str, shape: tuple[int, ...], *, stored: int | None = None) -> None:
        """Count a dense variable, or a sparse one of `stored` bytes (0 if not known)."""
        cells = int(np.prod(shape, dtype=object))
        if stored is None:
            self.size += 8 * cells
        else:
            # Changing between columns and rows takes a pointer for each of both.
            self.size += stored + 8 * sum(shape) + (8 * cells if variable in _LABELS else 0)
        check_expansion(self.size, self.packed, self.file, self.limit)


def _pick(variables: dict[str, Any], file: str) -> tuple[Any, Any]:
    for layout in _LAYOUTS:
        if layout[0] in variables and layout[1] in variables:
            X, Y = _oriented(variables, layout, file)
            if layout[:2] == ("X", "Y") and all(name in variables for name in _TEST_PART[:2]):
                X, Y = _joined((X, Y), _oriented(variables, _TEST_PART, file), file)
            return X, Y
    pairs = ", ".join(f"{features}/{labels}" for features, labels, _ in _LAYOUTS)
    raise DatasetFormatError(
        f"no known pair of variables; want one of {pairs}",
        file=file,
        token=", ".join(sorted(variables)),
    )


def _oriented(
    variables: dict[str, Any], layout: tuple[str, str, bool], file: str
) -> tuple[Any, Any]:
    """Check one part, features and labels, and turn its labels to rows x labels."""
    features, labels, by_label = layout
    X, Y = (_checked(variables[name], name, file) for name in (features, labels))
    Y = np.asarray(Y.toarray() if is_sparse(Y) else Y)
    Y, turned = (Y.T, Y) if by_label else (Y, Y.T)
    if Y.shape[0] != X.shape[0] and turned.shape[0] == X.shape[0]:
        Y = turned
    if Y.shape[0] != X.shape[0]:
        raise DatasetFormatError(
            f"{features} has {X.shape[0]} rows, and {labels} of shape {variables[labels].shape} "
            "fits them neither way round",
            file=file,
        )
    return X, Y


def _checked(matrix: Any, name: str, file: str) -> Any:
    if matrix.dtype.kind not in "biuf" or matrix.ndim != 2:
        raise DatasetFormatError(
            f"variable {name!r} must be a matrix of real numbers; cells, structs, text and complex "
            "numbers cannot be features or labels",
            file=file,
            token=f"{matrix.ndim}-D, {matrix.dtype}",
        )
    return matrix


def _joined(train: tuple[Any, Any], test: tuple[Any, Any], file: str) -> tuple[Any, Any]:
    for name, mine, other in zip(("X", "Y"), train, test, strict=True):
        if mine.shape[1] != other.shape[1]:
            raise DatasetFormatError(
                f"{name} has {mine.shape[1]} columns and {name}t has {other.shape[1]}; the two "
                "parts of one set need the same",
                file=file,
            )
    X: Any
    if is_sparse(train[0]) or is_sparse(test[0]):
        X = sparse.vstack([sparse.csr_array(train[0]), sparse.csr_array(test[0])], format="csr")
    else:
        X = np.vstack([train[0], test[0]])
    return X, np.vstack([train[1], test[1]])


def _load_v5(path: Path, cap: _Cap) -> dict[str, Any]:
    try:
        wanted = []
        for variable, shape, kind in scipy_io.whosmat(str(path)):
            if variable in _KNOWN:
                wanted.append(variable)
                # How many cells a sparse matrix has is not told; deflate bounds them well enough.
                cap.add(variable, shape, stored=0 if kind == "sparse" else None)
        loaded = scipy_io.loadmat(str(path), variable_names=wanted, **_AS_ARRAYS)
    except DatasetFormatError:
        raise
    except Exception as error:
        # SciPy's reader meets damage in many ways: ValueError, TypeError, zlib.error, MemoryError.
        raise DatasetFormatError(
            f"not a readable MATLAB version 5 file: {error}", file=str(path)
        ) from error
    return {key: loaded[key] for key in wanted if key in loaded}


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(512 + len(_HDF5_SIGNATURE))
    if not head:
        raise DatasetFormatError("the file is empty", file=str(path))
    return head.startswith(_HDF5_SIGNATURE) or head[512:] == _HDF5_SIGNATURE


def _load_hdf5(path: Path, cap: _Cap) -> dict[str, Any]:
    h5py = import_extra("h5py", "data", "Reading a MATLAB 7.3 file")
    try:
        with h5py.File(path, "r") as file:
            names = sorted(_KNOWN & set(file))
            for name in names:
                _measure_hdf5(name, file[name], cap)
            return {name: _read_hdf5(file[name]) for name in names}
    except DatasetFormatError:
        raise
    except Exception as error:
        raise DatasetFormatError(
            f"not a readable MATLAB 7.3 file: {error}", file=str(path)
        ) from error


def _measure_hdf5(name: str, item: Any, cap: _Cap) -> None:
    if hasattr(item, "shape"):
        cap.add(name, item.shape)
    else:
        shape = (int(item.attrs["MATLAB_sparse"]), item["jc"].size - 1)
        cap.add(name, shape, stored=8 * (item["data"].size + item["ir"].size))


def _read_hdf5(item: Any) -> Any:
    if hasattr(item, "shape"):
        return np.asarray(item[()]).T  # MATLAB stores column by column
    # A sparse matrix is a group: columns' starts, row indices, values.
    indptr = item["jc"][()]
    shape = (int(item.attrs["MATLAB_sparse"]), indptr.size - 1)
    matrix = sparse.csc_array((item["data"][()], item["ir"][()], indptr), shape=shape)
    matrix.check_format(full_check=True)
    return matrix
