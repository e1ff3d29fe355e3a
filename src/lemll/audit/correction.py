"""Apply suggestions to tags, and list what changed."""

from __future__ import annotations

import codecs
import numbers
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lemll._files import without_guard
from lemll._labels import row_index
from lemll._types import Array, BoolArray, Frame, IndexArray, LabelArray, MatrixLike
from lemll._validation import UNOBSERVED, check_number, warn_caller
from lemll.audit.tags import TagMatrix, read_tags
from lemll.exceptions import LemllError, import_extra

_NEEDED = ("row", "label", "given", "suggested")
_NUMBERS = ("row", "given", "suggested")
_DECISIONS = ("accept", "reject", "")


class Correction(NamedTuple):
    """Tags after suggestions were applied.

    Attributes
    ----------
    Y : ndarray of shape (n_samples, n_labels) or frame
        The corrected tags: a frame if the tags were a frame, else an array; NaN in unknown cells.
    changes : pandas.DataFrame
        The issues that were applied, and no others.
    expected_precision : float
        Mean score of the changes that were chosen by their scores; NaN if there are none.
    label_names : tuple of str
        The names of the columns of Y.
    """

    Y: MatrixLike
    changes: Frame
    expected_precision: float
    label_names: tuple[str, ...]

    def __str__(self) -> str:
        kinds = self.changes["kind"].value_counts() if "kind" in self.changes else {}
        removed, added = kinds.get("wrong", 0), kinds.get("missing", 0)
        return f"{len(self.changes)} cells changed: {removed} tags removed, {added} added"


def read_decisions(path: str | Path) -> Frame:
    """Read the decisions that the page of an audit exported, or the CSV file of an audit.

    Parameters
    ----------
    path : str or Path
        The CSV file.

    Returns
    -------
    pandas.DataFrame
        The rows, for `correct`. Names that begin with an apostrophe, so that no spreadsheet takes
        them for a formula, have lost it.
    """
    pandas = import_extra("pandas", "tables", "Reading decisions")
    if not Path(path).exists():
        raise LemllError(f"there is no file {path}; export the decisions from the page")
    text = {"label": str, "id": str, "fingerprint": str, "decision": str}
    try:
        content = _decoded(Path(path).read_bytes())
        sign = max(",;\t", key=content.partition("\n")[0].count)
        frame = pandas.read_csv(StringIO(content), sep=sign, dtype=text, keep_default_na=False)
        frame = frame.astype({name: int for name in _NUMBERS if name in frame})
    except ValueError as error:
        raise LemllError(
            f"{path} is no file of decisions ({error}); export them from the page again"
        ) from error
    missing = [name for name in _NEEDED if name not in frame]
    if missing:
        raise LemllError(
            f"{path} has no column {missing[0]!r}; export the decisions from the page again"
        )
    for name in ("label", "id"):
        if name in frame:
            frame[name] = frame[name].map(without_guard)
    if "decision" in frame:
        _accepted(frame)
    return frame


