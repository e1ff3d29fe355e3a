"""ML-kNN: the number of neighbours that have a label gives the probability of the label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lemll._sparse import dense, lighter, squared_lengths
from lemll._types import Features, FloatArray, IndexArray, LabelArray
from lemll._validation import check_magnitude, check_number, check_whole, is_sparse
from lemll.fitting.scaling import SCALES, fit_scaling
from lemll.predictors.base import refuse_confidences
from lemll.predictors.calibrated import SURE, ProbabilityClassifier, TiesAreRelevant
from lemll.topology.neighbors import nearest_neighbors

BLOCK_BYTES = 1 << 25
# If squared lengths are whole numbers below this, float32 computes all distances exactly.
EXACT_SINGLE = 2.0**21
# Below this share of nonzeros, a sparse-sparse product is faster than a sparse-dense product.
RARE = 0.005


@dataclass(eq=False, repr=False)
class MLkNN(TiesAreRelevant, ProbabilityClassifier):
    r"""Multi-label k nearest neighbours, exactly as its authors defined it.

    ML-kNN does not minimise an objective. Let c be the number of rows that have a label, among the
    k nearest training rows of a row. Bayes' rule gives the probability of the label [1]_,

    .. math::
        f=\frac{P(H_1)P(c|H_1)}{P(H_1)P(c|H_1)+P(H_0)P(c|H_0)},\quad
        P(H_1)=\frac{s+n_1}{2s+n},\quad P(c|H_b)=\frac{s+\kappa_b[c]}{s(k+1)+n_b},

    where n is the number of training rows, :math:`n_1` of them have the label and
    :math:`n_0=n-n_1` do not. Among these :math:`n_b` rows, :math:`\kappa_b[c]` have exactly c
    neighbours with the label; a row is not its own neighbour. A label is predicted if
    :math:`f\ge1/2`.

    Parameters
    ----------
    n_neighbors : int, default=10
        k. If there are fewer other rows, all of them are used.
    smoothing : float, default=1.0
        s, from 1e-100 to 1e100: every event is counted s times in addition to its real count.
    scale : {"none", "minmax", "standard", "maxabs", "auto"}, default="none"
        "none" uses the features without change. "minmax" divides each feature by its range in the
        training rows, as Weka and therefore Mulan do. The others are those of :class:`LEMLL`.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        A label is predicted if its log-odds reach its threshold. "zero" uses 0 for all labels, as
        in the paper. "f1" and "hamming" choose one threshold per label: the one with the best F1,
        or with the most correct decisions. To choose it, 5-fold cross-validation scores every
        training row with a model that was not fitted on that row.

    Attributes
    ----------
    log_odds_ : ndarray of shape (n_labels, k + 1)
        The logarithm of f / (1 - f), for each label and each number of neighbours that have it.
        Empty if labels had unknown cells.
    n_neighbors_ : int
        Number of neighbours used.
    X_fit_ : ndarray or csr_array
        The training rows, scaled.
    Y_fit_ : ndarray of shape (n_samples, n_labels)
        Their labels.
    classes_, label_names_, thresholds_, n_features_in_, feature_names_in_
        As in :class:`lemll.BinaryRelevance`.

    Notes
    -----
    A row is never its own neighbour. Another row with the same features can be its neighbour. If
    several rows have the same distance, those with the lower index are chosen.

    References
    ----------
    .. [1] M.-L. Zhang and Z.-H. Zhou, "ML-KNN: A lazy learning approach to multi-label learning",
       Pattern Recognition 40(7), 2007.

    Examples
    --------
    >>> from lemll.rivals import MLkNN
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = MLkNN().fit(digits.X[:900], digits.Y[:900])
    >>> model.predict(digits.X[900:]).shape
    (897, 8)
    """

    n_neighbors: int = 10
    smoothing: float = 1.0
    _: KW_ONLY
    scale: str = "none"

    def _fit(self, X: Features, Y: LabelArray) -> None:
        s = self._remember(X, Y)
        self._members: list[MLkNN | float] | None = None
        counts = _counts(nearest_neighbors(self.X_fit_, self.n_neighbors_), Y)
        self.log_odds_ = _log_odds(counts, Y, self.n_neighbors_, s)

    def _fit_partial(self, X: Features, Y: LabelArray, weight: FloatArray) -> None:
        # The neighbours of a row are, for each label, the nearest rows in which it was observed.
        refuse_confidences(self, weight)
        self._remember(X, Y)
        self._members = [_label_member(self, self.X_fit_, y) for y in Y.T]
        self.log_odds_ = np.empty((0, 0))

    def _remember(self, X: Features, Y: LabelArray) -> float:
        """Check rows and parameters, keep the scaled rows, and return the smoothing."""
        wanted = check_whole("n_neighbors", self.n_neighbors, least=1)
        s = check_number("smoothing", self.smoothing, above=0)
        if not 1e-100 <= s <= 1e100:
            raise ValueError(
                f"smoothing must lie between 1e-100 and 1e+100, got {s!r}; products of three "
                "numbers of its size would leave the range of floating-point numbers."
            )
        n_samples = X.shape[0]
        if n_samples < 2:
            raise ValueError(
                f"MLkNN needs a row and a neighbour of it, got n_samples={n_samples}; add rows."
            )
        check_magnitude(X)
        self._scaling = self._learned_scaling(X)
        self.n_neighbors_ = min(wanted, n_samples - 1)
        self.X_fit_, self.Y_fit_ = self._scaling(X).copy(), Y
        return s

    def _score(self, X: Features) -> FloatArray:
        rows = self._scaling(X)
        check_magnitude(rows)
        if self._members is not None:
            return np.column_stack(
                [
                    np.full(rows.shape[0], member)
                    if isinstance(member, float)
                    else member._score(rows)[:, 0]
                    for member in self._members
                ]
            )
        near = nearest_training_rows(self.X_fit_, rows, self.n_neighbors_)
        counts = _counts(near, self.Y_fit_)
        return np.asarray(self.log_odds_[np.arange(counts.shape[1]), counts])

    def _learned_scaling(self, X: Features) -> Callable[[Features], Features]:
        if isinstance(self.scale, str) and self.scale == "minmax":
            return partial(_multiplied, _inverse_ranges(X))
        if not isinstance(self.scale, str) or self.scale not in SCALES:
            raise ValueError(
                f"scale={self.scale!r} must be 'minmax' or one of {', '.join(map(repr, SCALES))}."
            )
        return fit_scaling(self.scale, X)


def _multiplied(factors: FloatArray, X: Features) -> Features:
    # Do not subtract the minimum: distances do not depend on it, and sparse rows stay sparse.
    return X.multiply(factors).tocsr() if is_sparse(X) else X * factors


def _label_member(model: MLkNN, X: Features, y: LabelArray) -> MLkNN | float:
    """Fit one label to the rows in which it was observed; if they are equal, return log-odds."""
    rows = np.flatnonzero(y >= 0)
    if len(rows) < 2:
        # A single row has no neighbour. As a label with equal values in all rows, it is constant.
        return SURE if (y == 1).any() else -SURE
    member = MLkNN(model.n_neighbors, model.smoothing)
    member._fit(X[rows], y[rows, None])
    return member


def _inverse_ranges(X: Features) -> FloatArray:
    """Return one divided by the range of each feature; 0 for a constant feature."""
    low, high = (
        np.asarray(end.toarray() if is_sparse(end) else end, dtype=np.float64).ravel()
        for end in (X.min(axis=0), X.max(axis=0))
    )
    reach = high - low
    # One divided by a smaller number may be infinite.
    varies = reach >= np.finfo(np.float64).tiny
    return np.asarray(np.where(varies, 1 / np.where(varies, reach, 1), 0))


def neighbour_graph(
    near: IndexArray, n_samples: int, dtype: npt.DTypeLike = np.float64
) -> Features:
    """Return the matrix with a 1 in row i and column j if j is a neighbour of row i."""
    n_rows, k = near.shape
    start = np.arange(0, near.size + 1, k)
    ones = np.ones(near.size, dtype=dtype)
    return sparse.csr_array((ones, near.ravel(), start), shape=(n_rows, n_samples))


def _counts(near: IndexArray, Y: LabelArray) -> npt.NDArray[np.int32]:
    """Count the neighbours that have each label."""
    # A sparse product counts for all labels at once, without a (rows, k, labels) array.
    return np.asarray(neighbour_graph(near, len(Y), np.int32) @ Y.astype(np.int32))


def _log_odds(counts: npt.NDArray[np.int32], Y: LabelArray, k: int, s: float) -> FloatArray:
    n_samples, n_labels = Y.shape
    # One bin per label and count, so that a single bincount serves all labels.
    bins = counts + np.arange(n_labels, dtype=np.int64) * (k + 1)
    shape = (n_labels, k + 1)
    seen = np.bincount(bins.ravel(), minlength=n_labels * (k + 1)).reshape(shape)
    seen1 = np.bincount(bins[Y == 1], minlength=n_labels * (k + 1)).reshape(shape)
    seen0 = seen - seen1
    n1 = Y.sum(axis=0, dtype=np.int64)[:, None]
    n0 = n_samples - n1
    # Multiply before dividing: products of whole numbers below 2^53 are exact, so a tie gives a
    # quotient of exactly 1 and log-odds of exactly 0.
    odds1 = (s + n1) * (s + seen1) * (s * (k + 1) + n0)
    odds0 = (s + n0) * (s + seen0) * (s * (k + 1) + n1)
    return np.asarray(np.log(odds1 / odds0))


def nearest_training_rows(X: Features, rows: Features, n_neighbors: int) -> IndexArray:
    """Return the exact K nearest rows of X for each query row; ties go to the lower index.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        The rows to search in.
    rows : ndarray or csr_array of shape (n_queries, n_features)
        The query rows.
    n_neighbors : int
        K, at most n_samples.

    Returns
    -------
    ndarray of shape (n_queries, n_neighbors)
        Indices of rows of X, in ascending order.

    Examples
    --------
    >>> nearest_training_rows(np.array([[0.0], [1.0], [5.0]]), np.array([[2.0], [9.0]]), 2)
    array([[0, 1],
           [1, 2]])
    """
    X, rows = lighter(X), lighter(rows)
    if is_sparse(rows) and not is_sparse(X):
        rows = rows.toarray()
    norms, lengths = squared_lengths(X), squared_lengths(rows)
    exact = norms.max() + lengths.max() < EXACT_SINGLE and _whole(X) and _whole(rows)
    if exact:
        X, rows, norms = X.astype(np.float32), rows.astype(np.float32), norms.astype(np.float32)
    # A bound on the rounding error of |x|^2 - 2 x'z. Rows within it may be among the nearest.
    error = 16 * (X.shape[1] + 4) * 2.0**-53 * (norms.max() + lengths)
    found = np.empty((rows.shape[0], n_neighbors), dtype=np.intp)
    step = max(1, BLOCK_BYTES // (8 * len(norms)))
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        # Squared distances without the squared length of the query, which is the same for all
        # candidates and does not change their order.
        distance = _products(part, X)
        distance *= -2
        distance += norms
        reach = np.partition(distance, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
        if not exact:
            reach += error[start : start + step]
        line, column = np.nonzero(distance <= reach[:, None])
        near = distance[line, column]
        if not exact:
            _compute_anew(near, X, part, line=line, column=column, n_neighbors=n_neighbors)
        # Sort by query, then distance, then index: this sends ties to the lower index.
        order = np.lexsort((column, near, line))
        first = np.searchsorted(line, np.arange(part.shape[0]))
        best = column[order[first[:, None] + np.arange(n_neighbors)]]
        found[start : start + step] = np.sort(best, axis=1)
    return found


def _products(rows: Features, X: Features) -> Features:
    """Return the dense products of all pairs; sparse X is converted to dense in blocks."""
    if not is_sparse(X) or X.nnz < RARE * np.prod(X.shape, dtype=float):
        return dense(rows @ X.T)
    rows = sparse.csr_array(rows)
    products = np.empty((rows.shape[0], X.shape[0]), dtype=X.dtype)
    step = max(1, BLOCK_BYTES // (8 * X.shape[1]))
    for start in range(0, X.shape[0], step):
        # Row-major order, because the product reads its right-hand side row by row.
        columns = X[start : start + step].T.tocsr().toarray()
        products[:, start : start + step] = rows @ columns
    return products


def _compute_anew(
    near: FloatArray,
    X: Features,
    rows: Features,
    *,
    line: IndexArray,
    column: IndexArray,
    n_neighbors: int,
) -> None:
    """Recompute distances from differences, for rows with more candidates than neighbours."""
    count = np.bincount(line, minlength=rows.shape[0])
    last = np.cumsum(count)
    for i in np.flatnonzero(count > n_neighbors):
        mine = slice(last[i] - count[i], last[i])
        difference = dense(X[column[mine]]) - dense(rows[[i]])
        near[mine] = np.square(difference).sum(axis=1)


def _whole(X: Features) -> bool:
    values = X.data if is_sparse(X) else X
    return bool((np.rint(values) == values).all())
