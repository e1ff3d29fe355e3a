"""Numerical labels with the signs of the logical labels, as MLFE and ML2 compute them."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from lemll._types import Estimator, Features, FloatArray, LabelArray, SparseMatrix
from lemll._validation import check_number, check_whole, is_sparse
from lemll._warnings import warn_caller
from lemll.solvers import solve_box_qp

__all__ = ["boxed_labels"]


def boxed_labels(
    estimator: Estimator,
    W: SparseMatrix,
    Y: LabelArray,
    *,
    lower: float,
    upper: float,
    ridge: float,
) -> FloatArray:
    """Minimise |(I - W) u|^2 + ridge |u|^2 for each label, with lower <= y u <= upper.

    Parameters
    ----------
    estimator : estimator
        It has tol and max_iter. This function sets kkt_residual_ and n_iter_.
    W : ndarray or csr_array of shape (n_samples, n_samples)
        Weights that rebuild each row from other rows.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1.
    lower, upper : float
        Bounds of the magnitudes. `upper` may be infinite.
    ridge : float
        Weight of |u|^2, >= 0.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        U.
    """
    tol = check_number("tol", estimator.tol, above=0)
    max_iter = check_whole("max_iter", estimator.max_iter, least=1)
    A: Features
    if is_sparse(W):
        A = sparse.csr_array(sparse.eye_array(W.shape[0], format="csr") - W)
    else:
        A = np.negative(W)
        A[np.diag_indices(len(A))] += 1
    # lower <= y u <= upper is a box: [lower, upper] if y = +1, and [-upper, -lower] if y = -1.
    relevant = Y == 1
    solution = solve_box_qp(
        A,
        np.where(relevant, lower, -upper),
        np.where(relevant, upper, -lower),
        ridge=ridge,
        tol=tol,
        max_iter=max_iter,
    )
    estimator.kkt_residual_ = float(solution.residual.max())
    estimator.n_iter_ = int(solution.n_iter.max())
    if not solution.converged:
        unsolved = int((solution.residual > tol).sum())
        warn_caller(
            f"{type(estimator).__name__} left {unsolved} of {Y.shape[1]} labels unsolved, with a "
            f"residual of up to {estimator.kkt_residual_:.2e}, wanted tol={tol:.2e}; "
            + ("raise max_iter." if solution.status == "max_iter" else "raise tol or ridge."),
            ConvergenceWarning,
        )
    return solution.x
