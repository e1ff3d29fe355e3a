"""Fit Eq. (9) to validated arrays, for the LEMLL classifier and the LEMLL enhancer."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from lemll._types import Estimator, Features, FloatArray, LabelArray, SparseMatrix
from lemll._validation import check_magnitude, check_memory, check_number, check_whole
from lemll.fitting.kernels import Kernel, choose_kernel, settle_optimality, store_model
from lemll.solvers import LemllSolution, Progress, solve_logical, solver_bytes
from lemll.topology import check_graph, kernel_reconstruction_weights, reconstruction_weights

__all__ = ["check_fits", "fit_equation9", "local_graph", "make_graph"]

# The parameters that all estimators based on Eq. (9) have.
_PARAMETERS = (
    "alpha",
    "beta",
    "gamma",
    "epsilon",
    "n_neighbors",
    "reg_policy",
    "graph",
    "tol",
    "max_iter",
    "precision",
    "verbose",
)


def fit_equation9(
    estimator: Estimator,
    X: Features,
    Y: LabelArray | FloatArray,
    cell_weight: FloatArray | None = None,
) -> FloatArray:
    """Minimise Eq. (9) with the parameters of an estimator and store the solution in it.

    Parameters
    ----------
    estimator : estimator
        It has alpha, beta, gamma, epsilon, n_neighbors, reg_policy, graph, tol, max_iter,
        precision, verbose and the parameters of the kernel. This function sets coef_ (or
        dual_coef_), intercept_, numerical_labels_, objective_, objective_trace_, optimality_ and
        n_iter_.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features.
    Y : ndarray of shape (n_samples, n_labels)
        Logical labels, 0/1, or degrees in [0, 1].
    cell_weight : ndarray of shape (n_samples, n_labels), optional
        The weights of the cells of Y; by default 1.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The numerical labels.
    """
    kernel = choose_kernel(estimator, X)
    parameters = {name: getattr(estimator, name) for name in _PARAMETERS}
    solution = _solve(X, Y, kernel, cell_weight, **parameters)
    store_model(estimator, kernel, X, solution.coef, solution.intercept)
    estimator.numerical_labels_ = solution.numerical_labels
    estimator.objective_ = solution.objective
    estimator.objective_trace_ = solution.objective_trace
    estimator.optimality_ = solution.optimality
    estimator.n_iter_ = solution.n_iter
    return solution.numerical_labels


def _solve(
    X: Features,
    Y: LabelArray | FloatArray,
    kernel: Kernel | None,
    cell_weight: FloatArray | None,
    *,
    alpha: Any,
    beta: Any,
    gamma: Any,
    epsilon: float,
    n_neighbors: int,
    reg_policy: str,
    graph: SparseMatrix,
    tol: float,
    max_iter: int,
    precision: str,
    verbose: Any,
) -> LemllSolution:
    weights = {
        "alpha": check_number("alpha", alpha, above=0),
        "beta": check_number("beta", beta, above=0),
        "gamma": check_number("gamma", gamma, above=0, inclusive=True),
        "epsilon": check_number("epsilon", epsilon, above=0, inclusive=True),
    }
    tol = check_number("tol", tol, above=0)
    max_iter = check_whole("max_iter", max_iter, least=1)
    if precision not in ("float64", "float32"):
        raise ValueError(f"precision={precision!r} must be 'float64' or 'float32'.")
    check_fits(X, Y.shape[1], kernel)
    features = X if kernel is None else kernel.of_training(X, Y.shape[1])
    if graph is None:
        W = local_graph(X, kernel, n_neighbors, reg_policy)
    else:
        W = check_graph(graph, X.shape[0])
    progress = _ProgressLine(tol) if verbose else None
    solution = solve_logical(
        features,
        Y,
        W,
        **weights,
        tol=tol,
        max_iter=max_iter,
        precision=precision,
        callback=progress,
        cell_weight=cell_weight,
    )
    if progress is not None:
        progress.end(solution)
    scale = "alpha, beta, gamma and the features"
    # The certificate holds for the kernel values as computed. Add the effect of their rounding.
    return replace(
        solution, optimality=settle_optimality("LEMLL", kernel, X, solution, tol=tol, scale=scale)
    )


def make_graph(estimator: Estimator, X: Features) -> Features:
    """Build the graph for the parameters of an estimator.

    Parameters
    ----------
    estimator : estimator
        It has n_neighbors, reg_policy and the parameters of the kernel.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features.

    Returns
    -------
    csr_array of shape (n_samples, n_samples)
        The LLE weights W.
    """
    kernel = choose_kernel(estimator, X)
    return local_graph(X, kernel, estimator.n_neighbors, estimator.reg_policy)


def local_graph(X: Features, kernel: Kernel | None, n_neighbors: int, reg_policy: str) -> Features:
    """Build the graph of near rows in X, or in the feature space of a precomputed kernel.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Validated features, or values of a precomputed kernel.
    kernel : Kernel or None
        The kernel.
    n_neighbors, reg_policy
        As in `lemll.LEMLL`.

    Returns
    -------
    csr_array of shape (n_samples, n_samples)
        The LLE weights W.
    """
    n_samples = X.shape[0]
    wanted = check_whole("n_neighbors", n_neighbors, least=1)
    if n_samples < 2:
        raise ValueError(
            "LEMLL needs at least 2 rows, because each is rebuilt from others; "
            f"got n_samples={n_samples}."
        )
    # With a precomputed kernel the features are unknown, so distances come from the kernel.
    precomputed = kernel is not None and kernel.name == "precomputed"
    weights = kernel_reconstruction_weights if precomputed else reconstruction_weights
    # A row cannot have more neighbours than there are other rows.
    return weights(X, min(wanted, n_samples - 1), reg_policy=reg_policy)


def check_fits(X: Features, n_labels: int, kernel: Kernel | None) -> None:
    """Refuse features whose squares overflow, and problems that do not fit into memory.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Features.
    n_labels : int
        Number of labels or outputs.
    kernel : Kernel or None
        None for a linear model. A kernel checks its memory itself.
    """
    check_magnitude(X)
    if kernel is None:
        check_memory(
            solver_bytes(X, n_labels),
            f"Fitting {X.shape[0]} rows with {n_labels} labels",
            "fit fewer rows, features or labels at a time, or use a machine with more memory",
        )


class _ProgressLine:
    """A progress line on standard error. On a terminal it is rewritten in place."""

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def __call__(self, progress: Progress) -> None:
        self._show(progress.iteration, progress.objective, progress.optimality, progress.elapsed)

    def end(self, solution: LemllSolution) -> None:
        """Show the final state and end the line."""
        self._show(solution.n_iter, solution.objective, solution.optimality, None)
        if sys.stderr.isatty():
            sys.stderr.write("\n")

    def _show(self, iteration: int, objective: float, gap: float, elapsed: float | None) -> None:
        reached = f"{gap:.1e}" if np.isfinite(gap) else "not yet known"
        when = "done" if elapsed is None else f"{elapsed:.1f} s"
        text = (
            f"LEMLL iteration {iteration}: objective {objective:.6g}, certified gap {reached} "
            f"(wanted {self.tol:.1e}), {when}"
        )
        # "\r\x1b[K" goes to the start of the line and clears it. A file gets one line per report.
        sys.stderr.write(f"\r\x1b[K{text}" if sys.stderr.isatty() else f"{text}\n")
        sys.stderr.flush()
