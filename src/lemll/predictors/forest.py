"""Forests of scikit-learn as multi-label classifiers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree._tree import Tree
from sklearn.utils import check_random_state

from lemll._types import (
    Array,
    Estimator,
    Features,
    FloatArray,
    IndexArray,
    LabelArray,
    RandomState,
    Settings,
    SparseMatrix,
)
from lemll._validation import check_choice, check_flag, check_magnitude, check_whole, is_sparse
from lemll.model_selection import equal_row_groups
from lemll.predictors.base import WeighsRows
from lemll.predictors.calibrated import ProbabilityClassifier, log_odds

Trees = Literal["extra", "random"]

_FORESTS = {"extra": ExtraTreesRegressor, "random": RandomForestRegressor}
# Trees use sparse rows as they are if at most this share of the values is stored, or if the dense
# rows would need more bytes than this. The free memory has no say, because fractional weights make
# the trees of dense and sparse rows differ.
_SHARE_OF_SPARSE = 0.01
_DENSE_BYTES = 1 << 28
# So many shares of labels in nodes are computed at once, and so many leaves are looked up at once.
_SHARES_AT_ONCE = 1 << 23
_LEAVES_AT_ONCE = 1 << 22


@dataclass(eq=False, repr=False)
class MultilabelForest(WeighsRows, ProbabilityClassifier):
    """A forest of scikit-learn that predicts all labels, with one probability per label.

    Every tree divides the rows until its leaves are pure, or as small as `min_samples_leaf`. Each
    division minimises the sum over the labels of the variances of the 0/1 labels in the two parts.
    This variance is half of the Gini impurity, so the trees are classification trees. The
    probability of a label is the mean over the trees of its share in the leaf of the row.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees. With `per_label`, of each label.
    trees : {"extra", "random"}, default="extra"
        "extra": extremely randomised trees [1]_, with random cut points. "random": a random
        forest [2]_, with the best cut points.
    per_label : bool, default=False
        Whether each label has a forest of its own. By default all labels share the trees.
    max_features : "sqrt", "log2", int, float or None, default="sqrt"
        Number of features that each division considers, as in scikit-learn.
    min_samples_leaf : int, default=1
        Smallest number of rows in a leaf.
    bootstrap : bool, optional
        Whether each tree sees a bootstrap sample of the rows. By default only the trees of a
        random forest do.
    thresholds : {"zero", "f1", "hamming"}, default="zero"
        A label is predicted if its log-odds are above its threshold. "zero" uses 0 for all labels:
        a probability of one half. "f1" and "hamming" choose one threshold per label: the one with
        the best F1, or with the most correct decisions. To choose it, 5-fold cross-validation
        scores every training row with a model that was not fitted on that row.
    n_jobs : int, optional
        Number of threads, as in joblib.
    random_state : int, RandomState or None, default=None
        Seed of the trees.

    Attributes
    ----------
    forests_ : list of GrownForest
        The forest of all labels, or one per label: trees of scikit-learn, and the shares of the
        labels in their leaves.
    oob_proba_ : ndarray of shape (n_samples, n_labels) or None
        With bootstrap samples: the probabilities of each training row by the trees that did not
        see it, NaN if all trees saw it. None without bootstrap samples, or with unknown labels.
    classes_ : ndarray
        The numbers of the labels, 0 to n_labels - 1. For a 1-D target, its classes.
    label_names_ : ndarray of str
        The names of the labels: the columns of a frame, or ``y0, y1, ...``.
    thresholds_ : ndarray of shape (n_labels,)
        One threshold per label. A label is predicted if its log-odds are above it.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if X has names.

    See Also
    --------
    BinaryRelevance : One logistic regression per label.

    References
    ----------
    .. [1] P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", Machine Learning
       63(1), 2006.
    .. [2] L. Breiman, "Random forests", Machine Learning 45(1), 2001.

    Examples
    --------
    >>> from lemll import MultilabelForest
    >>> from lemll.datasets import load_digit_tags
    >>> digits = load_digit_tags()
    >>> model = MultilabelForest(50, random_state=0).fit(digits.X[:900], digits.Y[:900])
    >>> model.predict_proba(digits.X[900:]).shape
    (897, 8)
    """

    n_estimators: int = 300
    _: KW_ONLY
    trees: Trees = "extra"
    per_label: bool = False
    max_features: Any = "sqrt"
    min_samples_leaf: int = 1
    bootstrap: bool | None = None
    n_jobs: int | None = None
    random_state: RandomState = None

    def _fit(self, X: Features, Y: LabelArray, weight: FloatArray | None = None) -> None:
        if weight is not None and not self.per_label and not weighs_whole_rows(weight):
            raise ValueError(
                "trees that all labels share need all labels, but "
                f"{int((weight < 1).sum())} cells of y are unknown or not certain; use "
                "MultilabelForest(per_label=True), which fits each label to its observed rows."
            )
        check_choice("trees", self.trees, _FORESTS)
        check_magnitude(X)
        drawn = self.trees == "random" if self.bootstrap is None else self.bootstrap
        bootstrap = check_flag("bootstrap", drawn)
        options: Settings = {
            "max_features": self.max_features,
            "min_samples_leaf": check_whole("min_samples_leaf", self.min_samples_leaf, least=1),
            "bootstrap": bootstrap,
            "n_jobs": self.n_jobs,
        }
        n_trees = check_whole("n_estimators", self.n_estimators, least=1)
        per_label = check_flag("per_label", self.per_label)
        # A row with the weight 0 has no influence, so its label does not matter.
        Y = np.maximum(Y, 0)
        parts = np.hsplit(Y, Y.shape[1]) if per_label else [Y]
        weights = [None] * len(parts) if weight is None else list(weight.T[: len(parts)])
        # The forests of the labels have the same seed, so the order of the labels does not matter.
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rows = _for_trees(X)
        groups = None
        if bootstrap and (weight is None or not per_label):
            # A tree that has seen a row knows the rows with equal features.
            groups = equal_row_groups(X, 1)
            groups = np.arange(len(Y)) if groups is None else groups
        make = partial(_FORESTS[self.trees], **options)
        found = [
            _grow(make, n_trees, seed, _TreeRows(rows, part, of_rows, groups))
            for part, of_rows in zip(parts, weights, strict=True)
        ]
        self.forests_ = [forest for forest, _ in found]
        self.oob_proba_ = None
        if groups is not None:
            self.oob_proba_ = np.column_stack([unseen for _, unseen in found])

    _fit_partial = _fit

    def _score(self, X: Features) -> FloatArray:
        rows = _for_trees(X)
        return log_odds(np.column_stack([forest.predict(rows) for forest in self.forests_]))


def weighs_whole_rows(weight: FloatArray) -> bool:
    """Return whether all cells of each row have the same weight."""
    return bool((weight == weight[:, :1]).all())


class GrownForest(NamedTuple):
    """A forest that stores the shares of the labels in its leaves, without the zeros.

    scikit-learn stores a number per label in every node, which takes gigabytes with many labels.

    Attributes
    ----------
    trees : list of sklearn.tree._tree.Tree
        The divisions. The value of a leaf is its row in `shares`.
    shares : csr_array of shape (n_leaves, n_labels)
        The shares of the labels in the leaves of all trees.
    """

    trees: list[Estimator]
    shares: SparseMatrix

    def predict(self, rows: Features) -> FloatArray:
        """Return the mean of the shares over the trees."""
        if any(tree.n_features != rows.shape[1] for tree in self.trees):
            # The trees of scikit-learn do not check it themselves.
            raise ValueError(
                f"the trees divide {self.trees[0].n_features} features, but X has {rows.shape[1]}."
            )
        step = max(1, _LEAVES_AT_ONCE // len(self.trees))
        parts = [
            self._sums(np.hstack([tree.predict(part) for tree in self.trees]).astype(np.intp))
            for part in (rows[start : start + step] for start in range(0, rows.shape[0], step))
        ]
        return np.concatenate(parts) / len(self.trees)

    def _sums(self, leaves: IndexArray) -> FloatArray:
        """Return the sums of the shares of the leaves in each row."""
        n_rows, n_leaves = leaves.shape
        ends = np.arange(n_rows + 1) * n_leaves
        ones = np.ones(leaves.size)
        chosen = sparse.csr_array(
            (ones, leaves.ravel(), ends), shape=(n_rows, self.shares.shape[0])
        )
        return np.asarray((chosen @ self.shares).toarray())


class _TreeRows(NamedTuple):
    """What trees learn from: rows, 0/1 labels, weights of the rows, and groups of equal rows.

    Without groups, no scores of unseen rows are wanted.
    """

    rows: Features
    labels: LabelArray
    weight: FloatArray | None
    groups: IndexArray | None


def _grow(
    make: Callable[..., Any], n_trees: int, seed: int, data: _TreeRows
) -> tuple[GrownForest, FloatArray]:
    """Grow trees; also return the mean shares of each row by the trees that have not seen it.

    A tree has seen a row if it has drawn a row of the same group. If all trees have seen it, or if
    it has no weight, its shares are NaN.
    """
    known = _with_weight(data)
    rows, labels, weight, groups = known.data
    target = labels.ravel() if labels.shape[1] == 1 else labels
    trees, shares, n_leaves = [], [], 0
    total, count = np.zeros(labels.shape), np.zeros((len(labels), 1))
    # One stream of random numbers, so that the trees do not depend on the size of the parts.
    random = np.random.RandomState(seed)
    step = max(1, _SHARES_AT_ONCE // (2 * labels.size))
    for start in range(0, n_trees, step):
        part = make(min(step, n_trees - start), random_state=random)
        part.fit(rows, target, sample_weight=weight)
        # scikit-learn draws the samples of all trees again at each access.
        samples = part.estimators_samples_ if groups is not None else []
        for number, grown in enumerate(part.estimators_):
            tree, of_leaves = _light(grown.tree_, n_leaves)
            trees.append(tree)
            shares.append(of_leaves)
            n_leaves += of_leaves.shape[0]
            if groups is not None:
                drawn = groups[samples[number]]
                unseen = np.flatnonzero(~np.isin(groups, drawn))
                total[unseen] += grown.tree_.predict(rows[unseen]).reshape(-1, labels.shape[1])
                count[unseen] += 1
    found = np.full(data.labels.shape, np.nan)
    with np.errstate(invalid="ignore"):  # 0 / 0
        found[known.rows] = total / count
    return GrownForest(trees, sparse.vstack(shares, format="csr")), found


class _Known(NamedTuple):
    """The rows with a weight, and what trees learn from them."""

    rows: IndexArray
    data: _TreeRows


def _with_weight(data: _TreeRows) -> _Known:
    """Return the rows with a weight; without such rows, nothing is relevant."""
    if data.weight is None:
        return _Known(np.arange(len(data.labels)), data)
    rows = np.flatnonzero(data.weight > 0)
    if not len(rows):
        nothing = data._replace(labels=np.zeros_like(data.labels), weight=None)
        return _Known(np.arange(len(data.labels)), nothing)
    groups = None if data.groups is None else data.groups[rows]
    return _Known(rows, _TreeRows(data.rows[rows], data.labels[rows], data.weight[rows], groups))


def _light(tree: Estimator, first: int) -> tuple[Array, SparseMatrix]:
    """Return a tree whose leaves hold their numbers, from `first`, and the shares of the leaves."""
    state = tree.__getstate__()
    is_leaf = state["nodes"]["left_child"] < 0
    shares = sparse.csr_array(state["values"][is_leaf, :, 0])
    numbers = np.zeros((len(is_leaf), 1, 1))
    numbers[is_leaf, 0, 0] = first + np.arange(shares.shape[0])
    light = Tree(tree.n_features, np.ones(1, dtype=np.intp), 1)
    light.__setstate__({**state, "values": numbers})
    return light, shares


def _for_trees(X: Features) -> Features:
    """Return rows in the form that the trees of scikit-learn accept: float32, 32-bit indices.

    Trees of sparse rows are the same if the weights are 0 or 1 (otherwise the same up to rounding,
    which can change later random draws). But unless nearly all values are zero, they take up to
    five times as long. So sparse rows become dense if that is not much.
    """
    if not is_sparse(X):
        return X.astype(np.float32)
    if X.nnz > _SHARE_OF_SPARSE * math.prod(X.shape) and _may_be_dense(X):
        return np.asarray(X.astype(np.float32).toarray())
    if X.nnz > np.iinfo(np.int32).max:
        raise ValueError(
            f"X has {X.nnz} stored values, but a forest accepts at most 2^31 - 1; fit fewer rows."
        )
    parts = X.data.astype(np.float32), X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sparse.csr_array(parts, shape=X.shape)


def _may_be_dense(X: Features) -> bool:
    n_rows, n_columns = X.shape
    return bool(np.dtype(np.float32).itemsize * n_rows * n_columns <= _DENSE_BYTES)
