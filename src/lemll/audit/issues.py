"""The public functions of an audit: doubtful cells, quality, and the noise of each label."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lemll._types import FloatArray, IndexArray, MatrixLike
from lemll._validation import UNOBSERVED, check_number, check_whole
from lemll.audit.auditing import TagAudit, audit_tags
from lemll.audit.noise import label_noise
from lemll.audit.tags import spelled_otherwise
from lemll.exceptions import import_extra

__all__ = [
    "COLUMNS",
    "estimate_noise",
    "find_tag_issues",
    "issue_frame",
    "noise_frame",
    "tag_quality",
]

# The columns of the frame of issues.
COLUMNS = (
    "row",
    "label",
    "given",
    "suggested",
    "kind",
    "score",
    "probability",
    "out_of_fold",
    "numerical_label",
    "neighbour_share",
    "neighbours",
)
# An interval that reaches further tells nothing that would change what a user does.
_TELLS = 0.5


def find_tag_issues(
    X: MatrixLike,
    Y: MatrixLike,
    *,
    limit: int | None = 1000,
    n_neighbors: int = 10,
    **options: Any,
) -> Any:
    """List the tags that look wrong and the tags that look missing, most doubtful first.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n_samples, n_features), or None
        Features. May be None with `pred_probs`.
    Y : array-like, sparse matrix, frame or list of lists
        Tags: a 0/1 matrix (NaN, None and masked cells are unknown and are not judged), a frame, or
        lists of class numbers or of tag names per row.
    limit : int or None, default=1000
        Largest number of cells to list, the most doubtful ones. A cell is one label of one row,
        so a row can be listed several times. None lists every known cell.
    n_neighbors : int, default=10
        Number of nearest rows that are named as evidence.
    **options
        `mode`, `pred_probs`, `label_names`, `cv`, `n_jobs`, `random_state` and `callback` of
        `audit_tags`.

    Returns
    -------
    pandas.DataFrame
        One row per cell. A tag that the row has in another case is not listed as missing.

        - ``row`` (its number, from 0) and ``label`` (its name);
        - ``given`` and ``suggested`` (0 or 1), and ``kind``: "wrong" if the tag is given, "missing"
          if it is not;
        - ``score``: the probability that the cell is wrong, in [0, 1]; in fast mode it only ranks;
        - ``probability`` of the tag, from the features and the other tags of the row;
        - ``out_of_fold``: from the features alone; NaN in fast mode;
        - ``numerical_label``: U of one LEMLL fit, about -1 to 1;
        - ``neighbour_share``: share of the nearest rows that have the tag;
        - ``neighbours``: the numbers of these rows.

    Examples
    --------
    >>> from lemll.audit import find_tag_issues
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> X, Y = digits.X[:300], digits.Y[:300].copy()
    >>> Y[7, 0] = 1 - Y[7, 0]  # a mistake on purpose
    >>> issues = find_tag_issues(X, Y, limit=20)
    >>> bool(((issues.row == 7) & (issues.label == "y0")).any())
    True
    """
    if limit is not None:
        limit = check_whole("limit", limit, least=1)
    n_neighbors = check_whole("n_neighbors", n_neighbors, least=1)
    import_extra("pandas", "tables", "The frame of issues")
    return issue_frame(audit_tags(X, Y, **options), limit=limit, n_neighbors=n_neighbors)


def issue_frame(audit: TagAudit, *, limit: int | None = 1000, n_neighbors: int = 10) -> Any:
    """Return the frame of `find_tag_issues` of an audit.

    Parameters
    ----------
    audit : TagAudit
        The audit.
    limit : int or None, default=1000
        Largest number of cells to list; a cell is one label of one row. None lists all.
    n_neighbors : int, default=10
        Number of neighbours.

    Returns
    -------
    pandas.DataFrame
        The frame.
    """
    pandas = import_extra("pandas", "tables", "The frame of issues")
    other = spelled_otherwise(audit.tags)
    rows, labels = audit.worst_cells(None if limit is None else limit + int(other.sum()))
    listed = np.flatnonzero(~other[rows, labels])[:limit]
    rows, labels = rows[listed], labels[listed]
    given = audit.tags.Y[rows, labels]
    near = audit.neighbours(n_neighbors)
    frame = pandas.DataFrame(
        {
            "row": rows,
            "label": np.array(audit.tags.names, dtype=object)[labels],
            "given": given,
            "suggested": 1 - given,
            "kind": np.where(given == 1, "wrong", "missing").astype(object),
            "score": audit.error[rows, labels],
            "probability": audit.probability[rows, labels],
            "out_of_fold": _cells(audit.out_of_fold, rows, labels),
            "numerical_label": _cells(audit.numerical_labels, rows, labels),
            "neighbour_share": _neighbour_share(audit, near, rows, labels),
        }
    )
    named: list[tuple[int, ...]] = (
        [()] * len(rows) if near is None else [tuple(found) for found in near[rows].tolist()]
    )
    frame["neighbours"] = pandas.Series(named, dtype=object)
    return frame[list(COLUMNS)]


def _cells(values: FloatArray | None, rows: IndexArray, labels: IndexArray) -> FloatArray:
    return np.full(len(rows), np.nan) if values is None else values[rows, labels]


def _neighbour_share(
    audit: TagAudit, near: IndexArray | None, rows: IndexArray, labels: IndexArray
) -> FloatArray:
    """Return the share of the neighbours with the tag, among those whose tag is known."""
    if near is None:
        return np.full(len(rows), np.nan)
    of_near = audit.tags.Y[near[rows], labels[:, None]]
    known = (of_near != UNOBSERVED).sum(axis=1)
    share = (of_near == 1).sum(axis=1) / np.maximum(known, 1)
    return np.where(known > 0, share, np.nan)


def tag_quality(
    X: MatrixLike, Y: MatrixLike, *, per: Literal["tag", "row"] = "tag", **options: Any
) -> FloatArray:
    """Say how trustworthy each cell of the tags is, or each row.

    Parameters
    ----------
    X, Y
        Features and tags, as in `find_tag_issues`.
    per : {"tag", "row"}, default="tag"
        Whether to judge cells or rows. A row is as good as the product of its cells: the
        probability that none of them is wrong.
    **options
        As in `find_tag_issues`.

    Returns
    -------
    ndarray of shape (n_samples, n_labels) or (n_samples,)
        In [0, 1], low if doubtful. NaN in unknown cells, and for rows without known cells.

    Examples
    --------
    >>> from lemll.audit import tag_quality
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> tag_quality(digits.X[:300], digits.Y[:300], mode="fast").shape
    (300, 8)
    """
    if per not in ("tag", "row"):
        raise ValueError(f"per={per!r} must be 'tag' or 'row'.")
    audit = audit_tags(X, Y, **options)
    return audit.quality if per == "tag" else audit.row_quality


def estimate_noise(X: MatrixLike, Y: MatrixLike, *, confidence: float = 0.9, **options: Any) -> Any:
    """Estimate, label by label, the share of wrong tags and of missing tags, with intervals.

    The rows that look most like a tag, to models that did not see it, bound the share of missing
    tags: if every tenth of them lacks the tag, at most about a tenth is missing. The rows that look
    least like it bound the wrong tags in the same way. This holds if wrong and missing tags fall on
    rows by chance; mistakes that follow the features can stay unseen.

    Parameters
    ----------
    X, Y
        Features and tags, as in `find_tag_issues`.
    confidence : float, default=0.9
        Of each interval, between 0 and 1.
    **options
        `pred_probs`, `label_names`, `cv`, `n_jobs`, `random_state` and `callback` of `audit_tags`.
        There is no `limit` here: that of `find_tag_issues` is a number of cells to list, and the
        estimates are shares of all known cells of a label. Fast mode gives no estimates.

    Returns
    -------
    pandas.DataFrame
        One row per label: ``label``, ``n_given``; ``wrong`` (share of the given tags),
        ``wrong_low``, ``wrong_high``, ``wrong_told``; ``missing`` (share of the tags that apply),
        ``missing_low``, ``missing_high``, ``missing_told``. The lower ends are 0: no data can tell
        a tag that is hard to predict from a tag with noise. ``_told`` is False if the interval
        reaches above one half: the data cannot tell.
    """
    import_extra("pandas", "tables", "The frame of noise")
    level = check_number("confidence", confidence, above=0)
    if level >= 1:
        raise ValueError(f"confidence must be below 1, got {confidence!r}.")
    if options.get("mode", "default") == "fast":
        raise ValueError("mode='fast' gives no probabilities, which the estimates need; leave it.")
    return noise_frame(audit_tags(X, Y, **options), confidence=level)


def noise_frame(audit: TagAudit, *, confidence: float = 0.9) -> Any:
    """Return the frame of `estimate_noise` of an audit in default mode.

    Parameters
    ----------
    audit : TagAudit
        The audit.
    confidence : float, default=0.9
        Of each interval.

    Returns
    -------
    pandas.DataFrame
        The frame.
    """
    pandas = import_extra("pandas", "tables", "The frame of noise")
    Y = audit.tags.Y
    found = label_noise(audit.probability, Y, confidence)
    columns: dict[str, Any] = {
        "label": list(audit.tags.names),
        "n_given": (Y == 1).sum(axis=0),
    }
    for kind, estimate, high in (
        ("wrong", found.wrong, found.wrong_high),
        ("missing", found.missing, found.missing_high),
    ):
        columns[kind] = estimate
        columns[f"{kind}_low"] = np.zeros(len(high))
        columns[f"{kind}_high"] = high
        columns[f"{kind}_told"] = high <= _TELLS
    return pandas.DataFrame(columns)
