"""The members of a blend: each gives out-of-fold scores, and can then be fitted to all rows."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone

from lemll._labels import fill_labels
from lemll._types import Array, Features, FloatArray, IndexArray, LabelArray
from lemll._validation import is_sparse
from lemll.fitting.kernels import inverse_variance
from lemll.fitting.scaling import fit_scaling, unit_rows
from lemll.predictors.base import MultilabelClassifier
from lemll.predictors.binary_relevance import BinaryRelevance
from lemll.predictors.calibrated import log_odds
from lemll.predictors.folds import Fold, FoldPath, Space
from lemll.predictors.forest import MultilabelForest, Trees, weighs_whole_rows
from lemll.predictors.lemll import LEMLL, LEMLLCV
from lemll.predictors.msvr import MSVRClassifier
from lemll.solvers import GridPoint

_Keys = npt.NDArray[np.uint64]

# Rounds in which rows tell columns and labels apart, and they tell rows apart. Binary columns of
# equal sums look alike in the first one.
_ROUNDS = 3
# Keys of so many cells are computed at once.
_CELLS = 1 << 22


class ContentOrder(NamedTuple):
    """The numbers of rows, columns and labels, sorted by their content.

    Attributes
    ----------
    rows, columns, labels : ndarray of int
        The orders. Rows that differ in nothing, or columns, may be in any order.
    """

    rows: IndexArray
    columns: IndexArray
    labels: IndexArray


def content_order(X: Features, Y: LabelArray, weight: FloatArray | None) -> ContentOrder:
    """Sort rows, columns and labels by keys that do not depend on their present order.

    The key of a row is a sum over its cells of a hash of the value in single precision and the key
    of the column, and the other way round. Hashes are whole numbers, so the order of the terms does
    not matter.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1, -1 in unknown cells.
    weight : ndarray of shape (n_samples, n_labels) or None
        Weights of the cells of Y.

    Returns
    -------
    ContentOrder
        The orders.
    """
    # Unknown cells are zeros, which have no part in a key.
    signs = (1.0 + Y) if weight is None else (1.0 + Y) * weight
    # Labels and features must not be taken for each other.
    signs = np.where(signs > 0, -1.0 - signs, 0.0)
    X_by_column = sparse.csr_array(X.T) if is_sparse(X) else X.T
    rows = np.zeros(len(Y), dtype=np.uint64)
    for _ in range(_ROUNDS):
        columns, labels = _keys(X_by_column, rows), _keys(signs.T, rows)
        rows = _keys(X, columns) + _keys(signs, labels)
    orders = [np.argsort(keys, kind="stable") for keys in (rows, columns, labels)]
    return ContentOrder(*orders)


def _keys(cells: Features, others: _Keys) -> _Keys:
    """Return the key of each row of some cells, from the keys of the columns."""
    others = _mixed(others)
    if is_sparse(cells):
        rows = sparse.csr_array(cells, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        hashes = _mixed(_bits(rows.data) ^ others[rows.indices])
        until = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashes)])
        return np.asarray(until[rows.indptr[1:]] - until[rows.indptr[:-1]])
    step = max(1, _CELLS // max(1, cells.shape[1]))
    found = [np.zeros(0, dtype=np.uint64)]
    for start in range(0, cells.shape[0], step):
        part = np.asarray(cells[start : start + step])
        hashes = _mixed(_bits(part) ^ others)
        found.append(np.where(part == 0, np.uint64(0), hashes).sum(axis=1, dtype=np.uint64))
    return np.concatenate(found)


def _bits(values: Array) -> _Keys:
    """Return numbers that are equal where the values are equal in single precision.

    So features in single and in double precision have the same order.
    """
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32, order="C").view(np.uint32).astype(np.uint64)


def _mixed(keys: _Keys) -> _Keys:
    """Return keys in which every bit depends on every bit (the last steps of splitmix64)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def expected_f1_threshold(probabilities: FloatArray) -> float:
    """Choose the log-odds above which predictions have the highest F1, in expectation.

    If the k highest of the probabilities p are predicted, F1 is about twice their sum, divided by
    k plus the sum of all p. The true labels are not used: with few relevant rows, the best
    threshold for them would be an accident.

    Parameters
    ----------
    probabilities : ndarray of shape (n,)
        Calibrated probabilities.

    Returns
    -------
    float
        The threshold, in log-odds.

    Examples
    --------
    >>> bool(expected_f1_threshold(np.array([0.05, 0.1, 0.4, 0.45])) < 0)
    True
    """
    ranked = np.sort(probabilities)[::-1]
    expected = 2 * np.cumsum(ranked) / (np.arange(1, len(ranked) + 1) + ranked.sum())
    last = int(expected.argmax())
    following = ranked[last + 1] if last + 1 < len(ranked) else ranked[last] / 2
    cut = np.clip((ranked[last] + following) / 2, 1e-12, 1 - 1e-12)
    return float(np.log(cut / (1 - cut)))


