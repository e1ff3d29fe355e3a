"""Convert the labels of the user to a 0/1 matrix, and predictions back to the same form."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from lemll._types import (
    Array,
    Features,
    FloatArray,
    Frame,
    LabelArray,
    MatrixLike,
    Settings,
    SettingsView,
)
from lemll._validation import UNOBSERVED, check_logical_labels, is_sparse, read_degrees, warn_caller
from lemll.exceptions import import_extra

# Characters that users put between the tags of one row.
SEPARATORS = (";", "|", ",")
# Estimators with the method `fit_degrees`; a test compares this with the classes.
DEGREE_LEARNERS = "LEMLL, MSVRClassifier or LEMLLEnhancer"
# A smaller confidence is refused.
SMALLEST_WEIGHT = 1e-9


_PURPOSE = "Taking labels from a frame"


def spelling_key(tag: str) -> str:
    """Return what the spellings of a tag in small and capital letters have in common."""
    # A letter with an accent is one sign or two, and case folding may take it apart.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", tag).casefold())


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCoding:
    """The relation between the labels of the caller and the 0/1 matrix.

    Attributes
    ----------
    classes : ndarray
        For a 1-D target, its classes. For a label matrix, the numbers of the labels, 0 to l - 1,
        as in the multi-label classifiers of scikit-learn.
    names : tuple of str
        The names of the labels: the columns of a frame, ``y0, y1, ...`` for an array, or the
        classes of a 1-D target.
    multilabel : bool
        Whether the caller gave a label matrix.
    sparse : bool
        Whether it was sparse.
    frame : FrameKind or None
        The library and the columns of the frame, or None for other labels.
    """

    classes: MatrixLike
    names: tuple[str, ...]
    multilabel: bool
    sparse: bool = False
    frame: FrameKind | None = None

    def scores(self, scores: Array) -> Array:
        """Return scores in the shape that scikit-learn expects: 1-D for a binary 1-D target."""
        return scores[:, 0] if not self.multilabel and len(self.classes) <= 2 else scores

    def labels(
        self, scores: Array, X: Features = None, thresholds: float | FloatArray = 0.0
    ) -> MatrixLike:
        """Convert scores (n, l) to predictions in the form of the labels of the caller.

        A label is predicted if its score is above its threshold. A frame gets the index of X. If X
        has no index, the result is an array, because a frame with another index would be joined to
        the wrong rows.
        """
        return self.labels_of_parts([scores], X, thresholds)

    def labels_of_parts(
        self, parts: Iterable[Array], X: Features, thresholds: float | FloatArray
    ) -> MatrixLike:
        """Convert the scores of parts of the rows, one after the other, as `labels` does.

        Sparse predictions never exist as one dense array.
        """
        decided = [self._decided(scores, thresholds) for scores in parts]
        if self.multilabel and self.sparse:
            return sparse.csr_array(sparse.vstack(decided, format="csr"))
        labels = decided[0] if len(decided) == 1 else np.concatenate(decided)
        frame = self.frame
        if frame is not None and (row_index(X) is not None or not frame.has_index):
            return frame.make(labels, X)
        return labels

    def _decided(self, scores: Array, thresholds: float | FloatArray) -> MatrixLike:
        if self.multilabel:
            relevant = scores > thresholds
            return (
                sparse.csr_array(relevant, dtype=np.int64)
                if self.sparse
                else (relevant.astype(np.int64))
            )
        if len(self.classes) == 1:
            return np.repeat(self.classes, len(scores))
        if len(self.classes) == 2:
            return self.classes[(scores[:, 0] > 0).astype(np.intp)]
        return self.classes[scores.argmax(axis=1)]


def code_labels(
    y: MatrixLike,
    *,
    one_per_class: bool = False,
    unobserved: bool = False,
    label_weight: MatrixLike = None,
) -> tuple[LabelArray, LabelCoding]:
    """Convert the labels of the caller to a 0/1 matrix.

    Parameters
    ----------
    y : array-like, sparse matrix or frame
        A label matrix (n, l) of 0/1. Or a 1-D target, as in the classifiers of scikit-learn: two
        classes become one label; more than two classes become one label per class.
    one_per_class : bool, default=False
        Whether two classes also become two labels.
    unobserved : bool, default=False
        Whether cells of a label matrix may be unknown: NaN, None, ``pandas.NA`` or masked.
    label_weight : array-like or sparse matrix of shape (n_samples, n_labels), optional
        Confidences. Cells of a label matrix with the confidence 0 may hold any value. The
        confidences themselves are checked by `weigh_cells`.

    Returns
    -------
    Y : ndarray of shape (n_samples, n_labels), int8
        Logical labels, -1 in unknown cells.
    coding : LabelCoding
        The information that converts predictions back.
    """
    frame = None
    given: MatrixLike = y
    if is_frame(y):
        given, frame = read_frame(y)
    elif not is_sparse(y) and not isinstance(y, np.ma.MaskedArray):
        _refuse_tag_lists(y)
        given = np.asarray(y)
    given = _without_ignored(given, label_weight)
    if given.ndim != 2 or (frame is None and _is_column_of_classes(given)):
        if isinstance(given, np.ma.MaskedArray) and np.ma.getmaskarray(given).any():
            raise ValueError(
                "a 1-D target must not have masked cells; leave these rows out, or pass a label "
                "matrix, where a masked cell means that nobody observed it."
            )
        return _code_target(column_or_1d(given, warn=True), one_per_class)
    remedy = (
        f", or learn from degrees between 0 and 1 with fit_degrees of {DEGREE_LEARNERS}; "
        "cross_val_predict of scikit-learn numbers unknown cells as 2: to predict unseen rows with "
        "unknown cells, use out_of_fold_proba_ of TagPredictor, or a loop over the splits"
    )
    Y = check_logical_labels(given, unobserved=unobserved, remedy=remedy)
    return Y, _matrix_coding(given, frame)


def _matrix_coding(given: MatrixLike, frame: FrameKind | None) -> LabelCoding:
    numbers = np.arange(given.shape[1])
    return LabelCoding(
        classes=numbers,
        names=tuple(f"y{j}" for j in numbers) if frame is None else frame.names,
        multilabel=True,
        sparse=is_sparse(given),
        frame=frame,
    )


def code_degrees(
    degrees: MatrixLike, label_weight: MatrixLike, *, effect: str = "are never predicted"
) -> tuple[FloatArray, FloatArray | None, LabelCoding]:
    """Read labels that may also be relevant in part.

    Parameters
    ----------
    degrees : array-like, sparse matrix or frame of shape (n_samples, n_labels)
        Degrees from 0 (not relevant) to 1 (relevant). NaN, None, ``pandas.NA`` and masked cells
        mean that nobody observed the cell.
    label_weight : array-like or sparse matrix of shape (n_samples, n_labels), or None
        Confidences in [0, 1]; 0 means that the cell is unknown.
    effect : str, default="are never predicted"
        As in `weigh_cells`.

    Returns
    -------
    D : ndarray of shape (n_samples, n_labels)
        The degrees, 0 in unknown cells.
    weight : ndarray of shape (n_samples, n_labels) or None
        The weights of the cells, 0 in unknown cells. None if all weights are 1.
    coding : LabelCoding
        The information that converts predictions back.
    """
    frame = None
    given: MatrixLike = degrees
    if is_frame(degrees):
        given, frame = read_frame(degrees)
    elif not is_sparse(degrees) and not isinstance(degrees, np.ma.MaskedArray):
        given = np.asarray(degrees)
    given = _without_ignored(given, label_weight)
    values = read_degrees(given)
    coding = _matrix_coding(given if is_sparse(given) else values, frame)
    hidden = np.where(np.isnan(values), UNOBSERVED, 0).astype(np.int8)
    _, weight = weigh_cells(hidden, label_weight, coding, effect=effect)
    return np.nan_to_num(values, nan=0.0), weight, coding


def weigh_cells(
    Y: LabelArray,
    label_weight: MatrixLike,
    coding: LabelCoding,
    *,
    effect: str = "are never predicted",
) -> tuple[LabelArray, FloatArray | None]:
    """Combine unknown cells with the confidences of the user.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels), int8
        Logical labels, -1 in unknown cells.
    label_weight : array-like or sparse matrix of shape (n_samples, n_labels), or None
        Confidences in [0, 1]; 0 means that the cell is unknown.
    coding : LabelCoding
        The names of the labels, for the messages.
    effect : str, default="are never predicted"
        For the warning: what happens to labels without an observed cell.

    Returns
    -------
    Y : ndarray of shape (n_samples, n_labels), int8
        The labels, -1 in cells without a weight.
    weight : ndarray of shape (n_samples, n_labels) or None
        The weights of the cells, 0 in unknown cells. None if all weights are 1.
    """
    hidden = Y == UNOBSERVED
    if label_weight is None:
        if not hidden.any():
            return Y, None
        weight = (~hidden).astype(np.float64)
    else:
        weight = np.where(hidden, 0.0, _confidences(label_weight, hidden, coding))
        if (weight == 1).all():
            return Y, None
        Y = np.where(weight > 0, Y, np.int8(UNOBSERVED))
    seen = (weight > 0).any(axis=0)
    if not seen.any():
        raise ValueError("no cell of y is observed; at least one label needs an observed row.")
    if not seen.all():
        unseen = [coding.names[j] for j in np.flatnonzero(~seen)[:5]]
        warn_caller(
            f"labels without an observed cell {effect}: {', '.join(unseen)} "
            f"({int((~seen).sum())} of {len(seen)}); leave them out, or tag some rows.",
            UserWarning,
        )
    _warn_only_relevant(Y, weight, coding.names)
    return Y, weight


def _warn_only_relevant(Y: LabelArray, weight: FloatArray, names: Sequence[str]) -> None:
    """Warn about labels that are relevant wherever they are known, and unknown elsewhere."""
    known = weight > 0
    only = known.any(axis=0) & ~known.all(axis=0) & ((Y == 1) | ~known).all(axis=0)
    if only.any():
        found = [names[j] for j in np.flatnonzero(only)[:5]]
        warn_caller(
            f"labels whose known cells are all relevant: {', '.join(found)} ({int(only.sum())} of "
            f"{len(only)}); nothing tells where they are not relevant, so they look relevant in "
            "every row; if an empty cell means 'not relevant', write 0 there.",
            UserWarning,
        )


def _without_ignored(given: MatrixLike, label_weight: MatrixLike) -> MatrixLike:
    """Mask the cells of a label matrix with the confidence 0, so that their values are not read.

    `given` is an array or a sparse matrix, and is not changed. Confidences with the wrong shape or
    type mask nothing: `weigh_cells` refuses them.
    """
    if label_weight is None or given.ndim != 2:
        return given
    weight = _plain_weights(label_weight)
    if weight.shape != given.shape:
        return given
    ignored = np.asarray(weight == 0, dtype=bool)
    if not ignored.any():
        return given
    if is_sparse(given):
        entries = given.tocoo()
        kept = ~ignored[entries.row, entries.col]
        where = (entries.row[kept], entries.col[kept])
        return sparse.csr_array((entries.data[kept], where), shape=given.shape)
    return np.ma.MaskedArray(np.asarray(given), mask=ignored | np.ma.getmaskarray(given))


def _plain_weights(label_weight: MatrixLike) -> Array:
    """Return confidences as an array that is not checked; masked cells have the confidence 0."""
    if isinstance(label_weight, np.ma.MaskedArray):
        label_weight = label_weight.filled(0)
    return label_weight.toarray() if is_sparse(label_weight) else np.asarray(label_weight)


def labels_for_folds(Y: LabelArray) -> MatrixLike:
    """Return coded labels as splitters of lemll accept them: unknown cells are masked."""
    return np.ma.MaskedArray(Y, mask=Y == UNOBSERVED) if (Y == UNOBSERVED).any() else Y


def partial_labels_error(
    name: str, weight: FloatArray, kind: str, able: Sequence[str]
) -> ValueError:
    """Return the error of an estimator that cannot use labels with unknown cells.

    Parameters
    ----------
    name : str
        Name of its class.
    weight : ndarray of shape (n_samples, n_labels)
        The weights of the cells.
    kind : str
        What to use instead, for example "a learner".
    able : sequence of str
        The names of those that can.

    Returns
    -------
    ValueError
        To be raised.
    """
    return ValueError(
        f"{name} needs all labels, but {int((weight < 1).sum())} cells of y are unknown or not "
        f"certain; use {kind} that can learn from such labels ({', '.join(able)}), or fill the "
        "cells."
    )


def _confidences(
    label_weight: MatrixLike, hidden: npt.NDArray[np.bool_], coding: LabelCoding
) -> FloatArray:
    """Return the confidences of the user as an array, or refuse them; hidden cells are free."""
    shape = hidden.shape
    if is_frame(label_weight):
        label_weight, kind = read_frame(label_weight)
        if coding.frame is not None and kind.names != coding.names:
            raise ValueError(
                "the columns of label_weight must be the labels in the order of y, "
                f"{', '.join(coding.names[:3])}, ..., got {', '.join(kind.names[:3])}, ...; select "
                "them with label_weight[list(y.columns)]."
            )
    given = _plain_weights(label_weight)
    if given.shape != shape:
        raise ValueError(
            f"label_weight must have the shape of y, {shape}, got {given.shape}; give one "
            "confidence per row and label."
        )
    try:
        values = given.astype(np.float64)
    except (TypeError, ValueError):
        values = np.full(shape, np.nan)
    # The square of a smaller weight would lose its digits, also in single precision.
    wrong = ~(hidden | (values == 0) | ((values >= SMALLEST_WEIGHT) & (values <= 1)))
    if wrong.any():
        raise ValueError(
            "label_weight must hold confidences from 0 (not observed) to 1 (certain), and none "
            f"between 0 and {SMALLEST_WEIGHT:g}; got {given[wrong].flat[0]}."
        )
    return np.asarray(values)


def _is_column_of_classes(y: MatrixLike) -> bool:
    # The classifiers of scikit-learn also accept a multiclass target as a column, with a warning.
    if is_sparse(y) or y.shape[1] != 1 or y.dtype.kind == "O":
        return False
    known = y.compressed() if isinstance(y, np.ma.MaskedArray) else np.ravel(y)
    return len(np.unique(known[~np.isnan(known)] if known.dtype.kind == "f" else known)) > 2


def _code_target(y: Array, one_per_class: bool) -> tuple[LabelArray, LabelCoding]:
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    _refuse_joined_tags(classes)
    names = tuple(str(name) for name in classes)
    if len(classes) <= 2 and not one_per_class:
        coding = LabelCoding(classes=classes, names=names[-1:], multilabel=False)
        return codes.astype(np.int8).reshape(-1, 1), coding
    coding = LabelCoding(classes=classes, names=names, multilabel=False)
    return (codes[:, None] == np.arange(len(classes))).astype(np.int8), coding


def _refuse_tag_lists(y: MatrixLike) -> None:
    """Refuse rows that are lists of tags: NumPy would only say that their shape is wrong."""
    objects = getattr(getattr(y, "dtype", None), "kind", "") == "O" and y.ndim == 1
    if not isinstance(y, (list, tuple)) and not objects:
        return
    rows = [row for row in y if isinstance(row, (list, tuple, set, frozenset))]
    tagged = next((row for row in rows if row), ())
    # Lists of numbers are a matrix if all of them are equally long.
    matrix = len({len(row) for row in rows}) <= 1 and not isinstance(tagged, (set, frozenset))
    if tagged and not (matrix and not any(isinstance(tag, str) for tag in tagged)):
        raise ValueError(
            f"y holds lists of tags, got {str(tagged)[:40]}; make a 0/1 matrix of them with "
            "sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)."
        )


def _refuse_joined_tags(classes: Array) -> None:
    """Refuse text with separators: all tags of a row in one string would become one class."""
    for name in classes:
        found = [sign for sign in SEPARATORS if isinstance(name, str) and sign in name]
        if found:
            raise ValueError(
                f"y looks like several tags in one string, got {str(name)[:40]!r}; make a 0/1 "
                "matrix of them with sklearn.preprocessing.MultiLabelBinarizer().fit_transform("
                f"[row.split({found[0]!r}) for row in y]), or, if these are single classes, "
                "number them with sklearn.preprocessing.LabelEncoder."
            )


@dataclass(frozen=True, slots=True)
class FrameKind:
    """The library of a frame and the names of its columns."""

    implementation: Any
    names: tuple[str, ...]

    @property
    def has_index(self) -> bool:
        """Whether frames of this library have an index."""
        return bool(self.implementation.is_pandas_like())

    def __getstate__(self) -> Settings:
        # A model file holds plain data, and the library is a member of an enumeration.
        return {"implementation": self.implementation.value, "names": list(self.names)}

    def __setstate__(self, state: SettingsView) -> None:
        narwhals = import_extra("narwhals", "frames", _PURPOSE)
        object.__setattr__(self, "implementation", narwhals.Implementation(state["implementation"]))
        object.__setattr__(self, "names", tuple(state["names"]))

    def make(self, values: Array, X: Features) -> Frame:
        """Return `values` (n, l) as a frame of this library, with the index of X if possible."""
        narwhals = import_extra("narwhals", "frames", _PURPOSE)
        frame = narwhals.from_numpy(
            np.ascontiguousarray(values), schema=list(self.names), backend=self.implementation
        ).to_native()
        index = row_index(X)
        if self.has_index and index is not None:
            frame.index = index
        return frame


def row_index(X: Features) -> MatrixLike:
    """Return the index of a pandas frame or series, or None for anything else."""
    index = getattr(X, "index", None)
    return index if hasattr(index, "equals") else None


def check_same_order(Y_true: MatrixLike, given: MatrixLike, name: str) -> None:
    """Refuse a frame with the columns of another one in another order.

    Parameters
    ----------
    Y_true, given : object
        Arguments of a metric. Other names than those of Y_true say nothing and are not refused.
    name : str
        Name of `given`, for the message.
    """
    ours, theirs = column_names(Y_true), column_names(given)
    if ours == theirs or set(ours) != set(theirs) or len(set(ours)) < len(ours):
        return
    raise ValueError(
        f"the columns of {name} must have the order of Y_true, {', '.join(map(str, ours[:3]))}, "
        f"..., got {', '.join(map(str, theirs[:3]))}, ...; select them in the order of Y_true."
    )


def column_names(table: MatrixLike) -> list[object]:
    """Return the names of the columns of a frame; none for anything else."""
    if not is_frame(table):
        return []
    # A table of pyarrow has its arrays in `columns`.
    return list(table.column_names if hasattr(table, "column_names") else table.columns)


def check_same_rows(X: Features, y: MatrixLike, name: str = "y") -> None:
    """Refuse labels whose index differs from the index of the features, also in its order.

    Parameters
    ----------
    X, y : object
        Features and labels of the caller. If one of them has no index, nothing is compared, and
        rows are matched by their order.
    name : str, default="y"
        Name of `y`, for the message.
    """
    ours, theirs = row_index(X), row_index(y)
    if ours is None or theirs is None or len(ours) != len(theirs) or ours.equals(theirs):
        return
    row = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
    raise ValueError(
        f"the index of {name} must be that of X, but row {row} is {ours[row]!r} in X and "
        f"{theirs[row]!r} in {name}; align them with {name}.loc[X.index], or, if the rows belong "
        f"together as they are, pass {name}.set_axis(X.index)."
    )


def is_frame(y: MatrixLike) -> bool:
    """Return whether `y` is a table with named columns and not an array."""
    return hasattr(y, "columns") and not is_sparse(y) and not isinstance(y, np.ndarray)


def read_frame(y: MatrixLike) -> tuple[Array, FrameKind]:
    """Convert a frame to an array, and return what is needed to build such a frame again.

    Parameters
    ----------
    y : frame
        A frame of pandas, polars, pyarrow or another library that narwhals supports.

    Returns
    -------
    values : ndarray of shape (n_rows, n_columns)
        Its cells.
    kind : FrameKind
        Its library and column names.
    """
    narwhals = import_extra("narwhals", "frames", _PURPOSE)
    frame = narwhals.from_native(y, eager_only=True)
    names = tuple(frame.columns)
    odd = [name for name in names if not isinstance(name, str)]
    if odd:
        raise ValueError(
            f"label columns must have text names, got {odd[0]!r} of type {type(odd[0]).__name__}; "
            "rename them, for example with Y.columns = Y.columns.astype(str)."
        )
    return np.asarray(y), FrameKind(frame.implementation, names)


def fill_labels(Y: Array, weight: FloatArray | None) -> FloatArray:
    """Return labels in which unknown cells hold the frequency of their label.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1, or degrees from 0 to 1. Unknown cells may hold any value.
    weight : ndarray of shape (n_samples, n_labels) or None
        How sure each cell is, 0 to 1; None means that all are certain.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Values from 0 to 1. A cell of the weight c is the mean of its label, with the weight c, and
        of the frequency.
    """
    labels = known_labels(Y, weight)
    if weight is None:
        return labels
    total = weight.sum(axis=0)
    relevant = (weight * labels).sum(axis=0)
    frequency = np.divide(relevant, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(weight * labels + (1 - weight) * frequency)


def known_labels(Y: Array, weight: FloatArray | None) -> FloatArray:
    """Return the labels as numbers, with 0 in unknown cells."""
    known = Y > 0 if weight is None else (Y > 0) & (weight > 0)
    return np.where(known, Y, 0).astype(np.float64)
