"""Ranks of the relevant labels: the one computation behind the four ranking metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lemll._types import Array, FloatArray, IndexArray, LabelArray, MatrixLike
from lemll._validation import check_logical_labels, is_sparse

__all__ = ["RelevantRanks", "check_truth", "evaluate"]

# Entries sorted at once. A block and its temporaries stay near 50 MB however many rows there are.
_BLOCK_ENTRIES = 1 << 20


@dataclass(frozen=True)
class RelevantRanks:
    """The relevant labels of a block of rows, each row's best first.

    Attributes
    ----------
    rows : ndarray of shape (n_relevant,)
        Row of each relevant label, ascending.
    ranks : ndarray of shape (n_relevant,)
        Its rank among all labels of the row, 1 for the highest score.
    hits : ndarray of shape (n_relevant,)
        How many relevant labels have a rank not worse than its own, itself included.
    sizes : ndarray of shape (n_rows,)
        Number of relevant labels of each row.
    n_labels : int
        Number of labels.
    """

    rows: IndexArray
    ranks: IndexArray
    hits: IndexArray
    sizes: IndexArray
    n_labels: int

    @property
    def misses(self) -> IndexArray:
        """How many irrelevant labels stand ahead of each relevant one."""
        return self.ranks - self.hits

    def sum_by_row(self, values: Array) -> FloatArray:
        """Sum `values`, one for each relevant label, row by row; 0 for an empty row."""
        # The stubs forget that weights make bincount return floats.
        sums = np.bincount(self.rows, weights=values, minlength=len(self.sizes))
        return np.asarray(sums, dtype=np.float64)


def check_truth(Y_true: MatrixLike) -> LabelArray:
    """Return `Y_true` as a dense 0/1 array with at least one row and one label."""
    labels = check_logical_labels(Y_true, name="Y_true")
    if labels.size == 0:
        raise ValueError(
            f"Y_true must have at least one row and one label, got shape {labels.shape}."
        )
    return labels


def _check_scores(scores: MatrixLike, shape: tuple[int, ...]) -> FloatArray:
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
        0/1.
    scores : ndarray of shape (n_rows, n_labels)
        Higher is more relevant.
    ties : {"pessimistic", "optimistic", "first", "last"}
        Which of equally scored labels comes first: the irrelevant ones, the relevant ones, the
        lower index, the higher index. When pessimistic, equally scored relevant labels moreover
        all get the rank of the last of them.

    Returns
    -------
    RelevantRanks
        Computed in O(n_rows n_labels log n_labels).
    """
    n_labels = labels.shape[1]
    if ties == "pessimistic":
        second = labels
    elif ties == "optimistic":
        second = 1 - labels
    else:
        index = np.arange(n_labels) if ties == "first" else np.arange(n_labels)[::-1]
        second = np.broadcast_to(index, labels.shape)
    order = np.lexsort((second, -scores), axis=-1)
    rows, positions = np.nonzero(np.take_along_axis(labels, order, axis=1))
    sizes = np.bincount(rows, minlength=len(labels))
    # nonzero goes row by row, so the place within the row is the place less the row's start.
    starts = np.cumsum(sizes) - sizes
    hits = np.arange(len(rows)) - starts[rows] + 1
    ranks = positions + 1
    if ties == "pessimistic":
        # The irrelevant labels come first here, so the last relevant label of a tied group is
        # the last of the whole group: its rank is the number of labels scored as high.
        last = _last_of_group(rows, scores[rows, order[rows, positions]])
        ranks, hits = ranks[last], hits[last]
    return RelevantRanks(rows=rows, ranks=ranks, hits=hits, sizes=sizes, n_labels=n_labels)


def _last_of_group(rows: IndexArray, values: FloatArray) -> IndexArray:
    """Return, for each place, the last place of the run of equal (row, value) it is in."""
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
    """Apply `measure` to blocks of rows, small enough to bound the memory, and join the values."""
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
    """Measure every row, and take the mean of those that are not to be skipped.

    Parameters
    ----------
    measure : callable
        Gives the values of a block of rows, empty and full ones as if they counted.
    Y_true, scores : array-like
        What the caller got.
    options : dict of str to str
        From `resolve`.
    average : bool
        Return the mean, or all values with NaN where a row is skipped.

    Returns
    -------
    float or ndarray of shape (n_samples,)
        The metric.
    """
    labels = check_truth(Y_true)
    values = _by_blocks(measure, labels, _check_scores(scores, labels.shape), options["ties"])
    sizes = labels.sum(axis=1)
    skipped = (sizes == 0) & (options["empty"] == "skip")
    skipped |= (sizes == labels.shape[1]) & (options.get("full") == "skip")
    if not average:
        values[skipped] = np.nan
        return values
    if skipped.all():
        kinds = "empty or full" if options.get("full") == "skip" else "empty"
        raise ValueError(
            f"no row of Y_true can be measured: all {len(labels)} are {kinds}; add rows, or count "
            "such rows with the options empty and full (see lemll.metrics)."
        )
    return float(values[~skipped].mean())
