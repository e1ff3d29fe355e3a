"""Read data sets from MATLAB files, the usual format of label-distribution data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from lemll._budget import Budget
from lemll._types import Features, Settings
from lemll._validation import is_sparse
from lemll.datasets._options import Kind, check_kind
from lemll.datasets._streams import file_size, refuse_compression
from lemll.datasets.dataset import Dataset
from lemll.datasets.matlab.hdf5 import read_hdf5
from lemll.datasets.matlab.parts import BrokenFileError, OddVariable
from lemll.datasets.matlab.version5 import read_mat5
from lemll.exceptions import DatasetFormatError, import_extra

__all__ = ["read_mat"]

# Common pairs of variable names, the most specific first. The third entry says whether the label
# matrix has one row per label, as in multi-label programs for MATLAB that call it `target`.
_LAYOUTS = (
    ("features", "label_distribution", False),
    ("features", "labels", False),
    ("data", "target", True),
    ("X", "Y", False),
)
_TEST_PART = ("Xt", "Yt", False)
_KNOWN = frozenset(name for layout in (*_LAYOUTS, _TEST_PART) for name in layout[:2])
_LABELS = frozenset(layout[1] for layout in (*_LAYOUTS, _TEST_PART))
# HDF5 allows the signature at byte 0, 512, 1024, ... MATLAB puts its own header of 512 bytes first.
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
    ``target`` (one row per label); ``X`` with ``Y``. Rows of ``Xt`` and ``Yt``, if they exist, are
    appended to ``X`` and ``Y``. Labels -1/+1, which are common in MATLAB, become 0/1.

    Parameters
    ----------
    path : str or Path
        A version 5 file (MATLAB's ``-v6`` and ``-v7``), or a version 7.3 file (``-v7.3``), which
        h5py (extra ``data``) reads in a separate process. Version 4 files are refused.
    kind : {"auto", "logical", "distribution"}, default="auto"
        The content of the label matrix. By default, labels are logical if all values are -1, 0
        or 1.
    name : str, optional
        The name of the data set. By default the name of the file.
    max_expanded_bytes : int, optional
        Largest size of the arrays. A sparse label matrix counts with its size as a dense array. By
        default 200 times the size of the file, but at least 256 MiB.

    Returns
    -------
    Dataset
        The data set, with `Y` or `D`.
    """
    check_kind(kind)
    path = Path(path)
    refuse_compression(path)
    X, labels = _pick(_load(path, max_expanded_bytes), str(path))
    codes = np.unique(labels)
    if kind == "auto":
        # A distribution cannot contain -1. Treated as logical labels, -1 gives a clear error.
        kind = "logical" if np.isin(codes, (-1, 0, 1)).all() else "distribution"
    if kind == "logical":
        if np.isin(codes, (-1, 1)).all():
            labels = labels > 0
        return Dataset(X=X, Y=labels, name=name or path.stem, source=str(path))
    return Dataset(X=X, D=labels, name=name or path.stem, source=str(path))


class _Cost:
    """Charges the budget for a variable and for its later conversions, before it is read."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    def __call__(
        self, variable: str, shape: tuple[int, ...], *, stored: int | None = None, extra: int = 0
    ) -> None:
        """Count a dense variable, or a sparse one of `stored` bytes."""
        cells = int(np.prod(shape, dtype=object))
        if stored is None:
            self.budget.charge(8 * cells + extra)
        else:
            # The parts exist up to four times: as stored, in row order, with values as float64,
            # and as a copy. In addition there is one pointer per column and per row.
            dense = 8 * cells if variable in _LABELS else 0
            self.budget.charge(4 * stored + 8 * sum(shape) + dense)


def _pick(variables: Settings, file: str) -> tuple[Any, Any]:
    for layout in _LAYOUTS:
        if layout[0] in variables and layout[1] in variables:
            X, Y = _oriented(variables, layout, file)
            # Files with these names keep training and test rows apart. A Dataset has all rows.
            if layout[:2] == ("X", "Y") and all(name in variables for name in _TEST_PART[:2]):
                X, Y = _joined((X, Y), _oriented(variables, _TEST_PART, file), file)
            return X, Y
    pairs = ", ".join(f"{features}/{labels}" for features, labels, _ in _LAYOUTS)
    raise DatasetFormatError(
        f"no known pair of variables; expected one of {pairs}",
        file=file,
        token=", ".join(sorted(variables)),
    )


def _oriented(variables: Settings, layout: tuple[str, str, bool], file: str) -> tuple[Any, Any]:
    """Check features and labels of one part, and transpose the labels to one row per example."""
    features, labels, by_label = layout
    X, Y = (_checked(variables[name], name, file) for name in (features, labels))
    Y = np.asarray(Y.toarray() if is_sparse(Y) else Y)
    Y, turned = (Y.T, Y) if by_label else (Y, Y.T)
    # Some files use the other orientation for the same name. The number of rows decides, but a
    # square matrix fits both ways and keeps the usual orientation.
    if Y.shape[0] != X.shape[0] and turned.shape[0] == X.shape[0]:
        Y = turned
    if Y.shape[0] != X.shape[0]:
        raise DatasetFormatError(
            f"{features} has {X.shape[0]} rows, but {labels} has the shape "
            f"{variables[labels].shape}; one side of it must also be {X.shape[0]}",
            file=file,
        )
    return X, Y


def _checked(matrix: Features, name: str, file: str) -> Any:
    if isinstance(matrix, OddVariable):
        raise DatasetFormatError(
            f"variable {name!r} must be a matrix of real numbers; cells, structs, text and complex "
            "numbers cannot be features or labels",
            file=file,
            token=matrix.description,
        )
    return matrix


def _joined(train: tuple[Any, Any], test: tuple[Any, Any], file: str) -> tuple[Any, Any]:
    for name, mine, other in zip(("X", "Y"), train, test, strict=True):
        if mine.shape[1] != other.shape[1]:
            raise DatasetFormatError(
                f"{name} has {mine.shape[1]} columns and {name}t has {other.shape[1]}; the two "
                "parts of a data set need the same number",
                file=file,
            )
    X: Any
    if is_sparse(train[0]) or is_sparse(test[0]):
        X = sparse.vstack([sparse.csr_array(train[0]), sparse.csr_array(test[0])], format="csr")
    else:
        X = np.vstack([train[0], test[0]])
    return X, np.vstack([train[1], test[1]])


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(512 + len(_HDF5_SIGNATURE))
    if not head:
        raise DatasetFormatError("the file is empty", file=str(path))
    return head.startswith(_HDF5_SIGNATURE) or head[512:] == _HDF5_SIGNATURE


def _load(path: Path, max_expanded_bytes: int | None) -> Settings:
    packed = file_size(path)
    budget = Budget(str(path), packed, max_expanded_bytes)
    version = "version 5"
    try:
        if _is_hdf5(path):
            version = "7.3"
            import_extra("h5py", "data", "Reading a MATLAB 7.3 file")
            return read_hdf5(path, _KNOWN, _Cost(budget), max_expanded_bytes or 4 * packed)
        with path.open("rb") as file:
            return read_mat5(file, _KNOWN, _Cost(budget))
    except BrokenFileError as error:
        raise DatasetFormatError(
            f"not a readable MATLAB {version} file: {error}", file=str(path)
        ) from error