BlendLoss = Literal["log", "ranking"]

# Strength of the pull to equal weights, in rows. It matters only if there are few rows.
_SHRINKAGE = 3.0
# More pairs of labels do not change the weights; rows are drawn until there are about this many.
_PAIRS = 2_000_000


class _Terms(NamedTuple):
    """The loss as a sum of weighted terms log(1 + exp(-d'w)), with d per member."""

    differences: FloatArray
    share: FloatArray


def blend_weights(
    members: FloatArray, Y: LabelArray, weight: FloatArray | None, loss: BlendLoss
) -> FloatArray:
    r"""Choose how much each member counts.

    With :math:`z_m` the log-odds of member m, the weights w minimise

    .. math:: \sum_i\ell_i\Bigl(\sum_m w_mz_{m}\Bigr)+\tfrac\rho2\sum_m(w_m-1/M)^2,\qquad w\ge 0 ,

    where the loss of row i is the mean over its observed labels of the logistic loss ("log"), or
    the mean over its pairs of a relevant label and another one of
    :math:`\log(1+e^{-(z_p-z_q)})` ("ranking"). Both are convex.

    Parameters
    ----------
    members : ndarray of shape (n_members, n_samples, n_labels)
        Log-odds of rows that were not used to fit the members.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells (-1) have the weight 0.
    weight : ndarray of shape (n_samples, n_labels) or None
        The weights of the cells; None means 1.
    loss : {"log", "ranking"}
        The loss.

    Returns
    -------
    ndarray of shape (n_members,)
        Not negative. The sum is not fixed.
    """
    observed = np.ones(Y.shape) if weight is None else weight
    terms = (_log_terms if loss == "log" else _ranking_terms)(members, Y, observed)
    equal = 1 / len(members)

    def objective(w: FloatArray) -> tuple[float, FloatArray]:
        margin = w @ terms.differences
        value = terms.share @ np.logaddexp(0, -margin) + _SHRINKAGE / 2 * ((w - equal) ** 2).sum()
        slope = -terms.differences @ (terms.share * expit(-margin))
        return float(value), slope + _SHRINKAGE * (w - equal)

    start = np.full(len(members), equal)
    bounds = [(0.0, None)] * len(members)
    return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x)


def _log_terms(members: FloatArray, Y: LabelArray, observed: FloatArray) -> _Terms:
    sign = np.where(Y > 0, 1.0, -1.0)
    per_row = observed.sum(axis=1, keepdims=True)
    # Rows without any observed label have no loss.
    share = np.divide(observed, per_row, out=np.zeros_like(observed), where=per_row > 0)
    return _Terms((sign * members).reshape(len(members), -1), share.ravel())


