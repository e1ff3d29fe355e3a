"""Compute the ranks of the relevant labels, which all four ranking metrics use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lemll._labels import check_same_order
from lemll._types import Array, FloatArray, IndexArray, LabelArray, MatrixLike
from lemll._validation import check_logical_labels, is_sparse
from lemll.exceptions import UndefinedMetricError

__all__ = ["RelevantRanks", "check_scores", "check_truth", "evaluate"]

# Number of entries sorted together. A block and its temporary arrays need about 50 MB, independent
# of the number of rows.
_BLOCK_ENTRIES = 1 << 20


@dataclass(frozen=True)
class RelevantRanks:
    """The relevant labels of a block of rows, sorted by rank within each row.

    Attributes
    ----------
    rows : ndarray of shape (n_relevant,)
        Row of each relevant label, ascending.
    ranks : ndarray of shape (n_relevant,)
        Its rank among all labels of the row, 1 for the highest score.
    hits : ndarray of shape (n_relevant,)
        Number of relevant labels with the same or a better rank, including itself.
    sizes : ndarray of shape (n_rows,)
        Number of relevant labels of each row.
    n_labels : ndarray of shape (n_rows,)
        Number of labels of each row that were observed.
    """

    rows: IndexArray
    ranks: IndexArray
    hits: IndexArray
    sizes: IndexArray
    n_labels: IndexArray

    @property
    def misses(self) -> IndexArray:
        """The number of irrelevant labels before each relevant label."""
        return self.ranks - self.hits

    def sum_by_row(self, values: Array) -> FloatArray:
        """Return the sum per row of `values`, one per relevant label; 0 for an empty row."""
        # The type stubs do not know that bincount with weights returns floats.
        sums = np.bincount(self.rows, weights=values, minlength=len(self.sizes))
        return np.asarray(sums, dtype=np.float64)


def check_truth(Y_true: MatrixLike, given: MatrixLike, name: str = "scores") -> LabelArray:
    """Return `Y_true` as a dense array with at least one row and one label.

    It holds 0 and 1, and -1 in cells that nobody observed. `given` is the other argument of the
    metric, with its name: a frame must have its columns and rows in the same order.
    """
    check_same_order(Y_true, given, name)
    labels = check_logical_labels(Y_true, name="Y_true", unobserved=True)
    if labels.size == 0:
        raise ValueError(
            f"Y_true must have at least one row and one label, got shape {labels.shape}."
        )
    return labels


def check_scores(scores: MatrixLike, shape: tuple[int, ...]) -> FloatArray:
    """Return `scores` as a float64 array of this shape without NaN; infinities can be ranked.

    May share memory with `scores`.
    """
    array = scores.toarray() if is_sparse(scores) else np.asarray(scores)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"scores must hold numbers, got dtype {array.dtype}; convert it first.")
    if array.shape != shape:
        raise ValueError(
            f"scores must have the shape of Y_true, {shape}, got {array.shape}; "
            "give one score for each row and label."
        )
    array = np.asarray(array, dtype=np.float64)
    if np.isnan(array).any():
        row, label = (int(i) for i in np.argwhere(np.isnan(array))[0])
        raise ValueError(
            f"scores must not hold NaN, got one in row {row}, label {label}; NaN has no rank."
        )
    return array


def _rank_relevant(labels: LabelArray, scores: FloatArray, ties: str) -> RelevantRanks:
    """Rank the relevant labels of a block of rows.

    Parameters
    ----------
    labels : ndarray of shape (n_rows, n_labels)
        0/1, and -1 in cells that nobody observed. They have no rank.
    scores : ndarray of shape (n_rows, n_labels)
        Higher is more relevant.
    ties : {"pessimistic", "optimistic", "first", "last"}
        Which label comes first if scores are equal: an irrelevant label, a relevant label, the
        lower index, or the higher index. With "pessimistic", relevant labels with equal scores
        also all get the rank of the last of them.

    Returns
    -------
    RelevantRanks
        Computed in O(n_rows n_labels log n_labels).
    """
    n_labels = labels.shape[1]
    hidden = labels < 0
    if ties == "pessimistic":
        second = labels
    elif ties == "optimistic":
        second = 1 - labels
    else:
        index = np.arange(n_labels) if ties == "first" else np.arange(n_labels)[::-1]
        second = np.broadcast_to(index, labels.shape)
    # Cells that nobody observed come last, where they change no other rank.
    keys = (second, -scores, hidden) if hidden.any() else (second, -scores)
    order = np.lexsort(keys, axis=-1)
    rows, positions = np.nonzero(np.take_along_axis(labels == 1, order, axis=1))
    sizes = np.bincount(rows, minlength=len(labels))
    # `nonzero` returns the labels row by row. So the position inside a row is the position in the
    # list minus the start of the row.
    starts = np.cumsum(sizes) - sizes
    hits = np.arange(len(rows)) - starts[rows] + 1
    ranks = positions + 1
    if ties == "pessimistic":
        # In a group of equal scores the irrelevant labels come first. So the last relevant label
        # is the last of the group, and its rank is the number of labels with at least this score.
        last = _last_of_group(rows, scores[rows, order[rows, positions]])
        ranks, hits = ranks[last], hits[last]
    observed = n_labels - hidden.sum(axis=1)
    return RelevantRanks(rows=rows, ranks=ranks, hits=hits, sizes=sizes, n_labels=observed)


def _last_of_group(rows: IndexArray, values: FloatArray) -> IndexArray:
    """Return, for each position, the last position of its run of equal (row, value)."""
    is_last = np.ones(len(rows), dtype=bool)
    is_last[:-1] = (rows[1:] != rows[:-1]) | (values[1:] != values[:-1])
    ends = np.flatnonzero(is_last)
    return np.repeat(ends, np.diff(ends, prepend=-1))


def _by_blocks(
    measure: Callable[[RelevantRanks], FloatArray],
    labels: LabelArray,
    scores: FloatArray,
    ties: str,
) -> FloatArray:
    """Apply `measure` to blocks of rows to limit the memory, and join the values."""
    step = max(1, _BLOCK_ENTRIES // labels.shape[1])
    return np.concatenate(
        [
            measure(_rank_relevant(labels[i : i + step], scores[i : i + step], ties))
            for i in range(0, len(labels), step)
        ]
    )


def evaluate(
    measure: Callable[[RelevantRanks], FloatArray],
    Y_true: MatrixLike,
    scores: MatrixLike,
    options: dict[str, str],
    average: bool,
) -> float | FloatArray:
    """Measure every row, and return the mean of the rows that are not skipped.

    Parameters
    ----------
    measure : callable
        Returns the values of a block of rows, including empty and full rows.
    Y_true, scores : array-like
        The arguments of the metric.
    options : dict of str to str
        From `resolve`.
    average : bool
        Return the mean, or one value per row with NaN for skipped rows.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        The metric.
    """
    labels = check_truth(Y_true, scores)
    values = _by_blocks(measure, labels, check_scores(scores, labels.shape), options["ties"])
    sizes, observed = (labels == 1).sum(axis=1), (labels >= 0).sum(axis=1)
    skipped = (sizes == 0) & (options["empty"] == "skip")
    skipped |= (sizes == observed) & (options.get("full") == "skip")
    # A row of which nothing is known cannot be measured under any convention.
    skipped |= observed == 0
    if not average:
        values[skipped] = np.nan
        return values
    if not observed.any():
        raise UndefinedMetricError(
            "no row of Y_true can be measured: no cell is observed; add rows."
        )
    if skipped.all():
        kinds = "empty or full" if options.get("full") == "skip" else "empty"
        raise UndefinedMetricError(
            f"no row of Y_true can be measured: all {len(labels)} are {kinds}; add rows, or count "
            "such rows with the options empty and full (see lemll.metrics)."
        )
    return float(values[~skipped].mean())
