"""The splits of the paper: repeated random halves, one for training and one for testing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lemll._types import Features, IndexArray, MatrixLike
from lemll._validation import check_whole

__all__ = ["RepeatedHalves"]


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
