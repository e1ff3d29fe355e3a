"""Solve many logistic regressions, each on its own few rows, for example all pairs of labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse

from lemll._sparse import dense, lighter
from lemll._types import Array, Features, FloatArray, IndexArray, MatrixLike
from lemll._validation import is_sparse
from lemll.solvers.interface import as_features, check_size, check_stopping
from lemll.solvers.logistic.features import STRONG_PENALTY
from lemll.solvers.logistic.solve import check_inverse_penalty, solve_logistic
from lemll.solvers.logistic.stack import Stack

__all__ = ["SubsetsSolution", "solve_logistic_subsets"]

# Largest size of a stack of matrices.
STACK_BYTES = 1 << 24
# Problems on all rows are solved in groups whose label masks have at most this size.
MASK_BYTES = 1 << 25
# Number of problems whose rows and labels are checked at a time.
CHECKED = 1024
# Measured cost of one multiplication in products with all rows (including the iterations of
# conjugate gradients), relative to one multiplication in a stack.
SHARED_COST = 33
# A kernel of all rows up to this size is computed once. Each problem takes its part of it.
KERNEL_BYTES = 1 << 29


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetsSolution:
    """The minimisers of many logistic regressions, one row per problem.

    Attributes
    ----------
    coef : ndarray of shape (n_problems, n_features), float32
        Coefficients. They are rounded to float32, because with tens of thousands of problems they
        need most of the memory.
    intercept : ndarray of shape (n_problems,)
        The intercepts. Minus infinity if all labels of a problem are 0, plus infinity if all are
        1, and NaN if the problem has no rows.
    gradient_norm : ndarray of shape (n_problems,)
        Length of the gradient, relative to the expected length at the start if the contributions
        of the rows had random signs.
    n_iter : ndarray of shape (n_problems,)
        Number of Newton steps.
    converged : ndarray of shape (n_problems,)
        Whether `gradient_norm` has reached the tolerance.
    """

    coef: npt.NDArray[np.float32]
    intercept: FloatArray
    gradient_norm: FloatArray
    n_iter: npt.NDArray[np.intp]
    converged: npt.NDArray[np.bool_]


def solve_logistic_subsets(
    X: Features,
    rows: Sequence[Array],
    labels: Sequence[MatrixLike],
    *,
    C: float = 1.0,
    weights: Sequence[FloatArray] | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    n_jobs: int | None = None,
) -> SubsetsSolution:
    r"""Minimise many L2-regularised logistic losses, each over its own rows.

    For each problem with rows I, labels y and weights w, it minimises

    .. math::
        \sum_{i\in I}w_i\log\bigl(1+e^{-(2y_i-1)(\theta^\top x_i+b)}\bigr)+\frac1{2C}\|\theta\|^2.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features.
    rows : sequence of ndarray
        Indices of the rows of each problem, without duplicates.
    labels : sequence of ndarray
        Their labels, 0/1.
    C : float, default=1.0
        Inverse strength of the penalty, > 0.
    weights : sequence of ndarray, optional
        The weights of the rows of each problem, > 0. By default 1.
    tol : float, default=1e-6
        A problem is solved when the relative length of its gradient is at most this.
    max_iter : int, default=100
        Largest number of Newton steps per problem.
    n_jobs : int, optional
        Number of threads, as in joblib. Each thread works on one stack of problems at a time.

    Returns
    -------
    SubsetsSolution
        The minimisers.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers import solve_logistic_subsets
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> rows = [np.arange(4), np.array([0, 3]), np.array([1])]
    >>> solution = solve_logistic_subsets(X, rows, [[0, 0, 1, 1], [0, 1], [1]])
    >>> solution.coef.ravel().round(2)
    array([0.96, 0.74, 0.  ], dtype=float32)
    >>> solution.intercept.round(3)
    array([-1.437, -1.113,    inf])
    """
    X = as_features(X.tocsr() if is_sparse(X) else X)
    check_size(X, "X", "float64")
    check_stopping(tol=tol, max_iter=max_iter)
    check_inverse_penalty(C)
    _check_problems(rows, labels, X.shape[0])
    if weights is not None:
        _check_row_weights(weights, rows)
    n_problems = len(rows)
    size = np.array([len(mine) for mine in rows], dtype=np.intp)
    positive = np.array([int(np.sum(mine)) for mine in labels], dtype=np.intp)
    coef = np.zeros((n_problems, X.shape[1]), dtype=np.float32)
    intercept = np.where(size == 0, np.nan, np.where(positive == size, np.inf, -np.inf))
    gradient_norm, n_iter = np.zeros(n_problems), np.zeros(n_problems, dtype=np.intp)

    def work(part: IndexArray) -> None:
        index, there, wanted = _padded(rows, labels, weights, part)
        # The order of the Newton systems is the number of rows or of features; take the smaller.
        kernel = index.shape[1] <= X.shape[1]
        design = source.kernels(index) if kernel else source.features(index)
        stack = Stack(design, wanted, there, kernel=kernel, penalty=1 / C)
        stack.solve(tol, max_iter)
        # Padding rows have multipliers of 0, so they do not change the sum.
        coef[part] = source.combined(index, stack.unknowns) if kernel else stack.unknowns
        shift = source.centre @ coef[part].T.astype(np.float64)
        intercept[part], gradient_norm[part] = stack.intercept - shift, stack.gradient_norm
        n_iter[part] = stack.n_iter

    def share(part: IndexArray) -> None:
        wanted = np.zeros((X.shape[0], len(part)), dtype=np.int8)
        there = np.zeros(wanted.shape, dtype=np.int8 if weights is None else np.float64)
        for column, t in enumerate(part):
            wanted[rows[t], column] = labels[t]
            there[rows[t], column] = 1 if weights is None else weights[t]
        found = solve_logistic(
            X, wanted, sample_weight=there, C=C, tol=tol, max_iter=max_iter, n_jobs=n_jobs
        )
        coef[part] = found.coef
        # Rounding the coefficients to float32 changes the scores of features far from the origin.
        # Correct the intercept so that the score of the mean row stays the same.
        lost = found.coef - coef[part]
        intercept[part] = found.intercept + lost @ np.asarray(X.mean(axis=0)).ravel()
        gradient_norm[part], n_iter[part] = found.gradient_norm, found.n_iter

    varied = (positive > 0) & (positive < size)
    large = varied & _is_large(X, size, 1 / C)
    step = max(1, MASK_BYTES // X.shape[0])
    for start in range(0, int(large.sum()), step):
        share(np.flatnonzero(large)[start : start + step])
    small = np.flatnonzero(varied & ~large)
    if len(small):
        source = _Source(X)
    Parallel(n_jobs=n_jobs, require="sharedmem")(
        delayed(work)(part) for part in _stacks(small, size, X.shape[1])
    )
    return SubsetsSolution(
        coef=coef,
        intercept=intercept,
        gradient_norm=gradient_norm,
        n_iter=n_iter,
        converged=gradient_norm <= tol,
    )


def _check_problems(rows: Sequence[Array], labels: Sequence[MatrixLike], n_samples: int) -> None:
    size = np.array([len(mine) for mine in rows], dtype=np.intp)
    given = np.array([len(wanted) for wanted in labels], dtype=np.intp)
    if len(size) != len(given):
        raise ValueError(
            "rows and labels must have the same number of problems, got "
            f"{len(size)} and {len(given)}."
        )
    if (size != given).any():
        t = int(np.argmax(size != given))
        raise ValueError(
            f"problem {t} must have one label for each of its rows, got {size[t]} rows and "
            f"{given[t]} labels."
        )
    kept = np.flatnonzero(size)
    for start in range(0, len(kept), CHECKED):
        part = kept[start : start + CHECKED]
        # To check tens of thousands of small problems, it is faster to join them first.
        index = np.concatenate([rows[t] for t in part])
        values = np.concatenate([labels[t] for t in part])
        if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= n_samples:
            raise ValueError(f"rows must be whole numbers from 0 to {n_samples - 1}, those of X.")
        if ((values != 0) & (values != 1)).any():
            raise ValueError("labels must contain only 0 and 1; code the two classes as 0 and 1.")
        # Rising rows have no duplicates, which is the usual case. Only other problems are sorted.
        rising = index[1:] > index[:-1]
        ends = np.cumsum(size[part])
        rising[ends[:-1] - 1] = True
        for t in part[np.unique(np.searchsorted(ends, np.flatnonzero(~rising), side="right"))]:
            if len(np.unique(rows[t])) < size[t]:
                raise ValueError(f"problem {t} has a row twice; give each row once.")


def _check_row_weights(weights: Sequence[FloatArray], rows: Sequence[Array]) -> None:
    for t, (mine, there) in enumerate(zip(rows, weights, strict=True)):
        if len(there) != len(mine) or not (np.isfinite(there).all() and (there > 0).all()):
            raise ValueError(
                f"problem {t} must have one finite weight > 0 for each of its {len(mine)} rows; "
                "leave out rows without a weight."
            )


def _is_large(X: Features, size: IndexArray, penalty: float) -> npt.NDArray[np.bool_]:
    """Return which problems are cheaper with products over all rows than in a stack."""
    n_samples, n_features = X.shape
    stored = X.nnz if is_sparse(X) else X.size
    stack = size.astype(np.float64) ** 2 * np.minimum(size, n_features)
    # With almost no penalty, conjugate gradients are slow. A stack is solved exactly, so use it.
    costly = stack > SHARED_COST * (4 * stored + 12 * n_samples)
    return np.asarray(costly & (penalty >= STRONG_PENALTY))


def _stacks(problems: IndexArray, size: IndexArray, n_features: int) -> Iterator[IndexArray]:
    """Yield groups of problems with a similar number of rows."""
    order = problems[np.argsort(-size[problems], kind="stable")]
    start = 0
    while start < len(order):
        largest = int(size[order[start]])
        width = min(largest, n_features)
        stop = start + max(1, STACK_BYTES // (8 * largest * width))
        # Limit the cost of padding: problems with less than 70 % of the rows start a new stack.
        alike = np.searchsorted(-size[order[start:stop]], -0.7 * largest, side="right")
        yield order[start : start + max(1, int(alike))]
        start += max(1, int(alike))


def _padded(
    rows: Sequence[Array],
    labels: Sequence[MatrixLike],
    weights: Sequence[FloatArray] | None,
    part: IndexArray,
) -> tuple[IndexArray, FloatArray, FloatArray]:
    width = max(len(rows[t]) for t in part)
    index = np.zeros((len(part), width), dtype=np.intp)
    there, wanted = np.zeros(index.shape), np.zeros(index.shape)
    for line, t in enumerate(part):
        m = len(rows[t])
        index[line, :m], wanted[line, :m] = rows[t], labels[t]
        there[line, :m] = 1 if weights is None else weights[t]
    return index, there, wanted


class _Source:
    """Centred features, and kernels of some of their rows."""

    def __init__(self, X: Features) -> None:
        self._X = lighter(X)
        self.centre = np.asarray(self._X.mean(axis=0)).ravel()
        if not is_sparse(self._X):
            self._X = self._X - self.centre
        self._kernel: FloatArray | None = None
        if 8 * X.shape[0] ** 2 <= KERNEL_BYTES:
            self._kernel = dense(self._X @ self._X.T)
            if is_sparse(self._X):
                # (x - m)'(z - m) = x'z - x'm - z'm + m'm, because centred rows would be dense.
                along = self._X @ self.centre
                self._kernel -= along[:, None]
                self._kernel -= along - self.centre @ self.centre

    def features(self, index: IndexArray) -> FloatArray:
        """Return the features of the rows of each problem."""
        rows = dense(self._X[index.ravel()])
        if is_sparse(self._X):
            rows -= self.centre
        return rows.reshape(*index.shape, -1)

    def kernels(self, index: IndexArray) -> FloatArray:
        """Return the inner products between all rows of each problem."""
        if self._kernel is not None:
            return np.asarray(self._kernel[index[:, :, None], index[:, None, :]])
        features = self.features(index)
        return np.asarray(np.matmul(features, features.transpose(0, 2, 1)))

    def combined(self, index: IndexArray, multipliers: FloatArray) -> FloatArray:
        """Return the sum of multipliers times rows for each problem; multipliers sum to 0."""
        # One sparse product for all problems. The centre need not be subtracted from the rows,
        # because it cancels when the multipliers sum to 0.
        n_problems, width = index.shape
        start = np.arange(0, index.size + 1, width)
        from_rows = sparse.csr_array(
            (multipliers.ravel(), index.ravel(), start), shape=(n_problems, self._X.shape[0])
        )
        return dense(from_rows @ self._X)
