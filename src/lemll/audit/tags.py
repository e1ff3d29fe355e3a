"""Read tags and probabilities in the forms that users have, cleanlab's among them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lemll._labels import FrameKind, code_labels, is_frame, read_frame, spelling_key
from lemll._types import BoolArray, FloatArray, LabelArray, MatrixLike
from lemll._validation import UNOBSERVED, check_logical_labels, is_sparse

# More classes in lists than this would be a mistake: one number that is no class.
_MOST_CLASSES = 1_000_000


class TagMatrix(NamedTuple):
    """Tags as a matrix.

    Attributes
    ----------
    Y : ndarray of shape (n_samples, n_labels), int8
        0/1; unknown cells are -1.
    names : tuple of str
        The names of the labels.
    frame : FrameKind or None
        The library of the frame, if the tags were a frame.
    """

    Y: LabelArray
    names: tuple[str, ...]
    frame: FrameKind | None

    @property
    def known(self) -> int:
        """Number of known cells."""
        return int((self.Y != UNOBSERVED).sum())


def read_tags(
    labels: MatrixLike, *, n_labels: int | None = None, names: Sequence[str] | None = None
) -> TagMatrix:
    """Read tags: a 0/1 matrix, a frame, or lists of the tags of each row.

    Parameters
    ----------
    labels : array-like, sparse matrix, frame or list of lists
        A 0/1 matrix (n, l), in which NaN, None, ``pandas.NA`` and masked cells are unknown. Or, as
        in cleanlab, one list per row with the numbers of its classes, 0 to l - 1. Or one list per
        row with the names of its tags. Nested lists of one length >= 2 that hold only 0 and 1 are a
        matrix.
    n_labels : int, optional
        Number of labels, for lists; by default the largest number plus one.
    names : sequence of str, optional
        Names of the labels, in the order of the columns or class numbers.

    Returns
    -------
    TagMatrix
        The tags.
    """
    rows = _as_lists(labels)
    if rows is not None:
        return TagMatrix(*_from_lists(rows, n_labels, names), None)
    if not is_frame(labels) and not is_sparse(labels) and np.ndim(labels) != 2:
        raise ValueError(
            f"Y must have one column per label, got {np.ndim(labels)}-D tags; pass a 0/1 matrix "
            "(rows x labels), or one list per row with its tags, for example [[0, 2], [], [1]]."
        )
    frame, found = None, tuple(f"y{j}" for j in range(np.shape(labels)[1]))
    if is_frame(labels):
        Y, coding = code_labels(labels, unobserved=True)
        frame, found = coding.frame, coding.names
    else:
        # A matrix of one column is one label, also where scikit-learn would see classes.
        Y = check_logical_labels(labels, unobserved=True)
    if not (Y != UNOBSERVED).any():
        raise ValueError("no cell of Y is known; there is nothing to audit.")
    if names is not None:
        found = _checked_names(names, Y.shape[1])
    return TagMatrix(Y, found, frame)


def spelled_otherwise(tags: TagMatrix) -> BoolArray:
    """Return which tags a row lacks, but has in another case, or with its accents apart.

    Parameters
    ----------
    tags : TagMatrix
        The tags.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Such a tag is not missing.
    """
    found = np.zeros(tags.Y.shape, dtype=bool)
    alike: dict[str, list[int]] = {}
    for j, name in enumerate(tags.names):
        alike.setdefault(spelling_key(name), []).append(j)
    for group in alike.values():
        if len(group) > 1:
            given = (tags.Y[:, group] == 1).any(axis=1)
            found[:, group] = given[:, None] & (tags.Y[:, group] == 0)
    return found


def _as_lists(labels: MatrixLike) -> list[list[object]] | None:
    """Return one list per row, or None if the tags are a matrix."""
    objects = isinstance(labels, np.ndarray) and labels.dtype.kind == "O" and labels.ndim == 1
    series = hasattr(labels, "to_list") and not is_frame(labels)
    if not (isinstance(labels, (list, tuple)) or objects or series):
        return None
    given = labels.to_list() if series else list(labels)
    kinds = (list, tuple, set, frozenset, np.ndarray)
    gap = next((number for number, row in enumerate(given) if row is None), None)
    if gap is not None and all(row is None or isinstance(row, kinds) for row in given):
        raise ValueError(
            f"row {gap} of Y is None, but lists of tags have no unknown rows; pass a 0/1 matrix "
            "with NaN where nobody looked."
        )
    if not given or not all(isinstance(row, kinds) for row in given):
        return None
    rows = [list(row) for row in given]
    if any(isinstance(tag, (list, tuple, np.ndarray)) for row in rows for tag in row):
        return None
    lengths = {len(row) for row in rows}
    if len(lengths) == 1 and min(lengths) >= 2 and not isinstance(given[0], (set, frozenset)):
        # Two different classes of 0 and 1 would be all classes there are, in every row.
        flat = [tag for row in rows for tag in row]
        if all(_is_cell(tag) for tag in flat):
            return None
    return rows


def _is_cell(tag: object) -> bool:
    """Whether a value may be a cell of a 0/1 matrix: 0, 1, or unknown."""
    if tag is None:
        return True
    return isinstance(tag, numbers.Real) and (tag in (0, 1) or math.isnan(tag))


def _from_lists(
    rows: list[list[object]], n_labels: int | None, names: Sequence[str] | None
) -> tuple[LabelArray, tuple[str, ...]]:
    tags = {tag for row in rows for tag in row}
    if tags and all(isinstance(tag, str) for tag in tags):
        known = tuple(sorted(map(str, tags))) if names is None else _checked_names(names)
        strange = sorted(map(str, tags - set(known)))
        if strange:
            raise ValueError(
                f"Y holds the tag {strange[0]!r}, which is not among the label names; add it to "
                "label_names, or leave label_names out."
            )
    else:
        known = _class_names(tags, n_labels, names)
    place = {name: j for j, name in enumerate(known)}
    Y = np.zeros((len(rows), len(known)), dtype=np.int8)
    for i, row in enumerate(rows):
        for tag in row:
            # `_class_names` has checked that what is no name is a number.
            Y[i, place[tag] if isinstance(tag, str) else int(tag)] = 1  # type: ignore[call-overload]
    return Y, known


def _class_names(
    tags: set[object], n_labels: int | None, names: Sequence[str] | None
) -> tuple[str, ...]:
    for tag in tags:
        if isinstance(tag, bool) or not isinstance(tag, numbers.Integral) or tag < 0:
            raise ValueError(
                f"the lists of Y must hold class numbers >= 0 or tag names, got {tag!r}; pass "
                "unknown cells as NaN in a 0/1 matrix."
            )
    # The loop has checked that all are numbers, which the type checker does not see.
    largest = max((int(tag) for tag in tags), default=-1)  # type: ignore[call-overload]
    if largest < 0 and n_labels is None and names is None:
        raise ValueError(
            "no row of Y has a tag, so the labels are unknown; pass label_names=, or a 0/1 matrix."
        )
    given = None if names is None else _checked_names(names)
    if given is not None:
        n_labels = len(given)
    n_labels = largest + 1 if n_labels is None else n_labels
    if largest >= n_labels or not n_labels or n_labels > _MOST_CLASSES:
        raise ValueError(
            f"the classes in the lists of Y must be 0 to {n_labels - 1}, got {largest}; number the "
            "classes from 0, and give one column of pred_probs (or one name) per class."
        )
    return given if given is not None else tuple(f"y{j}" for j in range(n_labels))


def _checked_names(names: Sequence[str], n_labels: int | None = None) -> tuple[str, ...]:
    if isinstance(names, str):
        raise ValueError(
            f"label_names must be a list of names, got the text {names!r}; pass one name "
            f"per label, or [{names!r}] for one label."
        )
    if n_labels is not None and len(names) != n_labels:
        raise ValueError(f"label_names must have one name per label, {n_labels}, got {len(names)}.")
    found = tuple(str(name) for name in names)
    if len(set(found)) < len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise ValueError(f"label_names must differ, got {twice!r} twice; rename one of them.")
    return found


def read_probabilities(pred_probs: MatrixLike, tags: TagMatrix) -> FloatArray:
    """Check probabilities that the user brings.

    Parameters
    ----------
    pred_probs : array-like, sparse matrix or frame of shape (n_samples, n_labels)
        Probability of each label in each row, by models that did not see the row.
    tags : TagMatrix
        The tags.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        A new array.
    """
    if is_frame(pred_probs):
        values, kind = read_frame(pred_probs)
        if tags.frame is not None and kind.names != tags.names:
            raise ValueError(
                "the columns of pred_probs must be the labels in the order of Y, "
                f"{', '.join(tags.names[:3])}, ..., got {', '.join(kind.names[:3])}, ...; select "
                "them with pred_probs[list(Y.columns)]."
            )
    else:
        values = pred_probs.toarray() if is_sparse(pred_probs) else np.asarray(pred_probs)
    if values.shape != tags.Y.shape:
        raise ValueError(
            f"pred_probs must have one row per row of Y and one column per label, {tags.Y.shape}, "
            f"got {values.shape}; the columns are independent probabilities of the labels."
        )
    try:
        p = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        p = np.full(values.shape, np.nan)
    wrong = ~((p >= 0) & (p <= 1))
    if wrong.any():
        i, j = (int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"pred_probs must be from 0 to 1, got {values[i, j]} in row {i}, label {j}; turn "
            "scores into probabilities first."
        )
    return p
