"""Algorithm 1 of the LEMLL paper, implemented literally: slow and dense, but easy to verify.

The tests use it as the reference, and the benchmarks use it as the baseline. It is not slow on
purpose: each linear solve is one Cholesky factorisation, and nothing is computed twice.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lemll._types import Features, FloatArray, MatrixLike, SparseMatrix
from lemll._validation import is_sparse
from lemll.solvers.certificate import row_norms, smallest_objective, tube_loss, tube_weights
from lemll.solvers.equation9 import (
    Callback,
    LemllPoint,
    LemllSolution,
    Progress,
    Status,
    check_arrays,
    check_size,
    check_start,
    check_weights,
    duality_gap,
    solution_at,
)

# A step of the line search must achieve this share of the decrease predicted by the gradient.
ARMIJO = 1e-4
SHORTEST_STEP = 1e-16


def solve_reference(
    X: Features,
    Y: MatrixLike,
    W: SparseMatrix,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    epsilon: float = 0.1,
    tol: float = 1e-10,
    inner_tol: float = 1e-8,
    max_outer: int = 1000,
    max_inner: int = 200,
    one_reweighting: bool = False,
    U0: FloatArray | None = None,
    time_limit: float = float("inf"),
    callback: Callback | None = None,
) -> LemllSolution:
    """Minimise Eq. (9) by the alternation of Algorithm 1.

    Each round first solves for (Theta, b) with fixed U (Eq. 10), then for U with fixed (Theta, b)
    (Eq. 11). Both use iteratively reweighted least squares with a backtracking line search. The
    rounds stop when the relative decrease of Eq. (9) over one round is at most `tol`.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features. Sparse features are converted to dense.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, -1 or +1.
    W : sparse array of shape (n_samples, n_samples)
        Rebuilding weights. Each row sums to one.
    alpha, beta, gamma : float
        Weights of ``|Theta|_F^2``, ``|U - Y|_F^2`` and ``tr(U' M U)`` in Eq. (9).
    epsilon : float, default=0.1
        Radius of the tube.
    tol : float, default=1e-10
        The solver stops when the relative decrease of Eq. (9) per round is at most this.
    inner_tol : float, default=1e-8
        The same tolerance for each of the two inner loops.
    max_outer, max_inner : int, default=1000, 200
        Largest number of rounds, and of reweightings in each inner loop.
    one_reweighting : bool, default=False
        Whether to reweight only once per block instead of running the inner loops to the end. This
        is the fastest interpretation of Algorithm 1.
    U0 : ndarray of shape (n_samples, n_labels), optional
        Initial numerical labels. By default zeros, as in the paper.
    time_limit : float, default=inf
        No new round starts after this many seconds.
    callback : callable, optional
        Called with a `Progress` after each round.

    Returns
    -------
    LemllSolution
        The solution. Its ``n_iter`` counts rounds.

    See Also
    --------
    lemll.solvers.solve_joint : the same minimiser, much faster.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from lemll.lab.reference import solve_reference
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> Y = np.array([[-1.0], [1.0], [1.0]])
    >>> W = sparse.csr_array(np.array([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]]))
    >>> solution = solve_reference(X, Y, W, alpha=1.0, beta=1.0, gamma=1.0)
    >>> solution.converged, solution.optimality < 1e-4
    (True, True)
    """
    X, Y, W = check_arrays(X, Y, W)
    check_size(X, "X", "float64")
    check_weights(alpha=alpha, beta=beta, gamma=gamma, epsilon=epsilon)
    clock = time.perf_counter()
    dense = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
    start = np.zeros_like(Y) if U0 is None else check_start(U0, Y)
    model = MsvrBlock(dense, Y.shape[1], alpha=alpha, epsilon=epsilon)
    labels = LabelBlock(Y, W, start, beta=beta, gamma=gamma, epsilon=epsilon)
    reweightings = 1 if one_reweighting else max_inner

    def objective() -> float:
        loss = tube_loss(row_norms(labels.U - model.predictions), epsilon).sum()
        return float(loss) + model.penalty() + labels.penalty

    floor = smallest_objective(Y, beta)
    trace = [objective()]
    status: Status = "max_iter"
    for round_ in range(1, max_outer + 1):
        model.fit(labels.U, tol=inner_tol, max_reweightings=reweightings, floor=floor)
        labels.fit(model.predictions, tol=inner_tol, max_reweightings=reweightings, floor=floor)
        trace.append(objective())
        if callback is not None:
            now = time.perf_counter()
            callback(Progress(round_, trace[-1], float("inf"), now - clock))
            clock += time.perf_counter() - now
        if trace[-2] - trace[-1] <= tol * max(trace[-2], floor):
            status = "converged"
            break
        if time.perf_counter() - clock >= time_limit:
            break
    point = LemllPoint(labels.U, model.coef, model.intercept)
    certificate = duality_gap(X, Y, W, point, alpha=alpha, beta=beta, gamma=gamma, epsilon=epsilon)
    solves = model.n_linear_solves + labels.n_linear_solves
    return solution_at(point, certificate, trace, status, solves)


class MsvrBlock:
    """The (Theta, b)-step of Algorithm 1: multi-output support vector regression by IRWLS (Eq. 10).

    Minimises ``sum_i L(|u_i - Theta x_i - b|) + alpha |Theta|_F^2`` for fixed targets U. Each call
    starts where the last call ended. The linear system is (d+1) x (d+1) if d < n, and otherwise
    n x n (kernel form).

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features.
    n_labels : int
        Number of columns of the targets.
    alpha : float
        Weight of ``|Theta|_F^2``.
    epsilon : float
        Radius of the tube.

    Attributes
    ----------
    n_linear_solves : int
        Number of Cholesky factorisations so far.
    """

    def __init__(self, X: FloatArray, n_labels: int, *, alpha: float, epsilon: float) -> None:
        n_samples, n_features = X.shape
        self.X, self.alpha, self.epsilon = X, alpha, epsilon
        self.kernel = X @ X.T if n_features >= n_samples else None
        self.extended = np.column_stack([X, np.ones(n_samples)])
        # Unknowns: rows of Theta' (or of the kernel coefficients), then the row of b.
        rows = n_features if self.kernel is None else n_samples
        self.unknowns = np.zeros((rows + 1, n_labels))
        self.predictions = np.zeros((n_samples, n_labels))
        self.n_linear_solves = 0

    @property
    def coef(self) -> FloatArray:
        """``Theta``, of shape (n_labels, n_features)."""
        weights = self.unknowns[:-1]
        return np.array(weights.T if self.kernel is None else weights.T @ self.X)

    @property
    def intercept(self) -> FloatArray:
        """``b``, of shape (n_labels,)."""
        return np.array(self.unknowns[-1])

    def penalty(self) -> float:
        """``alpha |Theta|_F^2`` at the current model."""
        weights = self.unknowns[:-1]
        if self.kernel is None:
            return self.alpha * float(np.vdot(weights, weights))
        return self.alpha * float(np.vdot(weights, self.kernel @ weights))

    def fit(self, U: FloatArray, *, tol: float, max_reweightings: int, floor: float = 0.0) -> None:
        """Reweight and solve until the relative decrease of Eq. (10) is at most `tol`.

        Values below `floor` count as zero.
        """
        value = self._value(U, self.predictions) + self.penalty()
        for _ in range(max_reweightings):
            before = value
            value = self._reweight(U, before)
            if before - value <= tol * max(before, floor):
                break

    def _value(self, U: FloatArray, predictions: FloatArray) -> float:
        return float(tube_loss(row_norms(U - predictions), self.epsilon).sum())

    def _reweight(self, U: FloatArray, value: float) -> float:
        """Solve for the current weights and search along the line; return the new value."""
        residuals = U - self.predictions
        weights = tube_weights(row_norms(residuals), self.epsilon)
        towards = self._solve(U, weights) - self.unknowns
        if self.kernel is None:
            moved = self.extended @ towards
            cross = float(np.vdot(self.unknowns[:-1], towards[:-1]))
            square = float(np.vdot(towards[:-1], towards[:-1]))
        else:
            image = self.kernel @ towards[:-1]
            moved = image + towards[-1]
            cross = float(np.vdot(self.unknowns[:-1], image))
            square = float(np.vdot(towards[:-1], image))
        penalty = self.penalty()
        slope = 2 * (self.alpha * cross - float(np.vdot(weights[:, None] * residuals, moved)))
        step = 1.0
        while step >= SHORTEST_STEP:
            trial = (
                self._value(U, self.predictions + step * moved)
                + penalty
                + self.alpha * step * (2 * cross + step * square)
            )
            if trial <= value + ARMIJO * step * min(slope, 0.0):
                self.unknowns += step * towards
                self.predictions += step * moved
                return min(trial, value)
            step /= 2
        return value

    def _solve(self, U: FloatArray, weights: FloatArray) -> FloatArray:
        """Minimise ``sum_i a_i |u_i - Theta x_i - b|^2 + alpha |Theta|_F^2``."""
        solution = np.zeros_like(self.unknowns)
        support = weights > 0
        if not support.any():
            # All rows are inside the tube. Then the quadratic function is alpha |Theta|^2, whose
            # minimum is Theta = 0 for any b. So move towards Theta = 0 and keep b; to stop here
            # would not be optimal.
            solution[-1] = self.unknowns[-1]
            return solution
        self.n_linear_solves += 1
        if self.kernel is None:
            weighted = weights[:, None] * self.extended
            system = self.extended.T @ weighted
            system.flat[: -1 : len(system) + 1] += self.alpha
            factor = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
            return np.asarray(cho_solve(factor, weighted.T @ U, check_finite=False))
        # Kernel form on the support vectors: (K + alpha D^-1) B + 1 b' = U with 1'B = 0.
        system = self.kernel[np.ix_(support, support)]
        system.flat[:: len(system) + 1] += self.alpha / weights[support]
        factor = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
        right = np.column_stack([U[support], np.ones(len(system))])
        solved = cho_solve(factor, right, overwrite_b=True, check_finite=False)
        intercept = solved[:, :-1].sum(axis=0) / solved[:, -1].sum()
        solution[:-1][support] = solved[:, :-1] - np.outer(solved[:, -1], intercept)
        solution[-1] = intercept
        return solution


class LabelBlock:
    """The U-step of Algorithm 1 (Eq. 11-18): IRWLS for U with fixed predictions P.

    Minimises ``sum_i L(|u_i - p_i|) + beta |U - Y|_F^2 + gamma tr(U' M U)``.
    """

    def __init__(
        self,
        Y: FloatArray,
        W: SparseMatrix,
        U0: FloatArray,
        *,
        beta: float,
        gamma: float,
        epsilon: float,
    ) -> None:
        n_samples = len(Y)
        difference = np.eye(n_samples) - W.toarray()
        self.Y, self.beta, self.gamma, self.epsilon = Y, beta, gamma, epsilon
        # B = beta I + gamma M. A reweighting only adds the weights a_i to its diagonal.
        # Use Fortran order, so that LAPACK factorises the copy in place.
        self.hessian = np.asfortranarray(gamma * (difference.T @ difference))
        self.hessian[np.diag_indices(n_samples)] += beta
        self.U = U0.copy()
        change, rebuilt = U0 - Y, difference @ U0
        # beta |U - Y|_F^2 + gamma tr(U' M U) at the current labels.
        self.penalty = float(beta * np.vdot(change, change) + gamma * np.vdot(rebuilt, rebuilt))
        self.n_linear_solves = 0

    def fit(self, P: FloatArray, *, tol: float, max_reweightings: int, floor: float = 0.0) -> None:
        """Reweight and solve until the relative decrease of Eq. (11) is at most `tol`.

        Values below `floor` count as zero.
        """
        value = self._loss(P, self.U) + self.penalty
        for _ in range(max_reweightings):
            before = value
            value = self._reweight(P, before)
            if before - value <= tol * max(before, floor):
                break

    def _loss(self, P: FloatArray, U: FloatArray) -> float:
        return float(tube_loss(row_norms(U - P), self.epsilon).sum())

    def _reweight(self, P: FloatArray, value: float) -> float:
        weights = tube_weights(row_norms(self.U - P), self.epsilon)
        system = self.hessian.copy(order="F")
        system[np.diag_indices(len(system))] += weights
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        self.n_linear_solves += 1
        right = weights[:, None] * P + self.beta * self.Y
        towards = cho_solve(factor, right, overwrite_b=True, check_finite=False) - self.U
        image = self.hessian @ towards
        cross = float(np.vdot(image, self.U) - self.beta * np.vdot(towards, self.Y))
        square = float(np.vdot(image, towards))
        slope = 2 * (cross + float(np.vdot(weights[:, None] * (self.U - P), towards)))
        step = 1.0
        while step >= SHORTEST_STEP:
            moved = self.U + step * towards
            penalty = self.penalty + step * (2 * cross + step * square)
            trial = self._loss(P, moved) + penalty
            if trial <= value + ARMIJO * step * min(slope, 0.0):
                self.U, self.penalty = moved, penalty
                return min(trial, value)
            step /= 2
        return value