def _ranking_terms(members: FloatArray, Y: LabelArray, observed: FloatArray) -> _Terms:
    differences, shares, n_pairs = [], [], 0
    order = np.random.RandomState(0).permutation(len(Y))
    for i in order:
        relevant = np.flatnonzero((Y[i] > 0) & (observed[i] > 0))
        others = np.flatnonzero((Y[i] == 0) & (observed[i] > 0))
        if not len(relevant) or not len(others):
            continue
        row = members[:, i]
        pair = row[:, relevant, None] - row[:, None, others]
        sure = np.outer(observed[i, relevant], observed[i, others])
        differences.append(pair.reshape(len(members), -1))
        shares.append((sure / sure.size).ravel())
        n_pairs += sure.size
        if n_pairs > _PAIRS:
            break
    if not differences:
        return _Terms(np.zeros((len(members), 0)), np.zeros(0))
    return _Terms(np.concatenate(differences, axis=1), np.concatenate(shares))


# A function that scores rows, label by label.
Scorer = Callable[[Features], FloatArray]
# A function that changes the features of rows.
_RowMap = Callable[[Features], Features]

# Inverse strengths of the penalty of the logistic regressions, from strong to weak.
_STRENGTHS = tuple(4.0**power for power in range(-7, 5))
# Rows of the first folds, which choose the strength.
_ROWS_FOR_STRENGTHS = 400
# A kernel matrix of more rows takes minutes; with more rows LEMLL is linear.
LARGEST_KERNEL = 5000
# The spaces of MSVR are compared on this number of rows; its ridges are multiples of the mean
# eigenvalue of the kernel matrix, and its kernels multiples of one width.
_ROWS_FOR_SPACES = 600
_SCORE_DIGITS = 9
_MSVR_RIDGES = 4.0 ** np.arange(-4, 5)
_WIDTHS = (0.25, 1.0, 4.0)
# Certified gap of the models of LEMLL.
_TOL = 1e-4
# Each tree stores the shares of all labels in each of its nodes. A forest may have this size.
_FOREST_BYTES = 1 << 30
_FEWEST_TREES = 50
# With one forest per label, all of them have about this many trees together.
_TREES_OF_ALL_LABELS = 3000
_FEWEST_TREES_OF_A_LABEL = 20
# With a time budget, the time of this many trees is measured first.
_TRIAL_TREES = 5
# Bound of the log-odds of a member. The leaves of a forest are often pure, and a label without a
# relevant row in a fold has infinite log-odds; neither is that sure.
_SUREST = 7.0


class BlendTask(NamedTuple):
    """What a blend learns from.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    Y : ndarray of shape (n_samples, n_labels)
        Labels, 0/1; unknown cells are -1.
    weight : ndarray of shape (n_samples, n_labels) or None
        The weights of the cells; None if all are 1.
    folds : sequence of (train, test)
        Rows to fit and rows to score. Each row is scored once.
    seconds_left : callable
        Seconds until the time budget is used up.
    """

    X: Features
    Y: LabelArray
    weight: FloatArray | None
    folds: Sequence[tuple[IndexArray, IndexArray]]
    seconds_left: Callable[[], float]

    @property
    def has_partial_rows(self) -> bool:
        """Whether cells of a row have different weights. Trees of all labels cannot use them."""
        return self.weight is not None and not weighs_whole_rows(self.weight)

    def fit(self, model: MultilabelClassifier, X: Features, rows: IndexArray) -> Scorer:
        """Fit a model to rows of X, with their labels and weights; return its scores."""
        # `fit` would check everything again, and warn of labels that a fold has not observed, which
        # the user cannot change.
        if self.weight is None:
            model._fit(X[rows], self.Y[rows])
        else:
            model._fit_partial(X[rows], self.Y[rows], self.weight[rows])
        return model._score


class Learned(NamedTuple):
    """What a member has learned.

    Attributes
    ----------
    scores : ndarray of shape (n_samples, n_labels)
        Scores of every training row by a model that did not see its labels.
    recipe : object
        What `Member.fit` needs to know. Only the member that made it reads it.
    chosen : str
        The parameters chosen, for a reader.
    cut_short : bool
        Whether the time budget has changed what was tried.
    """

    scores: FloatArray
    recipe: Any
    chosen: str
    cut_short: bool = False


