r"""Multi-label metrics, as defined in the review of Zhang and Zhou [1]_.

Below, there are m rows and l labels. :math:`Y_i` is the set of relevant labels of row i,
:math:`\bar Y_i` is the set of its irrelevant labels, and :math:`f_{ij}` is the score of label j.
The rank of the label with the highest score is 1. :mod:`lemll.metrics` describes the conventions
for ties, empty rows and full rows.

References
----------
.. [1] M.-L. Zhang and Z.-H. Zhou, "A review on multi-label learning algorithms", IEEE
   Transactions on Knowledge and Data Engineering 26(8), 2014, pages 1819-1837.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypedDict, Unpack, cast, get_args, overload

import numpy as np

from lemll._labels import check_same_order
from lemll._types import Array, FloatArray, IndexArray, LabelArray, MatrixLike
from lemll._validation import check_logical_labels, is_sparse
from lemll.exceptions import UndefinedMetricError

Convention = Literal["paper", "lamda", "levi", "mulan", "sklearn"]
Ties = Literal["pessimistic", "optimistic", "first", "last"]
RowRule = Literal["skip", "count"]
CoverageEmpty = Literal["skip", "count", "depth_zero"]
CoverageUnit = Literal["fraction", "steps", "depth"]


class RankingOptions(TypedDict, total=False):
    """Options of ranking loss, one-error and average precision, for the type checker."""

    convention: Convention
    ties: Ties | None
    empty: RowRule | None
    full: RowRule | None


class CoverageOptions(TypedDict, total=False):
    """Options of coverage, for the type checker."""

    convention: Convention
    ties: Ties | None
    empty: CoverageEmpty | None
    unit: CoverageUnit | None


_RANKING_CHOICES = {"ties": get_args(Ties), "empty": get_args(RowRule), "full": get_args(RowRule)}

# The options of each metric, and the allowed values of each option.
_CHOICES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("ranking_loss", "one_error", "average_precision"), _RANKING_CHOICES),
    "coverage": {
        "ties": get_args(Ties),
        "empty": get_args(CoverageEmpty),
        "unit": get_args(CoverageUnit),
    },
}

_SKIP_BOTH = {"empty": "skip", "full": "skip"}
_COUNT_BOTH = {"empty": "count", "full": "count"}

_PRESETS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "paper": {
        "ranking_loss": {"ties": "pessimistic", **_SKIP_BOTH},
        "one_error": {"ties": "optimistic", **_SKIP_BOTH},
        "coverage": {"ties": "pessimistic", "empty": "skip", "unit": "fraction"},
        "average_precision": {"ties": "pessimistic", **_SKIP_BOTH},
    },
    "lamda": {
        "ranking_loss": {"ties": "pessimistic", **_SKIP_BOTH},
        "one_error": {"ties": "optimistic", **_SKIP_BOTH},
        "coverage": {"ties": "last", "empty": "depth_zero", "unit": "steps"},
        "average_precision": {"ties": "last", **_SKIP_BOTH},
    },
    "levi": {
        "ranking_loss": {"ties": "pessimistic", **_SKIP_BOTH},
        "one_error": {"ties": "optimistic", **_SKIP_BOTH},
        "coverage": {"ties": "last", "empty": "depth_zero", "unit": "fraction"},
        "average_precision": {"ties": "pessimistic", **_SKIP_BOTH},
    },
    "mulan": {
        "ranking_loss": {"ties": "last", **_COUNT_BOTH},
        "one_error": {"ties": "last", **_COUNT_BOTH},
        "coverage": {"ties": "last", "empty": "count", "unit": "steps"},
        "average_precision": {"ties": "last", "empty": "skip", "full": "count"},
    },
    # scikit-learn does not have a one-error.
    "sklearn": {
        "ranking_loss": {"ties": "pessimistic", **_COUNT_BOTH},
        "coverage": {"ties": "pessimistic", "empty": "count", "unit": "depth"},
        "average_precision": {"ties": "pessimistic", **_COUNT_BOTH},
    },
}


def resolve(metric: str, convention: str, **given: str | None) -> dict[str, str]:
    """Return the options of `metric` under `convention`, overridden by those of the caller.

    Parameters
    ----------
    metric : str
        Name of a ranking metric.
    convention : str
        Name of a column of the table.
    **given : str or None
        Options of the caller. None means the value of the convention.

    Returns
    -------
    dict of str to str
        One value per option of the metric.
    """
    if convention not in _PRESETS:
        raise ValueError(f"convention must be one of {_quoted(_PRESETS)}, got {convention!r}.")
    if metric not in _PRESETS[convention]:
        others = [name for name, preset in _PRESETS.items() if metric in preset]
        raise ValueError(
            f"convention {convention!r} does not define {metric}; use one of {_quoted(others)}."
        )
    options = dict(_PRESETS[convention][metric])
    options.update({name: value for name, value in given.items() if value is not None})
    for name, value in options.items():
        choices = _CHOICES[metric][name]
        if value not in choices:
            raise ValueError(f"{name} must be one of {_quoted(choices)}, got {value!r}.")
    return options


def _quoted(names: Mapping[str, object] | list[str] | tuple[str, ...]) -> str:
    return ", ".join(repr(name) for name in names)


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


def check_decisions(Y_true: MatrixLike, Y_pred: MatrixLike) -> tuple[LabelArray, LabelArray]:
    """Return the checked truth, -1 where it is unknown, and the checked predicted labels."""
    labels = check_truth(Y_true, Y_pred, "Y_pred")
    predicted = check_logical_labels(Y_pred, name="Y_pred")
    if predicted.shape != labels.shape:
        raise ValueError(
            f"Y_pred must have the shape of Y_true, {labels.shape}, got {predicted.shape}."
        )
    return labels, predicted


def refuse_unobserved(observed: Array) -> None:
    """Refuse a truth without an observed cell, which has no mean."""
    if not observed.any():
        raise UndefinedMetricError(
            "no row of Y_true can be measured: no cell is observed; add rows."
        )


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
    refuse_unobserved(observed)
    if skipped.all():
        kinds = "empty or full" if options.get("full") == "skip" else "empty"
        raise UndefinedMetricError(
            f"no row of Y_true can be measured: all {len(labels)} are {kinds}; add rows, or count "
            "such rows with the options empty and full (see lemll.metrics)."
        )
    return float(values[~skipped].mean())


@overload
def hamming_loss(
    Y_true: MatrixLike, Y_pred: MatrixLike, *, average: Literal[True] = ...
) -> float: ...
@overload
def hamming_loss(
    Y_true: MatrixLike, Y_pred: MatrixLike, *, average: Literal[False]
) -> FloatArray: ...
def hamming_loss(
    Y_true: MatrixLike, Y_pred: MatrixLike, *, average: bool = True
) -> float | FloatArray:
    r"""Fraction of labels predicted wrongly, :math:`\frac1m\sum_i\frac1l|h_i\triangle Y_i|`.

    Lower is better. The value does not depend on a convention.

    Parameters
    ----------
    Y_true, Y_pred : array-like or sparse matrix of shape (n_samples, n_labels)
        True and predicted logical labels, 0/1. Unknown cells of Y_true (NaN) are skipped, and so
        are rows without a known cell.
    average : bool, default=True
        Return the mean over rows, or the value of every row.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import hamming_loss
    >>> hamming_loss([[1, 0, 1, 0], [0, 1, 1, 0]], [[1, 0, 0, 0], [0, 1, 1, 0]])
    0.125
    """
    labels, predicted = check_decisions(Y_true, Y_pred)
    observed = labels >= 0
    wrong = ((labels != predicted) & observed).sum(axis=1)
    with np.errstate(invalid="ignore"):  # 0 / 0: nothing is known about the row
        values: FloatArray = wrong / observed.sum(axis=1)
    if not average:
        return values
    refuse_unobserved(observed)
    return float(values[observed.any(axis=1)].mean())


class RankingMetric(Protocol):
    """A metric of the order of the labels: its mean over rows, or the value of every row."""

    @overload
    def __call__(
        self,
        Y_true: MatrixLike,
        scores: MatrixLike,
        *,
        average: Literal[True] = ...,
        **options: Unpack[RankingOptions],
    ) -> float: ...
    @overload
    def __call__(
        self,
        Y_true: MatrixLike,
        scores: MatrixLike,
        *,
        average: Literal[False],
        **options: Unpack[RankingOptions],
    ) -> FloatArray: ...


def _ranking_metric(of_rows: Callable[[RelevantRanks], FloatArray]) -> RankingMetric:
    """Make a metric of a function that measures rows of ranks; its docstring is the metric's."""
    name = of_rows.__name__

    def metric(
        Y_true: MatrixLike,
        scores: MatrixLike,
        *,
        convention: Convention = "paper",
        ties: Ties | None = None,
        empty: RowRule | None = None,
        full: RowRule | None = None,
        average: bool = True,
    ) -> float | FloatArray:
        options = resolve(name, convention, ties=ties, empty=empty, full=full)
        return evaluate(of_rows, Y_true, scores, options, average)

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = of_rows.__doc__
    return cast(RankingMetric, metric)


