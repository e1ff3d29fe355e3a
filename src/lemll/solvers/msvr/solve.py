"""Multi-output support vector regression (Eq. 10): a semismooth Newton method with a certificate.

Algorithm 1 of the paper uses IRWLS: it bounds the loss by a quadratic function and factorises a new
matrix for every reweighting. Here the true curvature of the loss is used. Each Newton system is
solved by conjugate gradients. All systems share one preconditioner, ``Xc'Xc + alpha I``. Without a
tube, this matrix is the Hessian itself.

Weights of the rows need no special treatment. The residual and the tube are multiplied by the root
of the weight: ``w max(0, r - epsilon)^2 = max(0, sqrt(w) r - sqrt(w) epsilon)^2``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lemll._types import Features, FloatArray, MatrixLike
from lemll._validation import is_sparse
from lemll.objective import CentredKernel
from lemll.solvers.interface import (
    Callback,
    as_features,
    check_real,
    check_size,
    check_stopping,
    check_weights,
)
from lemll.solvers.msvr.point import MsvrProblem
from lemll.solvers.msvr.search import MsvrSearch, MsvrSolution

__all__ = ["MsvrSolution", "solve_msvr", "solve_msvr_path"]


def solve_msvr(
    X: Features,
    targets: MatrixLike,
    *,
    alpha: float,
    epsilon: float = 0.1,
    sample_weight: MatrixLike = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> MsvrSolution:
    """Minimise Eq. (10) up to a certified gap.

    Minimises ``sum_i w_i L(|t_i - Theta x_i - b|) + alpha |Theta|_F^2`` with
    ``L(r) = max(0, r - epsilon)^2``.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features), or CentredKernel
        Features. Sparse features are converted to dense only in blocks of limited size. With a
        kernel, the rows of `coef` hold one coefficient per sample.
    targets : ndarray of shape (n_samples, n_outputs)
        Real targets.
    alpha : float
        Weight of ``|Theta|_F^2``, positive. The usual C is ``1 / (2 alpha)``.
    epsilon : float, default=0.1
        Radius of the tube.
    sample_weight : ndarray of shape (n_samples,), optional
        Weights of the rows, not negative. By default 1. A weight of 2 has the same effect as
        repeating the row; a weight of 0 has the same effect as removing it.
    tol : float, default=1e-10
        The solver stops when the certified relative gap is at most this. Then a few more Newton
        steps reduce the gap to `tol` squared if rounding allows. The reason is that the error of
        predictions is about the root of the gap.
    max_iter : int, default=1000
        Largest number of Newton steps.
    callback : callable, optional
        Called with a `Progress` after each Newton step.

    Returns
    -------
    MsvrSolution
        The minimiser. ``optimality`` is its certified relative gap.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers import solve_msvr
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> solution = solve_msvr(X, 2 * X, alpha=1.0, epsilon=0.0)
    >>> solution.coef.round(6), solution.intercept.round(6)
    (array([[1.333333]]), array([0.666667]))
    >>> solution.converged, solution.optimality <= 1e-10
    (True, True)
    """
    X, T = _check_arrays(X, targets)
    check_weights(alpha=alpha, beta=1.0, gamma=0.0, epsilon=epsilon)
    check_stopping(tol=tol, max_iter=max_iter)
    weights = _check_sample_weight(sample_weight, len(T))
    clock = time.perf_counter()
    if weights is None or weights.all():
        problem = MsvrProblem(X, T, weights, alpha, epsilon)
        return MsvrSearch(problem, tol, max_iter, callback, clock).solution()
    # Rows with the weight 0 would give 0 / 0, so leave them out.
    kept = weights > 0
    by_kernel = isinstance(X, CentredKernel)
    part = X.rows(kept) if by_kernel else X[kept]
    problem = MsvrProblem(part, T[kept], weights[kept], alpha, epsilon)
    solution = MsvrSearch(problem, tol, max_iter, callback, clock).solution()
    if not by_kernel:
        return solution
    # A kernel model has one coefficient per given row, also for the rows that were left out.
    coef = np.zeros((T.shape[1], len(T)))
    coef[:, kept] = solution.coef
    return replace(solution, coef=coef)


def solve_msvr_path(
    X: Features,
    targets: MatrixLike,
    alphas: Sequence[float],
    *,
    epsilon: float = 0.1,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> Iterator[tuple[int, MsvrSolution]]:
    """Minimise Eq. (10) for many alphas, with one eigendecomposition and warm starts.

    Parameters
    ----------
    X, targets : arrays
        As in `solve_msvr`.
    alphas : sequence of float
        Weights of ``|Theta|_F^2``, positive.
    epsilon, tol, max_iter
        As in `solve_msvr`, for each alpha.

    Yields
    ------
    tuple of int and MsvrSolution
        Index in `alphas` and the minimiser, from the largest alpha to the smallest.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers import solve_msvr_path
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> [float(s.coef[0, 0].round(6)) for _, s in solve_msvr_path(X, 2 * X, [0.5, 2.0], epsilon=0)]
    [1.0, 1.6]
    """
    X, T = _check_arrays(X, targets)
    check_stopping(tol=tol, max_iter=max_iter)
    for alpha in alphas:
        check_weights(alpha=alpha, beta=1.0, gamma=0.0, epsilon=epsilon)
    if not len(alphas):
        return
    problem = MsvrProblem(X, T, None, float(max(alphas)), epsilon)
    # An eigendecomposition costs more than one factorisation, but it serves every alpha.
    problem.model.expect_many()
    V: FloatArray | None = None
    # The solution for the largest alpha is closest to the start Theta = 0, and each solution is a
    # good start for the next smaller alpha.
    for place in sorted(range(len(alphas)), key=lambda i: -alphas[i]):
        problem.set_alpha(float(alphas[place]))
        search = MsvrSearch(problem, tol, max_iter, None, time.perf_counter(), start=V)
        yield place, search.solution()
        V = search.point.V


def _check_arrays(X: Features, targets: MatrixLike) -> tuple[Features, FloatArray]:
    X, T = as_features(X.tocsr() if is_sparse(X) else X), np.asarray(targets)
    check_real(T, "targets")
    if T.ndim != 2 or T.shape[0] != X.shape[0] or T.shape[1] == 0:
        raise ValueError(
            f"X has {X.shape[0]} rows, so targets must be ({X.shape[0]}, n_outputs); got {T.shape}."
        )
    check_size(X, "X", "float64")
    check_size(T, "targets", "float64")
    return X, np.asarray(T, dtype=np.float64)


def _check_sample_weight(sample_weight: MatrixLike, n_samples: int) -> FloatArray | None:
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have one weight for each of the {n_samples} rows, "
            f"got shape {weights.shape}."
        )
    check_size(weights[:, None], "sample_weight", "float64")
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"sample_weight must not be negative, got {weights[row]} in row {row}; "
            "give rows that should not count the weight 0."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; at least one weight must be > 0.")
    return weights