class Member(Protocol):
    """A learner that can take part in a blend."""

    def learn(self, task: BlendTask) -> Learned:
        """Score the training rows out of fold."""

    def fit(self, task: BlendTask, recipe: Any) -> Scorer:
        """Fit to all rows by the recipe of `learn`, and return the function that scores rows."""


@dataclass(frozen=True)
class _Prepared:
    """Scores of rows after a change of the features."""

    rows: _RowMap
    score: Scorer

    def __call__(self, X: Features) -> FloatArray:
        return self.score(self.rows(X))


@dataclass(frozen=True)
class _Bounded:
    """Log-odds within bounds."""

    score: Scorer

    def __call__(self, X: Features) -> FloatArray:
        return np.clip(self.score(X), -_SUREST, _SUREST)


@dataclass(frozen=True)
class LemllMember:
    """LEMLL, linear or with an RBF kernel, with searched scaling and weights.

    Attributes
    ----------
    scoring : str
        The measure that chooses the parameters.
    space : Space or None
        The scaling and the kernel, if they are chosen already.
    """

    scoring: str
    space: Space | None = None

    def learn(self, task: BlendTask) -> Learned:
        """Search the parameters in the folds, and score the rows with the best ones."""
        search = self._make_search(task)
        # The other half is for the out-of-fold scores of the best parameters.
        left = task.seconds_left() / 2
        found = search._search(task.X, task.Y, task.weight, None)
        cut_short = np.isfinite(left) and task.seconds_left() <= left
        space, point = found["_combination"]
        options = {**search._path_options(), "tol": _TOL}
        scores = np.empty(task.Y.shape)
        for train, test in task.folds:
            fold = Fold(task.X, task.Y, train, test, task.weight)
            scores[test] = FoldPath(fold, space, options).unseen_scores(point)
        width = f" of width {space.kernel_gamma:.3g}" if space.kernel == "rbf" else ""
        chosen = (
            f"{space.kernel} kernel{width}, scale {space.scale}, alpha {point.alpha:.3g}, "
            f"beta {point.beta:.3g}, gamma {point.gamma:.3g}"
        )
        return Learned(scores, (space, point), chosen, cut_short)

    def fit(self, task: BlendTask, recipe: tuple[Space, GridPoint]) -> Scorer:
        """Fit LEMLL in the best space at the best point."""
        space, point = recipe
        # The type checker does not see that a named tuple can be callable.
        rows = cast(_RowMap, space.fit(task.X))
        model = LEMLL(
            **point._asdict(), kernel=space.kernel, kernel_params=space.kernel_params, tol=_TOL
        )
        return _Prepared(rows, task.fit(model, rows(task.X), np.arange(len(task.Y))))

    def _make_search(self, task: BlendTask) -> LEMLLCV:
        sparse = is_sparse(task.X)
        # Dense columns have units, which must not matter. Sparse columns are often counts or
        # weights of words, whose sizes matter, so there the search decides.
        template = LEMLL(scale="auto" if sparse else "standard", tol=1e-3)
        kernel: str = "auto" if len(task.Y) <= LARGEST_KERNEL else "linear"
        lengths: bool | str = "auto" if sparse else False
        if self.space is not None:
            kernel, lengths = str(self.space.kernel), self.space.normalize_rows
            template.set_params(scale=self.space.scale, kernel_params=self.space.kernel_params)
        return LEMLLCV(
            scoring=self.scoring if _can_be_ranked(task) else "hamming_loss",
            cv=task.folds,
            estimator=template,
            kernel=kernel,
            search="halving",
            normalize_rows=lengths,
            max_seconds=_budget(task.seconds_left() / 2),
        )


