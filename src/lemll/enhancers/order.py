r"""Which of two labels matters more in a row: evidence, a model of comparisons, and its estimates.

Four kinds of evidence give a number :math:`e_m` to each label of each row. The model is that of
Bradley and Terry: label j matters more than label k in row i with the probability

.. math:: \sigma\Bigl(\sum_m w_m(e_{mij}-e_{mik})+b_j-b_k\Bigr),

for two labels that the row has. Comparisons and ratings, if there are some, pull the weights w away
from fixed ones, and the biases b away from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from scipy.special import expit, softmax

from lemll._labels import fill_labels, is_frame
from lemll._types import Array, BoolArray, Features, FloatArray, IndexArray, LabelArray
from lemll._validation import is_sparse, unknown_name
from lemll.enhancers.calibrate import numbers_of_rows
from lemll.enhancers.sources import graph_source
from lemll.fitting.scaling import fit_scaling
from lemll.solvers import solve_log_linear

EVIDENCE = ("other labels", "features", "short lists", "label graph")
# The weights without a comparison, and how strongly comparisons may change weights and biases. They
# were chosen on seven data sets with known degrees and on generated ones (results/README.md), where
# the weights are the rounded optima of the model.
_WEIGHTS = (0.4, 0.2, 2.0, 0.0)
# The short lists differ less between labels than the other evidence does, so their weight is larger
# and may change more.
_UNIT = np.array([1.0, 1.0, 0.3, 1.0])
_RIDGE_OF_WEIGHTS, _RIDGE_OF_BIASES = 30.0, 10.0
# Probabilities are kept away from 0 and 1 by this.
_MARGIN = 0.003
# The ridge of the correlations between labels, and the rows that a label has in addition.
_LABEL_RIDGE, _EXTRA_ROWS = 0.1, 5.0
# Kernel rows that stand for all rows, and the largest number of entries of their matrix.
_LANDMARKS, _MOST_ENTRIES = 300, 20_000_000
_RIDGES_OF_KERNEL = 10.0 ** np.arange(-3, 4)
# A pair is called sure from this probability on; otherwise its order is a toss-up.
SURE = 0.65
# Candidates among which the next comparisons are chosen.
_CANDIDATES = 2000
# Fewer comparisons do not tell how good the model is.
_FEWEST_LEFT_OUT, _FOLDS = 10, 5


class Evidence(NamedTuple):
    """What is known about the order of the labels of each row.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_labels, 4)
        The evidence, in the order of `EVIDENCE`. Logarithms: differences count.
    given : ndarray of bool of shape (n_samples, n_labels)
        The labels that each row is known to have.
    """

    values: FloatArray
    given: BoolArray


def collect_evidence(X: Features, Y: LabelArray, weight: FloatArray | None) -> Evidence:
    """Collect the evidence of labels and features.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1. Unknown cells may hold any value.
    weight : ndarray of shape (n_samples, n_labels) or None
        How sure each cell is, 0 to 1; None means that all are certain.

    Returns
    -------
    Evidence
        "other labels": the log-odds of a label, given the other labels of the row, by a ridge
        regression. "features": its log-odds, given the features, by a kernel ridge regression that
        has not seen the row. "short lists": the logarithm of the mean share of the label among the
        labels of a row that has it; a label that stands in short lists matters more. "label graph":
        the logarithm of the labels after propagation over their graph.
    """
    given = np.asarray((Y > 0) if weight is None else (Y > 0) & (weight > 0))
    labels = fill_labels(Y, weight)
    parts = (
        from_other_labels(labels),
        from_features(X, labels),
        np.broadcast_to(short_lists(given), labels.shape),
        graph_source(Y, weight),
    )
    return Evidence(np.stack(parts, axis=2), given)


def from_other_labels(labels: FloatArray) -> FloatArray:
    r"""Return the log-odds of each label, given the other labels of its row.

    With S the correlations of the labels and :math:`\Omega=(S+\rho I)^{-1}`, the ridge regression
    of standardised label j on the others leaves the residual
    :math:`(z\Omega)_j/\Omega_{jj}` in a row z.

    Parameters
    ----------
    labels : ndarray of shape (n_samples, n_labels)
        Labels from 0 to 1.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Log-odds.
    """
    mean = labels.mean(axis=0)
    off = labels - mean
    deviation = np.sqrt(np.maximum(np.square(off).mean(axis=0), 1e-6))
    rows = off / deviation
    correlations = rows.T @ rows / len(rows)
    inverse = linalg.inv(correlations + _LABEL_RIDGE * np.eye(len(correlations)))
    return _log_odds(mean + (rows - rows @ inverse / np.diag(inverse)) * deviation)


def from_features(X: Features, labels: FloatArray) -> FloatArray:
    """Return the log-odds of each label, given the features of its row.

    A kernel ridge regression of all labels, whose ridge has the least squared error of rows that
    were left out. The kernel is a Gaussian on standardised features, as wide as the median
    distance; more than 300 rows are represented by landmarks.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    labels : ndarray of shape (n_samples, n_labels)
        Labels from 0 to 1.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Log-odds of each row, by the other rows.
    """
    n_rows = len(labels)
    basis, values = _kernel_basis(fit_scaling("standard", X)(X))
    mean = labels.mean(axis=0)
    projected = basis.T @ (labels - mean)
    best, least = labels, np.inf
    for ridge in _RIDGES_OF_KERNEL * (values.mean() if len(values) else 1.0):
        kept = values / (values + ridge)
        leverage = np.square(basis) @ kept + 1 / n_rows
        off = (labels - mean - basis @ (kept[:, None] * projected)) / (
            1 - np.minimum(leverage, 1 - 1e-6)
        )[:, None]
        error = float(np.square(off).sum())
        if error < least:
            best, least = labels - off, error
    return _log_odds(best)


def _kernel_basis(X: Features) -> tuple[FloatArray, FloatArray]:
    """Return orthonormal columns and eigenvalues of the centred Gaussian kernel of the rows."""
    n_rows = X.shape[0]
    count = max(2, min(n_rows, _LANDMARKS, _MOST_ENTRIES // max(n_rows, 1)))
    chosen = np.random.RandomState(0).permutation(n_rows)[:count]
    distances = _squared_distances(X, X[chosen])
    width = float(np.median(distances[chosen])) or 1.0
    kernel = np.exp(-distances / width)
    sizes, vectors = linalg.eigh(kernel[chosen])
    kept = sizes > 1e-8 * sizes.max()
    features = kernel @ (vectors[:, kept] / np.sqrt(sizes[kept]))
    features -= features.mean(axis=0)
    values, vectors = linalg.eigh(features.T @ features)
    # The kernel has ones on its diagonal, so this is rounding error, as with constant features.
    kept = values > max(1e-8 * float(values.max()), 1e-10 * n_rows)
    return np.asarray(features @ (vectors[:, kept] / np.sqrt(values[kept]))), values[kept]


def _squared_distances(A: Features, B: Features) -> FloatArray:
    products = A @ B.T
    inner = np.asarray(products.toarray() if is_sparse(products) else products, dtype=np.float64)
    squares = [
        np.asarray(M.multiply(M).sum(axis=1) if is_sparse(M) else np.square(M).sum(axis=1)).ravel()
        for M in (A, B)
    ]
    return np.asarray(np.maximum(0.0, squares[0][:, None] + squares[1] - 2 * inner))


def short_lists(given: BoolArray) -> FloatArray:
    """Return the logarithm of the mean share of each label in the rows that have it.

    In a row with k labels, each has the share 1/k. Five more rows with the mean share keep rare
    labels near it.

    Parameters
    ----------
    given : ndarray of bool of shape (n_samples, n_labels)
        The labels of each row.

    Returns
    -------
    ndarray of shape (n_labels,)
        0 if all rows have the same number of labels, up to a constant.
    """
    sizes = given.sum(axis=1)
    shares = given / np.maximum(sizes, 1)[:, None]
    usual = shares.sum() / max(1, int(given.sum()))
    counts = given.sum(axis=0) + _EXTRA_ROWS
    mean = (shares.sum(axis=0) + _EXTRA_ROWS * usual) / counts
    return np.asarray(np.log(np.maximum(mean, np.finfo(np.float64).tiny)))


def _log_odds(probabilities: FloatArray) -> FloatArray:
    p = np.clip(probabilities, _MARGIN, 1 - _MARGIN)
    return np.asarray(np.log(p / (1 - p)))


class Comparison(NamedTuple):
    """An answer: in this row, which has both labels, one matters more than the other.

    Attributes
    ----------
    row, more, less : int
        The row, the label that matters more and the one that matters less.
    """

    row: int
    more: int
    less: int


def check_pairs(
    pairs: Any, given: BoolArray, label_names: Sequence[str], row_names: Array | None = None
) -> list[Comparison]:
    """Return comparisons as numbers, or raise a ValueError.

    Parameters
    ----------
    pairs : iterable or frame
        Triples of a row, the label that matters more there, and the one that matters less. Rows
        are numbers from 0, or names in `row_names` if these are not whole numbers; labels are names
        or numbers. A frame has the columns "row", "more" and "less".
    given : ndarray of bool of shape (n_samples, n_labels)
        The labels that each row has.
    label_names : sequence of str
        The names of the labels.
    row_names : ndarray of shape (n_samples,), optional
        The index of the rows. By default they have only numbers.

    Returns
    -------
    list of Comparison
        The comparisons.
    """
    if is_frame(pairs):
        absent = [name for name in Comparison._fields if name not in list(pairs.columns)]
        if absent:
            raise ValueError(
                f"pairs lacks the columns {', '.join(absent)}; it needs the columns row, more (the "
                "label that matters more there) and less."
            )
        pairs = zip(*(list(pairs[name]) for name in Comparison._fields), strict=True)
    try:
        triples = [tuple(pair) for pair in pairs]
    except TypeError:
        triples = [()]
    if any(len(triple) != len(Comparison._fields) for triple in triples):
        raise ValueError(
            "pairs must hold triples of a row and two labels, the one that matters more first, as "
            f"[(0, 'sea', 'sky')], got {str(pairs)[:60]}."
        )
    rows = _row_numbers([triple[0] for triple in triples], len(given), row_names)
    places = {str(name): place for place, name in enumerate(label_names)}
    found = []
    for row, (name, *labels) in zip(rows, triples, strict=True):
        more, less = (_label_number(label, places, row=name) for label in labels)
        if more == less or not given[row, more] or not given[row, less]:
            raise ValueError(
                f"pairs compares {labels[0]!r} and {labels[1]!r} in row {name!r}; a comparison "
                "needs two different labels that the row has."
            )
        found.append(Comparison(row, more, less))
    return found


def _row_numbers(rows: list[Any], n_rows: int, row_names: Array | None) -> list[int]:
    index = np.asarray(rows)
    if row_names is not None and index.dtype.kind in "OUSM" and len(index):
        return [int(row) for row in numbers_of_rows(index, row_names)]
    whole = index.dtype.kind in "iu" or (index.dtype.kind == "f" and (index % 1 == 0).all())
    if len(index) and not (index.ndim == 1 and whole and 0 <= index.min() <= index.max() < n_rows):
        raise ValueError(
            f"the rows of pairs must be numbers from 0 to {n_rows - 1}, or names in the index of "
            f"the training rows if these are not whole numbers, got {str(rows[:3])[:60]}."
        )
    return [int(row) for row in index]


def _label_number(label: Any, places: Mapping[str, int], *, row: Any) -> int:
    if isinstance(label, str) and label in places:
        return places[label]
    if isinstance(label, int | np.integer) and 0 <= label < len(places):
        return int(label)
    raise ValueError(f"row {row!r} of pairs: {unknown_name('label', str(label), places)}")


@dataclass(frozen=True)
class OrderModel:
    """Weights of the evidence for the order of the labels that a row has.

    Attributes
    ----------
    weights : ndarray of shape (4,)
        The weights of the evidence.
    bias : ndarray of shape (n_labels,)
        What each label has in addition.
    optimality : float
        The certified relative gap of the fit.
    """

    weights: FloatArray
    bias: FloatArray
    optimality: float = 0.0

    def values(self, evidence: Evidence) -> FloatArray:
        """Return numbers whose differences are the log-odds of the order of two given labels."""
        return np.asarray(evidence.values @ self.weights + self.bias)


def usual_order(n_labels: int) -> OrderModel:
    """Return the model that no comparison has changed."""
    return OrderModel(np.array(_WEIGHTS), np.zeros(n_labels))


def fit_order(
    evidence: Evidence, pairs: Sequence[Comparison], weights: FloatArray | None = None
) -> OrderModel:
    r"""Fit the weights and biases to comparisons.

    They minimise

    .. math:: -\sum_p v_p\log\sigma(w^\top\Delta_p+b_{j_p}-b_{k_p})
        +\tfrac{\rho}{2}\|w-w_0\|^2+\tfrac{\tau}{2}\|b\|^2 .

    Parameters
    ----------
    evidence : Evidence
        The evidence of the rows.
    pairs : sequence of Comparison
        The answers.
    weights : ndarray of shape (n_pairs,), optional
        The weights v. By default 1.

    Returns
    -------
    OrderModel
        The model; the usual one if there are no pairs.
    """
    n_labels = evidence.given.shape[1]
    usual = usual_order(n_labels)
    if not len(pairs):
        return usual
    table = np.array(pairs, dtype=np.intp)
    labels, place = np.unique(table[:, 1:], return_inverse=True)
    place = place.reshape(-1, 2)
    row, more, less = table.T
    off = (evidence.values[row, more] - evidence.values[row, less]) / _UNIT
    biases = np.zeros((len(table), len(labels)))
    biases[np.arange(len(table)), place[:, 0]] += 1
    biases[np.arange(len(table)), place[:, 1]] -= 1
    # The second of two outcomes has the logarithm 0.
    G = np.stack([np.hstack([off, biases]), np.zeros((len(table), 4 + len(labels)))], axis=1)
    outcome = np.tile([1.0, 0.0], (len(table), 1))
    ridge = _ridges(len(labels))
    centre = np.concatenate([usual.weights * _UNIT, np.zeros(len(labels))])
    found = solve_log_linear(G, outcome, ridge, centre, weight=weights)
    bias = np.zeros(n_labels)
    bias[labels] = found.coef[4:]
    return OrderModel(found.coef[:4] / _UNIT, bias, found.gap)


def _ridges(n_labels: int) -> FloatArray:
    return np.concatenate([np.full(4, _RIDGE_OF_WEIGHTS), np.full(n_labels, _RIDGE_OF_BIASES)])


def rated_pairs(
    evidence: Evidence, rows: IndexArray, known: FloatArray
) -> tuple[list[Comparison], FloatArray]:
    """Turn rated rows into comparisons; the pairs of a row weigh 1 together.

    Parameters
    ----------
    evidence : Evidence
        The evidence of all rows.
    rows : ndarray of shape (n_rated,)
        Numbers of the rated rows.
    known : ndarray of shape (n_rated, n_labels)
        Their degrees.

    Returns
    -------
    pairs : list of Comparison
        All pairs of given labels with different degrees.
    weights : ndarray of shape (n_pairs,)
        Their weights.
    """
    pairs: list[Comparison] = []
    weights: list[float] = []
    for row, degrees in zip(rows.tolist(), known, strict=True):
        labels = np.flatnonzero(evidence.given[row])
        first, second = (labels[place] for place in np.triu_indices(len(labels), 1))
        different = degrees[first] != degrees[second]
        first, second = first[different], second[different]
        swap = degrees[first] < degrees[second]
        more, less = np.where(swap, second, first), np.where(swap, first, second)
        pairs += [Comparison(row, *two) for two in zip(more.tolist(), less.tolist(), strict=True)]
        weights += [1 / max(1, len(more))] * len(more)
    return pairs, np.array(weights)


def keep_answers(values: FloatArray, pairs: Iterable[Comparison]) -> FloatArray:
    """Exchange values of labels that a comparison has in the other order, in its row.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_labels)
        As `OrderModel.values` returns them.
    pairs : iterable of Comparison
        The answers. If they contradict each other, the later ones count.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The values.
    """
    kept = values.copy()
    for row, more, less in pairs:
        if kept[row, more] <= kept[row, less]:
            kept[row, more], kept[row, less] = kept[row, less], kept[row, more]
    return kept


def in_order(degrees: FloatArray, values: FloatArray, given: BoolArray) -> FloatArray:
    """Exchange the degrees of the given labels of each row, so that they have the order of values.

    Parameters
    ----------
    degrees, values : ndarray of shape (n_samples, n_labels)
        Degrees, and the numbers whose order they get.
    given : ndarray of bool of shape (n_samples, n_labels)
        The labels whose degrees are exchanged.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The degrees.
    """
    # Given labels first: the one with the m-th smallest value gets the m-th smallest degree.
    places = np.argsort(np.where(given, values, np.inf), axis=1, kind="stable")
    smallest = np.sort(np.where(given, degrees, np.inf), axis=1)
    exchanged = degrees.copy()
    np.put_along_axis(exchanged, places, smallest, axis=1)
    return np.where(given, exchanged, degrees)


class OrderEstimate(NamedTuple):
    """How well the order of the given labels is known.

    Attributes
    ----------
    expected : float
        The share of pairs of given labels in the right order, by the model's own probabilities:
        the mean over rows with two given labels. NaN if there are none.
    sure : float
        The share of these pairs that are called sure: one order has at least the probability 0.65.
    left_out : float or None
        The share of comparisons that the model orders right if it has not seen their rows. None
        with fewer than 10 comparisons of given labels.
    n_pairs : int
        The number of these comparisons.
    """

    expected: float
    sure: float
    left_out: float | None
    n_pairs: int


def estimate_order(
    evidence: Evidence,
    model: OrderModel,
    pairs: Sequence[Comparison] = (),
    weights: FloatArray | None = None,
) -> OrderEstimate:
    """Estimate how well a model orders the given labels.

    Parameters
    ----------
    evidence : Evidence
        The evidence of the rows.
    model : OrderModel
        The model.
    pairs, weights
        The comparisons that it was fitted to, as in `fit_order`.

    Returns
    -------
    OrderEstimate
        From the model's probabilities, and from comparisons that were left out.
    """
    expected, sure = _expected(model.values(evidence), evidence.given)
    table = np.array(pairs, dtype=np.intp).reshape(-1, 3)
    counts = np.ones(len(table)) if weights is None else weights
    rows = np.unique(table[:, 0])
    if len(table) < _FEWEST_LEFT_OUT or len(rows) < _FOLDS:
        return OrderEstimate(expected, sure, None, len(table))
    fold = np.searchsorted(rows, table[:, 0]) % _FOLDS
    right = np.empty(len(table))
    for number in range(_FOLDS):
        seen = [Comparison(*pair) for pair in table[fold != number].tolist()]
        row, more, less = table[fold == number].T
        values = fit_order(evidence, seen, counts[fold != number]).values(evidence)
        right[fold == number] = (np.sign(values[row, more] - values[row, less]) + 1) / 2
    return OrderEstimate(expected, sure, float(np.average(right, weights=counts)), len(table))


def _expected(values: FloatArray, given: BoolArray) -> tuple[float, float]:
    """Return the expected share of right pairs, and the share of sure ones, as means over rows."""
    right, sure = np.zeros(len(values)), np.zeros(len(values))
    for first in range(values.shape[1] - 1):
        off = np.abs(values[:, first, None] - values[:, first + 1 :])
        probability = np.where(given[:, first, None] & given[:, first + 1 :], expit(off), 0)
        right += probability.sum(axis=1)
        sure += (probability >= SURE).sum(axis=1)
    sizes = given.sum(axis=1)
    counted = sizes > 1
    n_pairs = (sizes * (sizes - 1) / 2)[counted]
    if not counted.any():
        return float("nan"), float("nan")
    return float((right[counted] / n_pairs).mean()), float((sure[counted] / n_pairs).mean())


def next_pairs(
    evidence: Evidence, model: OrderModel, n_pairs: int, asked: Iterable[Comparison] = ()
) -> list[tuple[int, int, int]]:
    r"""Choose the comparisons whose answers tell most about the model.

    With p the probability of an answer and A the Hessian of the objective of `fit_order`, the next
    pair has the largest :math:`p(1-p)\,\Delta^\top A^{-1}\Delta`; A then grows by its part. One
    pair per row is a candidate.

    Parameters
    ----------
    evidence : Evidence
        The evidence of the rows.
    model : OrderModel
        The present model.
    n_pairs : int
        How many.
    asked : iterable of Comparison
        Comparisons that are known; their rows are not asked again.

    Returns
    -------
    list of tuple of int
        Row and two labels that the row has. Fewer than `n_pairs` if there are no more.
    """
    known = list(asked)
    rng = np.random.RandomState(0)
    free = evidence.given.sum(axis=1) > 1
    free[[pair.row for pair in known]] = False
    rows = rng.permutation(np.flatnonzero(free))[:_CANDIDATES]
    two = np.array(
        [rng.permutation(np.flatnonzero(evidence.given[row]))[:2] for row in rows], dtype=np.intp
    ).reshape(-1, 2)
    n_labels = evidence.given.shape[1]
    values = model.values(evidence)

    def design(
        row: IndexArray, more: IndexArray, less: IndexArray
    ) -> tuple[FloatArray, FloatArray]:
        off = np.zeros((len(row), 4 + n_labels))
        off[:, :4] = (evidence.values[row, more] - evidence.values[row, less]) / _UNIT
        off[np.arange(len(row)), 4 + more] += 1
        off[np.arange(len(row)), 4 + less] -= 1
        p = expit(values[row, more] - values[row, less])
        return off, p * (1 - p)

    inverse = np.diag(1 / _ridges(n_labels))
    if known:
        for told, sure in zip(*design(*np.array(known, dtype=np.intp).T), strict=True):
            inverse = _with_answer(inverse, told, float(sure))
    off, curvature = design(rows, *two.T)
    chosen: list[tuple[int, int, int]] = []
    left = np.ones(len(rows), dtype=bool)
    while len(chosen) < n_pairs and left.any():
        gain = np.where(left, curvature * np.einsum("ij,ij->i", off @ inverse, off), -1)
        best = int(gain.argmax())
        left[best] = False
        chosen.append((int(rows[best]), int(two[best, 0]), int(two[best, 1])))
        inverse = _with_answer(inverse, off[best], float(curvature[best]))
    return chosen


def _with_answer(inverse: FloatArray, off: FloatArray, curvature: float) -> FloatArray:
    """Return the inverse of a matrix to which ``curvature * off off'`` is added."""
    step = inverse @ off
    return inverse - np.outer(step, step) * curvature / (1 + curvature * float(off @ step))


class RankedLabel(NamedTuple):
    """One given label of a row, in order.

    Attributes
    ----------
    label : int
        Its number.
    share : float
        The probability that it matters most among the given labels, if one is chosen by Luce's
        rule. In a rated row, its degree, divided by the sum of those of the given labels.
    sure : bool
        Whether its order to the next given label is more than a toss-up; True for the last one.
    """

    label: int
    share: float
    sure: bool


def ranked_labels(values: FloatArray, given: BoolArray) -> list[RankedLabel]:
    """Return the given labels of one row in order.

    Parameters
    ----------
    values : ndarray of shape (n_labels,)
        As `OrderModel.values` returns them.
    given : ndarray of bool of shape (n_labels,)
        The labels that the row has.

    Returns
    -------
    list of RankedLabel
        The most important label first.
    """
    labels = np.flatnonzero(given)
    labels = labels[np.argsort(-values[labels], kind="stable")]
    shares = softmax(values[labels]) if len(labels) else np.empty(0)
    sure = np.append(expit(-np.diff(values[labels])) >= SURE, True)
    return [
        RankedLabel(int(label), float(share), bool(is_sure))
        for label, share, is_sure in zip(labels, shares, sure, strict=False)
    ]