@_ranking_metric
def ranking_loss(ranked: RelevantRanks) -> FloatArray:
    r"""Fraction of (relevant, irrelevant) label pairs in the wrong order.

    .. math:: \frac1m\sum_i
        \frac{|\{(j,k)\in Y_i\times\bar Y_i:f_{ij}\le f_{ik}\}|}{|Y_i||\bar Y_i|}

    Lower is better. Under the default convention a tie counts as a wrong order.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped, as if the row did not have
        these labels; so are rows without a known cell.
    scores : array-like of shape (n_samples, n_labels)
        A higher score means more relevant. The scale does not matter.
    convention, ties, empty, full : str, optional
        See :mod:`lemll.metrics`. Empty and full rows that count have the value 0.
    average : bool, default=True
        Return the mean over rows, or one value per row. The value of a skipped row is NaN.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import ranking_loss
    >>> Y, scores = [[1, 0, 0], [0, 0, 0]], [[0.5, 0.5, 0.1], [0.3, 0.2, 0.1]]
    >>> ranking_loss(Y, scores)
    0.5
    >>> ranking_loss(Y, scores, convention="sklearn")  # the empty row counts as 0
    0.25
    """
    n_pairs = ranked.sizes * (ranked.n_labels - ranked.sizes)
    values: FloatArray = ranked.sum_by_row(ranked.misses) / np.maximum(n_pairs, 1)
    return values


