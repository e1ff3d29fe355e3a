"""The splits of the paper: repeated random halves, one for training and one for testing."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length

from lemll._labels import code_labels
from lemll._sparse import row_hashes
from lemll._types import Array, Features, IndexArray, LabelArray, MatrixLike
from lemll._validation import UNOBSERVED, check_whole

__all__ = [
    "IterativeStratifiedHalves",
    "IterativeStratifiedKFold",
    "RepeatedHalves",
    "equal_row_groups",
    "iterative_folds",
]


def equal_row_groups(X: Features, n_folds: int) -> IndexArray | None:
    """Return a group number per row, the same for rows with equal features.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        Features.
    n_folds : int
        Number of folds that will be made of the rows.

    Returns
    -------
    ndarray of shape (n_rows,) or None
        The groups. None if no two rows are equal, or if there are fewer different rows than folds,
        so that they cannot be kept together.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.model_selection import equal_row_groups
    >>> equal_row_groups(np.array([[1.0, 2], [3, 4], [1, 2]]), 2).tolist()
    [0, 1, 0]
    """
    _, first, group = np.unique(row_hashes(X), return_index=True, return_inverse=True)
    if not n_folds <= len(first) < X.shape[0]:
        return None
    # Numbered in the order of the rows, not of the hashes.
    number = np.empty(len(first), dtype=np.intp)
    number[np.argsort(first)] = np.arange(len(first))
    return np.asarray(number[group])


class RepeatedHalves:
    """Repeated random halves.

    The training half of seed s is ``numpy.random.RandomState(s).permutation(n)[: n // 2]``. The
    other rows are the test half. The seeds are ``random_state``, ``random_state + 1`` and so on.
    Therefore the halves of a seed do not depend on the number of repeats.

    Parameters
    ----------
    n_repeats : int, default=10
        Number of pairs of halves.
    random_state : int, default=0
        The first seed.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.model_selection import RepeatedHalves
    >>> train, test = next(RepeatedHalves(1).split(np.zeros((5, 1))))
    >>> train, test
    (array([2, 0]), array([1, 3, 4]))
    """

    def __init__(self, n_repeats: int = 10, *, random_state: int = 0) -> None:
        self.n_repeats = check_whole("n_repeats", n_repeats, least=1)
        self.random_state = check_whole("random_state", random_state, least=0)

    def split(
        self, X: MatrixLike, y: MatrixLike = None, groups: MatrixLike = None
    ) -> Iterator[tuple[IndexArray, IndexArray]]:
        """Yield the rows of each training and test half.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Only its number of rows matters.
        y, groups : object
            Ignored. Present for compatibility with scikit-learn.

        Yields
        ------
        train, test : ndarray of int
            Row numbers, in the order of the permutation.
        """
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_rows < 2:
            raise ValueError(f"halves need at least 2 rows, got {n_rows}.")
        for seed in range(self.random_state, self.random_state + self.n_repeats):
            order = np.random.RandomState(seed).permutation(n_rows)
            yield order[: n_rows // 2], order[n_rows // 2 :]

    def get_n_splits(
        self, X: Features = None, y: MatrixLike = None, groups: MatrixLike = None
    ) -> int:
        """Return the number of repeats.

        Parameters
        ----------
        X, y, groups : object
            Ignored. Present for compatibility with scikit-learn.

        Returns
        -------
        int
            `n_repeats`.
        """
        return self.n_repeats

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_repeats}, random_state={self.random_state})"


# With more zeros per fold, the chance that a random fold has none of them is below exp(-4) = 2 %.
FEW_PER_FOLD = 4


def iterative_folds(
    Y: MatrixLike, n_folds: int, *, groups: MatrixLike = None, random_state: int = 0
) -> IndexArray:
    """Distribute rows to folds so that each label is distributed evenly.

    Parameters
    ----------
    Y : array-like, sparse matrix or frame of shape (n_samples, n_labels)
        Logical labels, 0/1. If cells of a label are unknown (NaN) and it has fewer than four known
        zeros per fold, the zeros are distributed evenly too, so that each fold can judge it.
    n_folds : int
        Number of folds, at least 2 and at most the number of rows or groups.
    groups : array-like of shape (n_samples,), optional
        The group of each row. Rows of a group have the same fold. A group counts as one row, which
        has the labels of all its rows.
    random_state : int, default=0
        Seed of the random decisions between equally good folds.

    Returns
    -------
    ndarray of shape (n_samples,), int
        The fold of every row. The sizes of the folds differ by at most one row, or one group.

    Examples
    --------
    >>> from lemll.model_selection import iterative_folds
    >>> folds = iterative_folds([[1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [1, 1]], 2)
    >>> folds[::2] + folds[1::2]
    array([1, 1, 1])
    """
    if Y is None:
        raise ValueError("stratification needs the labels, got None; pass them as y.")
    labels, _ = code_labels(Y, unobserved=True)
    group = np.arange(len(labels))
    if groups is not None:
        labels, group = _grouped(labels, groups)
    n_rows = len(labels)
    n_folds = check_whole("n_folds", n_folds, least=2)
    if n_folds > n_rows:
        unit = "rows" if groups is None else "groups"
        raise ValueError(f"{n_folds} folds need at least as many {unit}, got {n_rows}.")
    ones, zeros = (labels == 1).astype(np.int8), (labels == 0).astype(np.int8)
    # If all cells of a label are known, balanced ones leave balanced zeros. If not, a fold may have
    # none of a few known zeros, so these are distributed too.
    few = zeros.sum(axis=0, dtype=np.intp) < FEW_PER_FOLD * n_folds
    labels = np.hstack([ones, zeros[:, few & (labels < 0).any(axis=0)]])
    rng = np.random.default_rng(check_whole("random_state", random_state, least=0))
    order = _alike_together(labels, rng)
    dealer = _Dealer(sparse.csr_array(labels[order]), n_folds, rng)
    folds = np.empty(n_rows, dtype=np.intp)
    folds[order] = dealer.deal()
    return np.asarray(folds[group])


def _grouped(labels: LabelArray, groups: MatrixLike) -> tuple[LabelArray, IndexArray]:
    """Return the labels that some row of each group has, and the number of each row's group."""
    names = check_array(groups, ensure_2d=False, dtype=None)
    check_consistent_length(labels, names)
    found, group = np.unique(names, return_inverse=True)
    together = np.full((len(found), labels.shape[1]), UNOBSERVED, dtype=labels.dtype)
    np.maximum.at(together, group, labels)
    return together, group


def _alike_together(labels: npt.NDArray[np.int8], rng: np.random.Generator) -> IndexArray:
    """Return an order of the rows in which rows with the same labels are neighbours.

    Neighbours in this order go to different folds, so their label combinations are distributed
    evenly.
    """
    order = rng.permutation(len(labels))
    rarest_first = np.argsort(labels.sum(axis=0, dtype=np.intp), kind="stable")
    packed = np.packbits(labels[order][:, rarest_first], axis=1)
    return order[np.lexsort(packed.T[::-1])]


class _Dealer:
    """Distributes the rows of one label after the other.

    The fold of a row depends only on the current label and on the free places, not on the row. The
    rows of a label are in random order, so all of them are distributed in one step.

    Attributes
    ----------
    lack : ndarray of shape (n_labels, n_folds)
        How many rows with this label the fold still needs.
    room : ndarray of shape (n_folds,)
        Number of free places in each fold.
    """

    def __init__(self, labels: MatrixLike, n_folds: int, rng: np.random.Generator) -> None:
        n_rows = labels.shape[0]
        self._rng = rng
        self._labels, self._first = labels.indices.astype(np.intp), labels.indptr
        self._n_labels = np.diff(labels.indptr)
        by_label = sparse.csc_array(labels)
        self._rows_of = np.split(by_label.indices.astype(np.intp), by_label.indptr[1:-1])
        self._left = np.diff(by_label.indptr)
        self.lack = np.repeat(self._left[:, None] / n_folds, n_folds, axis=1)
        # Some folds are larger by one row. They are chosen at random.
        self.room = n_rows // n_folds + (rng.permutation(n_folds) < n_rows % n_folds)
        self._fold = np.full(n_rows, -1, dtype=np.intp)

    def deal(self) -> IndexArray:
        """Return the fold of every row."""
        none_left = np.iinfo(self._left.dtype).max
        while True:
            rarest = int(np.where(self._left > 0, self._left, none_left).argmin())
            if not self._left[rarest]:
                break
            rows = self._rows_of[rarest]
            self._give(rows[self._fold[rows] < 0], self.lack[rarest])
        self._give(np.flatnonzero(self._fold < 0), self.room)
        return self._fold

    def _labels_of(self, rows: IndexArray) -> IndexArray:
        """Return the labels of these rows, row by row."""
        sizes = self._n_labels[rows]
        ends = np.cumsum(sizes)
        before = np.repeat(self._first[rows] - (ends - sizes), sizes)
        labels: IndexArray = self._labels[before + np.arange(len(before))]
        return labels

    def _give(self, rows: IndexArray, wanted: Array) -> None:
        """Give each row to the fold that needs it most, among the folds with free places."""
        chance = self._rng.permutation(len(wanted)).tolist()
        queue = [
            (-want, -space, luck, fold)
            for fold, (want, space, luck) in enumerate(
                zip(wanted.tolist(), self.room.tolist(), chance, strict=True)
            )
            if space
        ]
        heapify(queue)
        folds = []
        for _ in range(len(rows)):
            want, space, luck, fold = queue[0]
            folds.append(fold)
            if space < -1:
                heapreplace(queue, (want + 1, space + 1, luck, fold))
            else:
                heappop(queue)
        self._fold[rows] = given = np.array(folds, dtype=np.intp)
        n_folds = len(self.room)
        self.room -= np.bincount(given, minlength=n_folds)
        cells = self._labels_of(rows) * n_folds + np.repeat(given, self._n_labels[rows])
        counts = np.bincount(cells, minlength=self.lack.size).reshape(self.lack.shape)
        self.lack -= counts
        self._left -= counts.sum(axis=1)


class IterativeStratifiedKFold:
    """k folds in which every label is about as frequent as in the whole data set.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed of the random decisions between equally good folds.

    See Also
    --------
    iterative_folds : The function that computes the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.model_selection import IterativeStratifiedKFold
    >>> Y = np.repeat(np.eye(3, dtype=int), 4, axis=0)
    >>> for train, test in IterativeStratifiedKFold(4).split(Y, Y):
    ...     print(Y[test].sum(axis=0))
    [1 1 1]
    [1 1 1]
    [1 1 1]
    [1 1 1]
    """

    def __init__(self, n_splits: int = 5, *, random_state: int = 0) -> None:
        self.n_splits = check_whole("n_splits", n_splits, least=2)
        self.random_state = check_whole("random_state", random_state, least=0)

    def split(
        self, X: MatrixLike, y: MatrixLike, groups: MatrixLike = None
    ) -> Iterator[tuple[IndexArray, IndexArray]]:
        """Yield the training rows and the test rows; each fold is the test rows once.

        Parameters
        ----------
        X : object
            Ignored. Present for compatibility with scikit-learn.
        y : array-like, sparse matrix or frame of shape (n_samples, n_labels)
            Logical labels, 0/1.
        groups : array-like of shape (n_samples,), optional
            The group of each row. Rows of a group are in the same fold.

        Yields
        ------
        train, test : ndarray of int
            Row numbers, ascending.
        """
        folds = iterative_folds(y, self.n_splits, groups=groups, random_state=self.random_state)
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)

    def get_n_splits(
        self, X: Features = None, y: MatrixLike = None, groups: MatrixLike = None
    ) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object
            Ignored. Present for compatibility with scikit-learn.

        Returns
        -------
        int
            `n_splits`.
        """
        return self.n_splits

    def __repr__(self) -> str:
        return f"IterativeStratifiedKFold({self.n_splits}, random_state={self.random_state})"


class IterativeStratifiedHalves(RepeatedHalves):
    """Repeated halves in which every label is about as frequent as in the whole data set.

    Parameters
    ----------
    n_repeats : int, default=10
        Number of pairs of halves.
    random_state : int, default=0
        The first seed. Each repeat uses the next one.

    See Also
    --------
    RepeatedHalves : Purely random halves, as in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.model_selection import IterativeStratifiedHalves
    >>> Y = np.repeat(np.eye(2, dtype=int), 4, axis=0)
    >>> [Y[train].sum(axis=0).tolist() for train, _ in IterativeStratifiedHalves(2).split(Y, Y)]
    [[2, 2], [2, 2]]
    """

    def split(
        self, X: MatrixLike, y: MatrixLike = None, groups: MatrixLike = None
    ) -> Iterator[tuple[IndexArray, IndexArray]]:
        """Yield the rows of each training and test half.

        Parameters
        ----------
        X : object
            Ignored. Present for compatibility with scikit-learn.
        y : array-like, sparse matrix or frame of shape (n_samples, n_labels)
            Logical labels, 0/1.
        groups : object
            Ignored. Present for compatibility with scikit-learn.

        Yields
        ------
        train, test : ndarray of int
            Row numbers, ascending.
        """
        for seed in range(self.random_state, self.random_state + self.n_repeats):
            folds = iterative_folds(y, 2, random_state=seed)
            yield np.flatnonzero(folds == 0), np.flatnonzero(folds == 1)
