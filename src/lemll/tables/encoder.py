"""Encode the columns of a table as numbers, with the transformers of scikit-learn."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from lemll._labels import check_same_rows
from lemll._sparse import row_hashes
from lemll._types import Array, BoolArray, Features, Frame, MatrixLike
from lemll._validation import check_whole, is_sparse
from lemll.exceptions import LemllError, import_extra
from lemll.tables.columns import (
    Column,
    as_dates,
    as_numbers,
    as_texts,
    as_vectors,
    check_readable,
    inspect_columns,
)
from lemll.tables.files import VECTORS

_NO_CATEGORY = "(missing)"
_WORD = r"(?u)[^\W_]+"
_EPOCH = datetime.datetime(1970, 1, 1)
# Numbers made of a date, in the order of their names.
_DATE_PARTS: tuple[Callable[[datetime.datetime], float], ...] = (
    lambda date: (date - _EPOCH) / datetime.timedelta(days=1),
    lambda date: date.month,
    lambda date: date.weekday(),
    lambda date: date.hour,
)


class TableEncoder(TransformerMixin, BaseEstimator):
    """Numbers, vectors, dates, categories and texts of a frame as one matrix of features.

    What a column holds is decided from the training rows, or given as `columns`. Numbers: gaps
    become the median, with a column that marks them, and columns are standardised. Dates become the
    number of days, the month, the weekday and the hour, and are then treated as numbers. Vectors,
    for example embeddings, become one column per number, standardised as well. Categories become
    one column per frequent value; a gap is a value of its own, and unknown values count as rare
    ones. Texts become tf-idf weights of words. Columns without information are ignored: those with
    one value, without values, with ids, or with the number of the row.

    Parameters
    ----------
    columns : sequence of Column, optional
        What the columns hold. Give `inspect_columns` of all rows if parts of them are compared, so
        that all parts are encoded alike; medians, categories and words still come from the training
        rows alone. By default the training rows decide.
    max_categories : int, default=30
        Largest number of columns per category; rare values share the last one.
    max_words : int, default=2000
        Largest number of words per text column.

    Attributes
    ----------
    columns_ : list of Column
        Name, kind and reason of each column.
    transformer_ : ColumnTransformer
        The fitted transformer of scikit-learn.
    row_hashes_ : ndarray of uint64
        Hashes of the encoded training rows, ascending, by which `has_seen` knows them.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names.

    Examples
    --------
    >>> import pandas as pd
    >>> from lemll.tables import TableEncoder
    >>> frame = pd.DataFrame({"width": [1.0, None, 3.0, 5.0], "camera": ["a", "b", "a", "b"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> list(encoder.get_feature_names_out())
    ['width', 'missing width', 'camera a', 'camera b']
    >>> encoder.transform(frame).shape
    (4, 4)
    """

    def __init__(
        self,
        *,
        columns: Sequence[Column] | None = None,
        max_categories: int = 30,
        max_words: int = 2000,
    ) -> None:
        self.columns = columns
        self.max_categories = max_categories
        self.max_words = max_words

    def fit(self, X: Frame, y: MatrixLike = None) -> Self:
        """Decide what the columns hold, and learn to encode them.

        Parameters
        ----------
        X : pandas.DataFrame
            Training rows.
        y : object
            Labels. If they have an index, it must be that of X; they are not used otherwise.

        Returns
        -------
        self
            The fitted encoder.
        """
        check_same_rows(X, y)
        self._fitted(X)
        return self

    def fit_transform(self, X: Frame, y: MatrixLike = None) -> Features:
        """Fit to rows and return their features.

        Parameters
        ----------
        X : pandas.DataFrame
            Training rows.
        y : object
            Labels. If they have an index, it must be that of X; they are not used otherwise.

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features)
            The features.
        """
        # A learner behind this encoder gets arrays and cannot compare the rows any more.
        check_same_rows(X, y)
        return self._fitted(X)

    def _fitted(self, X: Frame) -> Features:
        names = _check_frame(X)
        self.columns_ = self._settled(X, names)
        kinds = [(column.name, column.kind) for column in self.columns_]
        prepared = self._prepare(X)
        numbers = [
            part
            for column in self.columns_
            if column.kind in ("number", "date")
            for part in _parts(column)
        ]
        vectors = [p for c in self.columns_ if c.kind == "vector" for p in _parts(c)]
        categories = [name for name, kind in kinds if kind == "category"]
        words = check_whole("max_words", self.max_words, least=1)
        texts = [
            # One letter or digit can be a word, so that no text is without words.
            (name, TfidfVectorizer(max_features=words, sublinear_tf=True,
                                   token_pattern=_WORD), name)
            for name, kind in kinds
            # Without a word there is nothing to learn from the column in these rows.
            if kind == "text" and any(re.search(_WORD, text) for text in prepared[name])
        ]  # fmt: skip
        one_hot = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=check_whole("max_categories", self.max_categories, least=2),
        )
        imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        parts = [
            ("numbers", make_pipeline(imputer, StandardScaler()), numbers),
            ("vectors", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), vectors),
            ("categories", one_hot, categories),
            *((f"words of {name}", vectorizer, column) for name, vectorizer, column in texts),
        ]
        self.transformer_ = ColumnTransformer([part for part in parts if len(part[2])])
        if not self.transformer_.transformers:
            reasons = "; ".join(f"{c.name}: {c.why}" for c in self.columns_[:5])
            raise LemllError(f"no column can be used as a feature ({reasons}); add columns")
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        # `fit_transform` of scikit-learn rounds tf-idf weights in another way than `transform`.
        features = _stored(self.transformer_.fit(prepared).transform(prepared))
        self.row_hashes_ = np.unique(row_hashes(features))
        return features

    def _settled(self, X: Frame, names: list[str]) -> list[Column]:
        """Return what each column holds: as given, or as the rows show."""
        if self.columns is None:
            return inspect_columns(X)
        given = {column.name: column for column in self.columns}
        odd = next((name for name in (*names, *given) if (name in given) != (name in names)), None)
        if odd is not None:
            where = "the table has no such column" if odd in given else "columns does not have it"
            raise LemllError(
                f"columns must describe the columns of the table, but {where}: {odd!r}; pass "
                "inspect_columns of the table"
            )
        return [given[name] for name in names]

    def transform(self, X: Frame) -> Features:
        """Encode rows.

        Parameters
        ----------
        X : pandas.DataFrame
            Rows with the columns of the training rows, in any order. Other columns are ignored.

        Returns
        -------
        ndarray or csr_array of shape (n_rows, n_features)
            The features.
        """
        check_is_fitted(self)
        given = set(_check_frame(X))
        needed = [column.name for column in self.columns_ if column.kind != "ignored"]
        absent = [name for name in needed if name not in given]
        if absent:
            how = "save a .npy file beside it" if absent[0] == VECTORS else "empty if unknown"
            raise LemllError(
                f"the table has no column {absent[0]!r}, which the model was trained with "
                f"({len(absent)} of {len(needed)} columns are absent); add it, {how}"
            )
        return _stored(self.transformer_.transform(self._prepare(X)))

    def has_seen(self, X: Features) -> BoolArray:
        """Tell which encoded rows have the features of a training row.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_rows, n_features)
            Encoded rows, of `transform`.

        Returns
        -------
        ndarray of shape (n_rows,), bool
            Whether a training row has equal features.
        """
        check_is_fitted(self)
        return np.isin(row_hashes(X), self.row_hashes_)

    def get_feature_names_out(self, input_features: MatrixLike = None) -> Array:
        """Return the names of the encoded features.

        Parameters
        ----------
        input_features : object
            Ignored. Present for compatibility with scikit-learn.

        Returns
        -------
        ndarray of str
            Names such as "camera Nikon" and "caption: sea".
        """
        return np.array([name for _, name in self._features()], dtype=object)

    def feature_owners(self) -> list[str]:
        """Return, for each encoded feature, the column that it comes from.

        Returns
        -------
        list of str
            Names of columns, in the order of `get_feature_names_out`.
        """
        return [owner for owner, _ in self._features()]

    def _features(self) -> list[tuple[str, str]]:
        """Return the column and the name of each encoded feature."""
        check_is_fitted(self)
        parts = {part: column.name for column in self.columns_ for part in _parts(column)}
        found: list[tuple[str, str]] = []
        for title, fitted, columns in self.transformer_.transformers_:
            if title == "vectors":
                found += [(parts[name], name) for name in columns]
            elif title == "numbers":
                indicated = [columns[j] for j in fitted[0].indicator_.features_]
                found += [(parts[name], name) for name in columns]
                found += [(parts[name], f"missing {name}") for name in indicated]
            elif title == "categories":
                names = fitted.get_feature_names_out(np.asarray(columns, dtype=object))
                pairs = zip(columns, fitted._n_features_outs, strict=True)
                owners = [column for column, count in pairs for _ in range(count)]
                found += [
                    (owner, f"{owner} {name.removeprefix(f'{owner}_')}")
                    for owner, name in zip(owners, names, strict=True)
                ]
            elif title != "remainder":  # texts without a word in the training rows
                found += [(columns, f"{columns}: {w}") for w in fitted.get_feature_names_out()]
        return found

    def _prepare(self, X: Frame) -> Frame:
        """Return a frame whose columns have one type each."""
        pandas = import_extra("pandas", "tables", "Encoding a table")
        prepared: dict[str, MatrixLike] = {}
        for column in self.columns_:
            if column.kind == "ignored":
                continue
            cells = X[column.name]
            if column.kind == "number":
                values = as_numbers(cells)
                check_readable(column, cells, np.isfinite(values))
                made = [values]
            elif column.kind == "vector":
                rows = as_vectors(cells, column.width)
                check_readable(column, cells, np.isfinite(rows[:, 0]))
                made = list(rows.T)
            elif column.kind == "date":
                made = self._date_parts(column, cells)
            else:
                made = [as_texts(cells, _NO_CATEGORY if column.kind == "category" else "")]
            names = _parts(column)
            if prepared.keys() & set(names):
                raise LemllError(
                    f"the parts of {column.name!r} have the name of a column, {names[0]!r}; "
                    "rename it"
                )
            prepared.update(zip(names, made, strict=True))
        return pandas.DataFrame(prepared)

    def _date_parts(self, column: Column, cells: MatrixLike) -> list[Array]:
        dates = as_dates(cells, column)
        check_readable(column, cells, np.array([date is not None for date in dates]))
        return [
            np.array([np.nan if date is None else part(date) for date in dates])
            for part in _DATE_PARTS[: len(_parts(column))]
        ]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _check_frame(X: Frame) -> list[str]:
    if not hasattr(X, "columns") or not hasattr(X, "iloc"):
        raise LemllError(
            f"a table must be a pandas frame, got {type(X).__name__}; read a file with "
            "lemll.tables.read_table, or make one with pandas.DataFrame"
        )
    names = list(X.columns)
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None or len(set(names)) < len(names):
        raise LemllError(
            "the columns of a table must have different text names, got "
            f"{', '.join(map(repr, names[:5]))}; rename them"
        )
    return names


def _parts(column: Column) -> list[str]:
    """Return the names of the parts of a date or a vector; other columns are one part."""
    if column.kind == "vector":
        return [f"{column.name} {k + 1}" for k in range(column.width)]
    if column.kind != "date":
        return [column.name]
    parts = ["days", "month", "weekday"] + (["hour"] if column.has_hours else [])
    return [f"{column.name} ({part})" for part in parts]


def _stored(features: Features) -> Features:
    return sparse.csr_array(features) if is_sparse(features) else np.asarray(features)
