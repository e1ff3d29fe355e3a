"""Solve many logistic regressions, each on its own few rows, for example all pairs of labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse

from lemll._sparse import dense, lighter
from lemll._types import Array, Features, FloatArray, IndexArray, MatrixLike
from lemll._validation import is_sparse
from lemll.solvers.equation9 import as_features, check_size, check_stopping
from lemll.solvers.logistic import (
    ARMIJO,
    LEAST_CURVATURE,
    SHORTEST_STEP,
    check_inverse_penalty,
    log_loss,
    probabilities,
    solve_logistic,
)
from lemll.solvers.logistic_rows import STRONG_PENALTY

# Solved problems are removed when they are this share of the stack, because removal copies the
# other problems.
LEAVING = 0.1


@dataclass(slots=True)
class _StackState:
    """The arrays of the problems that are not solved yet; the first axis is the problem."""

    place: npt.NDArray[np.intp]
    design: FloatArray
    labels: FloatArray
    there: FloatArray
    unknowns: FloatArray
    intercept: FloatArray
    scores: FloatArray
    value: FloatArray
    scale: FloatArray

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Remove the solved problems."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[kept])


class Stack:
    """Minimise the penalised logistic loss of every problem of a stack.

    Parameters
    ----------
    design : ndarray of shape (n_problems, n_rows, n_columns)
        The kernel of the rows of each problem, or their features.
    labels : ndarray of shape (n_problems, n_rows)
        0/1. Each problem must have both values.
    there : ndarray of shape (n_problems, n_rows)
        The weights of the rows of the problem, usually 1; 0 for padding.
    kernel : bool
        Whether `design` holds kernels (True) or features (False).
    penalty : float
        1 / C.

    Attributes
    ----------
    unknowns : ndarray of shape (n_problems, n_columns)
        Multipliers of the rows, or coefficients of the features.
    intercept : ndarray of shape (n_problems,)
        Intercepts.
    gradient_norm : ndarray of shape (n_problems,)
        Relative lengths of the gradients.
    n_iter : ndarray of shape (n_problems,)
        Number of Newton steps.
    """

    def __init__(
        self,
        design: FloatArray,
        labels: FloatArray,
        there: FloatArray,
        *,
        kernel: bool,
        penalty: float,
    ) -> None:
        self.kernel, self.penalty = kernel, penalty
        mean = (labels * there).sum(axis=1) / there.sum(axis=1)
        self.intercept = np.log(mean) - np.log1p(-mean)
        self.unknowns = np.zeros((len(design), design.shape[2]))
        self.gradient_norm = np.zeros(len(design))
        self.n_iter = np.zeros(len(design), dtype=np.intp)
        surprise = (labels - mean[:, None]) * there
        # Squared lengths of the rows. In a kernel they are the diagonal.
        lengths = np.einsum("pii->pi" if kernel else "pij,pij->pi", *([design] * (2 - kernel)))
        scores = np.tile(self.intercept[:, None], (1, labels.shape[1]))
        self.state = _StackState(
            place=np.arange(len(design)),
            design=design,
            labels=labels,
            there=there,
            unknowns=self.unknowns.copy(),
            intercept=self.intercept.copy(),
            scores=scores,
            value=(log_loss(scores, labels) * there).sum(axis=1),
            scale=np.sqrt((surprise**2 * (1 + lengths)).sum(axis=1)),
        )

    def solve(self, tol: float, max_iter: int) -> None:
        """Iterate until every gradient is below `tol` times its scale, or for `max_iter` steps."""
        state = self.state
        stuck = np.zeros(len(state.place), dtype=np.bool_)
        for step in range(max_iter + 1):
            p, curvature = probabilities(state.scores)
            residuals = (p - state.labels) * state.there
            norm = self._gradient_norm(residuals) / state.scale
            self.unknowns[state.place] = state.unknowns
            self.intercept[state.place] = state.intercept
            self.gradient_norm[state.place] = norm
            self.n_iter[state.place] = step
            done = (norm <= tol) | stuck
            if done.all() or step == max_iter:
                return
            if done.sum() >= LEAVING * len(done):
                state.keep(~done)
                residuals, curvature = residuals[~done], curvature[~done]
            # Padding rows have no curvature, so they have no effect on the system.
            curvature = np.maximum(curvature, LEAST_CURVATURE) * state.there
            newton = self._kernel_step if self.kernel else self._feature_step
            stuck = self._search(residuals, *newton(residuals, curvature))

    def _gradient_norm(self, residuals: FloatArray) -> FloatArray:
        state = self.state
        if self.kernel:
            # With theta = X'a, the gradient is X'v, and its squared length is v'Kv.
            v = residuals + self.penalty * state.unknowns
            square = _inner(v, _times(state.design, v))
        else:
            v = _gathered(state.design, residuals) + self.penalty * state.unknowns
            square = _inner(v, v)
        return np.asarray(np.sqrt(np.maximum(square, 0) + residuals.sum(axis=1) ** 2))

    def _kernel_step(
        self, residuals: FloatArray, curvature: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        state = self.state
        root = np.sqrt(curvature)
        # S times the working response f - r / s^2 of iteratively reweighted least squares, where r
        # are the residuals and s^2 is the curvature.
        target = root * state.scores - residuals / np.where(root > 0, root, 1)
        system = state.design * (root / self.penalty)[:, :, None]
        system *= root[:, None, :]
        diagonal = np.arange(root.shape[1])
        system[:, diagonal, diagonal] += 1
        # Solve for the target and for the ones (times S). The combination with sum(a) = 0
        # determines the intercept.
        solved = np.linalg.solve(system, np.stack([target, root], axis=2))
        intercept = _inner(root, solved[:, :, 0]) / _inner(root, solved[:, :, 1])
        unknowns = solved[:, :, 0] - intercept[:, None] * solved[:, :, 1]
        unknowns *= root / self.penalty
        return unknowns - state.unknowns, intercept - state.intercept

    def _feature_step(
        self, residuals: FloatArray, curvature: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        state = self.state
        weighted = state.design * curvature[:, :, None]
        n_features = state.design.shape[2]
        system = np.empty((len(weighted), n_features + 1, n_features + 1))
        system[:, :-1, :-1] = np.matmul(state.design.transpose(0, 2, 1), weighted)
        diagonal = np.arange(n_features)
        system[:, diagonal, diagonal] += self.penalty
        # The last row and column belong to the intercept, which has no penalty.
        system[:, -1, :-1] = system[:, :-1, -1] = weighted.sum(axis=1)
        system[:, -1, -1] = curvature.sum(axis=1)
        slope = _gathered(state.design, residuals) + self.penalty * state.unknowns
        right = -np.column_stack([slope, residuals.sum(axis=1)])
        found = np.linalg.solve(system, right[:, :, None])[:, :, 0]
        return found[:, :-1], found[:, -1]

    def _search(
        self, residuals: FloatArray, direction: FloatArray, direction0: FloatArray
    ) -> npt.NDArray[np.bool_]:
        """Halve the step of each problem until its value falls enough; return which are stuck."""
        state = self.state
        change = _times(state.design, direction) + direction0[:, None]
        # The penalty is a'Ka with a kernel, and theta'theta without. Ka is known from the scores.
        here, ahead = state.unknowns, direction
        if self.kernel:
            here, ahead = state.scores - state.intercept[:, None], change - direction0[:, None]
        # The penalty is a quadratic function of the step, so trial steps need no further products.
        before = self.penalty / 2 * _inner(state.unknowns, here)
        along = self.penalty * _inner(direction, here)
        across = self.penalty / 2 * _inner(direction, ahead)
        promised = _inner(residuals, change) + along
        # An increase within the rounding error of the sum does not count as a failure.
        slack = 1e-13 * (1 + np.abs(state.value))
        length = np.ones(len(state.place))
        while True:
            scores = state.scores + length[:, None] * change
            loss = (log_loss(scores, state.labels) * state.there).sum(axis=1)
            value = loss + before + length * along + length**2 * across
            short = ~(value <= state.value + ARMIJO * length * promised + slack) & (length > 0)
            if not short.any():
                break
            length[short] /= 2
            length[length < SHORTEST_STEP] = 0
        state.scores, state.value = scores, value
        state.unknowns = state.unknowns + length[:, None] * direction
        state.intercept = state.intercept + length * direction0
        return np.asarray(length == 0)


def _inner(first: FloatArray, second: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("pi,pi->p", first, second))


def _times(design: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.asarray(np.matmul(design, vectors[:, :, None])[:, :, 0])


def _gathered(design: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.asarray(np.matmul(vectors[:, None, :], design)[:, 0, :])


# Largest size of a stack of matrices.
STACK_BYTES = 1 << 24
# Problems on all rows are solved in groups whose label masks have at most this size.
MASK_BYTES = 1 << 25
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

    Rows, labels and weights are not checked, because `CLR` makes them. For each problem with rows
    I, labels y and weights w, it minimises

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
    >>> from lemll.rivals.logistic_subsets import solve_logistic_subsets
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