@dataclass(frozen=True)
class MsvrMember:
    r"""MSVR without a tube: a kernel ridge regression of all labels, whose folds cost one fit.

    With H the matrix that turns the labels into fitted values, and B the rows of a fold, the
    residuals of a model of the other folds are :math:`(I-H_{BB})^{-1}(y-\hat y)_B`.
    """

    def learn(self, task: BlendTask) -> Learned:
        """Choose the space on few rows and the ridge on all, and score the rows."""
        spaces = _msvr_spaces(task.X)
        labels = 2.0 * fill_labels(task.Y, task.weight) - 1.0
        folds = [test for _, test in task.folds]
        if len(spaces) > 1:
            some = np.random.RandomState(0).permutation(len(labels))[:_ROWS_FOR_SPACES]
            place = np.full(len(labels), -1)
            place[some] = np.arange(len(some))
            of_some = [place[test][place[test] >= 0] for test in folds]
            errors = [
                _unseen_by_folds(_gram(space, task.X[some]), labels[some], of_some).error
                for space in spaces
            ]
            spaces = [spaces[int(np.argmin(errors))]]
        space = spaces[0]
        found = _unseen_by_folds(_gram(space, task.X), labels, folds)
        width = f" of width {space.kernel_gamma:.3g}" if space.kernel == "rbf" else ""
        chosen = f"{space.kernel} kernel{width}, scale {space.scale}, alpha {found.alpha:.3g}"
        return Learned(found.scores, (space, found.alpha), chosen)

    def fit(self, task: BlendTask, recipe: tuple[Space, float]) -> Scorer:
        """Fit MSVR in the chosen space with the chosen ridge."""
        space, alpha = recipe
        rows = cast(_RowMap, space.fit(task.X))
        model = MSVRClassifier(
            alpha=alpha, epsilon=0.0, kernel=space.kernel, kernel_params=space.kernel_params
        )
        X = rows(task.X).astype(np.float64)
        return _Prepared(rows, task.fit(model, X, np.arange(len(task.Y))))


def _msvr_spaces(X: Features) -> list[Space]:
    """Return the scalings and kernels to compare."""
    scales = ("none", "maxabs") if is_sparse(X) else ("standard",)
    lengths = (False, True) if is_sparse(X) else (False,)
    spaces = []
    for scale, to_length_1 in itertools.product(scales, lengths):
        plain = Space("linear", "variance", to_length_1, scale=scale)
        middle = inverse_variance(plain.fit(X)(X))
        spaces += [plain, *(plain._replace(kernel="rbf", kernel_gamma=middle * w) for w in _WIDTHS)]
    return spaces


def _gram(space: Space, X: Features) -> FloatArray:
    """Return the centred kernel matrix of rows."""
    rows = space.fit(X)(X).astype(np.float64)
    inner = rows @ rows.T
    K = np.asarray(inner.toarray() if is_sparse(inner) else inner, dtype=np.float64)
    if space.kernel == "rbf":
        squares = np.diag(K)
        K = np.exp(-float(space.kernel_gamma) * np.maximum(0, squares[:, None] + squares - 2 * K))
    return np.asarray(K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean())


class _UnseenByFolds(NamedTuple):
    """Scores of rows by models of the other folds, the ridge, and the mean squared error."""

    scores: FloatArray
    alpha: float
    error: float