def _decoded(content: bytes) -> str:
    """Decode a file of decisions, also if a spreadsheet saved it again in another encoding."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252")


def correct(
    Y: MatrixLike,
    issues: Frame,
    *,
    precision: float = 0.9,
    label_names: Sequence[str] | None = None,
) -> Correction:
    """Apply suggestions, worst cells first, while they are expected to be right often enough.

    With a column ``decision``, as in the file that the page of an audit exports, the accepted
    suggestions are applied and no others. Without it, as many suggestions are applied, in the order
    of their scores, as keep the mean score at `precision` or above. Nothing else changes, and Y
    itself is never changed.

    Parameters
    ----------
    Y : array-like, sparse matrix, frame or list of lists
        The tags that were audited.
    issues : pandas.DataFrame
        From `find_tag_issues`, or a file of decisions. Rows can be left out, for example with
        ``issues[issues.kind == "missing"]``.
    precision : float, default=0.9
        Smallest share of the changes that should be right, between 0 and 1.
    label_names : sequence of str, optional
        Names of the labels, if the audit was given names.

    Returns
    -------
    Correction
        The corrected tags, and the list of the changes.

    Notes
    -----
    Scores are probabilities under a model of the noise (see `audit_tags`). Mistakes that follow the
    features, or tags that are hard to predict, make them too high. Look at some changes before you
    trust the others.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.audit import correct, find_tag_issues
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> X, Y = digits.X[:300], digits.Y[:300]
    >>> noisy = np.where(np.random.default_rng(0).random(Y.shape) < 0.03, 1 - Y, Y)
    >>> found = correct(noisy, find_tag_issues(X, noisy), precision=0.8)
    >>> bool((found.Y != Y).sum() < (noisy != Y).sum())
    True
    """
    level = check_number("precision", precision, above=0)
    if level > 1:
        raise ValueError(f"precision must be at most 1, got {precision!r}.")
    missing = [name for name in _NEEDED if name not in getattr(issues, "columns", ())]
    if missing:
        raise ValueError(
            f"issues has no column {missing[0]!r}; pass the frame of find_tag_issues, or the "
            "decisions that a page exported."
        )
    issues = _checked_issues(issues)
    decided = "decision" in issues.columns
    tags = read_tags(Y, names=label_names)
    _check_places(tags, issues)
    applied = _accepted(issues) if decided else _sure_enough(issues, level)
    changes = issues[applied]
    corrected = _applied(tags, changes)
    expected = float("nan")
    if not decided and len(changes):
        expected = float(changes["score"].mean())
    elif not decided and len(issues):
        warn_caller(
            f"nothing was changed: the highest score is {issues['score'].max():.4f}, and "
            f"precision={level:g} needs one of at least {level:g}; pass a lower precision, or "
            "decide on the page of lemll audit.",
            UserWarning,
        )
    changed = changes.reset_index(drop=True)
    return Correction(_in_form(corrected, tags, Y), changed, expected, tags.names)


def _checked_issues(issues: Frame) -> Frame:
    """Return the issues with whole numbers in the columns of numbers, and each cell once."""
    whole = {name: _whole_numbers(issues[name], name) for name in _NUMBERS}
    checked = issues.assign(**whole)
    again = checked.duplicated(["row", "label"])
    if again.any():
        row, label = checked.loc[again.to_numpy(), ["row", "label"]].iloc[0]
        raise ValueError(
            f"issues lists row {row}, label {label!r} twice; keep one of them, for example with "
            "issues.drop_duplicates(['row', 'label'])."
        )
    return checked


def _whole_numbers(column: Array, name: str) -> IndexArray:
    wanted = "the number of a row, 0 or more" if name == "row" else "0 or 1"
    for place, value in enumerate(column):
        fits = isinstance(value, (numbers.Real, np.bool_)) and float(value).is_integer()
        if not fits or value < 0 or (name != "row" and value > 1):
            raise ValueError(
                f"the column {name!r} of issues must hold {wanted}, got {value!r} in line {place}; "
                "pass the frame of find_tag_issues, or the decisions that a page exported, "
                "without other changes."
            )
    return np.asarray(column, dtype=np.intp)


def _accepted(issues: Frame) -> BoolArray:
    decisions = issues["decision"].fillna("").astype(str)
    strange = decisions[~decisions.isin(_DECISIONS)]
    if len(strange):
        raise ValueError(
            f"decision must be 'accept', 'reject' or empty, got {strange.iloc[0]!r}; export the "
            "decisions from the page again."
        )
    return np.asarray(decisions == "accept")


def _sure_enough(issues: Frame, precision: float) -> BoolArray:
    if "score" not in issues.columns:
        raise ValueError("issues has neither a column 'decision' nor 'score'; keep one of them.")
    if "out_of_fold" in issues.columns and len(issues) and issues["out_of_fold"].isna().all():
        raise ValueError(
            "the scores of fast mode are no probabilities, so a precision cannot be kept; use "
            "find_tag_issues with mode='default', or decide on the page of an audit."
        )
    scores = issues["score"].to_numpy(dtype=np.float64)
    order = np.argsort(-scores, kind="stable")
    means = np.cumsum(scores[order]) / np.arange(1, len(scores) + 1)
    chosen = np.zeros(len(scores), dtype=bool)
    # The means of falling numbers fall, so the cells that keep the precision come first.
    chosen[order[means >= precision]] = True
    return chosen


def _check_places(tags: TagMatrix, issues: Frame) -> None:
    """Refuse issues of other tags, also those that are not applied."""
    beyond = issues[issues["row"] >= len(tags.Y)]
    if len(beyond):
        row, label = beyond[["row", "label"]].iloc[0]
        raise ValueError(
            f"issues names row {row}, label {label!r}, which Y does not have; Y has "
            f"{len(tags.Y)} rows; pass the tags that were audited."
        )
    strange = issues[~issues["label"].isin(tags.names)]
    if len(strange):
        raise ValueError(
            f"issues names the label {strange['label'].iloc[0]!r}, which Y does not have; pass the "
            "tags that were audited, and the names of all labels with label_names= if Y is lists "
            "or the audit was given names."
        )


def _applied(tags: TagMatrix, changes: Frame) -> LabelArray:
    place = {name: j for j, name in enumerate(tags.names)}
    corrected = tags.Y.copy()
    for row, label, given, suggested in changes[list(_NEEDED)].itertuples(index=False):
        cell = corrected[row, place[label]]
        if cell != given:
            shown = "unknown" if cell == UNOBSERVED else str(cell)
            raise ValueError(
                f"row {row}, label {label!r} is {shown} in Y, but {given} in the issues; pass the "
                "tags that were audited, without later changes."
            )
        corrected[row, place[label]] = suggested
    return corrected


def _in_form(corrected: LabelArray, tags: TagMatrix, Y: MatrixLike) -> MatrixLike:
    hidden = corrected == UNOBSERVED
    values = np.where(hidden, np.nan, corrected) if hidden.any() else corrected.astype(np.int64)
    if tags.frame is None:
        return values
    return tags.frame.make(values, Y if row_index(Y) is not None else None)
