"""Algorithm 1 of the LEMLL paper word for word: slow, dense, obvious.

It is the oracle of the tests and the baseline of the benchmarks. It is not slowed on purpose: each
linear solve is one Cholesky factorisation and nothing is computed twice.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from lemll._types import FloatArray
from lemll._validation import is_sparse
from lemll.objective import LemllPoint, duality_gap, row_norms, smallest_objective, tube_loss
from lemll.solvers._blocks import LabelBlock, MsvrBlock
from lemll.solvers._checks import check_arrays, check_size, check_start, check_weights
from lemll.solvers._solution import Callback, LemllSolution, Progress, Status, solution_at

__all__ = ["solve_reference"]


def solve_reference(
    X: Any,
    Y: Any,
    W: Any,
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

    Alternates between (Theta, b) for fixed U (Eq. 10) and U for fixed (Theta, b) (Eq. 11), each by
    iteratively reweighted least squares with a backtracking line search, until the relative
    decrease of Eq. (9) over one round is at most `tol`.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_samples, n_features)
        Features; made dense.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, -1 or +1.
    W : sparse array of shape (n_samples, n_samples)
        Rebuilding weights, rows summing to one.
    alpha, beta, gamma : float
        Weights of ``|Theta|_F^2``, ``|U - Y|_F^2`` and ``tr(U' M U)`` in Eq. (9).
    epsilon : float, default=0.1
        Radius of the tube.
    tol : float, default=1e-10
        Relative decrease of Eq. (9) per round at which to stop.
    inner_tol : float, default=1e-8
        The same for each of the two inner loops.
    max_outer, max_inner : int, default=1000, 200
        Caps on the rounds and on the reweightings of each inner loop.
    one_reweighting : bool, default=False
        Reweight once per block instead of nesting: the kindest reading of Algorithm 1.
    U0 : ndarray of shape (n_samples, n_labels), optional
        Where to start; zeros by default, as in the paper.
    time_limit : float, default=inf
        Seconds after which no further round is begun.
    callback : callable, optional
        Called with a `Progress` after each round.

    Returns
    -------
    LemllSolution
        Its ``n_iter`` counts rounds.

    See Also
    --------
    lemll.solvers.solve_joint : the same minimiser, much faster.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from lemll.solvers import solve_reference
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
