"""Models of all pairs of labels, ordered by the first label of the pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from lemll._types import Estimator, Features, FloatArray, LabelArray, MatrixLike
from lemll._validation import check_memory
from lemll.predictors.logistic.members import BuiltIn, fit_member, member_log_odds
from lemll.predictors.logistic.probability import SURE
from lemll.solvers import solve_logistic_subsets

__all__ = ["LinearPairs", "MemberPairs"]

# Pairs are trained in groups with about this many rows in total, which need 4 bytes per row.
CHUNK_ROWS = 1 << 24
# A row with a smaller weight in a pair is left out.
LEAST_WEIGHT = 1e-6


class PairRows(NamedTuple):
    """The training rows of a pair of labels.

    Attributes
    ----------
    rows : ndarray of int32
        Indices of the rows.
    labels : ndarray of int8
        Whether the row has the first label of the pair (1) or the second (0).
    weights : ndarray or None
        The weights of the rows; None means 1.
    """

    rows: npt.NDArray[np.int32]
    labels: LabelArray
    weights: FloatArray | None


def rows_of_pairs(Y: LabelArray, chance: FloatArray | None = None) -> Iterator[PairRows]:
    """Yield, per pair, the rows with exactly one of its labels.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1; -1 in unknown cells.
    chance : ndarray of shape (n_samples, n_labels), optional
        Probabilities of the labels. With them, a row in which only one label of the pair is known
        counts with the probability that it has exactly one of the two. Without them, such a row
        does not count.

    Yields
    ------
    PairRows
        In the order (0, 1), (0, 2), ..., (1, 2), ....
    """
    expected = None if chance is None else np.where(Y < 0, chance, Y)
    for p in range(Y.shape[1] - 1):
        for q in range(p + 1, Y.shape[1]):
            # A row with both labels or with neither does not say which of the two is better.
            if expected is None:
                # One 0 and one 1 sum to 1; no sum with the -1 of an unknown cell does.
                rows = np.flatnonzero(Y[:, p] + Y[:, q] == 1)
                yield PairRows(rows.astype(np.int32), Y[rows, p], None)
                continue
            # One of the labels is known, so one of the two products is 0.
            first = expected[:, p] * (1 - expected[:, q])
            weights = first + expected[:, q] * (1 - expected[:, p])
            weights[(Y[:, p] < 0) & (Y[:, q] < 0)] = 0
            rows = np.flatnonzero(weights > LEAST_WEIGHT)
            labels = (first[rows] > 0).astype(np.int8)
            yield PairRows(rows.astype(np.int32), labels, weights[rows])


@dataclass(frozen=True, slots=True)
class LinearPairs:
    """Logistic regressions of all pairs.

    Attributes
    ----------
    n_labels : int
        Number of labels.
    coef : ndarray of shape (n_pairs, n_features), float32
        Coefficients of the scaled features, in the order (0, 1), (0, 2), ..., (1, 2), ...
    intercept : ndarray of shape (n_pairs,)
        Intercepts. NaN for a pair that no training row distinguishes.
    n_iter : int
        Newton steps of the slowest model.
    own : BuiltIn
        How the features were scaled. The coefficients are stored for scaled features, because
        conversion to the original features would round them again, and then they would not match
        their intercepts.
    """

    n_labels: int
    coef: npt.NDArray[np.float32]
    intercept: FloatArray
    n_iter: int
    own: BuiltIn

    @classmethod
    def fit(
        cls, X: MatrixLike, Y: LabelArray, own: BuiltIn, chance: FloatArray | None = None
    ) -> Self:
        """Train all pairs, in groups; `chance` as in `rows_of_pairs`."""
        n_labels = Y.shape[1]
        n_pairs = n_labels * (n_labels - 1) // 2
        check_memory(
            4 * n_pairs * X.shape[1],
            f"The models of {n_pairs} pairs of labels",
            "keep fewer labels or features, or use BinaryRelevance",
        )
        coef = np.empty((n_pairs, X.shape[1]), dtype=np.float32)
        intercept, gradient_norm, n_iter = np.empty(n_pairs), np.empty(n_pairs), 0
        scaled = own.scaled(X)
        start = 0
        for pairs in _chunks(Y, chance):
            rows, labels = [pair.rows for pair in pairs], [pair.labels for pair in pairs]
            weights = [pair.weights for pair in pairs if pair.weights is not None] or None
            solution = solve_logistic_subsets(scaled, rows, labels, weights=weights, **own.options)
            part = slice(start, start + len(rows))
            coef[part] = solution.coef
            # Only a constant model has an infinite intercept; keep the scores finite.
            intercept[part] = np.nan_to_num(
                solution.intercept, nan=np.nan, posinf=SURE, neginf=-SURE
            )
            gradient_norm[part] = solution.gradient_norm
            n_iter = max(n_iter, int(solution.n_iter.max()))
            start += len(rows)
        own.warn("CLR", gradient_norm)
        return cls(n_labels, coef, intercept, n_iter, own)

    def log_odds(self, X: Features, p: int, until_empty: bool) -> tuple[FloatArray, FloatArray]:
        """Score label p against each later label; also return which of the pairs have a vote."""
        part = _pairs_of(self.n_labels, p)
        empty = np.isnan(self.intercept)
        known = _known(empty, part, until_empty)
        coef = np.ascontiguousarray(self.own.unscaled(self.coef[part].astype(np.float64)).T)
        return np.asarray(X @ coef + np.nan_to_num(self.intercept[part])), known


@dataclass(frozen=True, slots=True)
class MemberPairs:
    """Classifiers of the user for all pairs.

    Attributes
    ----------
    n_labels : int
        Number of labels.
    members : list
        One classifier per pair, in the order (0, 1), (0, 2), ..., (1, 2), .... None for a pair
        that no training row distinguishes.
    """

    n_labels: int
    members: list[Any]
    n_iter: int = 1

    @classmethod
    def fit(
        cls,
        X: MatrixLike,
        Y: LabelArray,
        estimator: Estimator,
        n_jobs: int | None,
        chance: FloatArray | None = None,
    ) -> Self:
        """Train all pairs; `chance` as in `rows_of_pairs`."""
        members = Parallel(n_jobs=n_jobs)(
            delayed(_fit_pair)(estimator, X, pair) for pair in rows_of_pairs(Y, chance)
        )
        return cls(Y.shape[1], members)

    def log_odds(self, X: Features, p: int, until_empty: bool) -> tuple[FloatArray, FloatArray]:
        """Score label p against each later label; also return which of the pairs have a vote."""
        part = _pairs_of(self.n_labels, p)
        empty = np.array([member is None for member in self.members])
        scores = [
            member_log_odds(0.0 if member is None else member, X) for member in self.members[part]
        ]
        return np.column_stack(scores), _known(empty, part, until_empty)


def _chunks(Y: LabelArray, chance: FloatArray | None) -> Iterator[list[PairRows]]:
    pairs: list[PairRows] = []
    listed = 0
    for pair in rows_of_pairs(Y, chance):
        pairs.append(pair)
        listed += len(pair.rows)
        if listed > CHUNK_ROWS:
            yield pairs
            pairs, listed = [], 0
    if pairs:
        yield pairs


def _pairs_of(n_labels: int, p: int) -> slice:
    """Return the positions of the pairs (p, p + 1), (p, p + 2), ...."""
    # Label k begins n - 1 - k pairs. The start is their sum over all k < p.
    start = p * n_labels - p * (p + 1) // 2
    return slice(start, start + n_labels - 1 - p)


def _known(empty: npt.NDArray[np.bool_], part: slice, until_empty: bool) -> FloatArray:
    # Mulan stops at the first empty pair by mistake; see `mulan_compat` of CLR.
    if until_empty:
        empty = np.logical_or.accumulate(empty)
    return (~empty[part]).astype(np.float64)


def _fit_pair(estimator: Estimator, X: Features, pair: PairRows) -> Features:
    if not len(pair.rows):
        return None
    return fit_member(estimator, X[pair.rows], pair.labels, pair.weights)