@_ranking_metric
def one_error(ranked: RelevantRanks) -> FloatArray:
    r"""Fraction of rows whose highest-scored label is irrelevant.

    .. math:: \frac1m\sum_i[\arg\max_jf_{ij}\notin Y_i]

    Lower is better. Under the default convention a row is correct if at least one of the labels
    with the highest score is relevant.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped, as if the row did not have
        these labels; so are rows without a known cell.
    scores : array-like of shape (n_samples, n_labels)
        A higher score means more relevant. The scale does not matter.
    convention, ties, empty, full : str, optional
        See :mod:`lemll.metrics`. If such rows count, an empty row is an error and a full row is
        not.
    average : bool, default=True
        Return the mean over rows, or one value per row. The value of a skipped row is NaN.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, 1].

    Examples
    --------
    >>> from lemll.metrics import one_error
    >>> one_error([[1, 0, 0], [0, 1, 0]], [[0.5, 0.5, 0.1], [0.3, 0.2, 0.1]])
    0.5
    >>> one_error([[1, 0, 0], [0, 1, 0]], [[0.5, 0.5, 0.1], [0.3, 0.2, 0.1]], ties="pessimistic")
    1.0
    """
    # The top label is relevant if a relevant label exists with no irrelevant label before it.
    n_good = ranked.sum_by_row(ranked.misses == 0)
    return np.where(n_good == 0, 1.0, 0.0)