def _unseen_by_folds(
    K: FloatArray, labels: FloatArray, folds: Sequence[IndexArray]
) -> _UnseenByFolds:
    """Score rows by ridge regressions of the other folds, with the best ridge."""
    values, Q = linalg.eigh(K, check_finite=False)
    kept = values > 1e-10 * max(float(values[-1]), np.finfo(np.float64).tiny)
    values, Q = values[kept], Q[:, kept]
    mean = labels.mean(axis=0)
    projected = Q.T @ labels
    best = _UnseenByFolds(np.tile(mean, (len(labels), 1)), 1.0, np.inf)
    size = float(values.mean()) if len(values) else 1.0
    for alpha in (size * _MSVR_RIDGES).tolist():
        shrunk = values / (values + alpha)
        residual = labels - mean - Q @ (shrunk[:, None] * projected)
        scores = labels.copy()
        for rows in folds:
            if not len(rows):
                continue
            part = Q[rows]
            seen = np.eye(len(rows)) - (part * shrunk) @ part.T - 1 / len(labels)
            scores[rows] -= linalg.solve(seen, residual[rows], assume_a="pos", check_finite=False)
        error = float(np.square(scores - labels).mean())
        if error < best.error:
            best = _UnseenByFolds(scores, alpha, error)
    # Equal rows have scores that differ by rounding errors, which depend on their places.
    return best._replace(scores=best.scores.round(_SCORE_DIGITS))


def _can_be_ranked(task: BlendTask) -> bool:
    """Whether some row has an observed relevant label and another observed one."""
    return bool(((task.Y == 1).any(axis=1) & (task.Y == 0).any(axis=1)).any())


def _budget(seconds: float) -> float | None:
    """Return the budget of a search, which must not be zero; None if there is no limit."""
    return None if np.isinf(seconds) else max(1e-3, seconds)


@dataclass(frozen=True)
class LogisticMember:
    """One logistic regression per label, with the strength of the penalty chosen by log loss."""

    def learn(self, task: BlendTask) -> Learned:
        """Try the strengths, from strong to weak, until the log loss of unseen rows has turned.

        The first folds choose, as many as have enough rows.
        """
        ends = np.cumsum([len(test) for _, test in task.folds])
        n_first = min(len(ends), int(np.searchsorted(ends, _ROWS_FOR_STRENGTHS)) + 1)
        best, chosen = np.inf, (_row_maps(task.X)[0], 1.0)
        cut_short = False
        for rows in _row_maps(task.X):
            X = rows(task.X)
            lowest = np.inf
            for C in _STRENGTHS:
                scores = _logistic_scores(task, X, C, task.folds[:n_first])
                loss = _log_loss(scores, task)
                if loss < best:
                    best, chosen = loss, (rows, C)
                if loss > 1.01 * lowest:
                    break
                if task.seconds_left() <= 0:
                    cut_short = True
                    break
                lowest = min(lowest, loss)
        rows, C = chosen
        scores = _logistic_scores(task, rows(task.X), C, task.folds)
        return Learned(scores, chosen, f"C {C:.3g}", cut_short)

    def fit(self, task: BlendTask, recipe: tuple[_RowMap, float]) -> Scorer:
        """Fit the regressions with the best strength to the best features."""
        rows, C = recipe
        model = task.fit(BinaryRelevance(C=C), rows(task.X), np.arange(len(task.Y)))
        return _Prepared(rows, _Bounded(model))


def _logistic_scores(
    task: BlendTask, X: Features, C: float, folds: Sequence[tuple[IndexArray, IndexArray]]
) -> FloatArray:
    """Return bounded log-odds of the rows of some folds; NaN for the others."""
    scores = np.full(task.Y.shape, np.nan)
    for train, test in folds:
        scores[test] = _Bounded(task.fit(BinaryRelevance(C=C), X, train))(X[test])
    return scores


def _row_maps(X: Features) -> list[_RowMap]:
    """Return the features to try: scaled columns and, for sparse features, rows of length 1."""
    scaled = fit_scaling("auto", X)
    return [scaled, unit_rows()] if is_sparse(X) else [scaled]


def _log_loss(scores: FloatArray, task: BlendTask) -> float:
    """Return the log loss in the observed cells of the rows that have scores."""
    rows = np.flatnonzero(np.isfinite(scores).all(axis=1))
    loss = np.logaddexp(0, -np.where(task.Y[rows] > 0, 1.0, -1.0) * scores[rows])
    return float(loss.mean() if task.weight is None else (loss * task.weight[rows]).sum())


