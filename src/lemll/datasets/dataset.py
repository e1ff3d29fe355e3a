"""The data set class, which all readers and generators return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from lemll._types import Array, Features, MatrixLike
from lemll._validation import (
    UNOBSERVED,
    check_distribution,
    check_finite,
    check_logical_labels,
    is_sparse,
)
from lemll.datasets._columns import NumberedNames
from lemll.exceptions import DatasetFormatError


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Rows with features and, for each row, logical labels or a label distribution.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Features. Dense features are stored as a float array. If `X` is already a float array, both
        share memory. Sparse features are copied to a CSR array.
    Y : array-like of shape (n_samples, n_labels), optional
        Logical labels, 0/1. NaN, None, ``pandas.NA`` and masked cells mean that nobody observed the
        cell. Then Y is stored as a float array with NaN in these cells, else as int8.
    D : array-like of shape (n_samples, n_labels), optional
        Label distribution. Degrees are non-negative, and the sum of every row is one. It may share
        memory like `X`. Exactly one of `Y` and `D` must be given.
    feature_names, label_names : sequence of str, optional
        One name per column. By default the column names of a data frame, or else ``x0, x1, ...``
        and ``y0, y1, ...``.
    name : str, default=""
        The name of the data set.
    source : str, default=""
        The file or the function that the data come from.
    allow_missing : bool, default=False
        Accept NaN in `X` as a missing value. Infinity is always refused.
    registered : str, default=""
        The registered name, if `load_dataset` loaded the data set. Then `describe` compares it with
        the paper. A file with the same name is not compared, because it may be another data set.

    Raises
    ------
    DatasetFormatError
        If the parts do not fit together, or if their content is not valid.

    Examples
    --------
    >>> from lemll.datasets import Dataset
    >>> Dataset(X=[[1.0], [2.0]], Y=[[0, 1], [1, 1]], label_names=["sea", "sky"], name="tiny")
    Dataset('tiny', 2 rows, 1 feature (dense), 2 logical labels)
    """

    X: Features
    Y: MatrixLike = None
    D: MatrixLike = None
    feature_names: Sequence[str] = ()
    label_names: Sequence[str] = ()
    name: str = ""
    source: str = ""
    allow_missing: bool = field(default=False, repr=False)
    registered: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        try:
            self._check()
        except (TypeError, ValueError) as error:
            # Every error about the content must name the file.
            raise DatasetFormatError(str(error), file=self.source or None) from error

    def _check(self) -> None:
        if (self.Y is None) == (self.D is None):
            raise ValueError(
                "a Dataset needs either logical labels Y or a distribution D, and got "
                + ("neither" if self.Y is None else "both")
            )
        feature_names = self.feature_names if len(self.feature_names) else _frame_names(self.X)
        label_names = self.label_names if len(self.label_names) else _frame_names(self.labels)
        self._set("X", _features(self.X, self.allow_missing))
        if self.Y is not None:
            labels = check_logical_labels(self.Y, unobserved=True)
            hidden = labels == UNOBSERVED
            self._set("Y", np.where(hidden, np.nan, labels) if hidden.any() else labels)
        else:
            self._set("D", check_distribution(self.D))
        if self.X.shape[0] != self.labels.shape[0]:
            raise ValueError(
                f"X has {self.X.shape[0]} rows and the labels have {self.labels.shape[0]}; "
                "they must describe the same rows"
            )
        (n_rows, n_features), n_labels = self.X.shape, self.labels.shape[1]
        if not (n_rows and n_features and n_labels):
            raise ValueError(
                f"got {_count(n_rows, 'row')}, {_count(n_features, 'feature')} and "
                f"{_count(n_labels, 'label')}; a Dataset needs at least one of each"
            )
        self._set("feature_names", _names(feature_names, n_features, "x", "feature"))
        self._set("label_names", _names(label_names, n_labels, "y", "label"))

    def _set(self, attribute: str, value: object) -> None:
        object.__setattr__(self, attribute, value)

    @property
    def labels(self) -> Array:
        """The labels of the data set: `Y` if it has logical labels, else `D`."""
        labels: Array = self.D if self.Y is None else self.Y
        return labels

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __repr__(self) -> str:
        n_features, n_labels = self.X.shape[1], self.labels.shape[1]
        storage = "CSR" if is_sparse(self.X) else "dense"
        kind = "logical label" if self.Y is not None else "label degree"
        return (
            f"Dataset({self.name!r}, {_count(len(self), 'row')}, "
            f"{_count(n_features, 'feature')} ({storage}), {_count(n_labels, kind)})"
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _features(X: Features, allow_missing: bool) -> Features:
    features: Features = X if is_sparse(X) else np.asarray(X)
    if features.dtype.kind not in "biuf":
        raise ValueError(
            f"X must hold real numbers, got dtype {features.dtype}; encode text columns first"
        )
    if features.ndim != 2:
        raise ValueError(
            f"X must be 2-D (rows x features), got {features.ndim}-D with shape {features.shape}"
        )
    if is_sparse(X):
        features = sparse.csr_array(X)
        if features is X or np.shares_memory(features.data, X.data):
            features = features.copy()
        features.sum_duplicates()
    if features.dtype not in (np.float32, np.float64):
        features = features.astype(np.float64)
    if allow_missing:
        values = features.data if is_sparse(features) else features
        if np.isinf(values).any():
            raise ValueError("X must not hold infinity; only NaN may mark a missing value")
    else:
        check_finite(features)
    return features


def _frame_names(table: object) -> tuple[str, ...]:
    """Return the column names of a data frame, or nothing for other objects."""
    columns = getattr(table, "columns", ())
    # Tables of Arrow also have the attribute `columns`, but it holds the data.
    if not all(isinstance(column, str | int | tuple) for column in columns):
        return ()
    return tuple(str(column) for column in columns)


def _names(names: Sequence[str], count: int, prefix: str, what: str) -> Sequence[str]:
    if len(names) == 0:
        return NumberedNames(prefix, range(count))
    if len(names) != count:
        raise ValueError(
            f"{_count(len(names), what + ' name')} given for {_count(count, 'column')}; "
            "give one name per column"
        )
    return names if isinstance(names, NumberedNames) else tuple(str(name) for name in names)
