"""Solve many L2-regularised logistic regressions together, with shared products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from lemll._types import Features, FloatArray, MatrixLike
from lemll._validation import is_sparse
from lemll.solvers.interface import as_features, check_size, check_stopping
from lemll.solvers.logistic.features import SharedFeatures
from lemll.solvers.logistic.newton import NewtonBlock

__all__ = ["LogisticSolution", "solve_logistic"]

# A block of problems has a few arrays of this size. They fit into the cache of the processor, and
# the memory does not depend on the number of problems.
BLOCK_BYTES = 1 << 21
# Every block reads all sparse features again, so use larger and fewer blocks.
SPARSE_BLOCKS = 2
LEAST_PROBLEMS = 16
# Directions are computed in float32, where a larger penalty 1 / C would overflow.
LEAST_C = 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticSolution:
    """The minimisers of many logistic regressions, one row per problem.

    Attributes
    ----------
    coef : ndarray of shape (n_problems, n_features)
        Coefficients of the shared features.
    extra_coef : ndarray of shape (n_problems, n_extra)
        Coefficients of the features that only some problems may use. 0 if not allowed.
    intercept : ndarray of shape (n_problems,)
        The intercepts. If all labels of a problem are equal, the model is constant, and the
        intercept is minus infinity (all 0) or plus infinity (all 1).
    objective : ndarray of shape (n_problems,)
        The minimum of each problem.
    gradient_norm : ndarray of shape (n_problems,)
        Length of the gradient, relative to the expected length at the start if the contributions
        of the rows had random signs.
    n_iter : ndarray of shape (n_problems,)
        Number of Newton steps.
    converged : ndarray of shape (n_problems,)
        Whether `gradient_norm` has reached the tolerance.
    """

    coef: FloatArray
    extra_coef: FloatArray
    intercept: FloatArray
    objective: FloatArray
    gradient_norm: FloatArray
    n_iter: npt.NDArray[np.intp]
    converged: npt.NDArray[np.bool_]


def solve_logistic(
    X: Features,
    labels: MatrixLike,
    *,
    C: float = 1.0,
    sample_weight: MatrixLike = None,
    extra: Any = None,
    allowed: Any = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    n_jobs: int | None = None,
) -> LogisticSolution:
    r"""Minimise many L2-regularised logistic losses over the same rows.

    For each column y of `labels`, with its own weights w, it minimises

    .. math::
        \sum_i w_i\log\bigl(1+e^{-(2y_i-1)(\theta^\top x_i+b)}\bigr)+\frac1{2C}\|\theta\|^2,

    as ``LogisticRegression(C=C)`` of scikit-learn does. The intercept b is not penalised.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features of all problems.
    labels : ndarray of shape (n_samples, n_problems)
        0/1.
    C : float, default=1.0
        Inverse strength of the penalty, > 0.
    sample_weight : ndarray of shape (n_samples, n_problems), optional
        Weights, not negative. A weight of 2 has the same effect as repeating the row; a weight of
        0 has the same effect as removing it.
    extra : ndarray of shape (n_samples, n_extra), optional
        Features that only some problems may use.
    allowed : ndarray of shape (n_problems, n_extra), optional
        Which of the extra features each problem may use. By default all.
    tol : float, default=1e-6
        A problem is solved when the relative length of its gradient is at most this.
    max_iter : int, default=100
        Largest number of Newton steps per problem.
    n_jobs : int, optional
        Number of threads, as in joblib. Each thread works on one block of problems at a time.

    Returns
    -------
    LogisticSolution
        The minimisers.

    Notes
    -----
    Problems are solved in blocks of limited memory. All problems of a block share the products
    with X. Each Newton system is solved by conjugate gradients with a diagonal preconditioner, or
    by a factorisation if that is cheaper. Dense features are rotated to their principal axes.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers import solve_logistic
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> solution = solve_logistic(X, np.array([[0, 1], [0, 1], [1, 1], [1, 1]]))
    >>> solution.coef.round(3), solution.intercept.round(3)
    (array([[0.958],
           [0.   ]]), array([-1.437,    inf]))
    """
    X, labels, weights, extra, free = _checked(X, labels, sample_weight, extra, allowed)
    check_stopping(tol=tol, max_iter=max_iter)
    check_inverse_penalty(C)
    n_samples, n_problems = labels.shape
    n_extra = 0 if extra is None else extra.shape[1]
    total = np.full(n_problems, n_samples) if weights is None else weights.sum(axis=0)
    positive = (labels if weights is None else labels * weights).sum(axis=0, dtype=np.float64)
    coef, extra_coef = np.zeros((n_problems, X.shape[1])), np.zeros((n_problems, n_extra))
    # If all labels are equal, the loss has no minimum: it falls as |b| grows. Use the limit.
    intercept = np.where(positive >= total, np.inf, -np.inf)
    objective, gradient_norm = np.zeros(n_problems), np.zeros(n_problems)
    n_iter, converged = np.zeros(n_problems, np.intp), np.ones(n_problems, np.bool_)
    varied = np.flatnonzero((positive > 0) & (positive < total))
    if len(varied):
        features = SharedFeatures(X, extra, 1 / C)

    def work(part: npt.NDArray[np.intp]) -> None:
        block = NewtonBlock(
            features,
            np.asarray(labels[:, part], dtype=np.float64),
            None if weights is None else np.asarray(weights[:, part], dtype=np.float64),
            None if free is None else _free_axes(free[part], features.n_axes),
            1 / C,
        )
        block.solve(tol, max_iter)
        first, second, shifted = features.given_basis(block.coef, block.intercept)
        coef[part], extra_coef[part], intercept[part] = first.T, second.T, shifted
        objective[part], gradient_norm[part] = block.objective, block.gradient_norm
        n_iter[part], converged[part] = block.n_iter, block.converged

    Parallel(n_jobs=n_jobs, require="sharedmem")(
        delayed(work)(part) for part in _blocks(varied, n_samples, is_sparse(X))
    )
    return LogisticSolution(
        coef=coef,
        extra_coef=extra_coef,
        intercept=intercept,
        objective=objective,
        gradient_norm=gradient_norm,
        n_iter=n_iter,
        converged=converged,
    )


def check_inverse_penalty(C: float) -> None:
    """Refuse a C that is not positive, or whose penalty 1 / C overflows in float32."""
    if not (np.isfinite(C) and C > 0):
        raise ValueError(f"C must be finite and > 0, got {C}.")
    if C < LEAST_C:
        raise ValueError(
            f"C must be at least {LEAST_C:.0e}, got {C}; raise it, or divide X by k and multiply C "
            "by k^2, which gives the same outputs."
        )


def _blocks(
    problems: npt.NDArray[np.intp], n_samples: int, sparse: bool
) -> Iterator[npt.NDArray[np.intp]]:
    size = (SPARSE_BLOCKS if sparse else 1) * BLOCK_BYTES // (8 * n_samples)
    size = max(LEAST_PROBLEMS, size)
    for start in range(0, len(problems), size):
        yield problems[start : start + size]


def _free_axes(allowed: npt.NDArray[np.bool_], n_axes: int) -> FloatArray:
    # All problems may use the shared features, which come first.
    free = np.ones((n_axes, len(allowed)))
    free[n_axes - allowed.shape[1] :] = allowed.T
    return free


def _checked(
    X: Features, labels: MatrixLike, sample_weight: MatrixLike, extra: Any, allowed: Any
) -> tuple[Any, ...]:
    X = as_features(X.tocsr() if is_sparse(X) else X)
    check_size(X, "X", "float64")
    labels = np.asarray(labels)
    if labels.ndim != 2 or len(labels) != X.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} rows, so labels must be ({X.shape[0]}, n_problems); "
            f"got {labels.shape}."
        )
    if ((labels != 0) & (labels != 1)).any():
        raise ValueError("labels must contain only 0 and 1; code the two classes as 0 and 1.")
    weights = None
    if sample_weight is not None:
        weights = np.asarray(sample_weight)
        if weights.shape != labels.shape:
            raise ValueError(
                f"sample_weight must have the shape of labels, {labels.shape}; got {weights.shape}."
            )
        if not (weights >= 0).all() or not np.isfinite(weights).all():
            raise ValueError("sample_weight must be finite and not negative.")
    free = None
    if extra is not None:
        extra = np.asarray(extra, dtype=np.float64)
        check_size(extra, "extra", "float64")
        if allowed is not None:
            free = np.asarray(allowed, dtype=np.bool_)
        shapes = (extra.shape[:1], free if free is None else free.shape)
        if extra.ndim != 2 or shapes != (
            (X.shape[0],), None if free is None else (labels.shape[1], extra.shape[1])
        ):  # fmt: skip
            raise ValueError(
                f"extra must be ({X.shape[0]}, n_extra) and allowed ({labels.shape[1]}, n_extra); "
                f"got extra {extra.shape} and allowed {None if free is None else free.shape}."
            )
    return X, labels, weights, extra, free