@dataclass(frozen=True)
class ForestMember:
    """A forest of scikit-learn.

    Attributes
    ----------
    trees : {"extra", "random"}
        The kind of trees.
    n_estimators : int
        Number of trees. There are fewer if they would need more than 1 GiB, or too much time.
    n_jobs : int or None
        Number of threads.
    seed : int
        Seed of the trees.
    min_samples_leaf : int
        Smallest number of rows in a leaf.
    """

    trees: Trees
    n_estimators: int
    n_jobs: int | None
    seed: int
    min_samples_leaf: int = 1

    def learn(self, task: BlendTask) -> Learned:
        """Score the rows by forests of the other folds, or by the trees that did not see them."""
        everything = np.arange(task.X.shape[0])
        affordable = self._affordable_trees(task)
        n_trees = min(affordable, self._trees_in_time(task))
        cut_short = n_trees < affordable
        # Trees that all labels share need all labels.
        model = self._forest(task, n_trees)
        if not task.has_partial_rows:
            task.fit(model, task.X, everything)
            shares = model.oob_proba_
            assert shares is not None
            # With few trees, all of them may have seen a row. Then the mean is the best guess.
            shares = np.where(np.isnan(shares), np.maximum(task.Y, 0).mean(axis=0), shares)
            chosen = f"{model.n_estimators} trees, scored out of bag"
            scores = np.clip(log_odds(shares), -_SUREST, _SUREST)
            if self.trees == "extra":
                # Extra trees are better without bootstrap samples, which only the scores need.
                model = clone(model).set_params(bootstrap=False)
            return Learned(scores, model, chosen, cut_short)
        scores = np.empty(task.Y.shape)
        for train, test in task.folds:
            scores[test] = _Bounded(task.fit(model, task.X, train))(task.X[test])
        recipe = clone(model)
        chosen = f"{model.n_estimators} trees, scored out of fold"
        return Learned(scores, recipe, chosen, cut_short)

    def fit(self, task: BlendTask, recipe: MultilabelForest) -> Scorer:
        """Fit the forest, if it was not already fitted to all rows for its out-of-bag scores."""
        if hasattr(recipe, "oob_proba_"):
            return _Bounded(recipe._score)
        return _Bounded(task.fit(clone(recipe), task.X, np.arange(len(task.Y))))

    def _forest(self, task: BlendTask, n_trees: int) -> MultilabelForest:
        """Return the forest, not fitted."""
        return MultilabelForest(
            n_trees,
            trees=self.trees,
            per_label=task.has_partial_rows,
            min_samples_leaf=self.min_samples_leaf,
            # Scores by the trees that have not seen a row need bootstrap samples.
            bootstrap=not task.has_partial_rows,
            n_jobs=self.n_jobs,
            random_state=self.seed,
        )

    def _trees_in_time(self, task: BlendTask) -> int:
        """Estimate from a few trees how many can be fitted in half of the time that is left."""
        left = task.seconds_left()
        if np.isinf(left):
            return self.n_estimators
        model = self._forest(task, _TRIAL_TREES)
        begin = time.perf_counter()
        task.fit(model, task.X, task.folds[0][0])
        per_tree = (time.perf_counter() - begin) / _TRIAL_TREES
        # One forest per fold, and the final one.
        wanted = left / 2 / (len(task.folds) + 1) / per_tree
        return int(np.clip(wanted, _TRIAL_TREES, self.n_estimators))

    def _affordable_trees(self, task: BlendTask) -> int:
        if task.has_partial_rows:
            share = _TREES_OF_ALL_LABELS // task.Y.shape[1]
            return int(min(self.n_estimators, max(_FEWEST_TREES_OF_A_LABEL, share)))
        # A tree with pure leaves has about two nodes per row.
        per_tree = 2 * task.Y.size * np.dtype(np.float64).itemsize
        return int(min(self.n_estimators, max(_FEWEST_TREES, _FOREST_BYTES // per_tree)))
