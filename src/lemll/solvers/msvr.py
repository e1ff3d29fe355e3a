"""Multi-output support vector regression (Eq. 10): a semismooth Newton method with a certificate.

Algorithm 1 of the paper uses IRWLS: it bounds the loss by a quadratic function and factorises a new
matrix for every reweighting. Here the true curvature of the loss is used. Each Newton system is
solved by conjugate gradients. All systems share one preconditioner, ``Xc'Xc + alpha I``. Without a
tube, this matrix is the Hessian itself.

Weights of the rows need no special treatment. The residual and the tube are multiplied by the root
of the weight: ``w max(0, r - epsilon)^2 = max(0, sqrt(w) r - sqrt(w) epsilon)^2``.

Weights c of the cells change the length of a residual: ``r_i^2 = sum_j c_ij xi_ij^2``. The tube
keeps its radius. With weights 0 and 1, this is the limit of Eq. (9) with the same weights for a
very large beta and gamma = 0. There, the numerical labels of cells without a weight follow the
model, and their residuals are zero.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lemll._types import BoolArray, Features, FloatArray, MatrixLike
from lemll._validation import is_sparse
from lemll.solvers.certificate import CentredKernel
from lemll.solvers.equation9 import (
    Callback,
    as_features,
    check_cell_weight,
    check_real,
    check_size,
    check_stopping,
    check_weights,
)
from lemll.solvers.msvr_search import MsvrProblem, MsvrSearch, MsvrSolution


def solve_msvr(
    X: Features,
    targets: MatrixLike,
    *,
    alpha: float,
    epsilon: float = 0.1,
    sample_weight: MatrixLike = None,
    cell_weight: MatrixLike = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> MsvrSolution:
    """Minimise Eq. (10) up to a certified gap.

    Minimises ``sum_i w_i L(|sqrt(c_i) (t_i - Theta x_i - b)|) + alpha |Theta|_F^2`` with
    ``L(r) = max(0, r - epsilon)^2``. The weights w of the rows and c of the cells are 1 by default.

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
    cell_weight : ndarray of shape (n_samples, n_outputs), optional
        Weights c >= 0 of the cells of the targets. By default 1. Where c is 0, the target is
        ignored. For an output without any weight, Theta and b are 0.
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
    data = _Data(X, targets, sample_weight, cell_weight)
    check_weights(alpha=alpha, beta=1.0, gamma=0.0, epsilon=epsilon)
    check_stopping(tol=tol, max_iter=max_iter)
    clock = time.perf_counter()
    problem = data.problem(alpha, epsilon)
    return data.whole(MsvrSearch(problem, tol, max_iter, callback, clock).solution())


def solve_msvr_path(
    X: Features,
    targets: MatrixLike,
    alphas: Sequence[float],
    *,
    epsilon: float = 0.1,
    cell_weight: MatrixLike = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> Iterator[tuple[int, MsvrSolution]]:
    """Minimise Eq. (10) for many alphas, with one preparation of the features and warm starts.

    Parameters
    ----------
    X, targets : arrays
        As in `solve_msvr`.
    alphas : sequence of float
        Weights of ``|Theta|_F^2``, positive.
    epsilon, cell_weight, tol, max_iter
        As in `solve_msvr`, for each alpha.

    Yields
    ------
    tuple of int and MsvrSolution
        Index in `alphas` and the minimiser, from the largest alpha to the smallest.

    Examples
    --------
    >>> import numpy as np
    >>> from lemll.solvers.msvr import solve_msvr_path
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> [float(s.coef[0, 0].round(6)) for _, s in solve_msvr_path(X, 2 * X, [0.5, 2.0], epsilon=0)]
    [1.0, 1.6]
    """
    data = _Data(X, targets, None, cell_weight)
    check_stopping(tol=tol, max_iter=max_iter)
    for alpha in alphas:
        check_weights(alpha=alpha, beta=1.0, gamma=0.0, epsilon=epsilon)
    if not len(alphas):
        return
    problem = data.problem(float(max(alphas)), epsilon, n_alphas=len(alphas))
    V: FloatArray | None = None
    # The solution for the largest alpha is closest to the start Theta = 0, and each solution is a
    # good start for the next smaller alpha.
    for place in sorted(range(len(alphas)), key=lambda i: -alphas[i]):
        if alphas[place] != problem.alpha:
            problem.set_alpha(float(alphas[place]))
        search = MsvrSearch(problem, tol, max_iter, None, time.perf_counter(), start=V)
        yield place, data.whole(search.solution())
        V = search.point.V


class _Data:
    """The checked arrays of Eq. (10), without the rows that have no weight."""

    def __init__(
        self, X: Features, targets: MatrixLike, sample_weight: MatrixLike, cell_weight: MatrixLike
    ) -> None:
        cells = None
        if cell_weight is not None:
            cells = check_cell_weight(cell_weight, np.shape(targets), every_label=False)
            targets = np.where(cells > 0, targets, 0.0)
        self._X, self._T = check_targets(X, targets)
        weights = _check_sample_weight(sample_weight, len(self._T))
        # Rows with the weight 0 would give 0 / 0, and rows without a weighted cell only cost time.
        kept = np.ones(len(self._T), dtype=bool) if weights is None else weights > 0
        if cells is not None:
            kept &= (cells > 0).any(axis=1)
        self._kept: BoolArray | None = None if kept.all() else kept
        self._weights, self._cells = weights, cells

    def problem(self, alpha: float, epsilon: float, *, n_alphas: int = 1) -> MsvrProblem:
        """Return the problem of the rows that have a weight, prepared for so many alphas."""
        X, T, weights, cells, kept = self._X, self._T, self._weights, self._cells, self._kept
        if kept is not None:
            T = T[kept]
            weights, cells = (None if array is None else array[kept] for array in (weights, cells))
            if isinstance(X, CentredKernel):
                X = X.rows(kept)
                # A kernel keeps the centre of all rows. Weights move it to those that stay.
                weights = np.ones(len(T)) if weights is None else weights
            else:
                X = X[kept]
        return MsvrProblem(X, T, weights, alpha, epsilon, cell_weight=cells, n_alphas=n_alphas)

    def whole(self, solution: MsvrSolution) -> MsvrSolution:
        """Return the solution with one coefficient per given row, if it is one of a kernel."""
        if self._kept is None or not isinstance(self._X, CentredKernel):
            return solution
        coef = np.zeros((self._T.shape[1], len(self._T)))
        coef[:, self._kept] = solution.coef
        return replace(solution, coef=coef)


def check_targets(X: Features, targets: MatrixLike) -> tuple[Features, FloatArray]:
    """Return checked features and targets in float64."""
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
