"""MATLAB files, in which label-distribution data usually come."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import io as scipy_io
from scipy import sparse

from lemll._validation import is_sparse
from lemll.datasets.dataset import Dataset
from lemll.exceptions import DatasetFormatError, import_extra

__all__ = ["read_mat"]

Kind = Literal["auto", "logical", "distribution"]

# Pairs of variable names in use, the most telling first. The third says whether the label matrix
# is stored label by row, as the multi-label MATLAB codes do with `target`.
_LAYOUTS = (
    ("features", "label_distribution", False),
    ("features", "labels", False),
    ("data", "target", True),
    ("X", "Y", False),
)
_TEST_PART = {"X": "Xt", "Y": "Yt"}
_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_MAX_RATIO = 200
_FLOOR_BYTES = 512 * 2**20


def read_mat(path: str | Path, *, kind: Kind = "auto", name: str | None = None) -> Dataset:
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

    Returns
    -------
    Dataset
        With `Y` or `D`, as the file has it.
    """
    path = Path(path)
    if kind not in ("auto", "logical", "distribution"):
        raise ValueError(f"kind={kind!r} must be 'auto', 'logical' or 'distribution'")
    variables = _load_hdf5(path) if _is_hdf5(path) else _load_v5(path)
    X, labels = _pick(variables, path)
    codes = np.unique(labels)
    if kind == "auto":
        two_codes = np.isin(codes, (-1, 0, 1)).all() and not {-1, 0} <= set(codes.tolist())
        kind = "logical" if two_codes else "distribution"
    if kind == "logical":
        if np.isin(codes, (-1, 1)).all():
            labels = labels > 0
        return Dataset(X=X, Y=labels, name=name or path.stem, source=str(path))
    return Dataset(X=X, D=labels, name=name or path.stem, source=str(path))


def _pick(variables: dict[str, Any], path: Path) -> tuple[Any, Any]:
    for features, labels, by_label in _LAYOUTS:
        if features in variables and labels in variables:
            X, Y = variables[features], _dense(variables[labels])
            if by_label or (Y.shape[0] != X.shape[0] and Y.shape[1] == X.shape[0]):
                Y = Y.T
            test_X, test_Y = _TEST_PART.get(features), _TEST_PART.get(labels)
            if test_X in variables and test_Y in variables:
                X = sparse.vstack([X, variables[test_X]], format="csr")
                Y = np.vstack([Y, _dense(variables[test_Y])])
            return X, Y
    pairs = ", ".join(f"{features}/{labels}" for features, labels, _ in _LAYOUTS)
    raise DatasetFormatError(
        f"no known pair of variables; want one of {pairs}",
        file=str(path),
        token=", ".join(sorted(variables)),
    )


def _dense(matrix: Any) -> Any:
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix)


def _known_names() -> set[str]:
    return {name for layout in _LAYOUTS for name in layout[:2]} | set(_TEST_PART.values())


def _load_v5(path: Path) -> dict[str, Any]:
    try:
        wanted = []
        size = 0
        for variable, shape, kind in scipy_io.whosmat(str(path)):
            if variable in _known_names():
                wanted.append(variable)
                size += 0 if kind == "sparse" else 8 * int(np.prod(shape, dtype=object))
        limit = max(_FLOOR_BYTES, _MAX_RATIO * path.stat().st_size)
        if size > limit:
            raise DatasetFormatError(
                f"its arrays would take {size} bytes, more than the {limit} that a file of this "
                "size may",
                file=str(path),
            )
        loaded = scipy_io.loadmat(str(path), variable_names=wanted)
    except DatasetFormatError:
        raise
    except FileNotFoundError as error:
        raise DatasetFormatError("no such file", file=str(path)) from error
    except Exception as error:
        # SciPy's reader meets damage in many ways: ValueError, TypeError, zlib.error, MemoryError.
        raise DatasetFormatError(
            f"not a readable MATLAB version 5 file: {error}", file=str(path)
        ) from error
    return {key: loaded[key] for key in wanted if key in loaded and loaded[key].ndim == 2}


def _is_hdf5(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(512 + len(_HDF5_SIGNATURE))
    except OSError as error:
        raise DatasetFormatError(
            f"cannot be read: {error.strerror or error}", file=str(path)
        ) from error
    if not head:
        raise DatasetFormatError("the file is empty", file=str(path))
    return head.startswith(_HDF5_SIGNATURE) or head[512:] == _HDF5_SIGNATURE


def _load_hdf5(path: Path) -> dict[str, Any]:
    h5py = import_extra("h5py", "data", "Reading a MATLAB 7.3 file")
    variables: dict[str, Any] = {}
    try:
        with h5py.File(path, "r") as file:
            for variable in _known_names() & set(file):
                item = file[variable]
                if isinstance(item, h5py.Dataset):
                    variables[variable] = item[()].T  # MATLAB stores column by column
                else:
                    # A sparse matrix is a group: columns' starts, row indices, values.
                    indptr = item["jc"][()]
                    rows = int(item.attrs["MATLAB_sparse"])
                    shape = (rows, indptr.size - 1)
                    parts = (item["data"][()], item["ir"][()], indptr)
                    matrix = sparse.csc_array(parts, shape=shape)
                    matrix.check_format(full_check=True)
                    variables[variable] = matrix
    except Exception as error:
        raise DatasetFormatError(
            f"not a readable MATLAB 7.3 file: {error}", file=str(path)
        ) from error
    return variables
