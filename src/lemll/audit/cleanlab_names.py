"""The functions that users of cleanlab's multi-label module know, with the scores of this room."""

from __future__ import annotations

import numpy as np

from lemll._types import BoolArray, FloatArray, IndexArray, MatrixLike
from lemll.audit.auditing import audit_tags

__all__ = ["find_label_issues", "get_label_quality_scores", "get_label_quality_scores_per_class"]

_ORDERS = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")


def find_label_issues(
    labels: MatrixLike, pred_probs: MatrixLike, *, return_indices_ranked_by: str | None = None
) -> BoolArray | IndexArray:
    """Find the rows with a wrong or a missing tag.

    The call is that of ``cleanlab.multilabel_classification.filter.find_label_issues``, but the
    other tags of a row count as evidence, and the rates of the noise are estimated.

    Parameters
    ----------
    labels : list of lists, array-like, sparse matrix or frame
        Tags, as in `find_tag_issues`; cleanlab's lists of class numbers among them.
    pred_probs : array-like of shape (n_samples, n_labels)
        Probabilities by models that did not see the row.
    return_indices_ranked_by : str, optional
        If given, the numbers of these rows are returned, worst first. The names of cleanlab's
        scores are accepted; the order is always that of `get_label_quality_scores`.

    Returns
    -------
    ndarray of bool of shape (n_samples,), or ndarray of int
        Whether each row has a cell that is more likely wrong than right, or the numbers of the
        rows.
    """
    if return_indices_ranked_by not in (None, *_ORDERS):
        raise ValueError(
            f"return_indices_ranked_by={return_indices_ranked_by!r} must be None or one of "
            f"{', '.join(_ORDERS)}."
        )
    audit = audit_tags(None, labels, pred_probs=pred_probs)
    found = np.asarray(audit.likely.any(axis=1))
    if return_indices_ranked_by is None:
        return found
    order = np.argsort(audit.row_quality, kind="stable")
    return np.asarray(order[found[order]])


def get_label_quality_scores(labels: MatrixLike, pred_probs: MatrixLike) -> FloatArray:
    """Return the quality of each row in [0, 1], low if doubtful; NaN if nothing is known of it.

    Parameters
    ----------
    labels, pred_probs
        As in `find_label_issues`.

    Returns
    -------
    ndarray of shape (n_samples,)
        The probability that no tag of the row is wrong or missing.
    """
    return audit_tags(None, labels, pred_probs=pred_probs).row_quality


def get_label_quality_scores_per_class(labels: MatrixLike, pred_probs: MatrixLike) -> FloatArray:
    """Return the quality of each cell in [0, 1], low if doubtful; NaN in unknown cells.

    Parameters
    ----------
    labels, pred_probs
        As in `find_label_issues`.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The probability that the cell is right.
    """
    return audit_tags(None, labels, pred_probs=pred_probs).quality