@overload
def coverage(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    average: Literal[True] = ...,
    **options: Unpack[CoverageOptions],
) -> float: ...
@overload
def coverage(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    average: Literal[False],
    **options: Unpack[CoverageOptions],
) -> FloatArray: ...
def coverage(
    Y_true: MatrixLike,
    scores: MatrixLike,
    *,
    convention: Convention = "paper",
    ties: Ties | None = None,
    empty: CoverageEmpty | None = None,
    unit: CoverageUnit | None = None,
    average: bool = True,
) -> float | FloatArray:
    r"""Return how far down the ranking the last relevant label is.

    .. math:: \frac1m\sum_i\frac1l\Big(\max_{j\in Y_i}\mathrm{rank}_i(j)-1\Big)

    Lower is better. The division by l follows the published values, which are in [0, 1]. The
    largest value is (l - 1) / l.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped, as if the row did not have
        these labels; so are rows without a known cell.
    scores : array-like of shape (n_samples, n_labels)
        A higher score means more relevant. The scale does not matter.
    convention, ties : str, optional
        See :mod:`lemll.metrics`.
    empty : {"skip", "count", "depth_zero"}, optional
        What to do with rows without a relevant label. "skip" leaves them out. "count" gives them
        the value 0. "depth_zero" gives them the depth 0, as in the MATLAB code; then their value
        is -1 step. Full rows always count.
    unit : {"fraction", "steps", "depth"}, optional
        The depth is the largest rank of a relevant label. "fraction" is (depth - 1) / l, "steps"
        is depth - 1, and "depth" is the depth.
    average : bool, default=True
        Return the mean over rows, or one value per row. The value of a skipped row is NaN.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In [0, 1) under the default convention.

    Examples
    --------
    >>> from lemll.metrics import coverage
    >>> coverage([[1, 0, 0, 1]], [[0.9, 0.5, 0.1, 0.4]])
    0.5
    >>> coverage([[1, 0, 0, 1]], [[0.9, 0.5, 0.1, 0.4]], unit="depth")
    3.0
    """
    options = resolve("coverage", convention, ties=ties, empty=empty, unit=unit)

    def measure(ranked: RelevantRanks) -> FloatArray:
        depth = np.zeros(len(ranked.sizes))
        np.maximum.at(depth, ranked.rows, ranked.ranks)
        values = depth if options["unit"] == "depth" else depth - 1
        if options["empty"] == "count":
            values[ranked.sizes == 0] = 0
        return values / np.maximum(ranked.n_labels, 1) if options["unit"] == "fraction" else values

    return evaluate(measure, Y_true, scores, options, average)


@_ranking_metric
def average_precision(ranked: RelevantRanks) -> FloatArray:
    r"""Return the mean precision at the ranks of the relevant labels, averaged over the rows.

    .. math:: \frac1m\sum_i\frac1{|Y_i|}\sum_{j\in Y_i}
        \frac{|\{k\in Y_i:\mathrm{rank}_i(k)\le\mathrm{rank}_i(j)\}|}{\mathrm{rank}_i(j)}

    Higher is better. In scikit-learn this is ``label_ranking_average_precision_score``, and not
    ``average_precision_score``.

    Parameters
    ----------
    Y_true : array-like or sparse matrix of shape (n_samples, n_labels)
        True logical labels, 0/1. Unknown cells (NaN) are skipped, as if the row did not have
        these labels; so are rows without a known cell.
    scores : array-like of shape (n_samples, n_labels)
        A higher score means more relevant. The scale does not matter.
    convention, ties, empty, full : str, optional
        See :mod:`lemll.metrics`. Empty and full rows that count have the value 1.
    average : bool, default=True
        Return the mean over rows, or one value per row. The value of a skipped row is NaN.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        In (0, 1].

    Examples
    --------
    >>> from lemll.metrics import average_precision
    >>> average_precision([[1, 0, 0]], [[0.5, 0.5, 0.1]])
    0.5
    >>> average_precision([[1, 0, 0]], [[0.5, 0.5, 0.1]], ties="first")
    1.0
    """
    totals = ranked.sum_by_row(ranked.hits / ranked.ranks)
    return np.where(ranked.sizes == 0, 1.0, totals / np.maximum(ranked.sizes, 1))
